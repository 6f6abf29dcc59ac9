// Names, dtypes and sizes of a definition as Python and PyTorch write them; the same in all files
// of a bundle.

#ifndef KG_EXPORT_PYTHON_NAMES_H
#define KG_EXPORT_PYTHON_NAMES_H

#include "base/text.h"
#include "lang/op.h"

// A tensor's, index's or op's name: as it is, or with "_1" behind it where it means something in
// Python or in the emitted files.
void kg_python_name(struct kg_text *text, const char *name);
// A param is a constant of the module, in upper case, and with "_PARAM" behind it where that is the
// name of something else; other sizes keep their names.
void kg_python_size_name(struct kg_text *text, const struct kg_op *op, const struct kg_size *size);
// An expression of sizes: "(H + 2 * Q - R) // S + 1".
void kg_python_size(struct kg_text *text, const struct kg_op *op, const struct kg_expr *expr);
// A number that reads back as the same: 1e-05, 128, float("inf").
void kg_python_number(struct kg_text *text, double number);
// "(P, D)", "(D,)", "()".
void kg_python_shape(struct kg_text *text, const struct kg_op *op, const struct kg_tensor *tensor);

// "torch.float16"; 4-bit types lie in torch.uint8, two in a byte.
const char *kg_torch_dtype(enum kg_dtype dtype);

// The dtypes of a tensor for which the same code is right: those its variable allows that compute
// in the same type as the one bound.
struct kg_dtype_set {
    const struct kg_typevar *variable; // NULL: fixed
    const struct kg_tensor *shown_by;  // the first input of the variable; NULL: it is an argument
    int count;
    enum kg_dtype dtypes[KG_DTYPE_COUNT]; // the bound one first
};
// `generic` is the op that `instance` was made of.
void kg_torch_dtypes(const struct kg_op *generic, const struct kg_op *instance, int tensor,
                     struct kg_dtype_set *set);
// All that the variable allows, the bound one first.
void kg_torch_allowed(const struct kg_op *generic, const struct kg_op *instance, int tensor,
                      struct kg_dtype_set *set);
// Does an input have the variable? Otherwise it is an argument, by name.
bool kg_torch_variable_is_shown(const struct kg_op *generic, const struct kg_typevar *variable);
// Can a caller's tensors tell the size? Otherwise it is an argument of its own, by name.
bool kg_torch_size_is_shown(const struct kg_op *instance, const struct kg_size *size);

#endif
