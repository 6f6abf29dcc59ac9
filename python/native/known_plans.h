// The plans that calls of one op were served by before, and the layouts of tensors they are for.
// They are looked up with the GIL and, by operators of PyTorch, without.

#ifndef KG_PYTHON_KNOWN_PLANS_H
#define KG_PYTHON_KNOWN_PLANS_H

#include "tensor_reading.h"

#include <stdatomic.h>

typedef enum kg_status execute_function(const struct kg_plan *plan, void *const *tensors,
                                        void *stream);
typedef enum kg_status execute_sized_function(const struct kg_plan *plan, const int64_t *sizes,
                                              int count, void *const *tensors, void *stream);

// An output that is made where PyTorch is: its dtype's place in `dtypes`, -1: it has none there.
struct new_output {
    int dtype;
    int rank;
    int64_t shape[KG_MAX_RANK];
    int64_t strides[KG_MAX_RANK];
};

// A plan, and all that a call of it needs.
struct remembered {
    atomic_int holders;
    uint64_t hash;
    int word_count;
    int64_t *words;
    PyObject *plan; // keeps the handle alive
    const struct kg_plan *handle;
    int size_count; // 0: the plan's own sizes
    int64_t sizes[MAX_TENSORS];
    int input_count;
    int output_count; // that are made; 0: they are given
    PyObject *makers; // of these: (function, args, kwargs) each
    struct new_output *outputs;
    int64_t bytes[MAX_TENSORS];
};

// All zero before use.
struct plans {
    int count;
    struct remembered **all;
};

// The plan for such a layout, which stays until it is released, or NULL.
struct remembered *plans_find(const struct plans *plans, const struct layout *layout);
void plan_release(struct remembered *plan);
// Takes the plan. Needs the GIL, as the next one does. False: no memory, or there are too many.
bool plans_add(struct plans *plans, struct remembered *plan);
void plans_forget(struct plans *plans);
// Whether an output of the call shares memory with another tensor.
bool plan_outputs_overlap(const struct remembered *plan, const struct call *call);

#endif
