// The arguments of a kernel's functions on devices that run grids: what the emitter declares and
// what a launch passes, in one list. Kernels of the host take none of it: they look at their call.

#ifndef KG_GEN_ARGUMENTS_H
#define KG_GEN_ARGUMENTS_H

#include "gen/family.h"

enum kg_argument_kind {
    KG_ARGUMENT_TENSOR,
    KG_ARGUMENT_SIZE,
    KG_ARGUMENT_STRIDE,  // only where tensors need not be contiguous
    KG_ARGUMENT_SCRATCH, // what kg_grids.scratch asked for; always the group's last one
    KG_ARGUMENT_MAP      // of kg_grids.maps, behind all others
};

struct kg_argument {
    enum kg_argument_kind kind;
    int id;  // of the tensor or size; which map
    int dim; // of the stride
};

// 4096 bytes is what every device takes, each argument has 8; a map, 128.
#define KG_MAX_ARGUMENTS 512

// Tensors that exist in memory by id, sizes by id, then strides tensor by tensor. Gives their
// number, or 0 where there would be more than leave room for KG_MAX_MAPS maps.
int kg_group_arguments(const struct kg_group *group, struct kg_argument *arguments);
// The same, and so many maps behind them.
int kg_group_arguments_and_maps(const struct kg_group *group, int maps,
                                struct kg_argument *arguments);

#endif
