// Reductions in Triton kernels: accumulators of a tile, steps, and what they give.

#ifndef KG_GEN_TRITON_FOLD_H
#define KG_GEN_TRITON_FOLD_H

#include "gen/triton/triton_kernel.h"

struct kg_triton_fold {
    const struct kg_nest *nest;
    enum kg_type type;   // of the accumulator
    enum kg_type result; // of the result
    const char *total;   // the accumulator
    const char *place;   // argmax, argmin: of the places; NULL
    const char *count;   // mean with relations: how many; NULL: the extents' product
    const char *shape;   // of the tile: "[BLOCK_ROWS, BLOCK_COLS]"; "": scalars
    int along;           // the dimension that is reduced in the end; -1: none
    bool keeps;          // the reduced dimension stays, with length 1
};

// Sets nest, types; the caller sets shape, along and keeps.
struct kg_triton_fold kg_triton_fold_of(const struct kg_nest *nest);
void kg_triton_fold_begin(struct kg_triton_kernel *kernel, struct kg_triton_fold *fold);
// Accumulates the nest's body at its current axes where `valid` (NULL: everywhere) holds.
void kg_triton_fold_step(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                         const char *valid);
// The same for a tile that holds everything, without a loop: instead of begin and step.
void kg_triton_fold_once(struct kg_triton_kernel *kernel, struct kg_triton_fold *fold,
                         const char *valid);
// The expression of the result.
const char *kg_triton_fold_end(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold);
// What a part of a reduction leaves: its total along the tile, without what only the whole has (the
// division of a mean), and the first place of the total `best`.
const char *kg_triton_fold_total(struct kg_triton_kernel *kernel,
                                 const struct kg_triton_fold *fold);
const char *kg_triton_fold_place(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                                 const char *best);
// The neutral element, as Python writes it.
const char *kg_triton_neutral(enum kg_reduce reduce, enum kg_type type);

#endif
