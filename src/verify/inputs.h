// Classes of input values for kernels under test.

#ifndef KG_VERIFY_INPUTS_H
#define KG_VERIFY_INPUTS_H

#include "analyze/problem.h"

enum kg_input_class {
    KG_INPUT_NORMAL,   // signed, over a few orders of magnitude
    KG_INPUT_ZERO,     // mostly zeros of both signs
    KG_INPUT_DENORMAL, // nothing but values below the smallest normal one, and around it
    KG_INPUT_TINY,     // the same for every other tensor of floats; the rest is normal
    KG_INPUT_HUGE,     // up to the largest finite value
    KG_INPUT_NAN,      // normal, with a few NaN
    KG_INPUT_INFINITE, // normal, with one infinity, or a few of both signs: kg_inputs_seed
    KG_INPUT_LARGE,    // normal, with one huge value, or a few of both signs: likewise
    KG_INPUT_CLOSE,    // close together, and far from zero
    KG_INPUT_ROWS,     // where a largest or smallest element is searched: rows of -inf, NaN or inf
    KG_INPUT_TIES,     // four distinct values
    KG_INPUT_HALVES,   // between two neighbours of a narrower dtype, exactly or nearly
    KG_INPUT_WHOLE,    // small whole numbers, whose sums are exact
    KG_INPUT_LIMITS,   // integers: the least and the largest, -1 and 0
    KG_INPUT_OUTSIDE,  // subscripts that leave the dimension they index, by one or by far
    KG_INPUT_CLASS_COUNT
};

extern const char *const kg_input_class_names[KG_INPUT_CLASS_COUNT];

// Can the class find a fault that normal values do not, judging by the inputs of `op` and what it
// does with them?
bool kg_inputs_class_applies(const struct kg_op *op, enum kg_input_class class);

// A seed close to `seed` for kg_inputs_fill. Special values of both signs in all inputs may cancel
// out: by `turn`, there is but one in the first input of floats, in the second and so on, and then
// there are a few in all of them; the next time round, the one has the other sign. Where other
// values may hide an element from a reduction, there are some of either sign after that. Where the
// values of other tensors say which elements are read, a quarter of the one input's elements is
// special, of each sign in turn and of both. The sign of zeros in scalars, and whether values far
// from zero are huge, go by turns, too.
uint64_t kg_inputs_seed(const struct kg_op *op, uint64_t seed, int turn);
// The turns at which one input is special alone, each input of floats with each sign, and one at
// which all of them are a little. `selective`: only those at which one input has more than one
// special element, because others are not read or do not count.
#define KG_MAX_SPECIAL_TURNS (4 * KG_MAX_TENSORS + 1)
int kg_inputs_special_turns(const struct kg_op *op, bool selective, int *turns);

// Fills host memory of input `tensor`, element by element as its layout says; gaps are not written.
// Integers that are used as subscripts stay within the dimension that they index, but in
// KG_INPUT_OUTSIDE. Other integers span their dtype, with small values more frequent. The same
// arguments give the same values on every machine. Takes about 3 ns an element for large tensors.
void kg_inputs_fill(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                    uint64_t seed, void *data);

#endif
