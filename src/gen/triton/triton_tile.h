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
// Declares the listed axes from the flattened index `linear`, the last of them the fastest; they
// are in range where `inside` is.
void kg_triton_tile_split(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                          const int *axes, int count, const char *linear, const char *inside);
// One dimension of a tile: values from a program id, and their mask. `expand` is "", "[:, None]" or
// "[None, :]".
struct kg_triton_axis kg_triton_tile_dimension(struct kg_triton_kernel *kernel, const char *base,
                                               int program, const char *block, const char *expand,
                                               const char *end);
// Declares the listed axes as the rows of a tile, the last of them the fastest. `again`: rows of
// several axes that would be behind the last one are the last one again, so that they need no mask,
// which triton-ascend 3.2 does not compile for such rows. Rows that are read in vectors along the
// fastest axis must have the mask, as nobody could tell then that they follow each other.
void kg_triton_tile_rows_of(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                            const int *axes, int count, bool again);
// Declares output axes [0, count) as the rows of a tile; none if `count` is 0.
void kg_triton_tile_rows(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int count,
                         bool again);
// The same for axes [first, last] as its columns, from `start` (a name) on.
struct kg_triton_axis kg_triton_tile_columns(struct kg_triton_kernel *kernel,
                                             const struct kg_nest *nest, int first, int last,
                                             const char *start, const char *expand);
// The output axis along which a transposed read walks memory, while the output is written along the
// last one; -1: there is none.
int kg_triton_turned_axis(const struct kg_group *group, const struct kg_nest *shape);
// Whether some read of statements that do not reduce is contiguous along no axis of the tile: see
// _down in kernels/triton/values.py.
bool kg_triton_ties(const struct kg_group *group, const struct kg_nest *shape);
// The launch of a kernel whose outputs are tiles, or of `walk` where the last axis is short (NULL:
// see triton_walk.h); the same without merging axes, of tiles whose columns begin with the axis
// `columns`, indented by `level`; and that of one whose programs take rows: axes [0, rows), with
// the axes after them as columns, which each program walks whole.
void kg_triton_launch_tile(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           const struct kg_triton_kernel *walk, const struct kg_nest *nest);
void kg_triton_launch_outputs(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                              const struct kg_nest *nest, int columns, int level);
void kg_triton_launch_rows(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           const struct kg_nest *nest, int rows);
// What an autotuner may change of a launch, besides warps and stages: a grid that is a tuple and
// the memory of parts depend on the blocks, and a row that lies in one block must not be cut.
enum kg_triton_tunable { KG_TRITON_TUNE_NONE, KG_TRITON_TUNE_ROWS, KG_TRITON_TUNE_ALL };
// "BLOCK_ROWS=tile.rows, ..., num_warps=tile.warps", and the call, indented by `level`. The grid is
// a function of the blocks unless nothing may change.
void kg_triton_launch_call(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           int level, enum kg_triton_tunable tunable);
// "grid = lambda meta: ...": programs along the rows and, with `columns`, along the columns.
void kg_triton_launch_grid(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           int level, bool columns);
// The product of the extents of the listed axes, as kernels write it, and of [first, last]; "1" for
// none.
const char *kg_triton_tile_count(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                 const int *axes, int count);
const char *kg_triton_tile_product(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                   int first, int last);
// Where the outputs at the current axes lie in memory that has a row of all outputs for each split.
const char *kg_triton_tile_part(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                const char *split);

#endif
