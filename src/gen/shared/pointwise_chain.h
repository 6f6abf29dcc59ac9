// Reading a group as a chain of element-wise formulas over the same axes.

#ifndef KG_GEN_POINTWISE_CHAIN_H
#define KG_GEN_POINTWISE_CHAIN_H

#include "gen/shared/emit.h"

// The position in the group of the nest that makes `tensor`, if before `limit`; else -1.
int kg_pointwise_producer(const struct kg_group *group, const struct kg_tensor *tensor, int limit);
// Whether the subscript is this axis alone.
bool kg_pointwise_bare(const struct kg_access *access, int dim, int axis);

// Why nest `i` cannot be in the chain; NULL if it can.
const char *kg_pointwise_obstacle(const struct kg_group *group, int i);
// Whether this access allows axes `axis` and `axis + 1` to be merged: it uses neither, or both in
// the order of memory.
bool kg_pointwise_allows_merge(const struct kg_nest *nest, const struct kg_access *access,
                               int axis);
// Whether every nest of the chain allows axes `axis` and `axis + 1` to be merged.
bool kg_pointwise_can_merge(const struct kg_group *group, int axis);

#endif
