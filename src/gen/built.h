// A choice compiled and loaded: something that can be run.

#ifndef KG_GEN_BUILT_H
#define KG_GEN_BUILT_H

#include "gen/choice.h"

// Compiled and loaded. Works for every problem of the same instance whose `contiguous` is the same
// (kernels take sizes and strides as arguments), not only for the one it was made from.
struct kg_built {
    struct kg_device *device;
    struct kg_choice choice;
    struct kg_kernel *kernels[KG_MAX_NESTS];
    struct kg_hash hashes[KG_MAX_NESTS]; // of the sources
    struct kg_binary binaries[KG_MAX_NESTS];
    double compile_seconds; // whenever they were compiled
    double compile_work;    // of those that were compiled now
    bool contiguous;
    // Where the kernels come from outside, and nothing can be said of them by their choice: what
    // kg_built_adopt gave, of which this may be a copy. NULL: they were generated.
    struct kg_built *adopted;
    // The same for tensors of the other kind, strided or contiguous; NULL: there is none.
    struct kg_built *counterpart;
};

enum kg_status kg_built_make(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, double time_limit,
                             struct kg_built **built, struct kg_error *error);
// The same by several compilers at once, for whoever has no others at work.
enum kg_status kg_built_make_soon(struct kg_device *device, const struct kg_problem *problem,
                                  const struct kg_choice *choice, double time_limit,
                                  struct kg_built **built, struct kg_error *error);
// The choice alone, without kernels: it can be written, and not run.
enum kg_status kg_built_bare(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, struct kg_built **built,
                             struct kg_error *error);
// The same with kernels from outside: those of a file that kg_gen_standalone_cuda wrote for this
// choice and somebody may have changed since.
enum kg_status kg_built_adopt(struct kg_device *device, const struct kg_problem *problem,
                              const struct kg_choice *choice, const struct kg_binary *binary,
                              struct kg_built **built, struct kg_error *error);
void kg_built_free(struct kg_built *built); // but its counterpart

// For a single run; plans prepare theirs once (gen/prepared.h, which says what is passed).
size_t kg_built_workspace(const struct kg_built *built, const struct kg_problem *problem);
enum kg_status kg_built_run(const struct kg_built *built, const struct kg_problem *problem,
                            void *const *tensors, void *workspace, void *stream,
                            struct kg_error *error);

#endif
