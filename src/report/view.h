// The records of one problem on one device, combined for display.

#ifndef KG_REPORT_VIEW_H
#define KG_REPORT_VIEW_H

#include "report/outcomes.h"

enum kg_view_accuracy {
    KG_VIEW_UNJUDGED,
    KG_VIEW_PASSED,
    KG_VIEW_REFUSED,
};

enum kg_view_result {
    KG_VIEW_UNCOMPARED,
    KG_VIEW_FASTER,
    KG_VIEW_AS_FAST, // within 1%
    KG_VIEW_SLOWER,
};

// What the times of candidates can be compared with before they are measured.
enum kg_view_prediction {
    KG_VIEW_UNPREDICTED,
    KG_VIEW_BOUND,    // a time that none can undercut
    KG_VIEW_ESTIMATE, // the model's
};

// A measurement of a search.
struct kg_try {
    double seconds;
    bool abandoned; // given up early: too slow to be timed to the end
};

struct kg_view {
    const struct kg_key *key;    // borrowed
    struct kg_outcomes outcomes; // `estimate` of each is the prediction
    enum kg_view_prediction prediction;
    struct kg_arena arena; // of the following members
    struct kg_round *rounds;
    int round_count;
    int round_capacity;
    struct kg_try *tries; // all that were ever made but for final races, the oldest first
    int try_count;
    int try_capacity;
    const char *choice; // the best known choice; NULL when nothing was measured
    const char *rigor;  // of the search that found it; NULL: not in wisdom
    // Times of one measurement: the choice's latest race with the baseline, if it has any, else the
    // search's timing of the choice alone. Each is 0 if unknown, or if the choice was refused
    // since; without `baseline` there is no comparison.
    double seconds;
    double baseline;
    // The same in every measurement; from the latest round that has it, else from the cost.
    double roofline;
    double spread;       // of `seconds`, relative: the choice's interquartile range in the search
    struct kg_cost cost; // all 0 if it was not noted
    // Of the choice; if nothing was measured, of the first candidate that the gate refused.
    enum kg_view_accuracy accuracy;
    const struct kg_outcome *judged; // with that verdict; NULL: only the result is on record
    uint64_t seed;                   // of the gate; 0: unknown
};

enum kg_status kg_view_collect(struct kg_store *store, const struct kg_key *key,
                               struct kg_view *view, struct kg_error *error);
void kg_view_free(struct kg_view *view);

// A time that was measured: finite and above zero.
bool kg_view_known(double seconds);

// The choice's speed over the baseline's; 0 if they were not timed together.
double kg_view_ratio(const struct kg_view *view);
enum kg_view_result kg_view_result(const struct kg_view *view);

// How soon the search found its best.
struct kg_progress {
    int measured;  // times, of which abandoned ones have no part in what follows
    double best;   // seconds; 0: nothing was timed
    int to_best;   // measurements until then, itself included
    int near_best; // the same for the first one within 2 %
};
struct kg_progress kg_view_progress(const struct kg_view *view);

// Of the latest build: the search over everything, the time of the best version after it, and that
// after the last round that was kept since. False if there was no such search.
struct kg_loop {
    const struct kg_round *search;
    const struct kg_round *end; // NULL: no later round was kept
    double searched, ended;     // seconds; the same without `end`
};
bool kg_view_loop(const struct kg_view *view, struct kg_loop *loop);

#endif
