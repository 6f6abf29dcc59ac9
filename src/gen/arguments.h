// The arguments of a kernel's functions on devices that run grids: what the emitter declares and
// what a launch passes, in one list. Kernels of the host take none of it: they look at their call.

#ifndef KG_GEN_ARGUMENTS_H
#define KG_GEN_ARGUMENTS_H

#include "gen/family.h"

enum kg_argument_kind {
    KG_ARGUMENT_TENSOR,
    KG_ARGUMENT_SIZE,
    KG_ARGUMENT_STRIDE, // only where tensors need not be contiguous
    KG_ARGUMENT_SCRATCH // what kg_grids.scratch asked for; always the last one
};

struct kg_argument {
    enum kg_argument_kind kind;
    int id;  // of the tensor or size
    int dim; // of the stride
};

// 4096 bytes is what every device takes, each argument has 8.
#define KG_MAX_ARGUMENTS 512

// Tensors that exist in memory by id, sizes by id, then strides tensor by tensor. Gives their
// number, or 0 where there would be more than KG_MAX_ARGUMENTS.
int kg_group_arguments(const struct kg_group *group, struct kg_argument *arguments);

#endif
