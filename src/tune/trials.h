// All candidates that a search has tried, and their outcomes. A batch is compiled in parallel; then
// its candidates are judged one after the other, while nothing else runs.

#ifndef KG_TUNE_TRIALS_H
#define KG_TUNE_TRIALS_H

#include "tune/judgement.h"

struct kg_trial {
    struct kg_choice choice;
    char *text; // kg_choice_print
    enum kg_outcome_kind kind;
    struct kg_timing timing; // zero unless MEASURED
    bool known;              // from an earlier search
    struct kg_verdict verdict;
    struct kg_hash source; // as in kg_outcome
    struct kg_forecast forecast;
    int twin; // index of the earlier trial that runs the same code, -1: none
};

enum kg_stop { KG_STOP_NOT, KG_STOP_TIME, KG_STOP_CANCELLED, KG_STOP_FAILURE };

// The state of one search.
struct kg_trials {
    const struct kg_search *search;
    struct kg_judge *judge;
    double deadline; // of trials, before the last race; 0: none
    int count;
    int capacity;
    struct kg_trial *items;
    int best;                // position of the fastest, -1: none yet
    double code_bound_scale; // the same for bounds by instructions
    double bound_scale;      // least seconds / bound seen, at most 1; it scales the bounds
    int measured;
    int failed;
    int pruned;
    bool prunes;            // candidates are pruned by what their instructions tell
    double max_estimate;    // largest estimate that is run, as a multiple of the best's; 0: any
    int expected;           // number of trials the search expects to make, for progress
    struct kg_text reasons; // why the first few failed
    enum kg_stop stop;
    struct kg_error failure; // why, when stop is KG_STOP_FAILURE
};

enum kg_status kg_trials_begin(struct kg_trials *trials, const struct kg_search *search,
                               struct kg_error *error);
void kg_trials_free(struct kg_trials *trials);

// Seconds that any candidate may take.
double kg_trials_run_limit(const struct kg_trials *trials);
// Seconds that the next candidate may take: its own limit, or what remains of that for trials.
double kg_trials_limit(const struct kg_trials *trials);

// When the time for trials is up; 0: there is no limit, or no verdict yet.
double kg_trials_deadline(const struct kg_trials *trials);

// Checks for cancellation and the time limit; true when the search is to end.
bool kg_trials_stopped(struct kg_trials *trials);

// Tries those of `choices` that were not tried before. Afterwards kg_trials_find finds all of them,
// unless the search was stopped.
void kg_trials_run(struct kg_trials *trials, const struct kg_choice *choices, int count);

// NULL when this choice was not tried.
const struct kg_trial *kg_trials_find(const struct kg_trials *trials,
                                      const struct kg_choice *choice);

// Least seconds of a choice by the families' bounds, scaled by bound_scale.
double kg_trials_bound(const struct kg_trials *trials, const struct kg_choice *choice);

// Reports a candidate that is pruned without a trial.
void kg_trials_dismiss(struct kg_trials *trials, const struct kg_choice *choice,
                       const char *reason);

// The final race of at most `max` candidates within `margin` of the best; it also takes place if
// time is up. Returns the winner's position and sets its timing.
int kg_trials_finish(struct kg_trials *trials, int max, double margin, struct kg_timing *timing);

#endif
