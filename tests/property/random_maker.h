// What a random definition is made with: the state that random_op.c (sizes, tensors, statements)
// and random_expression.c share.

#ifndef KG_TESTS_RANDOM_MAKER_H
#define KG_TESTS_RANDOM_MAKER_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

#define RANDOM_MOST_ITERATIONS 20000 // of one statement
#define RANDOM_MOST_INDICES 8        // visible at once
#define RANDOM_MOST_DIMS 10
#define RANDOM_MOST_TENSORS 12

enum random_value { FLOAT, INTEGER, BOOL };

// What a dimension can be: a size, or an expression of sizes.
struct random_dim {
    char text[24];
    int64_t extent;
    int base; // a plain size: its number; else -1
};

struct random_tensor {
    char name[16];
    const char *type;
    enum random_value value;
    bool input;
    bool packed; // an input of 4 bits in panels
    int rank;
    int dims[4]; // into maker.dims
};

struct random_index {
    char name[16];
    int dim;
    int relation; // to `outer`: into relations; -1: none
    char outer[16];
};

struct random_maker {
    uint64_t state;
    bool stable;
    int dim_count;
    struct random_dim dims[RANDOM_MOST_DIMS];
    int tensor_count;
    struct random_tensor tensors[RANDOM_MOST_TENSORS];
    int index_count; // visible
    struct random_index indices[RANDOM_MOST_INDICES];
    int index_names;    // used in this statement
    int64_t iterations; // of the visible indices
    int budget;         // terms this statement may still have
};

// A number below `count`, and true so many times in a hundred.
int random_below(struct random_maker *maker, int count);
bool random_chance(struct random_maker *maker, int percent);

#define RANDOM_PICK(maker, list)                                                                   \
    ((list)[random_below((maker), (int)(sizeof(list) / sizeof((list)[0])))])

// May an index over this dimension be added? If so, adds it; it stays until index_count and
// iterations are set back.
bool random_has_room(const struct random_maker *maker, int dim);
struct random_index *random_push_index(struct random_maker *maker, int dim);

// An expression of this kind, about so deep.
void random_expression(struct random_maker *maker, struct kg_text *text, enum random_value value,
                       int depth);
// "sum(k) (...)" and all its relatives; false, with nothing written, when there is no room. The
// caller puts parentheses.
bool random_reduction(struct random_maker *maker, struct kg_text *text, enum random_value value,
                      int depth);

#endif
