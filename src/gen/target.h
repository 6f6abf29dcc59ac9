// Targets: what a kernel can be written for. One row each, with everything that is true of it; a
// device belongs to the target of its backend's name.

#ifndef KG_GEN_TARGET_H
#define KG_GEN_TARGET_H

#include "gen/family.h"

#include <string.h>

struct kg_choice;

struct kg_target {
    const char *name; // as in `emit --target`, and of the backend that runs its kernels
    // In the order in which a rule prefers them where no times are expected; NULL at the end.
    const struct kg_family *const *families;
    // The family that takes any single nest: the plain loops that everything is measured against.
    const struct kg_family *plain;
    const char *suffix; // of a file of source: ".c"
    // Writes the kernels of every group as one readable file.
    bool (*standalone)(const struct kg_problem *problem, const struct kg_choice *choice,
                       const struct kg_device_facts *facts, struct kg_text *source);
    // The least problems for which a search was seen to pay (bench/host/bench_small.c): bytes and
    // operations. 0: nobody measured.
    double small_bytes, small_operations;
    bool has_assembly; // the compiler gives text that people read and change: PTX
};

extern const struct kg_target kg_target_host;
extern const struct kg_target kg_target_cuda;

// NULL where there is none of that name.
const struct kg_target *kg_target_find(const char *name);
// The target of a device's kernels. Every backend has one: kg_device_open refuses others.
const struct kg_target *kg_target_of(const struct kg_device *device);
// NULL when the target has no family of that name.
static inline const struct kg_family *kg_target_family(const struct kg_target *target,
                                                       const char *name)
{
    for (const struct kg_family *const *family = target->families; *family; family++)
        if (strcmp((*family)->name, name) == 0)
            return *family;
    return NULL;
}

#endif
