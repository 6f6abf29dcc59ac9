// Reading a group as a scan: a running total along an output axis, with formulas before and after.

#ifndef KG_GEN_SCAN_PLAN_H
#define KG_GEN_SCAN_PLAN_H

#include "gen/shared/axes.h"
#include "gen/shared/fold.h"

struct kg_scan_plan {
    const struct kg_group *group;
    const struct kg_nest *nest; // the scan
    struct kg_fold fold;
    int k;          // its position in the group
    int axis;       // the output axis along which it runs
    int bound;      // the reduced axis, which follows it
    int run, last;  // along columns: the output axes that vectors follow
    bool column;    // vectors follow other axes than the scan's
    bool backward;  // from the last element to the first: j >= d
    bool exclusive; // without the element itself: j < d
    bool stream;
    int64_t width, chunk;
    const char *entry;
};

// Sets all fields but `stream`, `width`, `chunk` and `entry`. Returns false, with the reason, for
// groups that are not a scan with private formulas before it and formulas over its axes after it.
bool kg_scan_plan_make(const struct kg_group *group, struct kg_scan_plan *plan,
                       struct kg_text *reason);

// Whether the output of the statement at this position is stored in memory.
bool kg_scan_is_stored(const struct kg_scan_plan *plan, int position);

#endif
