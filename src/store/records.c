// Outcomes and rounds: appended as they happen, each in a transaction of its own.

#include "store/database.h"
#include "store/forecast_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Reasons contain compiler messages; their beginning is enough.
#define LONGEST_REASON 4096

// `generator`: kg_store_hash_key.
static struct kg_hash seal_outcome(const struct kg_key *key, const struct kg_outcome *outcome,
                                   const char *generator)
{
    const struct kg_timing *timing = &outcome->timing;
    const struct kg_verdict *verdict = &outcome->verdict;
    const double numbers[] = {outcome->bound,    outcome->compile_seconds, timing->median,
                              timing->least,     timing->spread,           verdict->worst_relative,
                              verdict->worst_rms};
    const int64_t integers[] = {(int64_t)outcome->kind,
                                (int64_t)outcome->source.high,
                                (int64_t)outcome->source.low,
                                timing->samples,
                                timing->abandoned,
                                outcome->final,
                                verdict->passed,
                                (int64_t)verdict->seed,
                                verdict->cases,
                                verdict->skipped,
                                verdict->elements,
                                verdict->impostors};
    struct kg_hash hash = kg_hash_chain_text(kg_store_hash_key(key, generator), outcome->choice);
    hash = kg_hash_chain_text(hash, outcome->reason);
    hash = kg_hash_chain_text(hash, verdict->reason);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        hash = kg_store_hash_number(hash, numbers[i]);
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        hash = kg_store_hash_integer(hash, integers[i]);
    if (!generator[0]) {
        hash = kg_store_hash_integer(hash, (int64_t)outcome->emitted.high);
        hash = kg_store_hash_integer(hash, (int64_t)outcome->emitted.low);
    }
    if (outcome->estimate > 0) // likewise, those from before it was recorded
        hash = kg_store_hash_number(hash, outcome->estimate);
    // Outcomes from before overrides existed are sealed without that member.
    return outcome->override ? kg_hash_chain_text(hash, outcome->override) : hash;
}

static enum kg_status add_candidate(struct kg_store *store, const struct kg_outcome *outcome,
                                    int64_t *id, struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_CANDIDATE);
    kg_query_bind_text(&query, outcome->choice);
    kg_query_bind_hash(&query, outcome->source);
    return kg_query_end_with_id(&query, id, error);
}

static struct kg_hash seal_forecast(struct kg_hash outcome, const char *forecast)
{
    return kg_hash_chain_text(outcome, forecast);
}

// The forecast of a measured candidate: the model is fitted to it. `seal` is the outcome's.
static enum kg_status add_forecast(struct kg_store *store, int64_t id, struct kg_hash seal,
                                   const struct kg_forecast *forecast, struct kg_error *error)
{
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    kg_json_begin_object(&json, NULL);
    kg_store_write_forecast(&json, forecast);
    kg_json_end_object(&json);
    enum kg_status status = KG_OK;
    if (text.failed)
        status = kg_error_memory(error, "an outcome");
    if (status == KG_OK) {
        struct kg_query query = kg_query_begin(store, KG_SQL_ADD_FORECAST);
        kg_query_bind_integer(&query, id);
        kg_query_bind_text(&query, text.data);
        kg_query_bind_hash(&query, seal_forecast(seal, text.data));
        kg_query_step(&query);
        status = kg_query_end(&query, error);
    }
    kg_text_free(&text);
    return status;
}

// The columns after key, candidate and date, in the order of KG_SQL_ADD_OUTCOME.
static void bind_outcome(struct kg_query *query, const struct kg_outcome *outcome)
{
    const struct kg_timing *timing = &outcome->timing;
    const struct kg_verdict *verdict = &outcome->verdict;
    kg_query_bind_text(query, kg_outcome_names[outcome->kind]);
    kg_query_bind_number(query, outcome->bound);
    kg_query_bind_number(query, outcome->compile_seconds);
    kg_query_bind_integer(query, timing->samples);
    kg_query_bind_number(query, timing->median);
    kg_query_bind_number(query, timing->least);
    kg_query_bind_number(query, timing->spread);
    kg_query_bind_integer(query, timing->abandoned);
    kg_query_bind_integer(query, outcome->final);
    kg_query_bind_integer(query, verdict->passed);
    kg_query_bind_integer(query, (int64_t)verdict->seed);
    kg_query_bind_integer(query, verdict->cases);
    kg_query_bind_integer(query, verdict->skipped);
    kg_query_bind_integer(query, verdict->elements);
    kg_query_bind_number(query, verdict->worst_relative);
    kg_query_bind_number(query, verdict->worst_rms);
    kg_query_bind_integer(query, verdict->impostors);
    kg_query_bind_text(query, verdict->reason);
    kg_query_bind_text(query, outcome->reason);
    kg_query_bind_text(query, outcome->override ? outcome->override : "");
    kg_query_bind_hash(query, outcome->emitted);
    kg_query_bind_number(query, outcome->estimate);
}

