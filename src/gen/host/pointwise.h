// What the two files of the pointwise family share: pointwise.c decides, pointwise_emit.c writes.

#ifndef KG_GEN_POINTWISE_H
#define KG_GEN_POINTWISE_H

#include "gen/shared/emit.h"

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
    bool wide;                     // narrow floats are converted a piece at a time
    bool piece;                    // what is being written is done for each element of a piece
    const char *inner_name;        // of the inner axis, where it is not "i<axis>"
    const struct kg_nest *current; // whose formula is being printed
    int level;
};

// The position in the group of the nest that makes `tensor`, if before `limit`; else -1.
int kg_pointwise_producer(const struct kg_group *group, const struct kg_tensor *tensor, int limit);
// Is the subscript just this axis?
bool kg_pointwise_bare(const struct kg_access *access, int dim, int axis);

// Why nest `i` cannot be part of the chain; NULL when it can.
const char *kg_pointwise_obstacle(const struct kg_group *group, int i);
// Does this access let axes `axis` and `axis + 1` become one? Either it uses neither, or it walks
// both in the order of memory.
bool kg_pointwise_allows_merge(const struct kg_nest *nest, const struct kg_access *access,
                               int axis);
// Whether the axes `axis` and `axis + 1` can be counted as one by every nest of the chain.
bool kg_pointwise_can_merge(const struct kg_group *group, int axis);

// The functions of the kernel, after the opening. `names` is filled in here.
void kg_pointwise_emit(struct kg_pointwise *pointwise);

#endif
