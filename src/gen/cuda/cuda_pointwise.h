// What the two files of the pointwise family for CUDA share: cuda_pointwise.c decides,
// cuda_pointwise_emit.c writes.

#ifndef KG_GEN_CUDA_POINTWISE_H
#define KG_GEN_CUDA_POINTWISE_H

#include "gen/pointwise.h"

struct kg_cuda_pointwise_plan {
    const struct kg_group *group;
    const char *entry;
    int axes;                    // of every nest
    int run;                     // the axes [run, axes) are counted as one, the columns
    bool merged[KG_MAX_INDICES]; // this axis is part of the next one
    int threads, registers;
    int vector; // elements of a thread's vectors
    int rows;   // vectors of a thread: one below the other or, without rows, side by side
    bool stream;
};

// The bytes that tensors have to be aligned to for whole vectors; 0: their strides or sizes do not
// allow them, wherever they lie.
int kg_cuda_pointwise_alignment(const struct kg_cuda_pointwise_plan *plan, int64_t columns);

// The functions of the kernel, after the opening: number 0 for whole vectors, number 1 for any.
void kg_cuda_pointwise_emit(struct kg_text *text, const struct kg_cuda_pointwise_plan *plan);

#endif
