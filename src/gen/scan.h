// What the two files of the scan family share.

#ifndef KG_GEN_SCAN_H
#define KG_GEN_SCAN_H

#include "gen/axes.h"
#include "gen/fold.h"

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

// The functions of the kernel, after the opening.
void kg_scan_emit(struct kg_code *code, const struct kg_scan_plan *plan);

#endif
