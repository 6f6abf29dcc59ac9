// What cuda_scan_emit.c and cuda_scan_columns.c share: the writer, and code that is the same along
// rows and down columns.

#ifndef KG_GEN_CUDA_SCAN_WRITER_H
#define KG_GEN_CUDA_SCAN_WRITER_H

#include "gen/cuda/scan/cuda_scan.h"

struct kg_cuda_scan_writer {
    const struct kg_cuda_scan_plan *plan;
    const struct kg_scan_plan *scan;
    struct kg_code code;
    struct kg_scan_writer shared;
    struct kg_cuda_scan_streams streams;
    char fold[48];    // how two values are folded: "kg_fold_sum_f32"
    char carried[48]; // and two totals that are carried along: "kg_fold_two_f32"
};

bool kg_cuda_scan_has_chunks(const struct kg_cuda_scan_writer *writer);
// Declares `name`, the product of the extents of these axes.
void kg_cuda_scan_define(struct kg_cuda_scan_writer *writer, const char *name, int first, int last);

// The loop over tiles, each with its values in acc0; the loads of the next one are on their way.
// `emit_carry` writes what finds out what stands before a chunk.
void kg_cuda_scan_open_tiles(struct kg_cuda_scan_writer *writer,
                             void (*emit_carry)(struct kg_cuda_scan_writer *));
void kg_cuda_scan_close_tiles(struct kg_cuda_scan_writer *writer);
// The loop over the vectors of a thread in a tile: along a row those of all lanes lie side by side,
// down a column those of a thread follow each other.
void kg_cuda_scan_open_parts(struct kg_cuda_scan_writer *writer);
// What is done with a vector that there is: `left` positions of the tile at `tile` are.
void kg_cuda_scan_open_part(struct kg_cuda_scan_writer *writer, const char *tile, const char *left);
// Takes vector `part` of each stream apart, or of those that are needed late.
void kg_cuda_scan_open_streams(struct kg_cuda_scan_writer *writer, const char *name, bool late);
// The loop over the elements of a vector, in the order of the scan.
void kg_cuda_scan_open_steps(struct kg_cuda_scan_writer *writer);

// The outputs of a vector: where they are gathered, from the running total `total` at the element
// at hand, and into memory.
void kg_cuda_scan_emit_places(struct kg_cuda_scan_writer *writer);
void kg_cuda_scan_emit_outputs(struct kg_cuda_scan_writer *writer, const char *total,
                               const char *count);
void kg_cuda_scan_emit_stores(struct kg_cuda_scan_writer *writer);

// The body of a kernel that goes down columns.
void kg_cuda_scan_emit_columns(struct kg_cuda_scan_writer *writer);

#endif
