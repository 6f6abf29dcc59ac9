// Reading a group as one reduction, with formulas before and after it.

#ifndef KG_GEN_REDUCE_PLAN_H
#define KG_GEN_REDUCE_PLAN_H

#include "gen/family.h"

// The position of a group's only reduction. Before it may be private statements that can be
// computed inside the reduction, after it statements over its output axes. Other groups: -1, and
// the reason.
int kg_reduce_position(const struct kg_group *group, struct kg_text *reason);

#endif
