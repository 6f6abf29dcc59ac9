// The least time a group can take, whatever its kernel.

#ifndef KG_GEN_BOUND_H
#define KG_GEN_BOUND_H

#include "gen/family.h"

// Bytes that any kernel for the group has to move: outputs, and what is surely read, once.
double kg_group_bytes(const struct kg_group *group);
// The least seconds a group can take on the device, whatever the config: bytes that must move
// through main memory, and operations. What a family bounds a config by that knows no better.
double kg_group_bound(const struct kg_match *match, const struct kg_config *config);

#endif
