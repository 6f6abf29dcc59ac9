// What a definition does with one of its inputs, as far as it decides which values test it.

#ifndef KG_VERIFY_INPUT_USES_H
#define KG_VERIFY_INPUT_USES_H

#include "analyze/problem.h"

struct kg_input_uses {
    // Integers: read inside a subscript, so that values select elements.
    bool is_index;
    // The values that stay inside every dimension they index; where that read is padded, one more
    // at each end. Only with sizes.
    int64_t low;
    int64_t high;   // < low: none does
    bool is_count;  // integers: read in what a shift moves by
    int64_t extent; // integers: compared with an index that runs up to this, with sizes; 0: none is
    // Floats: dimensions along which a largest or smallest element is searched, a bit each. 0:
    // none.
    unsigned searched;
    bool for_least;  // by min or argmin
    bool combined;   // only after another reduction
    bool multiplied; // floats: read in a product over an index
    bool truncated;  // floats: read in a cast to an integer
    bool selected; // floats: read where the values of another tensor say, so perhaps in few places
    // Floats: of what is reduced, other values may say which elements count: by where, a mask, a
    // length.
    bool hidden;
    // Floats: dtypes of outputs and casts that cannot hold every value of the input, a bit each.
    unsigned narrower;
};

// `sizes` may be NULL.
void kg_input_uses_find(const struct kg_op *op, const int64_t *sizes, int tensor,
                        struct kg_input_uses *uses);
// Sums products of elements of two tensors: a task for matrix units.
bool kg_input_uses_products(const struct kg_op *op);

#endif
