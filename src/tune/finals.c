// The last race: see finals.h.

#include "tune/finals.h"

#include <string.h>

// The guess takes part unless its own measurement excluded it, so that no candidate is preferred to
// it by mistake.
#define GUESS_MARGIN 1.0

static double median_of(const struct kg_trials *trials, int position)
{
    return trials->items[position].timing.median;
}

static bool is_near(const struct kg_trials *trials, int position, double margin)
{
    const struct kg_timing *timing = &trials->items[position].timing;
    if (trials->items[position].kind != KG_OUTCOME_MEASURED || timing->abandoned)
        return false;
    if (position == 0 && margin < GUESS_MARGIN)
        margin = GUESS_MARGIN;
    return timing->median - kg_time_uncertainty(timing) <=
           median_of(trials, trials->best) * (1 + margin);
}

// The fastest but for the best one; -1: there is none. It may have been abandoned.
static int runner_up(const struct kg_trials *trials)
{
    int found = -1;
    for (int i = 0; i < trials->count; i++)
        if (i != trials->best && trials->items[i].kind == KG_OUTCOME_MEASURED &&
            trials->items[i].twin < 0 &&
            (found < 0 || median_of(trials, i) < median_of(trials, found)))
            found = i;
    return found;
}

int kg_finals_choose(const struct kg_trials *trials, int max, double margin, int *finalists)
{
    int count = 0;
    max = max < KG_MAX_FINALISTS ? max : KG_MAX_FINALISTS;
    for (int i = 0; i < trials->count; i++) {
        if (!is_near(trials, i, margin))
            continue;
        if (count < max) {
            finalists[count++] = i;
            continue;
        }
        int slowest = finalists[0] == 0; // the guess keeps its place
        for (int k = slowest + 1; k < count; k++)
            if (median_of(trials, finalists[k]) > median_of(trials, finalists[slowest]))
                slowest = k;
        if (median_of(trials, i) < median_of(trials, finalists[slowest])) {
            memmove(finalists + slowest, finalists + slowest + 1,
                    (size_t)(count - 1 - slowest) * sizeof *finalists);
            finalists[count - 1] = i;
        }
    }
    int second = count == 1 ? runner_up(trials) : -1;
    if (second < 0)
        return count;
    finalists[second > trials->best] = second;
    finalists[second < trials->best] = trials->best;
    return 2;
}

int kg_finals_race(const struct kg_trials *trials, const int *finalists, int count,
                   struct kg_timing *timings)
{
    const struct kg_search *search = trials->search;
    struct kg_built *built[KG_MAX_FINALISTS] = {0};
    enum kg_status status = KG_OK;
    int winner = -1;
    for (int i = 0; i < count && !status; i++) {
        const struct kg_trial *trial = &trials->items[finalists[i]];
        status = kg_built_make(search->device, search->problem, &trial->choice,
                               kg_trials_run_limit(trials), &built[i], NULL);
    }
    if (!status)
        status = kg_judge_race(trials->judge, built, count, true, kg_trials_run_limit(trials),
                               timings, NULL);
    if (!status)
        winner = kg_time_winner(timings, count);
    for (int i = 0; i < count; i++)
        kg_built_free(built[i]);
    return winner;
}
