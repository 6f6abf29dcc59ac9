// The reference: the definition interpreted in f64. It reads the instance (lang/op.h), never the
// nests and never the generators, and shares no code with them.
//
// Statements are compiled once into a flat program and then run over all output elements; nothing
// is re-walked as a tree. Sums are compensated, so that the reference's own error is negligible
// beside that of any candidate, f64 included.

#ifndef KG_VERIFY_REFERENCE_H
#define KG_VERIFY_REFERENCE_H

#include "analyze/problem.h"

// Values of one output: what the definition gives, and how far a correct kernel may be from it.
struct kg_expected {
    int64_t count;
    double *value;    // floats and integers up to 2^53; exact integers below
    int64_t *integer; // integer and bool outputs; NULL for floats
    // Running error analysis, first order: the absolute error that evaluating the definition in
    // its compute type (rounding each operation once, any order of summation) may accumulate.
    double *slack; // floats only; NULL otherwise
};

// `inputs[i]`: memory of input i, laid out as problem->layouts[i] says. `expected`: one entry per
// output, allocated here, freed with kg_expected_free. `threads` cores are used. `cancel` may be
// NULL; when it becomes nonzero the result is KG_ERROR_CANCELLED.
enum kg_status kg_reference_run(const struct kg_problem *problem, const void *const *inputs,
                                int threads, const volatile int *cancel,
                                struct kg_expected *expected, struct kg_error *error);
void kg_expected_free(struct kg_expected *expected, int count);

#endif
