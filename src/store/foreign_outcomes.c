// See foreign_outcomes.h.

#include "store/foreign_outcomes.h"

#include "store/database.h"

#include <string.h>

#define LONGEST_REASON 4096

static const enum kg_outcome_kind kinds[] = {KG_OUTCOME_MEASURED, KG_OUTCOME_COMPILE,
                                             KG_OUTCOME_WRONG, KG_OUTCOME_FAULT,
                                             KG_OUTCOME_TIMEOUT};

static struct kg_hash seal_timing(struct kg_hash hash, const struct kg_timing *timing)
{
    hash = kg_store_hash_integer(hash, timing->samples);
    hash = kg_store_hash_number(hash, timing->median);
    return kg_store_hash_number(hash, timing->spread);
}

static struct kg_hash seal(const struct kg_key *key, const struct kg_foreign_outcome *outcome)
{
    const struct kg_asm_gist *gist = &outcome->gist;
    const int64_t integers[] = {(int64_t)outcome->kind,
                                outcome->cases,
                                (int64_t)outcome->seed,
                                outcome->standing,
                                gist->known,
                                gist->registers,
                                gist->spill_bytes,
                                gist->loop_spill_bytes,
                                gist->tensor};
    struct kg_hash hash = kg_hash_chain_text(kg_store_hash_key(key, ""), outcome->file);
    hash = kg_hash_chain(hash, &outcome->hash, sizeof outcome->hash);
    hash = kg_hash_chain(hash, &outcome->proof, sizeof outcome->proof);
    hash = kg_hash_chain_text(hash, outcome->reference);
    hash = kg_hash_chain_text(hash, outcome->reason);
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        hash = kg_store_hash_integer(hash, integers[i]);
    hash = kg_store_hash_number(hash, gist->load_bytes);
    hash = kg_store_hash_number(hash, gist->step_flops);
    hash = seal_timing(hash, &outcome->timing);
    hash = seal_timing(hash, &outcome->reference_timing);
    return seal_timing(hash, &outcome->baseline_timing);
}

static void bind_timing(struct kg_query *query, const struct kg_timing *timing)
{
    kg_query_bind_integer(query, timing->samples);
    kg_query_bind_number(query, timing->median);
    kg_query_bind_number(query, timing->spread);
}

static void read_timing(struct kg_query *query, struct kg_timing *timing)
{
    timing->samples = (int)kg_query_integer(query);
    timing->median = kg_query_number(query);
    timing->spread = kg_query_number(query);
}

// The columns of KG_SQL_ADD_FOREIGN.
static enum kg_status add(struct kg_store *store, const struct kg_key *key,
                          const struct kg_foreign_outcome *outcome, struct kg_error *error)
{
    int64_t id;
    char date[KG_DATE_TEXT];
    const struct kg_asm_gist *gist = &outcome->gist;
    enum kg_status status = kg_store_add_key(store, key, &id, error);
    if (status)
        return status;
    kg_store_now(date);
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_FOREIGN);
    kg_query_bind_integer(&query, id);
    kg_query_bind_hash(&query, outcome->hash);
    kg_query_bind_hash(&query, outcome->proof);
    kg_query_bind_text(&query, outcome->file);
    kg_query_bind_text(&query, outcome->reference);
    kg_query_bind_text(&query, date);
    kg_query_bind_text(&query, kg_outcome_names[outcome->kind]);
    kg_query_bind_text(&query, outcome->reason);
    kg_query_bind_integer(&query, outcome->cases);
    kg_query_bind_integer(&query, (int64_t)outcome->seed);
    bind_timing(&query, &outcome->timing);
    bind_timing(&query, &outcome->reference_timing);
    bind_timing(&query, &outcome->baseline_timing);
    kg_query_bind_integer(&query, outcome->standing);
    kg_query_bind_integer(&query, gist->known);
    kg_query_bind_integer(&query, gist->registers);
    kg_query_bind_integer(&query, gist->spill_bytes);
    kg_query_bind_integer(&query, gist->loop_spill_bytes);
    kg_query_bind_number(&query, gist->load_bytes);
    kg_query_bind_number(&query, gist->step_flops);
    kg_query_bind_integer(&query, gist->tensor);
    kg_query_bind_hash(&query, seal(key, outcome));
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

