// See group_search.h. trials.c tries a candidate, candidates.c picks the next one.

#include "tune/group_search.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RECORDED 256 // prunings of a group that are recorded: a record takes half a millisecond
#define LEAST_BATCH 2
#define LEAST_APART_BATCH 8
#define BESIDE 3
#define LEAST_GAIN 0.01
#define MAX_COMPILED 4 // compiled candidates, as a multiple of those that may be measured

static const struct kg_search_rule rules[KG_RIGOR_COUNT] = {
    [KG_RIGOR_MEASURE] = {3, 0.2, 3, 64, 16, 24, 0, 1, 8, 1, true, 2},
    [KG_RIGOR_PATIENT] = {24, 0.5, 24, 256, 0, 96, 0, 2, 12, 0.15, true, 0},
    [KG_RIGOR_EXHAUSTIVE] = {KG_MAX_CONFIGS, 1, 0, KG_MAX_CONFIGS, 0, 0, 0, 1, 12, 0.15, false, 0},
};
// For devices that the CPU's compilers do not disturb: a batch takes about as long as one
// compilation, which is nearly all of the time.
static const struct kg_search_rule measure_apart = {3, 0.1, 3, 18, 16, 0, 2, 1, 4, 0.05, true, 2};
// For one kind of change around a choice that a search has found: few configs, most of them
// neighbours of what was measured already.
static const struct kg_search_rule changed = {12, 0.5, 12, 32, 16, 16, 0, 1, 8, 0.1, true, 2};
static const struct kg_search_rule changed_apart = {16, 0.5, 16, 32, 16, 0, 2, 1, 4, 0.05, true, 2};

const struct kg_search_rule *kg_search_rule_of(const struct kg_search *search)
{
    bool apart = search->device->backend->computes_apart;
    if (search->rigor != KG_RIGOR_MEASURE)
        return &rules[search->rigor];
    if (search->change != KG_CHANGE_NONE)
        return apart ? &changed_apart : &changed;
    return apart ? &measure_apart : &rules[KG_RIGOR_MEASURE];
}

// A build compiles the guess, its counterpart and the baseline beside the first batch.
int kg_search_batch(const struct kg_device *device)
{
    int cores = kg_compile_cores(device), least = LEAST_BATCH;
    if (device->backend->computes_apart) {
        cores -= BESIDE;
        least = LEAST_APART_BATCH;
    }
    return cores < least ? least : cores > KG_MAX_BATCH ? KG_MAX_BATCH : cores;
}

static int allowance(const struct kg_search_rule *rule, const struct kg_candidates *candidates)
{
    int valid = candidates->count;
    if (valid <= rule->all)
        return valid;
    int wanted = (int)(rule->share * valid);
    wanted = wanted > rule->least ? wanted : rule->least;
    bool fewer = candidates->expected && rule->expected > 0;
    int max = fewer ? rule->expected : rule->max;
    return wanted < max ? wanted : max;
}

// The current choice with another config for one group.
static struct kg_choice replace(const struct kg_group_search *state, int group,
                                const struct kg_candidate *candidate)
{
    struct kg_choice choice = state->current;
    choice.matches[group] = state->axes[group].candidates.readings[candidate->reading].match;
    choice.configs[group] = candidate->config;
    return choice;
}

// Prunes candidates that cannot beat the best measured time.
static void prune(struct kg_group_search *state, int group)
{
    struct kg_trials *trials = &state->trials;
    struct kg_axis *axis = &state->axes[group];
    if (!state->rule->prune || trials->best < 0)
        return;
    double best = trials->items[trials->best].timing.median;
    for (int i = 0; i < axis->candidates.count; i++) {
        struct kg_candidate *candidate = &axis->candidates.items[i];
        if (candidate->state != KG_CANDIDATE_OPEN)
            continue;
        struct kg_choice choice = replace(state, group, candidate);
        double bound = kg_trials_bound(trials, &choice);
        if (bound <= best)
            continue;
        char reason[128];
        snprintf(reason, sizeof reason, "cannot take less than %.3g us; the best takes %.3g us",
                 bound * 1e6, best * 1e6);
        candidate->state = KG_CANDIDATE_PRUNED;
        trials->pruned++;
        if (axis->recorded++ < MAX_RECORDED)
            kg_trials_dismiss(trials, &choice, reason);
    }
}

