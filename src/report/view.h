// The records of one problem on one device, combined for display.

#ifndef KG_REPORT_VIEW_H
#define KG_REPORT_VIEW_H

#include "report/outcomes.h"

struct kg_view {
    const struct kg_key *key; // borrowed
    struct kg_outcomes outcomes;
    struct kg_arena arena; // of the following members
    struct kg_round *rounds;
    int round_count;
    int round_capacity;
    const char *choice; // the best known choice; NULL when nothing was measured
    const char *rigor;  // of the search that found it; NULL: not in wisdom
    double seconds;     // of the choice; this and the times below are 0 if unknown
    double roofline;    // of the latest round
    double baseline;    // of the latest round that timed it
    double speedup;     // of the choice over the baseline, timed together if possible
};

enum kg_status kg_view_collect(struct kg_store *store, const struct kg_key *key,
                               struct kg_view *view, struct kg_error *error);
void kg_view_free(struct kg_view *view);

// A time that was measured: finite and above zero.
bool kg_view_known(double seconds);

#endif
