// A choice of families and configs for every group of a problem, and what becomes of it once it is
// compiled and loaded: something that can be run.

#ifndef KG_GEN_BUILT_H
#define KG_GEN_BUILT_H

#include "device/device.h"
#include "gen/family.h"

struct kg_choice {
    struct kg_partition partition;
    struct kg_config configs[KG_MAX_NESTS]; // by group
};

// The rule-based choice: partition, then every family's guess.
void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     enum kg_target target, struct kg_choice *choice);

// Seconds that the families expect of all groups together; 0: some family does not say.
double kg_choice_estimate(const struct kg_choice *choice, const struct kg_device_facts *facts,
                          enum kg_target target);

// "rowwise: block=4 stream=1" per group, joined by "; ". And back, for the same problem: false when
// it does not fit (other families, unknown values).
void kg_choice_print(const struct kg_choice *choice, const struct kg_device_facts *facts,
                     enum kg_target target, struct kg_text *text);
bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    enum kg_target target, const char *text, struct kg_choice *choice);

// The source of one group's kernel, called `entry`.
bool kg_choice_source(const struct kg_choice *choice, int group,
                      const struct kg_device_facts *facts, enum kg_target target, const char *entry,
                      struct kg_text *source);

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
