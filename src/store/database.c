// Opening the records, and moving damaged ones aside. Every process holds `records.lock` while it
// checks the records: two processes that find the same damage must not move each other's new
// database away.

#include "store/database.h"

#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define MAX_DAMAGED 1000

// While opening, all statements are our own: one that SQLite rejects means that the tables are not
// ours.
static bool is_damage(int code)
{
    int kind = code & 0xFF;
    return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_ERROR;
}

static void close_database(struct kg_store *store)
{
    for (int i = 0; i < KG_SQL_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
    sqlite3_close(store->database);
    store->database = NULL;
}

// The single value of a pragma; "" if it returns none.
static int ask(struct kg_store *store, const char *sql, char *answer, size_t size)
{
    sqlite3_stmt *statement;
    answer[0] = '\0';
    int code = sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(statement, 0);
        snprintf(answer, size, "%s", text ? (const char *)text : "");
    }
    int end = sqlite3_finalize(statement);
    return end != SQLITE_OK ? end : SQLITE_OK;
}

static int execute(struct kg_store *store, const char *sql)
{
    return sqlite3_exec(store->database, sql, NULL, NULL, NULL);
}

// Upgrades tables of `version` (0: none) to today's in one transaction, or changes nothing.
static int bring_up_to_date(struct kg_store *store, long *version)
{
    char marks[96];
    snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             KG_STORE_APPLICATION, KG_STORE_VERSION);
    int code = execute(store, "BEGIN IMMEDIATE");
    for (long step = *version; step < KG_STORE_VERSION && code == SQLITE_OK; step++)
        code = execute(store, kg_store_steps[step]);
    if (code == SQLITE_OK)
        code = execute(store, marks);
    if (code == SQLITE_OK)
        code = execute(store, "COMMIT");
    if (code == SQLITE_OK)
        *version = KG_STORE_VERSION;
    return code;
}

// Whether these are our tables, complete. Earlier versions are upgraded, an empty database gets new
// tables, later versions are left unchanged.
static int check_tables(struct kg_store *store, bool suspect, long *version)
{
    char answer[64];
    *version = 0;
    int code = ask(store, "SELECT count(*) FROM sqlite_schema", answer, sizeof answer);
    if (code != SQLITE_OK)
        return code;
    if (strcmp(answer, "0") == 0)
        return bring_up_to_date(store, version);
    code = ask(store, "PRAGMA application_id", answer, sizeof answer);
    if (code == SQLITE_OK && strtol(answer, NULL, 10) != KG_STORE_APPLICATION)
        return SQLITE_NOTADB;
    if (code == SQLITE_OK)
        code = ask(store, "PRAGMA user_version", answer, sizeof answer);
    if (code != SQLITE_OK)
        return code;
    *version = strtol(answer, NULL, 10);
    if (*version > KG_STORE_VERSION)
        return SQLITE_OK;
    if (*version < 1)
        return SQLITE_CORRUPT;
    code = ask(store, suspect ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)", answer,
               sizeof answer);
    if (code == SQLITE_OK && strcmp(answer, "ok") != 0)
        code = SQLITE_CORRUPT;
    if (code == SQLITE_OK && *version < KG_STORE_VERSION)
        code = bring_up_to_date(store, version);
    return code;
}

// A statement that cannot be prepared means that a table or column is gone.
static int check_statements(struct kg_store *store)
{
    for (int i = 0; i < KG_SQL_COUNT; i++) {
        struct kg_query query = kg_query_begin(store, (enum kg_sql)i);
        if (query.code != SQLITE_OK)
            return query.code;
    }
    return SQLITE_OK;
}

