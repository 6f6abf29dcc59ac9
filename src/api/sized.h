// Structs of kernelgen.h that begin with their size, as callers of another version lay them out:
// ours may have members that theirs has not, and the other way round. And NULL where none may be.

#ifndef KG_API_SIZED_H
#define KG_API_SIZED_H

#include "api/context.h"

// Bytes of a struct as it was first published, whose last member then was `last`: what a `size` of
// 0 stands for.
#define KG_FIRST_SIZE(type, last)                                                                  \
    (offsetof(struct type, last) + sizeof(((const struct type *)0)->last))

// What a struct begins with, and how much of it there is.
struct kg_sized {
    const char *name; // "kg_options"
    size_t size;      // of ours
    size_t first;     // KG_FIRST_SIZE
};

// Copies what the caller filled in to `ours`; members that the caller has not are zero. `theirs`
// NULL: all are. KG_ERROR_ARGUMENT when the size is none, or members that are not known here are
// set.
enum kg_status kg_api_take(const struct kg_sized *sized, const void *theirs, void *ours,
                           struct kg_error *error);
// Before a result is written: checks its size and clears it, but for the size. `kept` bytes of
// members behind the size are the caller's, and stay.
enum kg_status kg_api_clear(const struct kg_sized *sized, size_t kept, void *theirs,
                            struct kg_error *error);
// Writes as much of a cleared result as the caller has members for.
void kg_api_fill(const struct kg_sized *sized, size_t kept, const void *ours, void *theirs);

// KG_ERROR_ARGUMENT when a pointer is NULL, which is named: `names` are "problem, device", as in
// kernelgen.h. `context` may be NULL: then nobody can be told more than the status.
enum kg_status kg_api_check_pointers(struct kg_context *context, const char *function,
                                     const char *names, int count, const void *const *pointers);
#define KG_API_NEEDS(context, ...)                                                                 \
    kg_api_check_pointers(context, __func__, #__VA_ARGS__,                                         \
                          (int)(sizeof((const void *[]){__VA_ARGS__}) / sizeof(const void *)),     \
                          (const void *[]){__VA_ARGS__})

extern const struct kg_sized kg_sized_options, kg_sized_tensor_info, kg_sized_verify_result,
    kg_sized_bench_result, kg_sized_build_options, kg_sized_build_result, kg_sized_kernel_figures,
    kg_sized_assembly_launch, kg_sized_prediction, kg_sized_measurement, kg_sized_sample_filter,
    kg_sized_weights;

#endif
