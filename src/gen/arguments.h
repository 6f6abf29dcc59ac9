// The arguments of a kernel's functions on devices that run grids: one list, which the emitter
// declares and a launch passes. Host kernels do not use it: they receive a struct kg_host_call.

#ifndef KG_GEN_ARGUMENTS_H
#define KG_GEN_ARGUMENTS_H

#include "gen/family.h"

enum kg_argument_kind {
    KG_ARGUMENT_TENSOR,
    KG_ARGUMENT_SIZE,
    KG_ARGUMENT_STRIDE,  // only where tensors need not be contiguous
    KG_ARGUMENT_SCRATCH, // as large as kg_grids.scratch; always the group's last one
    KG_ARGUMENT_MAP      // of kg_grids.maps, after all others
};

struct kg_argument {
    enum kg_argument_kind kind;
    int id;  // of the tensor or size; which map
    int dim; // of the stride
};

// Every device takes 4096 bytes of arguments. An argument has 8 bytes, a map 128.
#define KG_MAX_ARGUMENTS 512

// Lists the tensors that exist in memory by id, sizes by id, then strides tensor by tensor. Returns
// their number, or 0 if they would not leave room for KG_MAX_MAPS maps.
int kg_group_arguments(const struct kg_group *group, struct kg_argument *arguments);
// The same, followed by `maps` maps.
int kg_group_arguments_and_maps(const struct kg_group *group, int maps,
                                struct kg_argument *arguments);

#endif
