// Classes of input values for kernels under test.

#ifndef KG_VERIFY_INPUTS_H
#define KG_VERIFY_INPUTS_H

#include "analyze/problem.h"

enum kg_input_class {
    KG_INPUT_NORMAL,   // signed, over a few orders of magnitude
    KG_INPUT_ZERO,     // mostly zeros of both signs
    KG_INPUT_DENORMAL, // mostly below the smallest normal value
    KG_INPUT_HUGE,     // up to the largest finite value
    KG_INPUT_NAN,      // normal, with a few NaN
    KG_INPUT_INFINITE, // normal, with a few infinities of both signs
    KG_INPUT_TIES,     // four distinct values
    KG_INPUT_WHOLE,    // small whole numbers, whose sums are exact
    KG_INPUT_CLASS_COUNT
};

extern const char *const kg_input_class_names[KG_INPUT_CLASS_COUNT];

// Fills host memory of input `tensor`, element by element as its layout says; gaps are not written.
// Integers that are used as subscripts stay within the dimension that they index. Other integers
// span their dtype, with small values more frequent.
void kg_inputs_fill(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                    uint64_t seed, void *data);

#endif
