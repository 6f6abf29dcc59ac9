// Divisions of a loop's index by constants: "w[k, n/8] >> 4 * (n % 8)", and elements of 4 bits,
// which are two to a byte. Where the loop becomes one over runs of as many elements as the
// divisors have as their multiple, around one over the elements of a run, "lanes", what was divided
// is the same for every run, or the same in each, and compilers take the loops in vectors.

#ifndef KG_GEN_SPLIT_H
#define KG_GEN_SPLIT_H

#include "gen/shared/group.h"

// Index i<axis> is step * run + lane, where the generated code has variables of these names.
struct kg_split {
    int axis;
    int64_t step; // 0: the axis is not split
};

// The constant by which `expr`, "i / 8" or "i % 8", divides the axis; 0: it is no such division.
int64_t kg_split_divisor(const struct kg_expr *expr, int axis);

// The least step that all divisions of the axis in the group divide; 1 if there are none, or if it
// would be long.
int64_t kg_split_step(const struct kg_group *group, int axis);

// Does the access depend on the axis only by divisions that divide the step?
bool kg_split_is_fixed(const struct kg_access *access, const struct kg_split *split);

// Are neighbours along the axis neighbours in memory, two of them in a byte?
bool kg_split_shares_bytes(const struct kg_group *group, const struct kg_access *access, int axis);

#endif
