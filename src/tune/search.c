// The search: from a problem to the best choice that rigor and time allow. group_search.c searches
// the configs of given groups; here are the choices that it starts from, and how it ends.

#include "gen/grouping.h"
#include "tune/group_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HINTS 16
#define MAX_RIVALS 2    // groupings whose configs are searched, where the grouping is what changes
#define RIVAL_TIMES 2.0 // times the best, up to which such a grouping can still win
#define NEAR_TIMES 1.15 // times the best seed, up to which another grouping's configs are searched
#define SLOWER 1.5      // times the expected time of the guess, up to which a favourite is tried

// Lists groupings other than the chosen one whose expected times come near it; a race decides among
// them.
static int list_rivals(const struct kg_group_search *state, struct kg_choice *rivals)
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

static bool is_among(const struct kg_choice *choice, const struct kg_choice *seeds, int count)
{
    for (int i = 0; i < count; i++)
        if (seeds[i].count == 1 && choice->count == 1 &&
            seeds[i].matches[0] == choice->matches[0] &&
            memcmp(&seeds[i].configs[0], &choice->configs[0], sizeof choice->configs[0]) == 0)
            return true;
    return false;
}

// Where choices go that are made of the guess and another config.
struct fitting {
    const struct kg_search *search;
    const struct kg_choice *guess;
    struct kg_text text; // the guess
    size_t kernel;       // the length of what stands before its config
    struct kg_choice *choices;
    int count;
};

static bool is_much_slower(const struct kg_choice *choice, const struct kg_choice *guess)
{
    double of_guess = kg_choice_expected(guess);
    return of_guess > 0 && kg_choice_expected(choice) > SLOWER * of_guess;
}

static bool fits(void *user, const char *config)
{
    struct fitting *fitting = user;
    const struct kg_search *search = fitting->search;
    struct kg_choice *choice = &fitting->choices[fitting->count];
    kg_text_cut(&fitting->text, fitting->kernel);
    kg_text_format(&fitting->text, ": %s", config);
    bool is_new = !fitting->text.failed &&
                  kg_choice_read(search->problem, &search->device->facts, search->target,
                                 kg_text_string(&fitting->text), choice) &&
                  choice->count == 1 && !is_among(choice, fitting->choices, fitting->count) &&
                  !is_much_slower(choice, fitting->guess);
    fitting->count += is_new;
    return is_new;
}

int kg_search_favourites(const struct kg_search *search, const struct kg_choice *guess,
                         struct kg_choice *choices)
{
    struct fitting fitting = {.search = search, .guess = guess, .choices = choices};
    if (!search->favourites || guess->count != 1)
        return 0;
    kg_choice_print(guess, &fitting.text);
    fitting.kernel = strcspn(kg_text_string(&fitting.text), ":");
    search->favourites(search->user, guess->matches[0]->family->name, KG_SEARCH_STARTS - 1, fits,
                       &fitting);
    kg_text_free(&fitting.text);
    return fitting.count;
}

int kg_search_starts(const struct kg_search *search, const struct kg_choice *guess,
                     struct kg_choice *starts)
{
    int count = kg_search_favourites(search, guess, starts);
    if (count == 0 && search->prior)
        count += kg_search_estimate(search, &starts[count]);
    if (!is_among(guess, starts, count))
        starts[count++] = *guess;
    return count;
}

