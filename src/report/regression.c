// The comparison of records of two dates: see regression.h.

#include "report/regression.h"

#include "base/arena.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_CHANGE 0.02 // of the earlier time: clocks and placement move medians by that much

enum fate { SLOWER, FASTER, SAME, GONE, FATE_COUNT };
static const char *const fate_names[FATE_COUNT] = {"slower", "faster", "same", "gone"};

struct side {
    double seconds; // 0: nothing was measured
    double spread;
    const char *driver, *compiler, *date;
};

struct problem {
    struct kg_key key;
    struct side own; // of the store that it was read from
    struct side now; // of an earlier one: what became of it
    enum fate fate;
    double noise;
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
    struct side *side = user;
    if (outcome->kind != KG_OUTCOME_MEASURED || side->seconds > 0)
        return;
    side->seconds = outcome->timing.median;
    side->spread = outcome->timing.spread;
}

static enum kg_status read_side(struct kg_store *store, const struct kg_key *key, bool measured,
                                struct kg_arena *arena, struct side *side, struct kg_error *error)
{
    struct kg_wisdom wisdom;
    *side = (struct side){.driver = key->driver, .compiler = key->compiler, .date = ""};
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
static void judge(struct problem *problem, struct problems *now)
{
    for (int i = 0; i < now->count; i++) {
        struct problem *other = &now->items[i];
        if (!is_same_problem(&problem->key, &other->key) || other->own.seconds <= 0)
            continue;
        other->seen = true;
        if (problem->now.seconds <= 0 || strcmp(other->own.date, problem->now.date) > 0)
            problem->now = other->own;
    }
    problem->fate = GONE;
    if (problem->now.seconds <= 0)
        return;
    double change = problem->now.seconds - problem->own.seconds;
    problem->noise =
        fmax(problem->own.spread + problem->now.spread, LEAST_CHANGE * problem->own.seconds);
    problem->fate = change > problem->noise ? SLOWER : -change > problem->noise ? FASTER : SAME;
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

static void add_line(struct kg_text *text, const struct problem *problem)
{
    const struct kg_key *key = &problem->key;
    kg_text_format(text, "%-8s%s", fate_names[problem->fate], key->op);
    if (*key->dtypes)
        kg_text_format(text, " %s", key->dtypes);
    kg_text_format(text, " %s%s%s on %s: ", key->sizes,
                   strcmp(key->layout, "contiguous") ? " " : "",
                   strcmp(key->layout, "contiguous") ? key->layout : "", key->device);
    add_microseconds(text, problem->own.seconds);
    if (problem->fate == GONE) {
        kg_text_add(text, ", not on record now\n");
        return;
    }
    kg_text_add(text, ", now ");
    add_microseconds(text, problem->now.seconds);
    kg_text_format(text, " (x%.3f, noise ", problem->now.seconds / problem->own.seconds);
    add_microseconds(text, problem->noise);
    kg_text_add(text, ")\n");
    add_changed(text, "driver", problem->own.driver, problem->now.driver);
    add_changed(text, "compiler", problem->own.compiler, problem->now.compiler);
}

static void json_line(struct kg_json *json, const struct problem *problem)
{
    const struct kg_key *key = &problem->key;
    bool known = problem->fate != GONE;
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "state", fate_names[problem->fate]);
    kg_json_text(json, "op", key->op);
    kg_json_text(json, "dtypes", key->dtypes);
    kg_json_text(json, "sizes", key->sizes);
    kg_json_text(json, "layout", key->layout);
    kg_json_text(json, "device", key->device);
    kg_json_text(json, "protocol", key->protocol);
    kg_json_number(json, "then_seconds", problem->own.seconds);
    kg_json_text(json, "then_driver", problem->own.driver);
    kg_json_text(json, "then_compiler", problem->own.compiler);
    if (known) {
        kg_json_number(json, "now_seconds", problem->now.seconds);
        kg_json_text(json, "now_driver", problem->now.driver);
        kg_json_text(json, "now_compiler", problem->now.compiler);
        kg_json_number(json, "noise_seconds", problem->noise);
    }
    kg_json_end_object(json);
}

static void write_text(struct kg_text *text, const struct problems *then,
                       const int counts[FATE_COUNT], int added)
{
    for (int fate = 0; fate < FATE_COUNT; fate++)
        for (int i = 0; i < then->count; i++)
            if ((int)then->items[i].fate == fate)
                add_line(text, &then->items[i]);
    kg_text_format(text,
                   "%d slower, %d faster, %d the same within noise, %d not on record now, %d new\n",
                   counts[SLOWER], counts[FASTER], counts[SAME], counts[GONE], added);
}

static void write_json(struct kg_text *text, const struct problems *then,
                       const int counts[FATE_COUNT], int added)
{
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    for (int fate = 0; fate < FATE_COUNT; fate++)
        kg_json_integer(&json, fate_names[fate], counts[fate]);
    kg_json_integer(&json, "new", added);
    kg_json_begin_array(&json, "problems");
    for (int i = 0; i < then->count; i++)
        json_line(&json, &then->items[i]);
    kg_json_end_array(&json);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

enum kg_status kg_report_regressions(struct kg_store *now, struct kg_store *then, const char *op,
                                     bool json, bool *slower, struct kg_text *text,
                                     struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct problems before = {.arena = &arena, .op = op}, after = {.arena = &arena, .op = op};
    int counts[FATE_COUNT] = {0}, added = 0;
    *slower = false;
    enum kg_status status = read_all(then, false, &before, error);
    if (status == KG_OK)
        status = read_all(now, true, &after, error);
    if (status == KG_OK && arena.failed)
        status = kg_error_memory(error, "the records to compare");
    if (status == KG_OK) {
        for (int i = 0; i < before.count; i++) {
            judge(&before.items[i], &after);
            counts[before.items[i].fate]++;
        }
        for (int i = 0; i < after.count; i++)
            added += !after.items[i].seen && after.items[i].own.seconds > 0;
        *slower = counts[SLOWER] > 0;
        (json ? write_json : write_text)(text, &before, counts, added);
    }
    free(before.items);
    free(after.items);
    kg_arena_free(&arena);
    return status;
}
