// Wisdom: the best known choice of each key. A row is sealed over its values and its whole key; a
// row whose seal does not fit is ignored.

#include "store/database.h"

#include "base/json.h"
#include "base/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum kg_rigor find_rigor(const char *name)
{
    int rigor = 0;
    while (rigor < KG_RIGOR_COUNT && strcmp(name, kg_rigor_names[rigor]) != 0)
        rigor++;
    return (enum kg_rigor)rigor;
}

struct kg_hash kg_store_seal_wisdom(const struct kg_key *key, const struct kg_wisdom *wisdom,
                                    const char *generator)
{
    struct kg_hash hash = kg_hash_chain_text(kg_store_hash_key(key, generator), wisdom->choice);
    hash = kg_hash_chain_text(hash, kg_rigor_names[wisdom->rigor]);
    hash = kg_hash_chain_text(hash, wisdom->date);
    hash = kg_store_hash_number(hash, wisdom->seconds);
    hash = kg_store_hash_number(hash, wisdom->spread);
    hash = kg_store_hash_integer(hash, (int64_t)wisdom->seed);
    if (generator[0])
        return hash;
    hash = kg_store_hash_integer(hash, (int64_t)wisdom->source.high);
    return kg_store_hash_integer(hash, (int64_t)wisdom->source.low);
}

// Reads the columns from `choice` on. Strings are borrowed from the row.
static bool read_wisdom(struct kg_query *query, const struct kg_key *key, struct kg_wisdom *wisdom)
{
    wisdom->choice = (char *)(uintptr_t)kg_query_text(query);
    wisdom->rigor = find_rigor(kg_query_text(query));
    wisdom->seconds = kg_query_number(query);
    wisdom->spread = kg_query_number(query);
    wisdom->seed = (uint64_t)kg_query_integer(query);
    wisdom->date = (char *)(uintptr_t)kg_query_text(query);
    wisdom->source = kg_query_hash(query);
    wisdom->replaces = false;
    const char *generator = kg_query_text(query);
    if (wisdom->rigor >= KG_RIGOR_WISDOM)
        return false;
    struct kg_hash seal = kg_query_hash(query);
    struct kg_hash right = kg_store_seal_wisdom(key, wisdom, generator);
    return seal.high == right.high && seal.low == right.low;
}

static bool says_source(const struct kg_wisdom *wisdom)
{
    return wisdom->source.high || wisdom->source.low;
}

// The known choice is replaced by a faster one and by one found with more rigor; but one that
// identifies its kernels is not replaced by one that does not.
static enum kg_status is_better(struct kg_store *store, const struct kg_key *key,
                                const struct kg_wisdom *wisdom, bool *better,
                                struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_GET_WISDOM);
    kg_query_bind_key(&query, key);
    struct kg_wisdom known;
    *better = true;
    if (kg_query_step(&query) && read_wisdom(&query, key, &known))
        *better = wisdom->replaces ||
                  ((wisdom->rigor >= known.rigor || wisdom->seconds < known.seconds) &&
                   (says_source(wisdom) || !says_source(&known)));
    return kg_query_end(&query, error);
}

static enum kg_status check_wisdom(const struct kg_wisdom *wisdom, struct kg_error *error)
{
    if (!wisdom->choice || !wisdom->choice[0])
        return kg_error_set(error, KG_ERROR_ARGUMENT, "wisdom without a choice");
    if (wisdom->rigor >= KG_RIGOR_WISDOM)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "wisdom comes from a search");
    if (!(wisdom->seconds > 0) || !(wisdom->spread >= 0) || !isfinite(wisdom->seconds) ||
        !isfinite(wisdom->spread))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "wisdom must have been measured");
    return KG_OK;
}

enum kg_status kg_store_set_wisdom(struct kg_store *store, const struct kg_key *key,
                                   const struct kg_wisdom *wisdom, bool *known_better,
                                   struct kg_error *error)
{
    bool better;
    enum kg_status status = is_better(store, key, wisdom, &better, error);
    *known_better = status == KG_OK && !better;
    if (status != KG_OK || !better)
        return status;
    int64_t id;
    status = kg_store_add_key(store, key, &id, error);
    if (status != KG_OK)
        return status;
    char now[KG_DATE_TEXT];
    kg_store_now(now);
    struct kg_wisdom dated = *wisdom;
    if (!dated.date || !dated.date[0])
        dated.date = now;
    struct kg_query query = kg_query_begin(store, KG_SQL_SET_WISDOM);
    kg_query_bind_integer(&query, id);
    kg_query_bind_text(&query, dated.choice);
    kg_query_bind_text(&query, kg_rigor_names[dated.rigor]);
    kg_query_bind_number(&query, dated.seconds);
    kg_query_bind_number(&query, dated.spread);
    kg_query_bind_integer(&query, (int64_t)dated.seed);
    kg_query_bind_text(&query, dated.date);
    kg_query_bind_hash(&query, dated.source);
    kg_query_bind_hash(&query, kg_store_seal_wisdom(key, &dated, ""));
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

bool kg_store_next_wisdom(struct kg_query *query, struct kg_key *key, struct kg_wisdom *wisdom,
                          bool *sound)
{
    if (!kg_query_step(query))
        return false;
    kg_query_key(query, key);
    *sound = read_wisdom(query, key, wisdom);
    return true;
}

enum kg_status kg_store_learn(struct kg_store *store, const struct kg_key *key,
                              const struct kg_wisdom *wisdom, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    enum kg_status status = check_wisdom(wisdom, error);
    if (status == KG_OK)
        status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    bool known_better;
    status = kg_store_set_wisdom(store, key, wisdom, &known_better, error);
    if (status == KG_OK)
        return kg_store_commit(store, error);
    kg_store_rollback(store);
    return status;
}

enum kg_status kg_store_recall(struct kg_store *store, const struct kg_key *key,
                               struct kg_wisdom *wisdom, struct kg_error *error)
{
    *wisdom = (struct kg_wisdom){0};
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_GET_WISDOM);
    kg_query_bind_key(&query, key);
    struct kg_wisdom row;
    bool found = kg_query_step(&query), sound = found && read_wisdom(&query, key, &row);
    if (sound) {
        *wisdom = row;
        wisdom->choice = strdup(row.choice);
        wisdom->date = strdup(row.date);
    }
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK && !sound)
        status = kg_error_set(
            error, KG_ERROR_NO_WISDOM,
            found ? "what is known of %s %s on %s is damaged" : "nothing is known of %s %s on %s",
            key->op, key->sizes ? key->sizes : "", key->device ? key->device : "this device");
    if (status == KG_OK && (!wisdom->choice || !wisdom->date))
        status = kg_error_memory(error, "wisdom");
    if (status != KG_OK)
        kg_wisdom_free(wisdom);
    return status;
}

