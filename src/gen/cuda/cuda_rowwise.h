// What the two files of the rowwise family for CUDA share: cuda_rowwise.c decides,
// cuda_rowwise_emit.c writes.

#ifndef KG_GEN_CUDA_ROWWISE_H
#define KG_GEN_CUDA_ROWWISE_H

#include "gen/rowwise.h"

struct kg_cuda_rowwise_plan {
    struct kg_rowwise_plan row;
    int threads;   // of a row: some lanes of a warp, or a block
    int blocks;    // rows of a block of threads
    int cluster;   // blocks that share a row
    int vector;    // elements of a thread's vectors
    int hold;      // vectors of a thread that stay in registers from pass to pass
    bool keep;     // what later passes read again is held too, instead of computed again
    int registers; // at most; 0: as many as the compiler likes
};

// Bytes of a row that a block holds, and the blocks that may share one.
#define KG_CUDA_ROWWISE_HELD (1 << 17)
int kg_cuda_rowwise_blocks(const struct kg_device_facts *facts);

// The bytes that tensors have to be aligned to for whole vectors; 0: their strides or sizes do not
// allow them, wherever they lie.
int kg_cuda_rowwise_alignment(const struct kg_cuda_rowwise_plan *plan, int64_t length);

// The functions of the kernel, after the opening: number 0 for rows of whole vectors that threads
// hold, number 1 for longer ones, number 2 for any.
void kg_cuda_rowwise_emit(struct kg_text *text, const struct kg_cuda_rowwise_plan *plan);

#endif
