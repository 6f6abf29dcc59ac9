// The search: which candidates are tried, how many, and in which order. trials.c tries a candidate,
// candidates.c picks the next one.
//
// The kernels of a plan run one after the other, so groups are searched one by one: the most
// expensive first, while the others keep their best known configs.

#include "gen/grouping.h"
#include "tune/candidates.h"
#include "tune/compiling.h"
#include "tune/trials.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONFIGS 65536  // candidates of one group
#define MAX_ESTIMATED 4096 // the same, where nothing is measured
#define MAX_RECORDED 256 // prunings of a group that are recorded: a record takes half a millisecond
#define MAX_HINTS 16
#define LEAST_BATCH 2
#define MAX_BATCH (KG_MAX_FORESEEN - 1)
#define LEAST_APART_BATCH 8
#define BESIDE 3
#define LEAST_GAIN 0.01

// The limits of a rigor for one group with n valid configs: all of them if n <= all, else
// max(least, share * n), but at most `max`. Candidates that run the same code as another one do not
// count, up to MAX_COMPILED.
#define MAX_COMPILED 4 // compiled candidates, as a multiple of those that may be measured
static const struct rule {
    int all;
    double share;
    int least;
    int max;
    int expected;  // largest number if the family expects a time of each config; 0: `max`
    int patience;  // if `max` is the limit: trials in a row without a gain that end the search; 0:
                   // any number
    int batches;   // batches of a group, beside the guess; 0: any number
    int passes;    // over the groups, when there are several
    int finalists; // largest number; those within `margin` of the best
    double margin;
    bool prune;
    double max_estimate; // candidates whose estimate is more than this multiple of the best's are
                         // not run
} rules[KG_RIGOR_COUNT] = {
    [KG_RIGOR_MEASURE] = {3, 0.2, 3, 64, 16, 24, 0, 1, 8, 1, true, 2},
    [KG_RIGOR_PATIENT] = {24, 0.5, 24, 256, 0, 96, 0, 2, 12, 0.15, true, 0},
    [KG_RIGOR_EXHAUSTIVE] = {MAX_CONFIGS, 1, 0, MAX_CONFIGS, 0, 0, 0, 1, 12, 0.15, false, 0},
};
// For devices that the CPU's compilers do not disturb: a batch takes about as long as one
// compilation, which is nearly all of the time.
static const struct rule measure_apart = {3, 0.1, 3, 18, 16, 0, 2, 1, 4, 0.05, true, 2};

// One group of the plan that is being searched.
struct axis {
    struct kg_candidates candidates;
    double bound; // of its guess
    int recorded;
    int batches; // batches that were picked
};

// The next batch, which may be compiling already.
struct batch {
    int count;
    int picked[MAX_BATCH]; // positions among the candidates
    struct kg_compilation items[MAX_BATCH];
    bool is_compiling;
    pthread_t compiler;
};

struct state {
    const struct kg_search *search;
    const struct rule *rule;
    struct kg_trials trials;
    struct kg_choice current;       // best known configs of all groups
    struct axis axes[KG_MAX_NESTS]; // by group
    struct batch next;
};

static const struct rule *find_rule(const struct kg_search *search)
{
    bool apart = search->device->backend->computes_apart;
    return apart && search->rigor == KG_RIGOR_MEASURE ? &measure_apart : &rules[search->rigor];
}

// A build compiles the guess, its counterpart and the baseline beside the first batch.
static int batch_size(const struct kg_device *device)
{
    int cores = kg_compile_cores(device), least = LEAST_BATCH;
    if (device->backend->computes_apart) {
        cores -= BESIDE;
        least = LEAST_APART_BATCH;
    }
    return cores < least ? least : cores > MAX_BATCH ? MAX_BATCH : cores;
}

static int allowance(const struct rule *rule, const struct kg_candidates *candidates)
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
static struct kg_choice replace(const struct state *state, int group,
                                const struct kg_candidate *candidate)
{
    struct kg_choice choice = state->current;
    choice.matches[group] = state->axes[group].candidates.readings[candidate->reading].match;
    choice.configs[group] = candidate->config;
    return choice;
}

