// f16 in loops over lanes: the elements of a step are converted at once, before and after the loop,
// by the processor's own instructions. No compiler uses these in vectors for conversions that stand
// in the loop; integer arithmetic takes 9 operations to read a vector, and 20 to write one.

#ifndef KG_GEN_HALVES_H
#define KG_GEN_HALVES_H

#include "gen/shared/axes.h"

// What is converted for one step.
struct kg_halves {
    const struct kg_group *group;
    int axis;       // that the lanes follow
    int stream;     // of several whose steps are done together
    uint64_t nests; // 1 << position: their reads are in buffers
};

// Declares and fills the buffers of nest `position`, and of what is computed in place for it, with
// `lanes` elements, a multiple of 16, the first of which lies where `first` says along the axis.
// `values` spells the other axes.
void kg_halves_fill(struct kg_code *code, struct kg_halves *halves, const struct kg_values *values,
                    int position, const char *first, const char *lanes);

// For kg_values.read: elements of the buffers, at [lane].
bool kg_halves_read(void *halves, struct kg_text *text, const struct kg_access *access);

// Is there anything to fill?
bool kg_halves_are_read(const struct kg_values *values, int position, int axis);
// Is what the nest stores along the axis f16, made of f32?
bool kg_halves_are_stored(const struct kg_group *group, int position, int axis);

#endif
