// Tiles: which axes of a nest a program of the grid takes as vectors, and the lines that say so.

#ifndef KG_GEN_TRITON_TILE_H
#define KG_GEN_TRITON_TILE_H

#include "gen/triton/triton_host.h"

// Output axes [0, last) flattened along the first dimension of a tile, `last` along the second.
struct kg_triton_tile {
    const char *shape; // "[BLOCK_ROWS, BLOCK_COLS]"; "" for a scalar
    int dimensions;
};

// Declares the output axes of the nest as a tile of two dimensions (of one if there is a single
// axis, of none if there is no axis), with masks.
struct kg_triton_tile kg_triton_tile_outputs(struct kg_triton_kernel *kernel,
                                             const struct kg_nest *nest);
// Declares axes [first, last] from the flattened index `linear`, in range where `inside` is.
void kg_triton_tile_split(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int first,
                          int last, const char *linear, const char *inside);
// The product of the extents, as kernels write it; "1" for none.
const char *kg_triton_tile_product(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                   int first, int last);
// A program id as an index.
const char *kg_triton_tile_program(struct kg_triton_kernel *kernel, int dimension);

#endif
