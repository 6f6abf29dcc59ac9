// Using statements: parameters, columns, and the translation of SQLite's codes.

#include "store/database.h"

#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// The quick check at every start does not find all damage; after some was found, requests a
// thorough check.
static void mark_suspect(const struct kg_store *store)
{
    char *path;
    if (asprintf(&path, "%s" KG_STORE_SUSPECT, store->path) < 0)
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0)
        close(file);
    free(path);
}

// Whether this process has a limit on the size of files.
static bool is_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// The reason, from errno.
static enum kg_status fail_to_write(const struct kg_store *store, struct kg_error *error)
{
    enum kg_status status = kg_files_fail(error, "write", store->path);
    if (error)
        kg_error_set(error, status,
                     "%s (KERNELGEN_HOME says where); what was recorded so far is kept",
                     error->text);
    return status;
}

enum kg_status kg_store_fail(struct kg_store *store, int code, struct kg_error *error)
{
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        return kg_error_memory(error, store->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        mark_suspect(store);
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "%s is damaged; the next start will move it aside", store->path);
    case SQLITE_FULL:
        errno = ENOSPC;
        return fail_to_write(store, error);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return kg_error_set(error, KG_ERROR_IO,
                            "%s stayed locked by another process for %d seconds", store->path,
                            KG_BUSY_MILLISECONDS / 1000);
    default:
        break;
    }
    int why = sqlite3_system_errno(store->database);
    if (!why && code == SQLITE_IOERR_WRITE && is_limited()) // SQLite does not always preserve errno
        why = EFBIG;
    if (why == ENOSPC || why == EDQUOT || why == EFBIG) {
        errno = why;
        return fail_to_write(store, error);
    }
    return kg_error_set(error, KG_ERROR_IO, "%s: %s%s%s", store->path, sqlite3_errstr(code),
                        why ? ": " : "", why ? strerror(why) : "");
}

struct kg_query kg_query_begin(struct kg_store *store, enum kg_sql which)
{
    struct kg_query query = {.store = store};
    if (!store->statements[which])
        query.code = sqlite3_prepare_v3(store->database, kg_store_statements[which], -1,
                                        SQLITE_PREPARE_PERSISTENT, &store->statements[which], NULL);
    query.statement = store->statements[which];
    return query;
}

void kg_query_bind_text(struct kg_query *query, const char *text)
{
    if (query->code == SQLITE_OK)
        query->code = sqlite3_bind_text(query->statement, ++query->parameter, text ? text : "", -1,
                                        SQLITE_TRANSIENT);
}

void kg_query_bind_hash(struct kg_query *query, struct kg_hash hash)
{
    char digits[KG_HASH_TEXT];
    kg_hash_format(hash, digits);
    kg_query_bind_text(query, digits);
}

void kg_query_bind_integer(struct kg_query *query, int64_t value)
{
    if (query->code == SQLITE_OK)
        query->code = sqlite3_bind_int64(query->statement, ++query->parameter, value);
}

void kg_query_bind_number(struct kg_query *query, double value)
{
    if (query->code == SQLITE_OK)
        query->code = sqlite3_bind_double(query->statement, ++query->parameter, value);
}

void kg_query_bind_key(struct kg_query *query, const struct kg_key *key)
{
    kg_query_bind_text(query, key->op);
    kg_query_bind_hash(query, key->definition);
    kg_query_bind_text(query, key->dtypes);
    kg_query_bind_text(query, key->sizes);
    kg_query_bind_text(query, key->layout);
    kg_query_bind_text(query, key->device);
    kg_query_bind_text(query, key->isa);
    kg_query_bind_integer(query, key->units);
    kg_query_bind_text(query, key->driver);
    kg_query_bind_text(query, key->compiler);
    kg_query_bind_text(query, key->protocol);
}

bool kg_query_step(struct kg_query *query)
{
    query->column = 0;
    if (query->code != SQLITE_OK)
        return false;
    int code = sqlite3_step(query->statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        query->code = code;
    return code == SQLITE_ROW;
}

const char *kg_query_text(struct kg_query *query)
{
    const unsigned char *text = sqlite3_column_text(query->statement, query->column++);
    return text ? (const char *)text : "";
}

// Malformed digits give a hash that matches nothing.
struct kg_hash kg_query_hash(struct kg_query *query)
{
    unsigned long long high = 0, low = 0;
    if (sscanf(kg_query_text(query), "%16llx%16llx", &high, &low) != 2)
        return (struct kg_hash){0};
    return (struct kg_hash){.high = high, .low = low};
}

int64_t kg_query_integer(struct kg_query *query)
{
    return sqlite3_column_int64(query->statement, query->column++);
}

double kg_query_number(struct kg_query *query)
{
    int column = query->column++;
    if (sqlite3_column_type(query->statement, column) == SQLITE_NULL)
        return (double)NAN;
    return sqlite3_column_double(query->statement, column);
}

void kg_query_key(struct kg_query *query, struct kg_key *key)
{
    key->op = kg_query_text(query);
    key->definition = kg_query_hash(query);
    key->dtypes = kg_query_text(query);
    key->sizes = kg_query_text(query);
    key->layout = kg_query_text(query);
    key->device = kg_query_text(query);
    key->isa = kg_query_text(query);
    key->units = (int)kg_query_integer(query);
    key->driver = kg_query_text(query);
    key->compiler = kg_query_text(query);
    key->protocol = kg_query_text(query);
}

bool kg_query_lacks_memory(const struct kg_query *query)
{
    return (sqlite3_errcode(query->store->database) & 0xFF) == SQLITE_NOMEM;
}

enum kg_status kg_query_end(struct kg_query *query, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    if (query->code != SQLITE_OK)
        status = kg_store_fail(query->store, query->code, error);
    if (query->statement) {
        sqlite3_reset(query->statement);
        sqlite3_clear_bindings(query->statement);
    }
    return status;
}

enum kg_status kg_query_end_with_id(struct kg_query *query, int64_t *id, struct kg_error *error)
{
    *id = kg_query_step(query) ? kg_query_integer(query) : 0;
    while (kg_query_step(query))
        ;
    return kg_query_end(query, error);
}

static enum kg_status run(struct kg_store *store, enum kg_sql which, struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, which);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

enum kg_status kg_store_begin(struct kg_store *store, struct kg_error *error)
{
    return run(store, KG_SQL_BEGIN, error);
}

enum kg_status kg_store_commit(struct kg_store *store, struct kg_error *error)
{
    enum kg_status status = run(store, KG_SQL_COMMIT, error);
    if (status != KG_OK)
        kg_store_rollback(store);
    return status;
}

// SQLite may have rolled back by itself (on a full disk). The cached key may have been part of the
// transaction.
void kg_store_rollback(struct kg_store *store)
{
    store->last_key_id = 0;
    if (!sqlite3_get_autocommit(store->database))
        run(store, KG_SQL_ROLLBACK, NULL);
}
