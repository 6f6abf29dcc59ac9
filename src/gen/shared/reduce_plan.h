// Reading a group as one reduction, with formulas before and after it.

#ifndef KG_GEN_REDUCE_PLAN_H
#define KG_GEN_REDUCE_PLAN_H

#include "gen/family.h"

// The position of the only reduction of a group that consists of it, private statements before it
// that it can compute inside, and statements after it over its own output axes; else -1 and why.
int kg_reduce_position(const struct kg_group *group, struct kg_text *reason);

#endif
