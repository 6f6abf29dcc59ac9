// Combines the outcomes, rounds and wisdom of one key.

#include "report/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WITHIN 1.02 // of the best: a search that stopped there would have lost nothing
#define SAME 1.01   // times closer than this are the same

struct collecting {
    struct kg_view *view;
    bool failed;
};

bool kg_view_known(double seconds)
{
    return isfinite(seconds) && seconds > 0;
}

static const char *keep(struct kg_view *view, const char *text)
{
    return kg_arena_copy(&view->arena, text, strlen(text));
}

static void collect_round(void *user, const struct kg_round *round)
{
    struct collecting *collecting = user;
    struct kg_view *view = collecting->view;
    if (view->round_count == view->round_capacity) {
        int capacity = view->round_capacity ? view->round_capacity * 2 : 16;
        struct kg_round *list = realloc(view->rounds, (size_t)capacity * sizeof *list);
        if (!list) {
            collecting->failed = true;
            return;
        }
        view->rounds = list;
        view->round_capacity = capacity;
    }
    struct kg_round *copy = &view->rounds[view->round_count++];
    *copy = *round;
    copy->diagnosis = keep(view, round->diagnosis);
    copy->change = keep(view, round->change);
    copy->choice = keep(view, round->choice);
    copy->result = keep(view, round->result);
    copy->base = keep(view, round->base);
    copy->kind = keep(view, round->kind);
    copy->bottleneck = keep(view, round->bottleneck);
    copy->difference = keep(view, round->difference);
    copy->date = keep(view, round->date);
}

static void collect_try(void *user, const struct kg_outcome *outcome)
{
    struct collecting *collecting = user;
    struct kg_view *view = collecting->view;
    if (outcome->kind != KG_OUTCOME_MEASURED || outcome->final ||
        !kg_view_known(outcome->timing.median))
        return;
    if (view->try_count == view->try_capacity) {
        int capacity = view->try_capacity ? view->try_capacity * 2 : 64;
        struct kg_try *list = realloc(view->tries, (size_t)capacity * sizeof *list);
        if (!list) {
            collecting->failed = true;
            return;
        }
        view->tries = list;
        view->try_capacity = capacity;
    }
    view->tries[view->try_count++] =
        (struct kg_try){outcome->timing.median, outcome->timing.abandoned};
}

// The wisdom, else the fastest candidate that was not abandoned, else the fastest round.
static enum kg_status find_choice(struct kg_store *store, struct kg_view *view,
                                  struct kg_error *error)
{
    struct kg_wisdom wisdom;
    enum kg_status status = kg_store_recall(store, view->key, &wisdom, error);
    if (status == KG_OK) {
        view->choice = keep(view, wisdom.choice);
        view->rigor = kg_rigor_names[wisdom.rigor];
        view->seconds = wisdom.seconds;
        if (kg_view_known(wisdom.seconds) && kg_view_known(wisdom.spread))
            view->spread = wisdom.spread / wisdom.seconds;
        view->seed = wisdom.seed;
        kg_wisdom_free(&wisdom);
        return KG_OK;
    }
    if (status != KG_ERROR_NO_WISDOM)
        return status;
    kg_error_clear(error);
    const struct kg_outcome *best = view->outcomes.list; // measured ones first, fastest first
    if (view->outcomes.count > 0 && best->kind == KG_OUTCOME_MEASURED && !best->timing.abandoned) {
        view->choice = best->choice;
        view->seconds = best->timing.median;
        return KG_OK;
    }
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (kg_view_known(round->after) && (!view->choice || round->after < view->seconds)) {
            view->choice = round->choice;
            view->seconds = round->after;
        }
    }
    return KG_OK;
}

static bool is_choice(const struct kg_view *view, const char *choice)
{
    return view->choice && strcmp(choice, view->choice) == 0;
}

// The latest race of the choice with the baseline replaces the search's time: a time and a ratio
// shown side by side must belong to one measurement.
static void find_race(struct kg_view *view)
{
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (kg_view_known(round->roofline))
            view->roofline = round->roofline;
        if (!is_choice(view, round->choice) || !kg_view_known(round->after) ||
            !kg_view_known(round->baseline))
            continue;
        view->seconds = round->after;
        view->baseline = round->baseline;
    }
}

// The speed of a wrong kernel means nothing.
static void refuse(struct kg_view *view)
{
    view->accuracy = KG_VIEW_REFUSED;
    view->seconds = view->baseline = 0;
}

static void find_verdict(struct kg_view *view)
{
    for (int i = 0; i < view->outcomes.count && !view->judged; i++) {
        const struct kg_outcome *outcome = &view->outcomes.list[i];
        bool wrong = outcome->kind == KG_OUTCOME_WRONG;
        if (view->choice ? is_choice(view, outcome->choice) : wrong)
            view->judged = outcome;
    }
    if (view->judged && view->judged->kind == KG_OUTCOME_WRONG)
        refuse(view);
    else if (kg_view_known(view->seconds)) // nothing is timed before it passes
        view->accuracy = KG_VIEW_PASSED;
    if (view->accuracy == KG_VIEW_PASSED && view->judged && view->judged->verdict.cases == 0)
        view->judged = NULL;
    if (view->judged)
        view->seed = view->judged->verdict.seed;
}