// Copies what the trials know of one candidate. False when it was not tried.
static bool update(struct kg_group_search *state, int group, struct kg_candidate *candidate)
{
    struct kg_choice choice = replace(state, group, candidate);
    const struct kg_trial *trial = kg_trials_find(&state->trials, &choice);
    if (!trial)
        return false;
    candidate->state = trial->kind == KG_OUTCOME_PRUNED ? KG_CANDIDATE_PRUNED : KG_CANDIDATE_TRIED;
    candidate->seconds = trial->timing.median;
    candidate->twin = -1;
    if (trial->twin >= 0) {
        const struct kg_choice *twin = &state->trials.items[trial->twin].choice;
        if (twin->count > group)
            candidate->twin = kg_candidates_find(&state->axes[group].candidates,
                                                 twin->matches[group], &twin->configs[group]);
    }
    return true;
}

static int find_best(const struct kg_candidates *candidates)
{
    int best = -1;
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state == KG_CANDIDATE_TRIED && candidate->seconds > 0 &&
            (best < 0 || candidate->seconds < candidates->items[best].seconds))
            best = i;
    }
    return best;
}

// A candidate that was tried, and those that differ only by a limit on registers.
struct limited {
    struct kg_group_search *state;
    int group;
    int registers;
};

static void dismiss_limited(void *user, const struct kg_candidate *candidate)
{
    const struct limited *limited = user;
    struct kg_trials *trials = &limited->state->trials;
    struct kg_choice choice = replace(limited->state, limited->group, candidate);
    char reason[128];
    snprintf(reason, sizeof reason, "no limit: %d registers are all it uses", limited->registers);
    trials->pruned++;
    if (limited->state->axes[limited->group].recorded++ < MAX_RECORDED)
        kg_trials_dismiss(trials, &choice, reason);
}

static void release(struct kg_group_search *state, int group)
{
    struct kg_candidates *candidates = &state->axes[group].candidates;
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state != KG_CANDIDATE_TRIED)
            continue;
        struct kg_choice choice = replace(state, group, candidate);
        const struct kg_trial *trial = kg_trials_find(&state->trials, &choice);
        struct limited limited = {state, group, trial ? trial->forecast.registers : 0};
        kg_candidates_release(candidates, i, limited.registers, dismiss_limited, &limited);
    }
}

// Configs with a limit on registers are not in the first batch, which is compiled before anything
// is known of the same configs without a limit.
static void pick(struct kg_group_search *state, int group, int max)
{
    struct kg_candidates *candidates = &state->axes[group].candidates;
    struct kg_batch *next = &state->next;
    int size = kg_search_batch(state->search->device);
    size = max < size ? max : size;
    bool first = state->axes[group].batches++ == 0;
    if (!first)
        release(state, group);
    next->count = kg_candidates_pick(candidates, find_best(candidates), size, next->picked);
    if (first && next->count == 0) {
        release(state, group);
        next->count = kg_candidates_pick(candidates, find_best(candidates), size, next->picked);
    }
    for (int i = 0; i < next->count; i++) {
        struct kg_candidate *candidate = &candidates->items[next->picked[i]];
        candidate->state = KG_CANDIDATE_PICKED;
        next->items[i] = (struct kg_compilation){
            .problem = state->search->problem,
            .choice = replace(state, group, candidate),
        };
    }
}

