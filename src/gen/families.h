// Every family, and what family files share.

#ifndef KG_GEN_FAMILIES_H
#define KG_GEN_FAMILIES_H

#include "gen/family.h"

extern const struct kg_family kg_family_contract;
extern const struct kg_family kg_family_rowwise;
extern const struct kg_family kg_family_reduce;
extern const struct kg_family kg_family_scan;
extern const struct kg_family kg_family_pointwise;
extern const struct kg_family kg_family_direct;

extern const struct kg_family kg_cuda_contract;
extern const struct kg_family kg_cuda_reduce;
extern const struct kg_family kg_cuda_rowwise;
extern const struct kg_family kg_cuda_scan;
extern const struct kg_family kg_cuda_pointwise;
extern const struct kg_family kg_cuda_direct;

// Appends a parameter; `count` is at most KG_MAX_CHOICES.
void kg_space_add(struct kg_space *space, const char *name, int count, const int64_t *choices);

// Bytes that any kernel for the group has to move: outputs, and what is surely read, once.
double kg_group_bytes(const struct kg_group *group);
// The least seconds a group can take on the device, whatever the config: bytes that must move
// through main memory, and operations. What a family bounds a config by that knows no better.
double kg_group_bound(const struct kg_group *group, const struct kg_device_facts *facts,
                      enum kg_target target, const struct kg_config *config);

#endif
