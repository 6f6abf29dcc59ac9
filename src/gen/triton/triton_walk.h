// Short last axes that cannot be merged with the axis before, because an input has only one of the
// two: y[n, c, p, d] = x[n, c, p, d] + v[c, d] with d in 0..2. A second kernel walks both axes as
// one, so that accesses of what has both are vectors; what has one is read at a quotient or a
// remainder by the length of the last axis, which is a constant of a compiled kernel.

#ifndef KG_GEN_TRITON_WALK_H
#define KG_GEN_TRITON_WALK_H

#include "gen/triton/triton_host.h"

// Whether the element-wise statements of the group, over the axes of `shape`, have such inputs.
bool kg_triton_walk_pays(const struct kg_triton_unit *unit, const struct kg_nest *shape);
// Declares the axes of such a kernel: in place of kg_triton_tile_outputs.
void kg_triton_walk_tile(struct kg_triton_kernel *kernel, const struct kg_nest *shape);
// The condition of its launch, "_walks(...)", which is false for a long last axis.
void kg_triton_walk_condition(struct kg_triton_unit *unit, const struct kg_nest *shape);

#endif