enum kg_status kg_store_near(struct kg_store *store, const struct kg_key *key,
                             void (*visit)(void *user, const struct kg_key *near,
                                           const struct kg_wisdom *wisdom),
                             void *user, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_NEAR_WISDOM);
    kg_query_bind_key(&query, key);
    while (kg_query_step(&query)) {
        struct kg_key near = *key;
        struct kg_wisdom wisdom;
        near.sizes = kg_query_text(&query);
        near.layout = kg_query_text(&query);
        if (read_wisdom(&query, &near, &wisdom))
            visit(user, &near, &wisdom);
    }
    return kg_query_end(&query, error);
}

void kg_wisdom_free(struct kg_wisdom *wisdom)
{
    if (!wisdom)
        return;
    free(wisdom->choice);
    free(wisdom->date);
    *wisdom = (struct kg_wisdom){0};
}

static void list_json(struct kg_json *json, const struct kg_key *key,
                      const struct kg_wisdom *wisdom)
{
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "op", key->op);
    kg_json_text(json, "dtypes", key->dtypes);
    kg_json_text(json, "sizes", key->sizes);
    kg_json_text(json, "layout", key->layout);
    kg_json_text(json, "device", key->device);
    kg_json_text(json, "isa", key->isa);
    kg_json_integer(json, "units", key->units);
    kg_json_text(json, "protocol", key->protocol);
    kg_json_text(json, "choice", wisdom->choice);
    kg_json_text(json, "rigor", kg_rigor_names[wisdom->rigor]);
    kg_json_number(json, "seconds", wisdom->seconds);
    kg_json_number(json, "spread", wisdom->spread);
    kg_json_text(json, "date", wisdom->date);
    kg_json_hash(json, "source", wisdom->source);
    kg_json_end_object(json);
}

static void list_line(struct kg_text *text, const struct kg_key *key,
                      const struct kg_wisdom *wisdom)
{
    struct kg_text line = {0};
    kg_text_format(&line, "%-16s %-14s %-28s %10.2f us  %-10s  %s", key->op, key->dtypes,
                   key->sizes, wisdom->seconds * 1e6, kg_rigor_names[wisdom->rigor], wisdom->date);
    kg_text_add_printable(text, kg_text_string(&line));
    kg_text_cut(&line, 0);
    kg_text_format(&line, "%s, %s, %d units: %s", key->device, key->isa, key->units,
                   wisdom->choice);
    kg_text_add(text, "\n    ");
    kg_text_add_printable(text, kg_text_string(&line));
    kg_text_add(text, "\n");
    text->failed |= line.failed;
    kg_text_free(&line);
}

enum kg_status kg_store_list(struct kg_store *store, const char *pattern, bool json,
                             struct kg_text *text, struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    size_t start = text->length;
    struct kg_json writer = {.text = text};
    struct kg_query query = kg_query_begin(store, KG_SQL_LIST_WISDOM);
    kg_query_bind_text(&query, pattern);
    if (json)
        kg_json_begin_array(&writer, NULL);
    struct kg_key key;
    struct kg_wisdom wisdom;
    bool sound;
    int damaged = 0;
    while (kg_store_next_wisdom(&query, &key, &wisdom, &sound)) {
        if (!sound)
            damaged++;
        else if (json)
            list_json(&writer, &key, &wisdom);
        else
            list_line(text, &key, &wisdom);
    }
    if (json) {
        kg_json_end_array(&writer);
        kg_text_add(text, "\n");
    } else if (damaged)
        kg_text_format(text, "%d damaged rows are not shown and never used\n", damaged);
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK && text->failed)
        status = kg_error_memory(error, "the list of wisdom");
    if (status != KG_OK)
        kg_text_cut(text, start);
    return status;
}

enum kg_status kg_store_forget(struct kg_store *store, const char *pattern, int *count,
                               struct kg_error *error)
{
    *count = 0;
    kg_arena_free(&store->scratch);
    struct kg_query query = kg_query_begin(store, KG_SQL_FORGET_WISDOM);
    kg_query_bind_text(&query, pattern);
    kg_query_step(&query);
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK)
        *count = sqlite3_changes(store->database);
    return status;
}
