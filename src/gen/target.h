// Targets: the languages that kernels are emitted in. One row each, with everything that is true of
// it; a device belongs to the target that has its backend's name.

#ifndef KG_GEN_TARGET_H
#define KG_GEN_TARGET_H

#include "gen/family.h"

#include <string.h>

struct kg_choice;

struct kg_target {
    const char
        *name; // as in `emit --target`, and of the backend that runs its kernels, if one does
    // In the order of the rule's preference, if expected times are unknown; ends with NULL.
    const struct kg_family *const *families;
    // The family that takes any single nest: plain loops, the baseline.
    const struct kg_family *plain;
    const char *suffix; // of a file of source: ".c"
    // Writes the kernels of every group as one readable file.
    bool (*standalone)(const struct kg_problem *problem, const struct kg_choice *choice,
                       const struct kg_device_facts *facts, struct kg_text *source);
    // The same with host functions that launch them. NULL: `standalone` has such functions.
    bool (*launcher)(const struct kg_problem *problem, const struct kg_choice *choice,
                     const struct kg_device_facts *facts, struct kg_text *source);
    // The smallest problems for which a search pays, in bytes and operations, measured by
    // bench/host/bench_small.c. 0: not measured.
    double small_bytes, small_operations;
    // No device of this tool runs its kernels: they are written for other programs.
    bool only_emits;
    bool has_assembly; // the compiler's output is text that users can read and change: PTX
};

extern const struct kg_target kg_target_host;
extern const struct kg_target kg_target_cuda;
extern const struct kg_target kg_target_triton;

// NULL if there is none of that name.
const struct kg_target *kg_target_find(const char *name);
// The target of a device. Every backend that kg_device_open accepts has one.
const struct kg_target *kg_target_of(const struct kg_device *device);
// NULL if the target has no family of that name.
static inline const struct kg_family *kg_target_family(const struct kg_target *target,
                                                       const char *name)
{
    for (const struct kg_family *const *family = target->families; *family; family++)
        if (strcmp((*family)->name, name) == 0)
            return *family;
    return NULL;
}

#endif
