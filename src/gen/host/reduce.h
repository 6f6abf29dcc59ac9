// What the two files of the reduce family share, and its twin for CUDA.

#ifndef KG_GEN_REDUCE_H
#define KG_GEN_REDUCE_H

#include "gen/shared/axes.h"
#include "gen/shared/fold.h"

// What `match` finds.
struct kg_reduce_analysis {
    const struct kg_nest *nest; // the reduction
    int position;               // in the group
};

struct kg_reduce_plan {
    const struct kg_group *group;
    const struct kg_nest *nest; // the reduction
    struct kg_fold fold;
    int k;       // its position in the group
    int outputs; // number of output axes
    int run;     // first axis of the run that vectors follow
    int last;    // last axis of that run
    bool column; // vectors follow output axes
    int64_t width, unroll, chunk;
    const char *entry;
};

// Are several indices reduced together?
static inline bool kg_reduce_has_several(const struct kg_reduce_plan *plan)
{
    return plan->nest->axis_count > plan->outputs + 1;
}

// The functions of the kernel, after the opening.
void kg_reduce_emit(struct kg_code *code, const struct kg_reduce_plan *plan);

#endif
