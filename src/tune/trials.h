// Every candidate a search has tried, what became of it, and the machinery that finds out: parallel
// compilation of a batch, then one judgement after the other with nothing else running.

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
    int twin; // the earlier trial that runs the same, -1: none
};

enum kg_stop { KG_STOP_NOT, KG_STOP_TIME, KG_STOP_CANCELLED, KG_STOP_FAILURE };

// The state of one search.
struct kg_trials {
    const struct kg_search *search;
    struct kg_judge *judge;
    double deadline; // 0: none
    int count;
    int capacity;
    struct kg_trial *items;
    int best;          // position of the fastest, -1: none yet
    double code_trust; // the same of what instructions promise
    double trust; // least seconds / bound seen, at most 1: bounds above the truth are scaled down
    int measured;
    int failed;
    int pruned;
    bool prunes;            // what the instructions show to be hopeless
    double most_estimate;   // times the best's; 0: any
    int expected;           // trials the search expects to make, for progress
    struct kg_text reasons; // why the first few failed
    enum kg_stop stop;
    struct kg_error failure; // why, when stop is KG_STOP_FAILURE
};

enum kg_status kg_trials_begin(struct kg_trials *trials, const struct kg_search *search,
                               struct kg_error *error);
void kg_trials_free(struct kg_trials *trials);

// Seconds the next candidate may take: its own limit, or what is left of the search's.
double kg_trials_limit(const struct kg_trials *trials);

// Notices cancellation and the end of the time; true when the search is to end.
bool kg_trials_stopped(struct kg_trials *trials);

// Tries those of `choices` that were not tried yet; all of them are found afterwards, as long as
// the search was not stopped meanwhile.
void kg_trials_run(struct kg_trials *trials, const struct kg_choice *choices, int count);

// NULL when this choice was not tried.
const struct kg_trial *kg_trials_find(const struct kg_trials *trials,
                                      const struct kg_choice *choice);

// Least seconds of a choice, by the families' bounds, as far as they have proved right.
double kg_trials_bound(const struct kg_trials *trials, const struct kg_choice *choice);

// Reports a candidate that is not tried: it is pruned.
void kg_trials_dismiss(struct kg_trials *trials, const struct kg_choice *choice,
                       const char *reason);

// The last race: at most `most` of those within `margin` of the best, alternately. Gives the
// winner's position and its timing.
int kg_trials_finish(struct kg_trials *trials, int most, double margin, struct kg_timing *timing);

#endif
