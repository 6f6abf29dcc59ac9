// A Python function that computes a definition with PyTorch's operations.

#ifndef KG_EXPORT_TORCH_FUNCTION_H
#define KG_EXPORT_TORCH_FUNCTION_H

#include "base/error.h"
#include "base/text.h"
#include "lang/op.h"

struct kg_torch_code {
    struct kg_text body;    // the statements of the function, indented; inputs and sizes are bound
    struct kg_text helpers; // functions it calls, to stand above it
};

// For the instance's params and every dtype that the op allows; where these compute in different
// types the code has branches. `reference`: computes in f64 and gives outputs that are not rounded
// to their dtypes (integers: not wrapped); its inputs are converted first. Otherwise as the
// definition says.
enum kg_status kg_torch_function(const struct kg_op *generic, const struct kg_op *instance,
                                 bool reference, struct kg_torch_code *code,
                                 struct kg_error *error);
void kg_torch_code_free(struct kg_torch_code *code);

#endif
