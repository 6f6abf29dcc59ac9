// The reference: the definition interpreted in f64. It reads the instance (lang/op.h), never the
// nests and never the generators, and shares no code with them.
//
// Statements are compiled once into a flat program and then run over all output elements; nothing
// is re-walked as a tree. Sums are compensated, so that the reference's own error is negligible
// beside that of any candidate, f64 included.

#ifndef KG_VERIFY_REFERENCE_H
#define KG_VERIFY_REFERENCE_H

#include "analyze/problem.h"

// A box of one output: elements [low, low + extent) of every dimension.
struct kg_window {
    int64_t low[KG_MAX_RANK];
    int64_t extent[KG_MAX_RANK];
};

// Values of one output: what the definition gives, and how far a correct kernel may be from it.
// Row-major over the window that was asked for, or over the whole output.
struct kg_expected {
    int rank;
    int64_t low[KG_MAX_RANK];
    int64_t extent[KG_MAX_RANK];
    int64_t count;
    double *value;    // floats and integers up to 2^53; exact integers below
    int64_t *integer; // integer and bool outputs, wrapped to their dtype; NULL for floats
    // Floats: running error analysis, first order: the absolute error that evaluating the
    // definition in its compute type (rounding each operation once, any order of summation) may
    // accumulate. Integers: 0. Infinity, for both: undecidable, because rounding or the overflow of
    // an intermediate may have turned a comparison; any value is then right.
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

// Estimated cost in simple operations, of which a core does about 2.5e8 a second. `windows` may be
// NULL: whole outputs.
enum kg_status kg_reference_cost(const struct kg_problem *problem, const struct kg_window *windows,
                                 double *operations, struct kg_error *error);

void kg_expected_free(struct kg_expected *expected, int count);

#endif