// Tries those, then other groupings, then hints. A hint that does not fit this problem is not an
// error.
static void try_seeds(struct kg_group_search *state)
{
    const struct kg_search *search = state->search;
    struct kg_choice *seeds =
        calloc(MAX_HINTS + KG_GROUPING_COUNT + KG_SEARCH_STARTS, sizeof *seeds);
    if (!seeds)
        return; // a later step reports it
    int count = kg_search_starts(search, &state->current, seeds), max = MAX_HINTS;
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

static void finish(struct kg_group_search *state, struct kg_found *found)
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

static enum kg_status search_groups(struct kg_group_search *state, struct kg_found *found,
                                    struct kg_error *error)
{
    kg_group_search_clear(state);
    enum kg_status status = kg_group_search_list(state, found, error);
    if (status == KG_OK)
        kg_group_search_run(state);
    return status;
}

// ---- One kind of change ----

static int list_regroupings(const struct kg_search *search, struct kg_choice *choices)
{
    return kg_groupings_beside(search->problem, &search->device->facts, search->target,
                               search->from, choices);
}

// Tries all other groupings by guess, then configs of those that come near the best.
static enum kg_status regroup(struct kg_group_search *state, struct kg_found *found,
                              struct kg_error *error)
{
    struct kg_choice *choices = calloc(KG_MAX_REGROUPINGS, sizeof *choices);
    if (!choices)
        return kg_error_memory(error, "groupings");
    int count = list_regroupings(state->search, choices);
    enum kg_status status = KG_OK;
    kg_trials_run(&state->trials, choices, count);
    for (int rival = 0; rival < MAX_RIVALS && status == KG_OK; rival++) {
        double least = 0;
        int at = -1;
        for (int i = 0; i < count; i++) {
            const struct kg_trial *trial = kg_trials_find(&state->trials, &choices[i]);
            bool timed = trial && trial->kind == KG_OUTCOME_MEASURED && choices[i].count > 0;
            if (timed && (at < 0 || trial->timing.median < least)) {
                at = i;
                least = trial->timing.median;
            }
        }
        if (at < 0 || state->trials.best < 0 ||
            least > RIVAL_TIMES * state->trials.items[state->trials.best].timing.median)
            break;
        state->current = choices[at];
        choices[at].count = 0; // done
        status = search_groups(state, found, error);
    }
    free(choices);
    return status;
}

// The configs of one kind of change, or the groupings, around the choice to start from.
static enum kg_status search_changes(struct kg_group_search *state, struct kg_found *found,
                                     struct kg_error *error)
{
    state->current = *state->search->from;
    kg_trials_run(&state->trials, &state->current, 1);
    if (state->search->change == KG_CHANGE_GROUPING)
        return regroup(state, found, error);
    return search_groups(state, found, error);
}

// Takes the fastest seed that has other groups than the current choice. False if none is near.
static bool find_near(const struct kg_group_search *state, struct kg_choice *near)
{
    const struct kg_trials *trials = &state->trials;
    double least = trials->best >= 0 ? NEAR_TIMES * trials->items[trials->best].timing.median : 0;
    bool found = false;
    for (int i = 0; i < trials->count; i++) {
        const struct kg_trial *trial = &trials->items[i];
        if (trial->kind == KG_OUTCOME_MEASURED && !trial->timing.abandoned &&
            trial->timing.median <= least &&
            !kg_choice_has_same_groups(&trial->choice, &state->current)) {
            least = trial->timing.median;
            *near = trial->choice;
            found = true;
        }
    }
    return found;
}

// Which of two groupings is the faster one is not decided by the first config of each if these take
// about as long.
static enum kg_status search_everything(struct kg_group_search *state, struct kg_found *found,
                                        struct kg_error *error)
{
    struct kg_choice *near = calloc(1, sizeof *near);
    if (!near)
        return kg_error_memory(error, "groupings");
    try_seeds(state);
    bool has_near = find_near(state, near);
    enum kg_status status = search_groups(state, found, error);
    if (status == KG_OK && has_near && !kg_trials_stopped(&state->trials)) {
        state->current = *near;
        status = search_groups(state, found, error);
    }
    free(near);
    return status;
}

void kg_search_prospect(const struct kg_search *search, struct kg_prospect *prospect)
{
    struct kg_group_search *state = calloc(1, sizeof *state);
    struct kg_choice *choices = calloc(KG_MAX_REGROUPINGS, sizeof *choices);
    double expected = kg_choice_expected(search->from), least = expected;
    struct kg_found found = {0};
    *prospect = (struct kg_prospect){0};
    if (state && choices && search->change == KG_CHANGE_GROUPING) {
        prospect->candidates = list_regroupings(search, choices);
        for (int i = 0; i < prospect->candidates; i++) {
            double other = kg_choice_expected(&choices[i]);
            least = other > 0 && other < least ? other : least;
        }
    } else if (state && choices) {
        state->search = search;
        state->rule = kg_search_rule_of(search);
        state->current = *search->from;
        if (kg_group_search_list(state, &found, NULL) == KG_OK)
            prospect->candidates = kg_group_search_others(state, &least);
        kg_group_search_clear(state);
    }
    if (expected > 0)
        prospect->ratio = least / expected;
    free(choices);
    free(state);
}

// ---- The whole ----

static void count_fresh(const struct kg_trials *trials, struct kg_found *found)
{
    for (int i = 0; i < trials->count; i++) {
        const struct kg_trial *trial = &trials->items[i];
        bool fresh = !trial->known && trial->kind != KG_OUTCOME_PRUNED && trial->twin < 0;
        found->fresh += fresh && trial->kind == KG_OUTCOME_MEASURED;
        found->fresh_failed += fresh && trial->kind != KG_OUTCOME_MEASURED;
    }
}

static enum kg_status run(struct kg_group_search *state, struct kg_found *found,
                          struct kg_error *error)
{
    const struct kg_search *search = state->search;
    struct kg_trials *trials = &state->trials;
    enum kg_status status = kg_trials_begin(trials, search, error);
    if (status)
        return status;
    trials->prunes = state->rule->prune;
    trials->max_estimate = state->rule->max_estimate;
    status = search->change == KG_CHANGE_NONE ? search_everything(state, found, error)
                                              : search_changes(state, found, error);
    if (status)
        return status;
    found->complete = trials->stop == KG_STOP_NOT;
    found->pruned = trials->pruned;
    found->measured = trials->measured;
    found->failed = trials->failed;
    count_fresh(trials, found);
    if (trials->best >= 0)
        finish(state, found);
    if (trials->stop == KG_STOP_FAILURE)
        snprintf(found->ended, sizeof found->ended, "%.*s", KG_FOUND_WHY - 1, trials->failure.text);
    return conclude(trials, error);
}

enum kg_status kg_search_run(const struct kg_search *search, struct kg_found *found,
                             struct kg_error *error)
{
    *found = (struct kg_found){.complete = true};
    if (search->rigor < KG_RIGOR_ESTIMATE || search->rigor > KG_RIGOR_EXHAUSTIVE)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "a search needs a rigor from estimate on");
    struct kg_group_search *state = calloc(1, sizeof *state);
    if (!state)
        return kg_error_memory(error, "a search");
    state->search = search;
    state->rule = kg_search_rule_of(search);
    kg_choice_guess(search->problem, &search->device->facts, search->target, &state->current);
    if (search->rigor == KG_RIGOR_ESTIMATE)
        kg_search_estimate(search, &state->current);
    found->choice = state->current;
    enum kg_status status =
        state->current.count > 0 ? KG_OK : kg_error_memory(error, "the kernels of a problem");
    if (status == KG_OK && search->rigor != KG_RIGOR_ESTIMATE)
        status = run(state, found, error);
    kg_group_search_clear(state);
    kg_trials_free(&state->trials);
    free(state);
    return status;
}
