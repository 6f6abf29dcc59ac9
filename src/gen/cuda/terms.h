// Whole numbers computed from an op's sizes, as comments of CUDA files write them: "ceil(P * D /
// 256)", "D % 8 == 0". Read where they stand, each time they are needed.

#ifndef KG_GEN_TERMS_H
#define KG_GEN_TERMS_H

#include "base/error.h"
#include "lang/op.h"

// Numbers, sizes and whole params of the op, + - * / % (rounding down), ceil(a / b), min(a, b),
// max(a, b), == != < <= > >= (1 or 0), && and parentheses, from `text` on; `*end` is what follows.
// KG_ERROR_ARGUMENT says what was expected; KG_ERROR_SHAPE that these sizes divide by zero or go
// beyond 64 bits.
enum kg_status kg_terms_value(const char *text, const struct kg_op *op, const int64_t *sizes,
                              int64_t *value, const char **end, struct kg_error *error);

// A name at `text`: its length, 0 when there is none.
size_t kg_terms_name(const char *text);
// The size or param of that name; NULL: there is none.
const struct kg_size *kg_terms_size(const struct kg_op *op, const char *name, size_t length);

#endif