static void *compile_next(void *argument)
{
    struct kg_group_search *state = argument;
    const struct kg_search *search = state->search;
    kg_compile_all(search->device, state->next.items, state->next.count,
                   kg_trials_run_limit(&state->trials), kg_trials_deadline(&state->trials),
                   search->protocol.cache == KG_WARM, search->cancel, NULL);
    return NULL;
}

static void await_next(struct kg_group_search *state)
{
    struct kg_batch *next = &state->next;
    double start = kg_times_now(), work = 0;
    if (!next->is_compiling)
        return;
    pthread_join(next->compiler, NULL);
    next->is_compiling = false;
    for (int i = 0; i < next->count; i++) {
        work += next->items[i].built ? next->items[i].built->compile_work : 0;
        kg_built_free(next->items[i].built); // its object is in the cache
    }
    kg_times_add(state->search->times, KG_ACTIVITY_COMPILE, kg_times_now() - start, work);
}

static int try_some(struct kg_group_search *state, int group, const int *picked, int count)
{
    struct kg_candidates *candidates = &state->axes[group].candidates;
    struct kg_choice *choices = calloc((size_t)count + 1, sizeof *choices);
    int tried = 0;
    if (!choices)
        return 0;
    for (int i = 0; i < count; i++)
        choices[i] = replace(state, group, &candidates->items[picked[i]]);
    kg_trials_run(&state->trials, choices, count);
    free(choices);
    for (int i = 0; i < count; i++)
        tried += update(state, group, &candidates->items[picked[i]]);
    return tried;
}

// Tries the next few candidates of a group and returns their number; 0 ends the group. If compilers
// do not disturb the timing, the following batch is picked and compiled once half of this one is
// measured.
static int advance(struct kg_group_search *state, int group, int max, bool is_last)
{
    struct kg_batch *next = &state->next;
    bool overlaps = !is_last && state->search->device->backend->computes_apart;
    int picked[KG_MAX_BATCH];
    await_next(state);
    if (next->count == 0)
        pick(state, group, max);
    int count = next->count, first = overlaps ? count / 2 : count;
    memcpy(picked, next->picked, sizeof picked);
    next->count = 0;
    int tried = try_some(state, group, picked, first);
    if (overlaps && max > count && !kg_trials_stopped(&state->trials)) {
        pick(state, group, max - count);
        next->is_compiling = pthread_create(&next->compiler, NULL, compile_next, state) == 0;
    }
    return tried + try_some(state, group, picked + first, count - first);
}

// Trials that count: candidates that run the same code as another one only cost a compilation.
static int count_tried(const struct kg_candidates *candidates)
{
    int tried = 0;
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        tried += candidate->state == KG_CANDIDATE_TRIED && candidate->twin < 0;
    }
    return tried;
}

// Has a large space been searched for long enough without a significant gain?
static bool is_exhausted(const struct kg_group_search *state, int allowed, int tried, int best_at)
{
    const struct kg_search_rule *rule = state->rule;
    return rule->patience > 0 && allowed == rule->max && tried - best_at >= rule->patience;
}

// The fastest choice with the groups of the current one becomes current.
static void take_best(struct kg_group_search *state)
{
    const struct kg_trials *trials = &state->trials;
    const struct kg_trial *best = NULL;
    for (int i = 0; i < trials->count; i++) {
        const struct kg_trial *trial = &trials->items[i];
        if (trial->kind == KG_OUTCOME_MEASURED && !trial->timing.abandoned &&
            kg_choice_has_same_groups(&trial->choice, &state->current) &&
            (!best || trial->timing.median < best->timing.median))
            best = trial;
    }
    if (best)
        state->current = best->choice;
}

