// A choice compiled and loaded: something that can be run.

#ifndef KG_GEN_BUILT_H
#define KG_GEN_BUILT_H

#include "gen/choice.h"

// Compiled and loaded. Works for every problem of the same instance whose `contiguous` is the same
// (kernels take sizes and strides as arguments), not only for the one it was made from, but for
// sizes that need 64 bits where the source counts in 32: preparing these is refused.
struct kg_built {
    struct kg_device *device;
    struct kg_choice choice;
    struct kg_kernel *kernels[KG_MAX_NESTS];
    struct kg_hash hashes[KG_MAX_NESTS]; // of the sources
    struct kg_binary binaries[KG_MAX_NESTS];
    double compile_seconds; // of all kernels, also of those that came from the cache
    double compile_work;    // of those that were compiled now
    bool contiguous;
    // Kernels from a file, whose code the choice does not determine: what kg_built_adopt returned;
    // this may be a copy of it. NULL: the kernels were generated.
    struct kg_built *adopted;
    // The same choice for strided tensors if this one is for contiguous ones, or the reverse; NULL:
    // none.
    struct kg_built *counterpart;
};

enum kg_status kg_built_make(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, double time_limit,
                             struct kg_built **built, struct kg_error *error);
// The same with several compilers at once, for callers that do not run compilers in parallel.
enum kg_status kg_built_make_soon(struct kg_device *device, const struct kg_problem *problem,
                                  const struct kg_choice *choice, double time_limit,
                                  struct kg_built **built, struct kg_error *error);
// The choice without kernels: its source can be written, but it cannot be run.
enum kg_status kg_built_bare(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, struct kg_built **built,
                             struct kg_error *error);
// The same with kernels from a file: one that kg_gen_standalone_cuda wrote for this choice and that
// a user may have changed since.
enum kg_status kg_built_adopt(struct kg_device *device, const struct kg_problem *problem,
                              const struct kg_choice *choice, const struct kg_binary *binary,
                              struct kg_built **built, struct kg_error *error);
void kg_built_free(struct kg_built *built); // does not free the counterpart

// For a single run. Plans prepare theirs once: see gen/prepared.h, also for the arguments.
size_t kg_built_workspace(const struct kg_built *built, const struct kg_problem *problem);
enum kg_status kg_built_run(const struct kg_built *built, const struct kg_problem *problem,
                            void *const *tensors, void *workspace, void *stream,
                            struct kg_error *error);

#endif