// Prunes candidates that cannot beat the best measured time.
static void prune(struct state *state, int group)
{
    struct kg_trials *trials = &state->trials;
    struct axis *axis = &state->axes[group];
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
static bool update(struct state *state, int group, struct kg_candidate *candidate)
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
    struct state *state;
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

static void release(struct state *state, int group)
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
static void pick(struct state *state, int group, int max)
{
    struct kg_candidates *candidates = &state->axes[group].candidates;
    struct batch *next = &state->next;
    int size = batch_size(state->search->device);
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
    struct state *state = argument;
    const struct kg_search *search = state->search;
    kg_compile_all(search->device, state->next.items, state->next.count,
                   kg_trials_limit(&state->trials), kg_trials_deadline(&state->trials),
                   search->protocol.cache == KG_WARM, search->cancel, NULL);
    return NULL;
}

static void await_next(struct state *state)
{
    struct batch *next = &state->next;
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

static int try_some(struct state *state, int group, const int *picked, int count)
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
static int advance(struct state *state, int group, int max, bool is_last)
{
    struct batch *next = &state->next;
    bool overlaps = !is_last && state->search->device->backend->computes_apart;
    int picked[MAX_BATCH];
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
static bool is_exhausted(const struct state *state, int allowed, int tried, int best_at)
{
    const struct rule *rule = state->rule;
    return rule->patience > 0 && allowed == rule->max && tried - best_at >= rule->patience;
}

static void search_group(struct state *state, int group)
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
    if (state->trials.best >= 0)
        state->current = state->trials.items[state->trials.best].choice;
}

// Lists the configs of every group of the current choice.
static enum kg_status list_groups(struct state *state, struct kg_found *found,
                                  struct kg_error *error)
{
    const struct kg_search *search = state->search;
    for (int group = 0; group < state->current.count; group++) {
        struct axis *axis = &state->axes[group];
        const struct kg_match *match = state->current.matches[group];
        enum kg_status status = kg_candidates_list(match, search->target, MAX_CONFIGS, NULL, NULL,
                                                   &axis->candidates, error);
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
static int next_group(const struct state *state, const bool *done)
{
    int next = -1;
    for (int group = 0; group < state->current.count; group++)
        if (!done[group] && (next < 0 || state->axes[group].bound > state->axes[next].bound))
            next = group;
    return next;
}

static void search_groups(struct state *state)
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

// Lists groupings other than the chosen one whose expected times come near it; a race decides among
// them.
static int list_rivals(const struct state *state, struct kg_choice *rivals)
{
    const struct kg_search *search = state->search;
    const double near = 2;
    int count = 0;
    struct kg_groupings *groupings = malloc(sizeof *groupings);
    if (groupings && kg_groupings_list(search->problem, &search->device->facts, search->target,
                                       groupings, NULL)) {
        double expected = groupings->options[groupings->chosen].expected;
        for (int i = 0; i < groupings->count; i++) {
            const struct kg_grouping_option *option = &groupings->options[i];
            if (i != groupings->chosen && option->expected > 0 &&
                option->expected <= near * expected)
                rivals[count++] = option->choice;
        }
    }
    free(groupings);
    return count;
}

// Whether patterns replaced one group's config.
static bool correct_group(const struct kg_search *search, struct kg_choice *choice, int group)
{
    const struct kg_match *match = choice->matches[group];
    struct kg_candidates *candidates;
    bool corrected = false;
    if (!kg_candidates_are_known(match, search->prior, search->user) ||
        !(candidates = malloc(sizeof *candidates)))
        return false;
    if (kg_candidates_list(match, search->target, MAX_ESTIMATED, NULL, NULL, candidates, NULL) ==
        KG_OK) {
        kg_candidates_advise(candidates, search->prior, search->user);
        int guess = kg_candidates_find(candidates, match, &choice->configs[group]);
        int at = kg_candidates_first(candidates, guess);
        corrected = at >= 0 && at != guess;
        if (corrected) {
            const struct kg_candidate *first = &candidates->items[at];
            choice->matches[group] = candidates->readings[first->reading].match;
            choice->configs[group] = first->config;
        }
        kg_candidates_free(candidates);
    }
    free(candidates);
    return corrected;
}

bool kg_search_estimate(const struct kg_search *search, struct kg_choice *choice)
{
    bool corrected = false;
    kg_choice_guess(search->problem, &search->device->facts, search->target, choice);
    for (int group = 0; group < choice->count && search->prior; group++)
        corrected |= correct_group(search, choice, group);
    return corrected;
}

// Tries the guess, what patterns make of it, then other groupings, then hints. A hint that does not
// fit this problem is not an error.
static void try_seeds(struct state *state)
{
    const struct kg_search *search = state->search;
    struct kg_choice *seeds = calloc(MAX_HINTS + KG_GROUPING_COUNT + 2, sizeof *seeds);
    if (!seeds)
        return; // a later step reports it
    int count = 0, max = MAX_HINTS;
    seeds[count++] = state->current;
    count += search->prior && kg_search_estimate(search, &seeds[count]);
    count += list_rivals(state, seeds + count);
    for (int i = 0; i < search->hint_count && max-- > 0; i++)
        count += kg_choice_read(search->problem, &search->device->facts, search->target,
                                search->hints[i], &seeds[count]);
    if (search->seconds > 0) // the limit counts from the first verdict on
        kg_trials_run(&state->trials, seeds, 1);
    kg_trials_run(&state->trials, seeds, count);
    free(seeds);
    if (state->trials.best >= 0)
        state->current = state->trials.items[state->trials.best].choice;
}

static void finish(struct state *state, struct kg_found *found)
{
    struct kg_trials *trials = &state->trials;
    struct kg_timing timing;
    int winner = kg_trials_finish(trials, state->rule->finalists, state->rule->margin, &timing);
    found->choice = trials->items[winner].choice;
    found->seconds = timing.median;
    found->spread = timing.spread;
    found->seed = trials->items[winner].verdict.seed;
}

// The status of the search as a whole.
static enum kg_status conclude(const struct kg_trials *trials, struct kg_error *error)
{
    static const char *const endings[] = {"", " before time was up", "", ""};
    if (trials->stop == KG_STOP_CANCELLED)
        return kg_error_set(error, KG_ERROR_CANCELLED, "the search was cancelled");
    if (trials->best >= 0)
        return KG_OK;
    if (trials->stop == KG_STOP_FAILURE)
        return kg_error_set(error, trials->failure.status, "%s", trials->failure.text);
    return kg_error_set(error, trials->stop == KG_STOP_TIME ? KG_ERROR_TIMEOUT : KG_ERROR_WRONG,
                        "no candidate passed%s; %d failed:%s", endings[trials->stop],
                        trials->failed, kg_text_string(&trials->reasons));
}

static enum kg_status run(struct state *state, struct kg_found *found, struct kg_error *error)
{
    struct kg_trials *trials = &state->trials;
    enum kg_status status = kg_trials_begin(trials, state->search, error);
    if (status)
        return status;
    trials->prunes = state->rule->prune;
    trials->max_estimate = state->rule->max_estimate;
    try_seeds(state);
    status = list_groups(state, found, error);
    if (status)
        return status;
    search_groups(state);
    found->complete = trials->stop == KG_STOP_NOT;
    found->pruned = trials->pruned;
    found->measured = trials->measured;
    found->failed = trials->failed;
    if (trials->best >= 0)
        finish(state, found);
    if (trials->stop == KG_STOP_FAILURE)
        snprintf(found->ended, sizeof found->ended, "%.*s", KG_FOUND_WHY - 1, trials->failure.text);
    return conclude(trials, error);
}

// The group with the largest bound.
static int find_costliest(const struct kg_choice *choice)
{
    int group = 0;
    double max = -1;
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        double bound = match->family->bound(match, &choice->configs[i]);
        group = bound > max ? i : group;
        max = bound > max ? bound : max;
    }
    return group;
}

int kg_search_foresee(const struct kg_search *search, struct kg_choice choices[KG_MAX_FORESEEN])
{
    int picked[MAX_BATCH], count = 1;
    struct kg_candidates candidates;
    kg_choice_guess(search->problem, &search->device->facts, search->target, &choices[0]);
    if (choices[0].count == 0)
        return 0;
    int group = find_costliest(&choices[0]);
    const struct kg_match *match = choices[0].matches[group];
    if (kg_candidates_list(match, search->target, MAX_CONFIGS, NULL, NULL, &candidates, NULL) !=
        KG_OK)
        return count;
    if (search->prior)
        kg_candidates_advise(&candidates, search->prior, search->user);
    int at = kg_candidates_find(&candidates, match, &choices[0].configs[group]);
    if (at >= 0) {
        candidates.items[at].state = KG_CANDIDATE_TRIED;
        candidates.items[at].seconds = 1;
    }
    if (find_rule(search)->prune)
        kg_candidates_hold(&candidates);
    int next = kg_candidates_pick(&candidates, at, batch_size(search->device), picked);
    for (int i = 0; i < next; i++) {
        const struct kg_candidate *candidate = &candidates.items[picked[i]];
        choices[count] = choices[0];
        choices[count].matches[group] = candidates.readings[candidate->reading].match;
        choices[count++].configs[group] = candidate->config;
    }
    kg_candidates_free(&candidates);
    return count;
}

enum kg_status kg_search_run(const struct kg_search *search, struct kg_found *found,
                             struct kg_error *error)
{
    *found = (struct kg_found){.complete = true};
    if (search->rigor < KG_RIGOR_ESTIMATE || search->rigor > KG_RIGOR_EXHAUSTIVE)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "a search needs a rigor from estimate on");
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return kg_error_memory(error, "a search");
    state->search = search;
    state->rule = find_rule(search);
    kg_choice_guess(search->problem, &search->device->facts, search->target, &state->current);
    if (search->rigor == KG_RIGOR_ESTIMATE)
        kg_search_estimate(search, &state->current);
    found->choice = state->current;
    enum kg_status status =
        state->current.count > 0 ? KG_OK : kg_error_memory(error, "the kernels of a problem");
    if (status == KG_OK && search->rigor != KG_RIGOR_ESTIMATE)
        status = run(state, found, error);
    for (int group = 0; group < KG_MAX_NESTS; group++)
        kg_candidates_free(&state->axes[group].candidates);
    kg_trials_free(&state->trials);
    free(state);
    return status;
}