// WAL with synchronous NORMAL: commits survive a killed process; a power cut may lose the last ones
// but never the database. The content is untrusted: no triggers or views may run.
static int open_database(struct kg_store *store, bool suspect, long *version)
{
    int code = sqlite3_open_v2(
        store->path, &store->database,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_PRIVATECACHE, NULL);
    if (code != SQLITE_OK)
        return code;
    sqlite3_extended_result_codes(store->database, 1);
    sqlite3_busy_timeout(store->database, KG_BUSY_MILLISECONDS);
    sqlite3_db_config(store->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_limit(store->database, SQLITE_LIMIT_LENGTH, 16 << 20);
    char mode[16];
    code = execute(store, "PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL");
    if (code == SQLITE_OK)
        code = ask(store, "PRAGMA journal_mode = WAL", mode, sizeof mode);
    // A flipped bit in the header can make SQLite open the file read-only.
    if (code == SQLITE_OK && sqlite3_db_readonly(store->database, "main") == 1 &&
        access(store->path, W_OK) == 0)
        code = SQLITE_CORRUPT;
    if (code == SQLITE_OK)
        code = check_tables(store, suspect, version);
    if (code == SQLITE_OK && *version == KG_STORE_VERSION)
        code = check_statements(store);
    return code;
}

// Moves the database and its log to the first free number.
static enum kg_status move_aside(struct kg_store *store, struct kg_text *notice,
                                 struct kg_error *error)
{
    char *aside = NULL;
    for (int n = 1; n <= MAX_DAMAGED; n++) {
        if (asprintf(&aside, "%s.corrupt-%d", store->path, n) < 0)
            return kg_error_memory(error, store->path);
        if (!kg_files_exists(aside))
            break;
        free(aside);
        aside = NULL;
    }
    if (!aside || rename(store->path, aside) != 0) {
        kg_error_set(error, KG_ERROR_IO, "%s is damaged and cannot be moved aside: %s", store->path,
                     aside ? strerror(errno) : "too many damaged databases beside it");
        free(aside);
        return KG_ERROR_IO;
    }
    static const char *const companions[] = {"-wal", "-shm"};
    for (size_t i = 0; i < 2; i++) {
        char *from = NULL, *to = NULL;
        if (asprintf(&from, "%s%s", store->path, companions[i]) < 0)
            from = NULL;
        if (asprintf(&to, "%s%s", aside, companions[i]) < 0)
            to = NULL;
        if (from && to)
            rename(from, to); // may not exist
        free(from);
        free(to);
    }
    if (notice)
        kg_text_format(notice, "%s was damaged; it was moved to %s and new records begun\n",
                       store->path, aside);
    free(aside);
    return KG_OK;
}

// A live process holds the lock only for a moment.
static enum kg_status lock(const char *home, int *file, struct kg_error *error)
{
    char *path;
    if (asprintf(&path, "%s/records.lock", home) < 0) {
        *file = -1;
        return kg_error_memory(error, home);
    }
    enum kg_status status = KG_OK;
    *file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (*file < 0)
        status = kg_files_fail(error, "open", path);
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int waited = 0; status == KG_OK && flock(*file, LOCK_EX | LOCK_NB) != 0; waited += 10) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= KG_BUSY_MILLISECONDS)
            status = kg_error_set(error, KG_ERROR_IO, "cannot lock %s: %s", path, strerror(errno));
        else
            nanosleep(&pause, NULL);
    }
    free(path);
    return status;
}

static enum kg_status open_checked(struct kg_store *store, struct kg_text *notice,
                                   struct kg_error *error)
{
    long version = KG_STORE_VERSION;
    char *mark;
    if (asprintf(&mark, "%s" KG_STORE_SUSPECT, store->path) < 0)
        return kg_error_memory(error, store->path);
    bool suspect = kg_files_exists(mark);
    int code = open_database(store, suspect, &version);
    if (suspect && (code == SQLITE_OK || is_damage(code)))
        unlink(mark);
    free(mark);
    if (is_damage(code)) {
        close_database(store);
        enum kg_status status = move_aside(store, notice, error);
        if (status != KG_OK)
            return status;
        code = open_database(store, false, &version);
    }
    if (code != SQLITE_OK)
        return kg_store_fail(store, code, error);
    if (version != KG_STORE_VERSION)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "%s has format %ld, this KernelGen knows %d: use a newer KernelGen, "
                            "another KERNELGEN_HOME, or move the file away",
                            store->path, version, KG_STORE_VERSION);
    return KG_OK;
}

void kg_store_now(char out[KG_DATE_TEXT])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(out, KG_DATE_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

enum kg_status kg_store_open(const char *home, struct kg_store **store, struct kg_text *notice,
                             struct kg_error *error)
{
    *store = NULL;
    char *folder;
    enum kg_status status = kg_files_home(home, &folder, error);
    if (status != KG_OK)
        return status;
    struct kg_store *opened = calloc(1, sizeof *opened);
    if (!opened || asprintf(&opened->path, "%s/records.db", folder) < 0) {
        free(opened);
        free(folder);
        return kg_error_memory(error, "the records");
    }
    int file;
    status = lock(folder, &file, error);
    if (status == KG_OK)
        status = open_checked(opened, notice, error);
    if (file >= 0)
        close(file);
    free(folder);
    if (status == KG_OK)
        *store = opened;
    else
        kg_store_close(opened);
    return status;
}

enum kg_status kg_store_open_memory(struct kg_store **store, struct kg_error *error)
{
    *store = NULL;
    struct kg_store *opened = calloc(1, sizeof *opened);
    if (!opened || !(opened->path = strdup(":memory:"))) {
        free(opened);
        return kg_error_memory(error, "records in memory");
    }
    long version;
    int code = open_database(opened, false, &version);
    if (code == SQLITE_OK) {
        *store = opened;
        return KG_OK;
    }
    enum kg_status status = kg_store_fail(opened, code, error);
    kg_store_close(opened);
    return status;
}

void kg_store_close(struct kg_store *store)
{
    if (!store)
        return;
    close_database(store);
    kg_arena_free(&store->scratch);
    free(store->path);
    free(store);
}