enum kg_status kg_store_add_foreign(struct kg_store *store, const struct kg_key *key,
                                    const struct kg_foreign_outcome *outcome,
                                    struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_foreign_outcome kept = *outcome;
    kept.file = outcome->file ? outcome->file : "";
    kept.reference = outcome->reference ? outcome->reference : "";
    const char *reason = outcome->reason ? outcome->reason : "";
    kept.reason = kg_arena_copy(&store->scratch, reason, strnlen(reason, LONGEST_REASON));
    if (!kept.reason)
        return kg_error_memory(error, "an outcome");
    enum kg_status status = kg_store_begin(store, error);
    if (status)
        return status;
    status = add(store, key, &kept, error);
    if (status == KG_OK)
        return kg_store_commit(store, error);
    kg_store_rollback(store);
    return status;
}

static bool read_kind(struct kg_query *query, enum kg_outcome_kind *kind)
{
    const char *name = kg_query_text(query);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(name, kg_outcome_names[kinds[i]]) == 0) {
            *kind = kinds[i];
            return true;
        }
    return false;
}

static const char *keep(struct kg_arena *arena, struct kg_query *query)
{
    const char *text = kg_query_text(query);
    return kg_arena_copy(arena, text, strlen(text));
}

// The columns of KG_SQL_FIND_FOREIGN. False for a damaged row.
static bool read_row(struct kg_query *query, struct kg_arena *arena,
                     struct kg_foreign_outcome *outcome)
{
    struct kg_asm_gist *gist = &outcome->gist;
    outcome->file = keep(arena, query);
    outcome->reference = keep(arena, query);
    outcome->date = keep(arena, query);
    bool sound = read_kind(query, &outcome->kind);
    outcome->reason = keep(arena, query);
    outcome->cases = (int)kg_query_integer(query);
    outcome->seed = (uint64_t)kg_query_integer(query);
    read_timing(query, &outcome->timing);
    read_timing(query, &outcome->reference_timing);
    read_timing(query, &outcome->baseline_timing);
    outcome->standing = (int)kg_query_integer(query);
    gist->known = kg_query_integer(query) != 0;
    gist->registers = (int)kg_query_integer(query);
    gist->spill_bytes = kg_query_integer(query);
    gist->loop_spill_bytes = kg_query_integer(query);
    gist->load_bytes = kg_query_number(query);
    gist->step_flops = kg_query_number(query);
    gist->tensor = kg_query_integer(query) != 0;
    return sound && !arena->failed;
}

enum kg_status kg_store_find_foreign(struct kg_store *store, const struct kg_key *key,
                                     struct kg_hash hash, struct kg_hash proof,
                                     struct kg_foreign_outcome *outcome, bool *found,
                                     struct kg_error *error)
{
    *outcome = (struct kg_foreign_outcome){0};
    *found = false;
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_FIND_FOREIGN);
    kg_query_bind_key(&query, key);
    kg_query_bind_hash(&query, hash);
    kg_query_bind_hash(&query, proof);
    struct kg_foreign_outcome read = {.hash = hash, .proof = proof};
    if (kg_query_step(&query) && read_row(&query, &store->scratch, &read)) {
        struct kg_hash right = seal(key, &read), sealed = kg_query_hash(&query);
        *found = right.high == sealed.high && right.low == sealed.low;
    }
    bool failed = store->scratch.failed;
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK && failed)
        status = kg_error_memory(error, "an outcome");
    *found = *found && status == KG_OK;
    if (*found)
        *outcome = read;
    return status;
}
