// Reading a group as a chain of element-wise formulas over the same axes.

#ifndef KG_GEN_POINTWISE_CHAIN_H
#define KG_GEN_POINTWISE_CHAIN_H

#include "gen/shared/emit.h"

// The position in the group of the nest that makes `tensor`, if before `limit`; else -1.
int kg_pointwise_producer(const struct kg_group *group, const struct kg_tensor *tensor, int limit);
// Is the subscript just this axis?
bool kg_pointwise_bare(const struct kg_access *access, int dim, int axis);

// Why nest `i` cannot be part of the chain; NULL when it can.
const char *kg_pointwise_obstacle(const struct kg_group *group, int i);
// Does this access let axes `axis` and `axis + 1` become one? Either it uses neither, or it walks
// both in the order of memory.
bool kg_pointwise_allows_merge(const struct kg_nest *nest, const struct kg_access *access,
                               int axis);
// Whether the axes `axis` and `axis + 1` can be counted as one by every nest of the chain.
bool kg_pointwise_can_merge(const struct kg_group *group, int axis);

#endif
