// What integer formulas of Triton kernels can be, whatever the sizes and the elements: the language
// computes integers in 64 bits, which GPUs do in two halves. Where no value in a formula needs more
// than 32 bits, kernels compute it in 32.

#ifndef KG_GEN_TRITON_RANGE_H
#define KG_GEN_TRITON_RANGE_H

#include "lang/op.h"

// Whether the values of an integer expression and of everything in it are int32, by the dtypes of
// what it reads. A read at a place that a tensor holds, or with a pad, tells nothing.
bool kg_triton_is_narrow(const struct kg_expr *expr);
// Whether the values are known to lie in [low, high].
bool kg_triton_is_within(const struct kg_expr *expr, int64_t low, int64_t high);
// Whether the expression is a quotient or remainder of an index by a positive number, which kernels
// compute in the type of offsets.
bool kg_triton_is_digit(const struct kg_expr *expr);

#endif
