// Operators of PyTorch that run without Python and without the GIL, by the C functions that PyTorch
// keeps stable (torch/csrc/inductor/aoti_torch/c/shim.h). They are looked up in the process; no
// library is linked, and no header is needed. Where one is missing, torch_ops.py registers Python
// functions instead.

#ifndef KG_PYTHON_TORCH_OPERATORS_H
#define KG_PYTHON_TORCH_OPERATORS_H

#include "known_plans.h"

struct torch_operator {
    PyObject *owner; // of what follows; it is kept
    const struct plans *plans;
    const struct reader *reader;
    execute_function *execute;
    execute_sized_function *execute_sized;
    int given;           // outputs that are arguments; the others are results
    PyObject *in_python; // serves calls of a new kind: handles to handles
};

// Whether PyTorch has all that is needed.
bool torch_operators_exist(void);
// Registers an operator that is defined already, for CPUs and CUDA devices. False: it cannot be.
bool torch_operator_register(const struct torch_operator *added, const char *space,
                             const char *name);
// A dtype's place in the table of those that PyTorch has, or -1.
int torch_dtype_of(const char *name);
// Whether a tensor, by the address of its handle, requires a gradient as PyTorch's code says it.
bool torch_requires_gradient(void *handle);

#endif
