// Rounds, and what is known of the problems they are of.

#include "store/database.h"

#include <string.h>

static enum kg_status add_round(struct kg_store *store, const struct kg_key *key,
                                const struct kg_round *round, struct kg_error *error)
{
    int64_t id;
    enum kg_status status = kg_store_add_key(store, key, &id, error);
    if (status != KG_OK)
        return status;
    char date[KG_DATE_TEXT];
    kg_store_now(date);
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_ROUND);
    kg_query_bind_integer(&query, id);
    kg_query_bind_text(&query, date);
    kg_query_bind_integer(&query, round->number);
    kg_query_bind_text(&query, round->diagnosis);
    kg_query_bind_text(&query, round->change);
    kg_query_bind_text(&query, round->choice);
    kg_query_bind_number(&query, round->before);
    kg_query_bind_number(&query, round->after);
    kg_query_bind_number(&query, round->baseline);
    kg_query_bind_number(&query, round->roofline);
    kg_query_bind_text(&query, round->result);
    kg_query_bind_text(&query, round->base);
    kg_query_bind_text(&query, round->kind);
    kg_query_bind_text(&query, round->bottleneck);
    kg_query_bind_number(&query, round->predicted);
    kg_query_bind_integer(&query, round->tried);
    kg_query_bind_integer(&query, round->kept);
    kg_query_bind_text(&query, round->difference);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

// Ends the transaction that kg_store_begin began.
static enum kg_status finish(struct kg_store *store, enum kg_status status, struct kg_error *error)
{
    if (status == KG_OK)
        return kg_store_commit(store, error);
    kg_store_rollback(store);
    return status;
}

enum kg_status kg_store_round(struct kg_store *store, const struct kg_key *key,
                              const struct kg_round *round, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    enum kg_status status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    return finish(store, add_round(store, key, round, error), error);
}

enum kg_status kg_store_rounds(struct kg_store *store, const struct kg_key *key,
                               void (*visit)(void *user, const struct kg_round *round), void *user,
                               struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_EACH_ROUND);
    kg_query_bind_key(&query, key);
    while (kg_query_step(&query)) {
        struct kg_round round;
        round.date = kg_query_text(&query);
        round.number = (int)kg_query_integer(&query);
        round.diagnosis = kg_query_text(&query);
        round.change = kg_query_text(&query);
        round.choice = kg_query_text(&query);
        round.before = kg_query_number(&query);
        round.after = kg_query_number(&query);
        round.baseline = kg_query_number(&query);
        round.roofline = kg_query_number(&query);
        round.result = kg_query_text(&query);
        round.base = kg_query_text(&query);
        round.kind = kg_query_text(&query);
        round.bottleneck = kg_query_text(&query);
        round.predicted = kg_query_number(&query);
        round.tried = (int)kg_query_integer(&query);
        round.kept = kg_query_integer(&query) != 0;
        round.difference = kg_query_text(&query);
        visit(user, &round);
    }
    return kg_query_end(&query, error);
}

static enum kg_status add_description(struct kg_store *store, const struct kg_key *key,
                                      const struct kg_cost *cost, const char *text,
                                      struct kg_error *error)
{
    int64_t id;
    enum kg_status status = kg_store_add_key(store, key, &id, error);
    if (status != KG_OK)
        return status;
    struct kg_query query = kg_query_begin(store, KG_SQL_NOTE_COST);
    kg_query_bind_integer(&query, id);
    kg_query_bind_number(&query, cost->operations);
    kg_query_bind_number(&query, cost->bytes);
    kg_query_bind_number(&query, cost->memory_seconds);
    kg_query_bind_number(&query, cost->compute_seconds);
    kg_query_step(&query);
    status = kg_query_end(&query, error);
    if (status != KG_OK)
        return status;
    query = kg_query_begin(store, KG_SQL_NOTE_TEXT);
    kg_query_bind_integer(&query, id);
    kg_query_bind_text(&query, text);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

enum kg_status kg_store_describe(struct kg_store *store, const struct kg_key *key,
                                 const struct kg_cost *cost, const char *text,
                                 struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    enum kg_status status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    return finish(store, add_description(store, key, cost, text, error), error);
}

enum kg_status kg_store_cost(struct kg_store *store, const struct kg_key *key, struct kg_cost *cost,
                             struct kg_error *error)
{
    *cost = (struct kg_cost){0};
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_GET_COST);
    kg_query_bind_key(&query, key);
    if (kg_query_step(&query)) {
        cost->operations = kg_query_number(&query);
        cost->bytes = kg_query_number(&query);
        cost->memory_seconds = kg_query_number(&query);
        cost->compute_seconds = kg_query_number(&query);
    }
    return kg_query_end(&query, error);
}

enum kg_status kg_store_text(struct kg_store *store, const char *op, struct kg_hash definition,
                             const char **text, struct kg_error *error)
{
    *text = "";
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_GET_TEXT);
    kg_query_bind_text(&query, op);
    kg_query_bind_hash(&query, definition);
    if (kg_query_step(&query)) {
        const char *found = kg_query_text(&query);
        *text = kg_arena_copy(&store->scratch, found, strlen(found));
    }
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK && store->scratch.failed)
        status = kg_error_memory(error, "the text of an op");
    return status;
}
