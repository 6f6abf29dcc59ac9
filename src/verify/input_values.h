// Single values of the classes of inputs.

#ifndef KG_VERIFY_INPUT_VALUES_H
#define KG_VERIFY_INPUT_VALUES_H

#include "verify/input_uses.h"
#include "verify/inputs.h"
#include "verify/random.h"

// Where the values of one input come from.
struct kg_input_source {
    enum kg_input_class class;
    enum kg_dtype dtype;
    struct kg_input_uses uses;
    double tiny; // the smallest normal value, or a larger one below which kernels may flush to zero
    int before;  // inputs before this one that are floats, or integers, as it is
    double centre;    // of KG_INPUT_CLOSE
    bool is_ordinary; // of KG_INPUT_TINY: this input's values are normal ones
    // What the goal allows, in values of the dtype.
    bool is_limited;
    double low, high;    // floats
    int64_t least, most; // integers
    // Above 0: of long products, whose factors are 2 to a power up to this, or products of some
    // thousand of them would be 0, infinite or, by the order of the factors, either.
    double power;
};

struct kg_input_source kg_input_source_make(const struct kg_problem *problem, int tensor,
                                            enum kg_input_class class);
// What the values of a tensor are close to: less than half the largest finite one, or 8 to 256.
double kg_input_centre(enum kg_dtype dtype, bool huge, struct kg_random *random);
// Is the value allowed? NaN never is where there is a range.
bool kg_input_allowed(const struct kg_input_source *source, double value);
// `value`, or one that is allowed in its place.
double kg_input_confine(const struct kg_input_source *source, double value,
                        struct kg_random *random);
double kg_input_real(const struct kg_input_source *source, struct kg_random *random);
// `number` counts the values of one tensor: some kinds of values take turns.
int64_t kg_input_integer(const struct kg_input_source *source, uint64_t number,
                         struct kg_random *random);

#endif
