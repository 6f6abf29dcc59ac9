// Outcomes of a search as tables and as JSON.

#include "report/outcomes.h"

#include "base/json.h"
#include "report/fates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct collecting {
    struct kg_outcomes *outcomes;
    bool failed;
};

static const char *keep(struct kg_arena *arena, const char *text)
{
    return text ? kg_arena_copy(arena, text, strlen(text)) : NULL;
}

static bool grow(struct kg_outcomes *outcomes)
{
    int capacity = outcomes->capacity ? outcomes->capacity * 2 : 64;
    struct kg_outcome *list = realloc(outcomes->list, (size_t)capacity * sizeof *list);
    if (!list)
        return false;
    outcomes->list = list;
    outcomes->capacity = capacity;
    return true;
}

static void collect(void *user, const struct kg_outcome *outcome)
{
    struct collecting *collecting = user;
    struct kg_outcomes *outcomes = collecting->outcomes;
    if (outcomes->count == outcomes->capacity && !grow(outcomes)) {
        collecting->failed = true;
        return;
    }
    struct kg_outcome *copy = &outcomes->list[outcomes->count++];
    *copy = *outcome;
    copy->choice = keep(&outcomes->arena, outcome->choice);
    copy->reason = keep(&outcomes->arena, outcome->reason);
    outcomes->by_kind[outcome->kind]++;
}

enum kg_status kg_outcomes_collect(struct kg_store *store, const struct kg_key *key,
                                   struct kg_outcomes *outcomes, struct kg_error *error)
{
    *outcomes = (struct kg_outcomes){0};
    struct collecting collecting = {.outcomes = outcomes};
    enum kg_status status = kg_store_each(store, key, collect, &collecting, error);
    if (status == KG_OK && (collecting.failed || outcomes->arena.failed))
        status = kg_error_memory(error, "the list of outcomes");
    if (status != KG_OK)
        kg_outcomes_free(outcomes);
    return status;
}

void kg_outcomes_free(struct kg_outcomes *outcomes)
{
    kg_arena_free(&outcomes->arena);
    free(outcomes->list);
    *outcomes = (struct kg_outcomes){0};
}

// Does it take part in the comparison of orders?
static bool is_comparable(const struct kg_outcome *outcome)
{
    return outcome->kind == KG_OUTCOME_MEASURED && !outcome->timing.abandoned &&
           outcome->estimate > 0;
}

struct kg_order kg_outcomes_pairs(const struct kg_outcomes *outcomes)
{
    struct kg_order order = {0};
    for (int i = 0; i < outcomes->count; i++)
        for (int k = 0; k < i && is_comparable(&outcomes->list[i]); k++) {
            const struct kg_outcome *a = &outcomes->list[i], *b = &outcomes->list[k];
            double slower = a->timing.median - b->timing.median;
            double spread = a->timing.spread + b->timing.spread;
            if (!is_comparable(b) || fabs(slower) <= spread)
                continue;
            double expected = slower > 0 ? a->estimate - b->estimate : b->estimate - a->estimate;
            order.right += expected > 0 ? 1 : expected == 0 ? 0.5 : 0;
            order.pairs++;
        }
    return order;
}

double kg_outcomes_order(const struct kg_outcomes *outcomes)
{
    struct kg_order order = kg_outcomes_pairs(outcomes);
    return order.pairs > 0 ? order.right / order.pairs : -1;
}

static bool has_estimates(const struct kg_outcomes *outcomes)
{
    for (int i = 0; i < outcomes->count; i++)
        if (outcomes->list[i].kind == KG_OUTCOME_MEASURED && outcomes->list[i].estimate > 0)
            return true;
    return false;
}

// "42%"; of less than ten, one digit more.
static void add_share(struct kg_text *text, double part, double whole)
{
    double share = whole > 0 ? 100 * part / whole : 0;
    kg_text_format(text, share < 10 ? "%.1f%% | " : "%.0f%% | ", share);
}

// Why the chosen candidate is not the first line. `place`: its own line, 0: none.
static void add_reason(const struct kg_outcomes_view *view, int place, struct kg_text *text)
{
    if (!view->chosen || place == 1)
        return;
    if (place == 0)
        kg_text_format(text,
                       "\nThe chosen one, `%s`, is none of these: nothing measured it here.\n",
                       view->chosen);
    else
        kg_text_add(
            text,
            "\nThe chosen one is not the first line: candidates are timed one by one, and the "
            "best then race each other, alternately. That race decides, not this table.\n");
}