// Reads the columns of KG_SQL_FIND_OUTCOME up to the generator. Returns false if they are not
// valid.
static bool read_outcome(struct kg_query *query, struct kg_arena *arena, struct kg_outcome *outcome)
{
    struct kg_timing *timing = &outcome->timing;
    struct kg_verdict *verdict = &outcome->verdict;
    const char *kind = kg_query_text(query);
    int found = 0;
    while (found < KG_OUTCOME_COUNT && strcmp(kind, kg_outcome_names[found]) != 0)
        found++;
    outcome->kind = (enum kg_outcome_kind)found;
    const char *choice = kg_query_text(query);
    outcome->choice = kg_arena_copy(arena, choice, strlen(choice));
    outcome->source = kg_query_hash(query);
    outcome->bound = kg_query_number(query);
    outcome->compile_seconds = kg_query_number(query);
    timing->samples = (int)kg_query_integer(query);
    timing->median = kg_query_number(query);
    timing->least = kg_query_number(query);
    timing->spread = kg_query_number(query);
    timing->abandoned = kg_query_integer(query) != 0;
    outcome->final = kg_query_integer(query) != 0;
    verdict->passed = kg_query_integer(query) != 0;
    verdict->seed = (uint64_t)kg_query_integer(query);
    verdict->cases = (int)kg_query_integer(query);
    verdict->skipped = (int)kg_query_integer(query);
    verdict->elements = kg_query_integer(query);
    verdict->worst_relative = kg_query_number(query);
    verdict->worst_rms = kg_query_number(query);
    verdict->impostors = (int)kg_query_integer(query);
    snprintf(verdict->reason, sizeof verdict->reason, "%s", kg_query_text(query));
    const char *reason = kg_query_text(query);
    outcome->reason = kg_arena_copy(arena, reason, strlen(reason));
    outcome->emitted = kg_query_hash(query);
    outcome->estimate = kg_query_number(query);
    return found < KG_OUTCOME_COUNT && !arena->failed;
}

static enum kg_status add_outcome(struct kg_store *store, const struct kg_key *key,
                                  const struct kg_outcome *outcome, struct kg_error *error)
{
    int64_t key_id, candidate;
    enum kg_status status = kg_store_add_key(store, key, &key_id, error);
    if (status == KG_OK)
        status = add_candidate(store, outcome, &candidate, error);
    if (status != KG_OK)
        return status;
    char date[KG_DATE_TEXT];
    kg_store_now(date);
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_OUTCOME);
    kg_query_bind_integer(&query, key_id);
    kg_query_bind_integer(&query, candidate);
    kg_query_bind_text(&query, date);
    bind_outcome(&query, outcome);
    struct kg_hash seal = seal_outcome(key, outcome, "");
    int64_t id;
    kg_query_bind_hash(&query, seal);
    status = kg_query_end_with_id(&query, &id, error);
    bool forecast = outcome->forecast.known && !outcome->forecast.refusal[0];
    if (status == KG_OK && outcome->kind == KG_OUTCOME_MEASURED && forecast)
        status = add_forecast(store, id, seal, &outcome->forecast, error);
    return status;
}

enum kg_status kg_store_append(struct kg_store *store, const struct kg_key *key,
                               const struct kg_outcome *outcome, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    const char *reason = outcome->reason ? outcome->reason : "";
    struct kg_outcome kept = *outcome;
    kept.choice = outcome->choice ? outcome->choice : "";
    kept.reason = kg_arena_copy(&store->scratch, reason, strnlen(reason, LONGEST_REASON));
    if (!kept.reason)
        return kg_error_memory(error, "an outcome");
    enum kg_status status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    status = add_outcome(store, key, &kept, error);
    if (status == KG_OK)
        return kg_store_commit(store, error);
    kg_store_rollback(store);
    return status;
}

