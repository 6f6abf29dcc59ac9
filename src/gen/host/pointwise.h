// What the files of the pointwise family share: pointwise.c decides, pointwise_items.c writes how
// axes are divided into items, pointwise_emit.c what is done to one, by runs (pointwise_runs.c) or
// by pieces (pointwise_pieces.c), and pointwise_element.c what is done to an element.

#ifndef KG_GEN_POINTWISE_H
#define KG_GEN_POINTWISE_H

#include "gen/shared/pointwise_chain.h"

struct kg_pointwise {
    struct kg_text *text;
    const struct kg_group *group;
    const char *entry;
    struct kg_emit_names names;
    int axes;                    // of every nest
    int inner;                   // the axis of the inner loop; -1: a scalar formula
    int tiled;                   // the other axis of the tiles; -1: none
    bool merged[KG_MAX_INDICES]; // this axis is part of the next one
    int64_t block;
    int vector_bytes;       // of the machine
    int64_t stage;          // elements of a piece
    bool stream;            // results leave a piece at a time, past the caches
    int64_t step;           // elements of a run by which the inner loop is split; 1: it is not
    int64_t ways;           // items that are walked alternately, a piece of each in turn
    bool wide;              // narrow floats are converted a piece at a time
    bool piece;             // what is being written is done for each element of a piece
    const char *inner_name; // of the inner axis, where it is not "i<axis>"
    const struct kg_nest *current; // whose formula is being printed
    int level;
};

// The functions of the kernel, after the opening. `names` is filled in here.
void kg_pointwise_emit(struct kg_pointwise *pointwise);

// Elements: pointwise_element.c

void kg_pointwise_set_names(struct kg_pointwise *pointwise);
// All nests at one point of the axes.
void kg_pointwise_emit_element(struct kg_pointwise *pointwise);
// Declares the subscripts that an item reads from memory. GCC takes no loop in vectors in which the
// clamp of a subscript stands that is the same for all of it: it becomes a branch.
void kg_pointwise_emit_places(struct kg_pointwise *pointwise);
// Says, where compilers cannot know it, that the loop that follows may be taken in vectors.
void kg_pointwise_emit_apart(const struct kg_pointwise *pointwise);
void kg_pointwise_close_loops(struct kg_pointwise *pointwise, int count);
// Elements of f16 that are adjacent along the inner axis: a piece of them is converted at once.
bool kg_pointwise_is_wide(const struct kg_pointwise *pointwise, const struct kg_access *access);
// Elements that the current nest reads under a condition that changes along the inner axis, in a
// streamed piece: they are read before it. Compilers would load those vectors only that the
// condition holds for, and prefetchers do not foresee such masked loads: lower_triangle of
// 4096 x 4096 in f32, one core of Zen 5, 6350 us so and 2400 us with all read before. Where a
// condition holds for all of a row or for nothing of it, it spares reading: length_mask took 1.6
// times as long with all read before.
bool kg_pointwise_is_fetched(const struct kg_pointwise *pointwise, const struct kg_access *access);
// Its number among the accesses of the group.
int kg_pointwise_number(const struct kg_pointwise *pointwise, const struct kg_access *access);
// The buffer of an access that is wide: the number of the first one that reads the same.
int kg_pointwise_buffer(const struct kg_pointwise *pointwise, const struct kg_access *access);
// The read that nest `position` does nothing with but store it as it is; NULL: it does more.
const struct kg_access *kg_pointwise_copied(const struct kg_pointwise *pointwise, int position);
// The read that nest `position` stores in another dtype and does nothing else with, where a piece
// of it goes from memory to memory: f32 to f16, or back, or as it is past the caches. NULL: there
// is none.
const struct kg_access *kg_pointwise_sent(const struct kg_pointwise *pointwise, int position);
// Does nest `position` only move bits? Those are not converted.
bool kg_pointwise_is_moved(const struct kg_pointwise *pointwise, int position);
// Floats of a piece, narrowed when it is complete.
bool kg_pointwise_is_narrowed(const struct kg_pointwise *pointwise, int position);
// The offset of a read; merged axes drop out of it. The same of the run that it walks along the
// inner axis, which is its last subscript.
void kg_pointwise_print_offset(struct kg_text *text, const struct kg_pointwise *pointwise,
                               const struct kg_access *access);
void kg_pointwise_print_run(struct kg_text *text, const struct kg_pointwise *pointwise,
                            const struct kg_access *access);
// "y + i0 * y_s0 + i1" for nest `position`.
void kg_pointwise_print_target(struct kg_text *text, const struct kg_pointwise *pointwise,
                               int position);

// Runs: pointwise_runs.c

// Does an element that is read share its byte with the next one of the inner axis?
bool kg_pointwise_shares_bytes(const struct kg_pointwise *pointwise);
// Elements from `next` on, as many as are whole runs; `next` is past them, or where it was if runs
// do not begin at whole bytes.
void kg_pointwise_emit_runs(struct kg_pointwise *pointwise);
// The elements of a piece, run by run.
void kg_pointwise_emit_runs_of_piece(struct kg_pointwise *pointwise);

// Pieces: pointwise_pieces.c

void kg_pointwise_emit_pieces(struct kg_pointwise *pointwise);
// Elements from `next` to before `limit`, one by one.
void kg_pointwise_emit_single(struct kg_pointwise *pointwise, const char *limit);
// Pieces are whole lines of the first output. What is left at either end is stored as usual: up to
// the first whole line, then, after the pieces, up to `stop`.
void kg_pointwise_emit_streamed(struct kg_pointwise *pointwise);

// Items: pointwise_items.c

// What every function starts with.
void kg_pointwise_emit_declarations(const struct kg_pointwise *pointwise);
// The functions that say how many items there are, and how many make a thread worth it.
void kg_pointwise_emit_entries(const struct kg_pointwise *pointwise);
// The loop over items [begin, end): before and after what is done to one of them, whose coordinates
// are i<axis>, [first, stop) of the inner axis and [low, high) of the tiled one.
void kg_pointwise_open_items(struct kg_pointwise *pointwise);
void kg_pointwise_close_items(struct kg_pointwise *pointwise);
// The same for `ways` > 1: what stands between is done to the item's elements from `next` on, as
// many as it likes to, and is entered again until `next` is `stop`.
void kg_pointwise_open_ways(struct kg_pointwise *pointwise);
void kg_pointwise_close_ways(struct kg_pointwise *pointwise);

#endif
