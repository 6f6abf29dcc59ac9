// What the records say of one problem on one device, brought together for showing.

#ifndef KG_REPORT_VIEW_H
#define KG_REPORT_VIEW_H

#include "report/outcomes.h"

struct kg_view {
    const struct kg_key *key; // borrowed
    struct kg_outcomes outcomes;
    struct kg_arena arena; // of what follows
    struct kg_round *rounds;
    int round_count;
    int round_capacity;
    const char *choice; // the best known; NULL when nothing was measured
    const char *rigor;  // it was found with; NULL: not known as wisdom
    double seconds;     // of the choice; this and the times below are 0 where not known
    double roofline;    // of the latest round
    double baseline;    // of the latest round that timed it
    double speedup;     // of the choice over the baseline, timed together where they were
};

enum kg_status kg_view_collect(struct kg_store *store, const struct kg_key *key,
                               struct kg_view *view, struct kg_error *error);
void kg_view_free(struct kg_view *view);

// A time that was measured: finite and above zero.
bool kg_view_known(double seconds);

#endif
