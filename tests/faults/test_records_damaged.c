// Records that were cut short or had bits flipped. Opening them never crashes; what is then found
// is what was written, or nothing; and what was damaged is moved aside, not deleted.

#include "base/files.h"
#include "report/log.h"
#include "support/sample_records.h"
#include "test.h"

#include <sys/wait.h>

#define OUTCOMES 20

struct files {
    char *bytes, *log;
    size_t length, log_length;
};

static struct kg_error error;

static void fill(struct kg_store *store)
{
    struct kg_key key = sample_key();
    char choice[64];
    for (int i = 0; i < OUTCOMES; i++) {
        snprintf(choice, sizeof choice, "rowwise vector=%d", i);
        struct kg_outcome outcome = sample_outcome(choice);
        struct kg_wisdom wisdom = sample_wisdom(choice);
        struct kg_round round = {.number = i, .choice = choice};
        char sizes[64];
        snprintf(sizes, sizeof sizes, "P=%d", i % 5);
        key.sizes = sizes;
        kg_store_append(store, &key, &outcome, NULL);
        kg_store_learn(store, &key, &wisdom, NULL);
        kg_store_round(store, &key, &round, NULL);
    }
}

// The database, and its log where the writer was killed before it could be folded in.
static struct files make_files(int killed)
{
    char folder[SAMPLE_FOLDER], path[128];
    sample_folder(folder);
    kg_store_close(sample_open(folder));
    pid_t child = fork();
    if (child == 0) {
        struct kg_store *store = sample_open(folder);
        fill(store);
        if (!killed)
            kg_store_close(store);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    struct files files = {0};
    snprintf(path, sizeof path, "%s/records.db", folder);
    CHECK_STATUS(kg_files_read(path, 1 << 24, &files.bytes, &files.length, &error), KG_OK, &error);
    snprintf(path, sizeof path, "%s/records.db-wal", folder);
    if (killed)
        CHECK_STATUS(kg_files_read(path, 1 << 24, &files.log, &files.log_length, &error), KG_OK,
                     &error);
    sample_remove(folder);
    return files;
}

static void put(const char *folder, const char *name, const char *bytes, size_t length)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
        abort();
}

// Whatever is found must be what was written. Gives the number found.
static int found_whole(struct kg_store *store)
{
    struct kg_key key = sample_key();
    char choice[64], sizes[64];
    int count = 0;
    key.sizes = sizes;
    for (int i = 0; i < OUTCOMES; i++) {
        struct kg_outcome found;
        bool any;
        snprintf(choice, sizeof choice, "rowwise vector=%d", i);
        snprintf(sizes, sizeof sizes, "P=%d", i % 5);
        enum kg_status status = kg_store_find(store, &key, choice, &found, &any, &error);
        CHECK(status == KG_OK || status == KG_ERROR_CORRUPT || status == KG_ERROR_IO);
        if (!any)
            continue;
        struct kg_outcome right = sample_outcome(choice);
        CHECK(found.timing.median == right.timing.median && found.source.low == right.source.low);
        CHECK(found.verdict.seed == right.verdict.seed && found.kind == right.kind);
        CHECK(!found.forecast.known || sample_same_forecast(&found.forecast, &right.forecast));
        count++;
    }
    for (int i = 0; i < 5; i++) {
        struct kg_wisdom wisdom;
        snprintf(sizes, sizeof sizes, "P=%d", i);
        enum kg_status status = kg_store_recall(store, &key, &wisdom, &error);
        CHECK(status == KG_OK || status == KG_ERROR_NO_WISDOM || status == KG_ERROR_CORRUPT ||
              status == KG_ERROR_IO);
        if (status != KG_OK)
            continue;
        CHECK(strncmp(wisdom.choice, "rowwise vector=", 15) == 0 && wisdom.seconds == 1.25e-5);
        count++;
        kg_wisdom_free(&wisdom);
    }
    struct kg_text text = {0};
    kg_report_log(store, NULL, KG_ENGLISH, &text, NULL);
    kg_store_export(store, &text, NULL);
    kg_store_list(store, NULL, true, &text, NULL);
    kg_text_free(&text);
    return count;
}

static int exists(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return kg_files_exists(path);
}

