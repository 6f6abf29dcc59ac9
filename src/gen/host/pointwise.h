// What the files of the pointwise family share: pointwise.c decides, pointwise_emit.c writes what
// is done to an item, pointwise_items.c how axes are divided into items.

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
    int64_t stage;                 // elements of a piece
    bool stream;                   // results leave a piece at a time, past the caches
    int64_t ways;                  // items that are walked alternately, a piece of each in turn
    bool wide;                     // narrow floats are converted a piece at a time
    bool piece;                    // what is being written is done for each element of a piece
    const char *inner_name;        // of the inner axis, where it is not "i<axis>"
    const struct kg_nest *current; // whose formula is being printed
    int level;
};

// The functions of the kernel, after the opening. `names` is filled in here.
void kg_pointwise_emit(struct kg_pointwise *pointwise);

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