static void add_measured(const struct kg_outcomes *outcomes, const struct kg_outcomes_view *view,
                         struct kg_text *text)
{
    bool estimates = has_estimates(outcomes);
    kg_text_format(text, "| # | time | spread | of the roofline |%s compile | choice |\n",
                   estimates ? " expected / time |" : "");
    kg_text_format(text, "|--:|-----:|-------:|----------------:|%s--------:|--------|\n",
                   estimates ? "----------------:|" : "");
    int shown = 0, place = 0;
    for (int i = 0; i < outcomes->count && (view->max == 0 || shown < view->max); i++) {
        const struct kg_outcome *outcome = &outcomes->list[i];
        if (outcome->kind != KG_OUTCOME_MEASURED)
            continue;
        const struct kg_timing *timing = &outcome->timing;
        kg_text_format(text, "| %d | ", ++shown);
        kg_text_seconds(text, timing->median);
        kg_text_add(text, " | ");
        add_share(text, timing->spread, timing->median);
        add_share(text, view->roofline, timing->median);
        if (estimates)
            kg_text_format(text, "%.2f | ",
                           timing->median > 0 ? outcome->estimate / timing->median : 0.0);
        if (outcome->compile_seconds > 0)
            kg_text_seconds(text, outcome->compile_seconds);
        else
            kg_text_add(text, "-");
        bool chosen = view->chosen && strcmp(outcome->choice, view->chosen) == 0;
        place = chosen ? shown : place;
        kg_text_format(text, " | %s%s%s |\n", outcome->choice, chosen ? " **(chosen)**" : "",
                       timing->abandoned ? " (abandoned early)" : "");
    }
    bool all = shown == outcomes->by_kind[KG_OUTCOME_MEASURED];
    if (place > 0 || all)
        add_reason(view, place, text);
    if (shown < outcomes->by_kind[KG_OUTCOME_MEASURED])
        kg_text_format(text, "\n%d more were measured and were slower.\n",
                       outcomes->by_kind[KG_OUTCOME_MEASURED] - shown);
}

static void add_refused(const struct kg_outcomes *outcomes, int max, struct kg_text *text)
{
    int refused = outcomes->count - outcomes->by_kind[KG_OUTCOME_MEASURED];
    if (refused == 0)
        return;
    kg_text_add(text, "\n| dropped | why | choice |\n|---------|-----|--------|\n");
    int shown = 0;
    for (int i = 0; i < outcomes->count && (max == 0 || shown < max); i++) {
        const struct kg_outcome *outcome = &outcomes->list[i];
        if (outcome->kind == KG_OUTCOME_MEASURED)
            continue;
        shown++;
        // A reason may have several lines (of a compiler); the first one says what happened.
        const char *reason = outcome->reason ? outcome->reason : "";
        kg_text_format(text, "| %s | %.*s | %s |\n", kg_outcome_names[outcome->kind],
                       (int)strcspn(reason, "\n|"), reason, outcome->choice);
    }
    if (shown < refused)
        kg_text_format(text, "\n%d more were dropped; --json lists them all.\n", refused - shown);
}

void kg_outcomes_markdown(const struct kg_outcomes *outcomes, const struct kg_outcomes_view *view,
                          struct kg_text *text)
{
    if (outcomes->by_kind[KG_OUTCOME_MEASURED] > 0)
        add_measured(outcomes, view, text);
    add_refused(outcomes, view->max, text);
}

static void add_json_reason(const struct kg_outcomes *outcomes, const struct kg_outcome *outcome,
                            const struct kg_outcome *chosen, struct kg_json *json)
{
    if (outcome->kind != KG_OUTCOME_MEASURED || !chosen) {
        kg_json_text(json, "reason", outcome->reason);
        return;
    }
    struct kg_text reason = {0};
    kg_outcome_fate(outcomes, outcome, chosen, &reason);
    kg_json_text(json, "reason", kg_text_string(&reason));
    json->text->failed |= reason.failed;
    kg_text_free(&reason);
}

void kg_outcomes_json(const struct kg_outcomes *outcomes, const char *chosen, struct kg_text *text)
{
    const struct kg_outcome *kept = chosen ? kg_outcomes_find(outcomes, chosen) : NULL;
    struct kg_json json = {.text = text};
    kg_json_begin_array(&json, NULL);
    for (int i = 0; i < outcomes->count; i++) {
        const struct kg_outcome *outcome = &outcomes->list[i];
        kg_json_begin_object(&json, NULL);
        kg_json_text(&json, "choice", outcome->choice);
        kg_json_text(&json, "outcome", kg_outcome_names[outcome->kind]);
        add_json_reason(outcomes, outcome, kept, &json);
        kg_json_number(&json, "bound", outcome->bound);
        if (outcome->estimate > 0)
            kg_json_number(&json, "estimate", outcome->estimate);
        kg_json_number(&json, "compile_seconds", outcome->compile_seconds);
        if (outcome->kind == KG_OUTCOME_MEASURED) {
            kg_json_number(&json, "seconds", outcome->timing.median);
            kg_json_number(&json, "least", outcome->timing.least);
            kg_json_number(&json, "spread", outcome->timing.spread);
            kg_json_integer(&json, "samples", outcome->timing.samples);
            kg_json_boolean(&json, "abandoned", outcome->timing.abandoned);
        }
        kg_json_boolean(&json, "final", outcome->final);
        kg_json_hash(&json, "source", outcome->source);
        kg_json_end_object(&json);
    }
    kg_json_end_array(&json);
}
