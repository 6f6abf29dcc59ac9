// The comparison of records of two dates: see regression.h.

#include "report/regression.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_CHANGE 0.02 // of the earlier time: clocks and placement move medians by that much

const char *const kg_since_names[KG_SINCE_COUNT] = {"slower", "faster", "same", "gone"};

// Of one of both stores.
struct problem {
    struct kg_key key;
    struct kg_since_side own;
    bool seen; // of the records now: it is in the earlier ones
};

struct problems {
    struct kg_arena *arena;
    const char *op; // NULL: all
    int count, capacity;
    struct problem *items;
};

static const char *keep(struct kg_arena *arena, const char *text)
{
    const char *copy = kg_arena_copy(arena, text, strlen(text));
    return copy ? copy : "";
}

static void add_key(void *user, const struct kg_key *key)
{
    struct problems *problems = user;
    struct kg_arena *arena = problems->arena;
    if (problems->op && strcmp(problems->op, key->op) != 0)
        return;
    if (problems->count == problems->capacity) {
        int capacity = problems->capacity ? 2 * problems->capacity : 64;
        struct problem *items = realloc(problems->items, (size_t)capacity * sizeof *items);
        arena->failed |= !items;
        if (!items)
            return;
        problems->items = items;
        problems->capacity = capacity;
    }
    struct problem *problem = &problems->items[problems->count++];
    *problem = (struct problem){.key = *key};
    problem->key.op = keep(arena, key->op);
    problem->key.dtypes = keep(arena, key->dtypes);
    problem->key.sizes = keep(arena, key->sizes);
    problem->key.layout = keep(arena, key->layout);
    problem->key.device = keep(arena, key->device);
    problem->key.isa = keep(arena, key->isa);
    problem->key.driver = keep(arena, key->driver);
    problem->key.compiler = keep(arena, key->compiler);
    problem->key.protocol = keep(arena, key->protocol);
}

// The first one that is visited is the fastest.
static void take_fastest(void *user, const struct kg_outcome *outcome)
{
    struct kg_since_side *side = user;
    if (outcome->kind != KG_OUTCOME_MEASURED || side->seconds > 0)
        return;
    side->seconds = outcome->timing.median;
    side->spread = outcome->timing.spread;
}

static enum kg_status read_side(struct kg_store *store, const struct kg_key *key, bool measured,
                                struct kg_arena *arena, struct kg_since_side *side,
                                struct kg_error *error)
{
    struct kg_wisdom wisdom;
    *side = (struct kg_since_side){.driver = key->driver, .compiler = key->compiler, .date = ""};
    enum kg_status status = measured ? kg_store_each(store, key, take_fastest, side, error) : KG_OK;
    if (status != KG_OK)
        return status;
    status = kg_store_recall(store, key, &wisdom, error);
    if (status == KG_ERROR_NO_WISDOM)
        return KG_OK;
    if (status != KG_OK)
        return status;
    side->date = keep(arena, wisdom.date);
    if (side->seconds <= 0) {
        side->seconds = wisdom.seconds;
        side->spread = wisdom.spread;
    }
    kg_wisdom_free(&wisdom);
    return KG_OK;
}

static enum kg_status read_all(struct kg_store *store, bool measured, struct problems *problems,
                               struct kg_error *error)
{
    enum kg_status status = kg_store_keys(store, NULL, add_key, problems, error);
    for (int i = 0; i < problems->count && status == KG_OK; i++) {
        struct problem *problem = &problems->items[i];
        status = read_side(store, &problem->key, measured, problems->arena, &problem->own, error);
    }
    return status;
}

static bool is_same_problem(const struct kg_key *a, const struct kg_key *b)
{
    return a->definition.high == b->definition.high && a->definition.low == b->definition.low &&
           a->units == b->units && strcmp(a->op, b->op) == 0 && strcmp(a->dtypes, b->dtypes) == 0 &&
           strcmp(a->sizes, b->sizes) == 0 && strcmp(a->layout, b->layout) == 0 &&
           strcmp(a->device, b->device) == 0 && strcmp(a->isa, b->isa) == 0 &&
           strcmp(a->protocol, b->protocol) == 0;
}

// Finds the problem among the records of now, and says what became of it.
static struct kg_since judge(const struct problem *problem, struct problems *now)
{
    struct kg_since since = {.key = problem->key, .then = problem->own, .change = KG_SINCE_GONE};
    for (int i = 0; i < now->count; i++) {
        struct problem *other = &now->items[i];
        if (!is_same_problem(&problem->key, &other->key) || other->own.seconds <= 0)
            continue;
        other->seen = true;
        if (since.now.seconds <= 0 || strcmp(other->own.date, since.now.date) > 0)
            since.now = other->own;
    }
    if (since.now.seconds <= 0)
        return since;
    double change = since.now.seconds - since.then.seconds;
    since.noise = fmax(since.then.spread + since.now.spread, LEAST_CHANGE * since.then.seconds);
    since.change = change > since.noise    ? KG_SINCE_SLOWER
                   : -change > since.noise ? KG_SINCE_FASTER
                                           : KG_SINCE_SAME;
    return since;
}

static void add_microseconds(struct kg_text *text, double seconds)
{
    kg_text_format(text, "%.*f us", seconds < 99.5e-6 ? 2 : 0, seconds * 1e6);
}

static void add_changed(struct kg_text *text, const char *what, const char *then, const char *now)
{
    if (strcmp(then, now) != 0)
        kg_text_format(text, "        %s: %s, now %s\n", what, then, now);
}