static void search_group(struct kg_group_search *state, int group)
{
    struct kg_candidates *candidates = &state->axes[group].candidates;
    for (int i = 0; i < candidates->count; i++) {
        candidates->items[i].state = KG_CANDIDATE_OPEN;
        update(state, group, &candidates->items[i]);
    }
    if (state->rule->prune)
        kg_candidates_hold(candidates);
    state->axes[group].batches = 0;
    int allowed = allowance(state->rule, candidates), best_at = 0;
    int tried = count_tried(candidates), more = 1, compiled = state->trials.count;
    double best = INFINITY;
    int batches = state->rule->batches ? state->rule->batches : INT_MAX;
    while (batches-- > 0 && more > 0 && tried < allowed &&
           state->trials.count - compiled < MAX_COMPILED * allowed &&
           !kg_trials_stopped(&state->trials)) {
        int at = find_best(candidates);
        if (at >= 0 && candidates->items[at].seconds < (1 - LEAST_GAIN) * best) {
            best = candidates->items[at].seconds;
            best_at = tried;
        }
        if (is_exhausted(state, allowed, tried, best_at))
            break;
        prune(state, group);
        more = advance(state, group, allowed - tried, batches == 0);
        tried = count_tried(candidates);
    }
    await_next(state);
    state->next.count = 0; // picked, but no longer needed
    take_best(state);
}

static enum kg_status list_group(const struct kg_search *search, const struct kg_match *match,
                                 const struct kg_config *from, struct kg_candidates *candidates,
                                 struct kg_error *error)
{
    if (search->change == KG_CHANGE_NONE || search->change == KG_CHANGE_GROUPING)
        return kg_candidates_list(match, search->target, KG_MAX_CONFIGS, NULL, NULL, candidates,
                                  error);
    return kg_candidates_list_changed(match, search->target, from, search->change, KG_MAX_CONFIGS,
                                      candidates, error);
}

enum kg_status kg_group_search_list(struct kg_group_search *state, struct kg_found *found,
                                    struct kg_error *error)
{
    const struct kg_search *search = state->search;
    for (int group = 0; group < state->current.count; group++) {
        struct kg_axis *axis = &state->axes[group];
        const struct kg_match *match = state->current.matches[group];
        enum kg_status status =
            list_group(search, match, &state->current.configs[group], &axis->candidates, error);
        if (status)
            return status;
        if (search->prior)
            kg_candidates_advise(&axis->candidates, search->prior, search->user);
        axis->bound = match->family->bound(match, &state->current.configs[group]);
        found->space += axis->candidates.size;
        found->valid += axis->candidates.count;
        state->trials.expected += allowance(state->rule, &axis->candidates);
    }
    return KG_OK;
}

// The group with the largest bound among those not in `done`.
static int next_group(const struct kg_group_search *state, const bool *done)
{
    int next = -1;
    for (int group = 0; group < state->current.count; group++)
        if (!done[group] && (next < 0 || state->axes[group].bound > state->axes[next].bound))
            next = group;
    return next;
}

void kg_group_search_run(struct kg_group_search *state)
{
    int count = state->current.count;
    for (int pass = 0; pass < (count > 1 ? state->rule->passes : 1); pass++) {
        bool done[KG_MAX_NESTS] = {false};
        for (int i = 0; i < count; i++) {
            int group = next_group(state, done);
            done[group] = true;
            search_group(state, group);
        }
    }
}

int kg_group_search_others(const struct kg_group_search *state, double *least)
{
    int others = 0;
    double total = *least;
    for (int group = 0; group < state->current.count; group++) {
        const struct kg_candidates *candidates = &state->axes[group].candidates;
        const struct kg_match *match = state->current.matches[group];
        const struct kg_config *config = &state->current.configs[group];
        others += candidates->count - (kg_candidates_find(candidates, match, config) >= 0);
        double own = match->family->expected ? match->family->expected(match, config) : 0;
        for (int i = 0; i < candidates->count && candidates->expected && own > 0; i++)
            *least = fmin(*least, total - own + candidates->items[i].expected);
    }
    return others;
}

void kg_group_search_clear(struct kg_group_search *state)
{
    for (int group = 0; group < KG_MAX_NESTS; group++) {
        kg_candidates_free(&state->axes[group].candidates);
        state->axes[group] = (struct kg_axis){0};
    }
}
