// The reference: interprets the definition in f64. It reads the instance (lang/op.h), not the
// nests, and shares no code with the generators.
//
// Statements are compiled once into a flat program, which then runs over all output elements. Sums
// are compensated, so that the reference's own error is negligible compared with that of any
// candidate, f64 included.

#ifndef KG_VERIFY_REFERENCE_H
#define KG_VERIFY_REFERENCE_H

#include "analyze/problem.h"

// A box of one output: elements [low, low + extent) of every dimension.
struct kg_window {
    int64_t low[KG_MAX_RANK];
    int64_t extent[KG_MAX_RANK];
    bool none; // nothing of the output is asked for, not even a scalar
};

// The values of one output, with the error that a correct kernel may make. Row-major over the
// requested window, or over the whole output.
struct kg_expected {
    int rank;
    int64_t low[KG_MAX_RANK];
    int64_t extent[KG_MAX_RANK];
    int64_t count;
    double *value;    // floats and integers up to 2^53; exact integers below
    int64_t *integer; // integer and bool outputs, wrapped to their dtype; NULL for floats
    // Floats: first-order running error analysis. It bounds the absolute error of evaluating the
    // definition in its compute type (rounding each operation once, any order of summation).
    // Integers: 0. Infinity means undecidable in both cases, because rounding or the overflow of an
    // intermediate may have changed a comparison; every value is then accepted.
    double *slack;
};

// `inputs[i]`: memory of input i, laid out as problem->layouts[i] says. `expected`: one entry per
// output, allocated here, freed with kg_expected_free. `threads` cores are used. `cancel` may be
// NULL; when it becomes nonzero the result is KG_ERROR_CANCELLED.
enum kg_status kg_reference_run(const struct kg_problem *problem, const void *const *inputs,
                                int threads, const volatile int *cancel,
                                struct kg_expected *expected, struct kg_error *error);

// The same for one window of each output; only what they depend on is computed.
enum kg_status kg_reference_window(const struct kg_problem *problem, const void *const *inputs,
                                   const struct kg_window *windows, int threads,
                                   const volatile int *cancel, struct kg_expected *expected,
                                   struct kg_error *error);

// The values alone, with plain sums in f64, at a fraction of the cost: `slack` is NULL.
enum kg_status kg_reference_values(const struct kg_problem *problem, const void *const *inputs,
                                   const struct kg_window *windows, int threads,
                                   const volatile int *cancel, struct kg_expected *expected,
                                   struct kg_error *error);

// Estimated cost in simple operations, of which a core does about 2.5e8 a second. `windows` may be
// NULL: whole outputs.
enum kg_status kg_reference_cost(const struct kg_problem *problem, const struct kg_window *windows,
                                 double *operations, struct kg_error *error);

// The same for kg_reference_values, with the memory that it takes.
enum kg_status kg_reference_values_cost(const struct kg_problem *problem,
                                        const struct kg_window *windows, double *operations,
                                        double *bytes, struct kg_error *error);

void kg_expected_free(struct kg_expected *expected, int count);

#endif
