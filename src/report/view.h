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

struct kg_view {
    const struct kg_key *key;    // borrowed
    struct kg_outcomes outcomes; // `estimate` of each is the prediction
    enum kg_view_prediction prediction;
    struct kg_arena arena; // of the following members
    struct kg_round *rounds;
    int round_count;
    int round_capacity;
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

#endif