// Reads the last two columns. A damaged forecast, or one of another version, counts as unknown.
static void read_forecast(struct kg_query *query, const struct kg_key *key, struct kg_hash seal_of,
                          struct kg_arena *arena, struct kg_outcome *outcome)
{
    const char *text = kg_query_text(query);
    struct kg_hash seal = kg_query_hash(query), right = seal_forecast(seal_of, text);
    struct kg_forecast_origin origin = {.device = key->device,
                                        .family = outcome->choice,
                                        .warm = strncmp(key->protocol, "warm", 4) == 0};
    enum kg_status status = KG_OK;
    if (seal.high == right.high && seal.low == right.low)
        status = kg_store_read_forecast(text, strlen(text), &origin, &outcome->forecast, NULL);
    // When out of memory a text looks empty and, to Jansson, valid JSON looks malformed.
    if (kg_query_lacks_memory(query) || status == KG_ERROR_MEMORY || status == KG_ERROR_CORRUPT)
        arena->failed = true;
}

// The next outcome of a statement with the columns of an outcome. Rows whose seal does not fit are
// skipped: they are damaged.
static bool next_outcome(struct kg_query *query, const struct kg_key *key, struct kg_arena *arena,
                         struct kg_outcome *outcome)
{
    while (kg_query_step(query)) {
        *outcome = (struct kg_outcome){0};
        if (!read_outcome(query, arena, outcome))
            continue;
        struct kg_hash right = seal_outcome(key, outcome, kg_query_text(query));
        struct kg_hash seal = kg_query_hash(query);
        if (seal.high != right.high || seal.low != right.low)
            continue;
        read_forecast(query, key, right, arena, outcome);
        return true;
    }
    return false;
}

// `emitted` NULL: any kernels.
static enum kg_status find(struct kg_store *store, const struct kg_key *key, const char *choice,
                           const struct kg_hash *emitted, struct kg_outcome *outcome, bool *found,
                           struct kg_error *error)
{
    *outcome = (struct kg_outcome){0};
    *found = false;
    kg_arena_free(&store->scratch);
    struct kg_query query =
        kg_query_begin(store, emitted ? KG_SQL_FIND_EMITTED : KG_SQL_FIND_OUTCOME);
    kg_query_bind_key(&query, key);
    kg_query_bind_text(&query, choice);
    if (emitted)
        kg_query_bind_hash(&query, *emitted);
    struct kg_outcome read;
    *found = next_outcome(&query, key, &store->scratch, &read);
    bool failed = store->scratch.failed;
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK && failed)
        status = kg_error_memory(error, "an outcome");
    *found = *found && status == KG_OK;
    if (*found)
        *outcome = read;
    return status;
}

enum kg_status kg_store_find(struct kg_store *store, const struct kg_key *key, const char *choice,
                             struct kg_outcome *outcome, bool *found, struct kg_error *error)
{
    return find(store, key, choice, NULL, outcome, found, error);
}

enum kg_status kg_store_find_emitted(struct kg_store *store, const struct kg_key *key,
                                     const char *choice, struct kg_hash emitted,
                                     struct kg_outcome *outcome, bool *found,
                                     struct kg_error *error)
{
    return find(store, key, choice, &emitted, outcome, found, error);
}

static enum kg_status visit_outcomes(struct kg_store *store, enum kg_sql which,
                                     const struct kg_key *key,
                                     void (*visit)(void *user, const struct kg_outcome *outcome),
                                     void *user, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, which);
    kg_query_bind_key(&query, key);
    struct kg_outcome outcome;
    while (next_outcome(&query, key, &store->scratch, &outcome))
        visit(user, &outcome);
    bool failed = store->scratch.failed;
    enum kg_status status = kg_query_end(&query, error);
    return status == KG_OK && failed ? kg_error_memory(error, "the outcomes") : status;
}

enum kg_status kg_store_each(struct kg_store *store, const struct kg_key *key,
                             void (*visit)(void *user, const struct kg_outcome *outcome),
                             void *user, struct kg_error *error)
{
    return visit_outcomes(store, KG_SQL_EACH_OUTCOME, key, visit, user, error);
}

enum kg_status kg_store_history(struct kg_store *store, const struct kg_key *key,
                                void (*visit)(void *user, const struct kg_outcome *outcome),
                                void *user, struct kg_error *error)
{
    return visit_outcomes(store, KG_SQL_HISTORY, key, visit, user, error);
}

enum kg_status kg_store_keys(struct kg_store *store, const char *op,
                             void (*visit)(void *user, const struct kg_key *key), void *user,
                             struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_LOG_KEYS);
    kg_query_bind_text(&query, op);
    while (kg_query_step(&query)) {
        kg_query_integer(&query); // the id
        struct kg_key key;
        kg_query_key(&query, &key);
        visit(user, &key);
    }
    return kg_query_end(&query, error);
}
