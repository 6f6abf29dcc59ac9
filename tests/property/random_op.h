// Random definitions, well-typed and small: the same seed always gives the same text. What a
// property test does with them is its own affair.

#ifndef KG_TESTS_RANDOM_OP_H
#define KG_TESTS_RANDOM_OP_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct random_op {
    uint64_t seed;
    struct kg_text head;  // "op random(...) -> (...) ... {\n"
    struct kg_text body;  // its statements, a line each
    struct kg_text text;  // the whole definition: head, body, "}\n"
    struct kg_text sizes; // "A=3 B=0 T=f16": the choices of tests/support/sample_problem.h
    int64_t iterations;   // of all statements, about
};

// What the definition may contain.
enum random_kind {
    RANDOM_ANY, // whatever the language allows, for tests that compute nothing
    // Only what a rounding error does not turn into another result: no comparison, floor, sign or
    // argmax of a computed float, arguments kept where functions are tame. Kernels may be compared
    // with the reference.
    RANDOM_STABLE
};

// Overwrites `op`, which is zero-initialised or was made before.
void random_op_make(struct random_op *op, uint64_t seed, enum random_kind kind);
void random_op_free(struct random_op *op);

// The seed of a test run: KG_SEED in the environment, or `otherwise`. Printed, so that a failure
// can be repeated.
uint64_t random_seed(uint64_t otherwise);

#endif