// Opens damaged files, uses them, and makes sure that in the end there are records that work.
static void try_files(const char *bytes, size_t length, const char *log, size_t log_length,
                      int *moved, int *whole)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    put(folder, "records.db", bytes, length);
    if (log)
        put(folder, "records.db-wal", log, log_length);
    struct kg_text notice = {0};
    struct kg_key key = sample_key();
    struct kg_outcome outcome = sample_outcome("after");
    for (int start = 0; start < 2; start++) {
        struct kg_store *store;
        enum kg_status status = kg_store_open(folder, &store, &notice, &error);
        if (status == KG_ERROR_UNSUPPORTED && strstr(error.text, "newer"))
            break; // the flipped bit was that of the version
        CHECK_STATUS(status, KG_OK, &error);
        if (!store)
            break;
        if (found_whole(store) == OUTCOMES + 5)
            ++*whole;
        status = kg_store_append(store, &key, &outcome, &error);
        kg_store_close(store);
        if (status == KG_OK)
            break;
        // Damage that only writing meets: the next start must deal with it.
        CHECK(start == 0);
        CHECK_STATUS(status, KG_ERROR_CORRUPT, &error);
    }
    CHECK((notice.length > 0) == exists(folder, "records.db.corrupt-1"));
    CHECK(notice.length == 0 || strstr(notice.data, "was damaged; it was moved to "));
    *moved += notice.length > 0;
    kg_text_free(&notice);
    sample_remove(folder);
}

static void test_cut_short(void)
{
    struct files files = make_files(0);
    int moved = 0, whole = 0, tried = 0;
    // SQLite takes a file of one byte for an empty one.
    for (size_t length = 2; length < files.length; length += length < 1024 ? 97 : 1531) {
        try_files(files.bytes, length, NULL, 0, &moved, &whole);
        tried++;
    }
    // The end of the last page may be unused: without it nothing is missing.
    CHECK(moved + whole == tried && whole <= 1);
    moved = whole = 0;
    try_files(files.bytes, files.length, NULL, 0, &moved, &whole);
    CHECK(moved == 0 && whole == 1); // undamaged: the test itself can tell
    free(files.bytes);
}

static void test_flipped_bits(void)
{
    struct files files = make_files(0);
    int moved = 0, whole = 0, tried = 0;
    for (size_t at = 0; at < files.length; at += at < 100 ? 1 : 331) {
        files.bytes[at] ^= (char)(1 << (at % 8));
        try_files(files.bytes, files.length, NULL, 0, &moved, &whole);
        files.bytes[at] ^= (char)(1 << (at % 8));
        tried++;
    }
    CHECK(tried > 200 && moved > 20 && whole > 20);
    free(files.bytes);
}

static void test_damaged_log(void)
{
    struct files files = make_files(1);
    int moved = 0, whole = 0;
    try_files(files.bytes, files.length, files.log, files.log_length, &moved, &whole);
    CHECK(moved == 0 && whole == 1); // nothing that was committed is lost by a kill
    for (size_t at = 0; at < files.log_length; at += at < 100 ? 7 : 5003) {
        files.log[at] ^= (char)(1 << (at % 8));
        try_files(files.bytes, files.length, files.log, files.log_length, &moved, &whole);
        files.log[at] ^= (char)(1 << (at % 8));
        try_files(files.bytes, files.length, files.log, at, &moved, &whole);
    }
    free(files.bytes);
    free(files.log);
}

// Not SQLite at all, or someone else's database: kept under another name, numbered upwards.
static void test_foreign_file(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    for (int i = 1; i <= 3; i++) {
        put(folder, "records.db", "this is no database, but long enough to be looked at closely",
            60);
        struct kg_store *store;
        struct kg_text notice = {0};
        char name[64];
        CHECK_STATUS(kg_store_open(folder, &store, &notice, &error), KG_OK, &error);
        snprintf(name, sizeof name, "records.db.corrupt-%d", i);
        CHECK(notice.data && strstr(notice.data, name) && exists(folder, name));
        kg_text_free(&notice);
        kg_store_close(store);
    }
    sample_remove(folder);
}

TEST_MAIN(test_cut_short, test_flipped_bits, test_damaged_log, test_foreign_file)