// Estimates if any candidate has one; bounds are in every record of a family that computes them.
static void find_predictions(struct kg_view *view)
{
    struct kg_outcomes *outcomes = &view->outcomes;
    for (int i = 0; i < outcomes->count; i++) {
        const struct kg_outcome *outcome = &outcomes->list[i];
        if (outcome->kind != KG_OUTCOME_MEASURED)
            continue;
        if (kg_view_known(outcome->forecast.estimate))
            view->prediction = KG_VIEW_ESTIMATE;
        else if (kg_view_known(outcome->bound) && view->prediction == KG_VIEW_UNPREDICTED)
            view->prediction = KG_VIEW_BOUND;
    }
    for (int i = 0; i < outcomes->count; i++)
        outcomes->list[i].estimate = view->prediction == KG_VIEW_ESTIMATE
                                         ? outcomes->list[i].forecast.estimate
                                         : outcomes->list[i].bound;
}

// The search's: races record none.
static void find_spread(struct kg_view *view)
{
    for (int i = 0; i < view->outcomes.count; i++) {
        const struct kg_outcome *outcome = &view->outcomes.list[i];
        if (is_choice(view, outcome->choice) && outcome->kind == KG_OUTCOME_MEASURED &&
            kg_view_known(outcome->timing.median) && kg_view_known(outcome->timing.spread))
            view->spread = outcome->timing.spread / outcome->timing.median;
    }
}

static void use_cost(struct kg_view *view)
{
    double least = fmax(view->cost.memory_seconds, view->cost.compute_seconds);
    if (!kg_view_known(view->roofline) && kg_view_known(least))
        view->roofline = least;
}

enum kg_status kg_view_collect(struct kg_store *store, const struct kg_key *key,
                               struct kg_view *view, struct kg_error *error)
{
    *view = (struct kg_view){.key = key};
    struct collecting collecting = {.view = view};
    enum kg_status status = kg_outcomes_collect(store, key, &view->outcomes, error);
    if (status == KG_OK)
        status = kg_store_rounds(store, key, collect_round, &collecting, error);
    if (status == KG_OK)
        status = kg_store_history(store, key, collect_try, &collecting, error);
    if (status == KG_OK)
        status = kg_store_cost(store, key, &view->cost, error);
    if (status == KG_OK)
        status = find_choice(store, view, error);
    if (status == KG_OK && (collecting.failed || view->arena.failed))
        status = kg_error_memory(error, "the records of a problem");
    if (status != KG_OK) {
        kg_view_free(view);
        return status;
    }
    find_race(view);
    use_cost(view);
    find_spread(view);
    find_predictions(view);
    find_verdict(view);
    return KG_OK;
}

double kg_view_ratio(const struct kg_view *view)
{
    return kg_view_known(view->seconds) && kg_view_known(view->baseline)
               ? view->baseline / view->seconds
               : 0;
}

enum kg_view_result kg_view_result(const struct kg_view *view)
{
    double ratio = kg_view_ratio(view);
    if (ratio <= 0)
        return KG_VIEW_UNCOMPARED;
    if (ratio > SAME)
        return KG_VIEW_FASTER;
    return ratio < 1 / SAME ? KG_VIEW_SLOWER : KG_VIEW_AS_FAST;
}

struct kg_progress kg_view_progress(const struct kg_view *view)
{
    struct kg_progress progress = {.measured = view->try_count};
    for (int i = 0; i < view->try_count; i++)
        if (!view->tries[i].abandoned &&
            (progress.best <= 0 || view->tries[i].seconds < progress.best)) {
            progress.best = view->tries[i].seconds;
            progress.to_best = i + 1;
        }
    for (int i = 0; i < view->try_count && progress.near_best == 0; i++)
        if (!view->tries[i].abandoned && view->tries[i].seconds <= WITHIN * progress.best)
            progress.near_best = i + 1;
    return progress;
}

bool kg_view_loop(const struct kg_view *view, struct kg_loop *loop)
{
    *loop = (struct kg_loop){0};
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (round->number == 0)
            *loop = (struct kg_loop){0}; // another build
        if (!kg_view_known(round->after))
            continue;
        if (strcmp(round->kind, KG_ROUND_SEARCH) == 0) {
            // Where the search found nothing faster, what was there before stayed.
            bool stayed = !round->kept && kg_view_known(round->before);
            loop->searched = loop->ended = stayed ? round->before : round->after;
            loop->search = round;
            loop->end = NULL;
        } else if (loop->search && round->kept) {
            loop->end = round;
            loop->ended = round->after;
        }
    }
    return loop->search;
}

void kg_view_free(struct kg_view *view)
{
    kg_outcomes_free(&view->outcomes);
    free(view->rounds);
    free(view->tries);
    kg_arena_free(&view->arena);
    *view = (struct kg_view){0};
}
