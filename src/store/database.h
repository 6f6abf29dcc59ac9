// The open database for the files of this layer: its statements, transactions, and the rows of
// keys. Only src/store includes this.

#ifndef KG_STORE_DATABASE_H
#define KG_STORE_DATABASE_H

#include "base/arena.h"
#include "store/store.h"

#include <sqlite3.h>

// Every statement; schema.c has their texts.
enum kg_sql {
    KG_SQL_BEGIN,
    KG_SQL_COMMIT,
    KG_SQL_ROLLBACK,
    KG_SQL_ADD_OP,
    KG_SQL_ADD_PROBLEM,
    KG_SQL_ADD_DEVICE,
    KG_SQL_ADD_KEY,
    KG_SQL_ADD_CANDIDATE,
    KG_SQL_ADD_OUTCOME,
    KG_SQL_ADD_FORECAST,
    KG_SQL_FIND_OUTCOME,
    KG_SQL_FIND_EMITTED,
    KG_SQL_EACH_OUTCOME,
    KG_SQL_HISTORY,
    KG_SQL_SET_WISDOM,
    KG_SQL_GET_WISDOM,
    KG_SQL_NEAR_WISDOM,
    KG_SQL_LIST_WISDOM,
    KG_SQL_FORGET_WISDOM,
    KG_SQL_GET_LEASE,
    KG_SQL_SET_LEASE,
    KG_SQL_RENEW_LEASE,
    KG_SQL_DROP_LEASE,
    KG_SQL_ADD_ROUND,
    KG_SQL_EACH_ROUND,
    KG_SQL_NOTE_COST,
    KG_SQL_GET_COST,
    KG_SQL_NOTE_TEXT,
    KG_SQL_GET_TEXT,
    KG_SQL_LOG_KEYS,
    KG_SQL_LOG_COUNTS,
    KG_SQL_LOG_BEST,
    KG_SQL_LOG_FAILED,
    KG_SQL_NOTE_TRAITS,
    KG_SQL_UNMINED,
    KG_SQL_SET_MINED,
    KG_SQL_ADD_LESSON,
    KG_SQL_EACH_LESSON,
    KG_SQL_TIMES_OF_CLASS,
    KG_SQL_CLASSES,
    KG_SQL_ADD_FOREIGN,
    KG_SQL_FIND_FOREIGN,
    KG_SQL_COUNT
};
extern const char *const kg_store_statements[KG_SQL_COUNT];

#define KG_STORE_VERSION 9              // of the schema, as PRAGMA user_version
#define KG_STORE_APPLICATION 0x4B47454E // "KGEN", as PRAGMA application_id
#define KG_STORE_SUSPECT ".suspect"     // exists if damage was found: check thoroughly
#define KG_BUSY_MILLISECONDS 10000      // to wait while another process locks the records

// Step n turns tables of version n into those of version n + 1; an empty database has version 0.
extern const char *const kg_store_steps[KG_STORE_VERSION];

struct kg_store {
    sqlite3 *database;
    char *path;
    struct kg_arena scratch; // strings returned to callers; cleared by the next call
    sqlite3_stmt *statements[KG_SQL_COUNT];
    // The key appended last: a search appends thousands of outcomes under one key.
    struct kg_hash last_key;
    int64_t last_key_id; // 0: none
    int64_t token;       // of the leases taken through this store; 0: none was taken yet
};

// One use of a statement. Parameters are bound in order and columns read in order. The first
// failure is kept, and kg_query_end reports it.
struct kg_query {
    struct kg_store *store;
    sqlite3_stmt *statement;
    int parameter;
    int column;
    int code;
};

struct kg_query kg_query_begin(struct kg_store *store, enum kg_sql which);
void kg_query_bind_text(struct kg_query *query, const char *text); // writes NULL as ""
void kg_query_bind_hash(struct kg_query *query, struct kg_hash hash);
void kg_query_bind_integer(struct kg_query *query, int64_t value);
void kg_query_bind_number(struct kg_query *query, double value); // writes NaN as NULL
void kg_query_bind_key(struct kg_query *query, const struct kg_key *key);
// Returns true if there is a row to read; false at the end, or after a failure.
bool kg_query_step(struct kg_query *query);
const char *kg_query_text(struct kg_query *query); // borrowed until the next step; never NULL
struct kg_hash kg_query_hash(struct kg_query *query);
int64_t kg_query_integer(struct kg_query *query);
double kg_query_number(struct kg_query *query);
void kg_query_key(struct kg_query *query, struct kg_key *key); // strings as kg_query_text
// After reading columns: whether memory was missing for one of them.
bool kg_query_lacks_memory(const struct kg_query *query);
// Resets the statement for its next use.
enum kg_status kg_query_end(struct kg_query *query, struct kg_error *error);

// Our status and message for an SQLite code.
enum kg_status kg_store_fail(struct kg_store *store, int code, struct kg_error *error);

// Other connections see changes only after the commit; any failure requires a rollback.
enum kg_status kg_store_begin(struct kg_store *store, struct kg_error *error);
enum kg_status kg_store_commit(struct kg_store *store, struct kg_error *error);
void kg_store_rollback(struct kg_store *store);

// The only column of the statement's only row: the id of a row, new or known.
enum kg_status kg_query_end_with_id(struct kg_query *query, int64_t *id, struct kg_error *error);

// The id of `key`, which is added if it is new (inside a transaction).
enum kg_status kg_store_add_key(struct kg_store *store, const struct kg_key *key, int64_t *id,
                                struct kg_error *error);
// Seals of rows from tables before version 4 include `generator`, which was a part of the key then;
// other rows have "" there.
struct kg_hash kg_store_hash_key(const struct kg_key *key, const char *generator);
struct kg_hash kg_store_hash_number(struct kg_hash hash, double value);
struct kg_hash kg_store_hash_integer(struct kg_hash hash, int64_t value);

// The hash over the values and the whole key as text. `generator` as for kg_store_hash_key.
struct kg_hash kg_store_seal_wisdom(const struct kg_key *key, const struct kg_wisdom *wisdom,
                                    const char *generator);
// Stores wisdom inside a transaction; `*known_better`: the known choice was kept.
enum kg_status kg_store_set_wisdom(struct kg_store *store, const struct kg_key *key,
                                   const struct kg_wisdom *wisdom, bool *known_better,
                                   struct kg_error *error);
// The next row of KG_SQL_LIST_WISDOM; `*sound` is false if its seal does not fit. Strings are
// borrowed until the next step.
bool kg_store_next_wisdom(struct kg_query *query, struct kg_key *key, struct kg_wisdom *wisdom,
                          bool *sound);

// "2025-01-31T12:00:00Z"
#define KG_DATE_TEXT 21
void kg_store_now(char out[KG_DATE_TEXT]);

#endif
