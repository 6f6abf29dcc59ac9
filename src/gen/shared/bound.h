// A lower bound of a group's time, whatever its kernel.

#ifndef KG_GEN_BOUND_H
#define KG_GEN_BOUND_H

#include "gen/family.h"

// Bytes that any kernel for the group has to move: its outputs, and every element that is certainly
// read, once.
double kg_group_bytes(const struct kg_group *group);
// A lower bound in seconds for any config: bytes that must move through main memory, and
// operations. For families without a better bound.
double kg_group_bound(const struct kg_match *match, const struct kg_config *config);

#endif
