// A plan's kernels at other sizes than its own. Kernels take sizes as arguments, so only launches
// and memory between kernels depend on them: these are computed once for each set of sizes.

#ifndef KG_FLOW_RESIZED_H
#define KG_FLOW_RESIZED_H

#include "flow/plan_handle.h"

#define KG_MOST_RESIZED 64 // sets of sizes that are kept

struct kg_resized;

// `plan` outlives it, and is of contiguous tensors. NULL: out of memory.
struct kg_resized *kg_resized_create(const struct kg_plan *plan);
void kg_resized_destroy(struct kg_resized *resized);

// An execution with these sizes (by kg_size id; params are the plan's). Thread-safe. KG_ERROR_SHAPE
// if the definition does not allow them.
enum kg_status kg_resized_run(struct kg_resized *resized, const int64_t *sizes,
                              void *const *tensors, void *stream, struct kg_error *error);

#endif