static void add_line(struct kg_text *text, const struct kg_since *problem)
{
    const struct kg_key *key = &problem->key;
    kg_text_format(text, "%-8s%s", kg_since_names[problem->change], key->op);
    if (*key->dtypes)
        kg_text_format(text, " %s", key->dtypes);
    kg_text_format(text, " %s%s%s on %s: ", key->sizes,
                   strcmp(key->layout, "contiguous") ? " " : "",
                   strcmp(key->layout, "contiguous") ? key->layout : "", key->device);
    add_microseconds(text, problem->then.seconds);
    if (problem->change == KG_SINCE_GONE) {
        kg_text_add(text, ", not on record now\n");
        return;
    }
    kg_text_add(text, ", now ");
    add_microseconds(text, problem->now.seconds);
    kg_text_format(text, " (x%.3f, noise ", problem->now.seconds / problem->then.seconds);
    add_microseconds(text, problem->noise);
    kg_text_add(text, ")\n");
    add_changed(text, "driver", problem->then.driver, problem->now.driver);
    add_changed(text, "compiler", problem->then.compiler, problem->now.compiler);
}

static void json_line(struct kg_json *json, const struct kg_since *problem)
{
    const struct kg_key *key = &problem->key;
    bool known = problem->change != KG_SINCE_GONE;
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "state", kg_since_names[problem->change]);
    kg_json_text(json, "op", key->op);
    kg_json_text(json, "dtypes", key->dtypes);
    kg_json_text(json, "sizes", key->sizes);
    kg_json_text(json, "layout", key->layout);
    kg_json_text(json, "device", key->device);
    kg_json_text(json, "protocol", key->protocol);
    kg_json_number(json, "then_seconds", problem->then.seconds);
    kg_json_text(json, "then_driver", problem->then.driver);
    kg_json_text(json, "then_compiler", problem->then.compiler);
    if (known) {
        kg_json_number(json, "now_seconds", problem->now.seconds);
        kg_json_text(json, "now_driver", problem->now.driver);
        kg_json_text(json, "now_compiler", problem->now.compiler);
        kg_json_number(json, "noise_seconds", problem->noise);
    }
    kg_json_end_object(json);
}

static void write_json(struct kg_text *text, const struct kg_comparison *comparison)
{
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    for (int change = 0; change < KG_SINCE_COUNT; change++)
        kg_json_integer(&json, kg_since_names[change], comparison->counts[change]);
    kg_json_integer(&json, "new", comparison->added);
    kg_json_begin_array(&json, "problems");
    for (int i = 0; i < comparison->count; i++)
        json_line(&json, &comparison->list[i]);
    kg_json_end_array(&json);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

void kg_comparison_count(const struct kg_comparison *comparison, struct kg_text *text)
{
    const int *counts = comparison->counts;
    kg_text_format(text,
                   "%d slower, %d faster, %d the same within noise, %d not on record now, %d new",
                   counts[KG_SINCE_SLOWER], counts[KG_SINCE_FASTER], counts[KG_SINCE_SAME],
                   counts[KG_SINCE_GONE], comparison->added);
}

void kg_comparison_write(const struct kg_comparison *comparison, bool json, struct kg_text *text)
{
    if (json) {
        write_json(text, comparison);
        return;
    }
    for (int change = 0; change < KG_SINCE_COUNT; change++)
        for (int i = 0; i < comparison->count; i++)
            if ((int)comparison->list[i].change == change)
                add_line(text, &comparison->list[i]);
    kg_comparison_count(comparison, text);
    kg_text_add(text, "\n");
}

static bool compare(const struct problems *before, struct problems *after,
                    struct kg_comparison *comparison)
{
    struct kg_since *list =
        KG_NEW_ARRAY(&comparison->arena, before->count ? before->count : 1, struct kg_since);
    for (int i = 0; i < before->count && list; i++) {
        list[i] = judge(&before->items[i], after);
        comparison->counts[list[i].change]++;
    }
    for (int i = 0; i < after->count; i++)
        comparison->added += !after->items[i].seen && after->items[i].own.seconds > 0;
    comparison->list = list;
    comparison->count = before->count;
    return list;
}

enum kg_status kg_comparison_make(struct kg_store *now, struct kg_store *then, const char *op,
                                  struct kg_comparison *comparison, struct kg_error *error)
{
    *comparison = (struct kg_comparison){0};
    struct kg_arena *arena = &comparison->arena;
    struct problems before = {.arena = arena, .op = op}, after = {.arena = arena, .op = op};
    enum kg_status status = read_all(then, false, &before, error);
    if (status == KG_OK)
        status = read_all(now, true, &after, error);
    if (status == KG_OK && (arena->failed || !compare(&before, &after, comparison)))
        status = kg_error_memory(error, "the records to compare");
    free(before.items);
    free(after.items);
    if (status != KG_OK)
        kg_comparison_free(comparison);
    return status;
}

void kg_comparison_free(struct kg_comparison *comparison)
{
    kg_arena_free(&comparison->arena);
    *comparison = (struct kg_comparison){0};
}

const struct kg_since *kg_comparison_find(const struct kg_comparison *comparison,
                                          const struct kg_key *key)
{
    for (int i = 0; i < comparison->count; i++) {
        const struct kg_since *since = &comparison->list[i];
        if (since->change != KG_SINCE_GONE && is_same_problem(&since->key, key) &&
            strcmp(since->now.driver, key->driver) == 0 &&
            strcmp(since->now.compiler, key->compiler) == 0)
            return since;
    }
    return NULL;
}
