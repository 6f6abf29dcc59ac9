// The tables of the log of a key: outcomes counted, the fastest candidates, and those that failed.

#include "store/database.h"

#include <math.h>

static void read_count(struct kg_query *query, struct kg_log_row *row)
{
    row->outcome = kg_query_text(query);
    row->count = kg_query_integer(query);
    row->first = kg_query_text(query);
    row->last = kg_query_text(query);
}

static void read_fastest(struct kg_query *query, struct kg_log_row *row)
{
    row->choice = kg_query_text(query);
    row->median = kg_query_number(query);
    row->spread = kg_query_number(query);
    row->count = kg_query_integer(query);
    row->bound = kg_query_number(query);
    row->last = kg_query_text(query);
}

static void read_failed(struct kg_query *query, struct kg_log_row *row)
{
    row->choice = kg_query_text(query);
    row->outcome = kg_query_text(query);
    row->reason = kg_query_text(query);
    row->last = kg_query_text(query);
}

static const struct {
    enum kg_sql statement;
    void (*read)(struct kg_query *query, struct kg_log_row *row);
} tables[KG_LOG_TABLE_COUNT] = {
    [KG_LOG_COUNTS] = {KG_SQL_LOG_COUNTS, read_count},
    [KG_LOG_FASTEST] = {KG_SQL_LOG_BEST, read_fastest},
    [KG_LOG_FAILED] = {KG_SQL_LOG_FAILED, read_failed},
};

enum kg_status kg_store_log_rows(struct kg_store *store, const struct kg_key *key,
                                 enum kg_log_table table,
                                 void (*visit)(void *user, const struct kg_log_row *row),
                                 void *user, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, tables[table].statement);
    kg_query_bind_key(&query, key);
    while (kg_query_step(&query)) {
        struct kg_log_row row = {"", "", "", "", "", (double)NAN, (double)NAN, (double)NAN, 0};
        tables[table].read(&query, &row);
        visit(user, &row);
    }
    return kg_query_end(&query, error);
}
