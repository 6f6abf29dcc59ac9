// Merging axes of a launch: where neighbouring axes lie one behind another in all tensors, a kernel
// is told that the outer one has a single value and the inner one all of them. Its tiles then do
// not end with a short innermost axis, such as the rows of a 7 x 7 image.

#ifndef KG_GEN_TRITON_MERGE_H
#define KG_GEN_TRITON_MERGE_H

#include "gen/triton/triton_host.h"

// Writes the line that merges, when the function is called, those of the axes [first, last] of the
// group that its kernels use as plain subscripts only; none if there are fewer than two. Returns
// the host with the names of the merged sizes in place of the sizes. `shape` is a nest that has the
// axes.
struct kg_triton_host kg_triton_merge(struct kg_triton_unit *unit, const struct kg_nest *shape,
                                      int first, int last);

// Whether neither values nor other axes depend on the length of the axis.
bool kg_triton_can_merge(const struct kg_group *group, const struct kg_nest *shape, int axis);

#endif
