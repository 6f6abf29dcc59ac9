// Copies inputs to the device and outputs back: see run_with_copies.h. A device that shares memory
// with this process gets the caller's pointers.

#include "flow/run_with_copies.h"

#include <stdlib.h>

// Elements that an output's strides skip belong to the caller and are preserved.
static enum kg_status carry_there(const struct kg_plan *plan, void *const *tensors, void **carried,
                                  struct kg_error *error)
{
    const struct kg_problem *problem = plan->problem;
    const struct kg_backend *backend = plan->device->backend;
    int inputs = problem->op->input_count, count = inputs + problem->op->output_count;
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++) {
        const struct kg_layout *layout = &problem->layouts[i];
        status = backend->allocate(plan->device, layout->bytes, &carried[i], error);
        if (!status && layout->bytes > 0 && (i < inputs || !layout->contiguous))
            status = backend->copy(plan->device, carried[i], tensors[i], layout->bytes, error);
    }
    return status;
}

// A copy waits for the kernels and reports their errors, even if there is nothing to copy.
static enum kg_status carry_back(const struct kg_plan *plan, void *const *tensors,
                                 void *const *carried, struct kg_error *error)
{
    const struct kg_problem *problem = plan->problem;
    int inputs = problem->op->input_count, count = inputs + problem->op->output_count;
    enum kg_status status = KG_OK;
    for (int i = inputs; i < count && !status; i++)
        status = plan->device->backend->copy(plan->device, tensors[i], carried[i],
                                             problem->layouts[i].bytes, error);
    return status;
}

enum kg_status kg_flow_run(const struct kg_plan *plan, void *const *tensors, struct kg_error *error)
{
    const struct kg_backend *backend = plan->device->backend;
    if (backend->shares_memory)
        return kg_flow_execute(plan, tensors, NULL, error);
    int count = plan->problem->op->input_count + plan->problem->op->output_count;
    void **carried = calloc((size_t)count, sizeof *carried);
    if (!carried)
        return kg_error_memory(error, "the tensors of an execution");
    enum kg_status status = carry_there(plan, tensors, carried, error);
    if (!status)
        status = kg_flow_execute(plan, carried, NULL, error);
    if (!status)
        status = carry_back(plan, tensors, carried, error);
    for (int i = 0; i < count; i++)
        if (carried[i])
            backend->release(plan->device, carried[i]);
    free(carried);
    return status;
}
