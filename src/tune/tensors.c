// Tensors to time kernels with: see tensors.h.

#include "tune/tensors.h"

#include "verify/gate.h"

#include <stdlib.h>
#include <string.h>

#define SEED 1
#define POISON 0xA5
// Elements of the window that large inputs repeat, because making a random value takes about 0.1
// microseconds. It is twice a prime, so that rows, tiles and vectors do not repeat at the same
// position soon; and it is even, because two elements of four bits share a byte.
#define WINDOW ((int64_t)2 * 131071)

// Copies the first `window` bytes over the rest, doubling the length each time.
static enum kg_status repeat(struct kg_device *device, char *memory, size_t window, size_t bytes,
                             struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (size_t done = window; done < bytes && !status;) {
        size_t more = done < bytes - done ? done : bytes - done;
        status = device->backend->copy(device, memory + done, memory, more, error);
        done += more;
    }
    return status;
}

static enum kg_status fill_input(struct kg_device *device, const struct kg_problem *problem,
                                 int input, void *memory, struct kg_error *error)
{
    const struct kg_layout *layout = &problem->layouts[input];
    enum kg_dtype dtype = problem->op->tensors[input]->type.dtype;
    bool whole = !layout->contiguous || layout->elements <= WINDOW;
    size_t window = whole ? layout->bytes : (size_t)(WINDOW * kg_dtypes[dtype].bits / 8);
    void *values = calloc(1, window ? window : 1); // strided layouts have gaps
    if (!values)
        return kg_error_memory(error, "an input");
    kg_verify_fill_some(problem, input, SEED, whole ? layout->elements : WINDOW, values);
    enum kg_status status = device->backend->copy(device, memory, values, window, error);
    free(values);
    return status ? status : repeat(device, memory, window, layout->bytes, error);
}

static enum kg_status make(struct kg_device *device, const struct kg_problem *problem, int first,
                           int count, void **tensors, struct kg_error *error)
{
    memset(tensors + first, 0, (size_t)count * sizeof *tensors);
    for (int i = first; i < first + count; i++) {
        enum kg_status status =
            device->backend->allocate(device, problem->layouts[i].bytes, &tensors[i], error);
        if (status)
            return status;
    }
    return KG_OK;
}

static void release(struct kg_device *device, int first, int count, void **tensors)
{
    for (int i = first; i < first + count; i++) {
        if (tensors[i])
            device->backend->release(device, tensors[i]);
        tensors[i] = NULL;
    }
}

enum kg_status kg_tensors_fill_inputs(struct kg_device *device, const struct kg_problem *problem,
                                      void *const *tensors, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int i = 0; i < problem->op->input_count && !status; i++)
        status = fill_input(device, problem, i, tensors[i], error);
    return status;
}

enum kg_status kg_tensors_make_inputs(struct kg_device *device, const struct kg_problem *problem,
                                      void **tensors, struct kg_error *error)
{
    enum kg_status status = make(device, problem, 0, problem->op->input_count, tensors, error);
    return status ? status : kg_tensors_fill_inputs(device, problem, tensors, error);
}

enum kg_status kg_tensors_make_outputs(struct kg_device *device, const struct kg_problem *problem,
                                       void **tensors, struct kg_error *error)
{
    return make(device, problem, problem->op->input_count, problem->op->output_count, tensors,
                error);
}

enum kg_status kg_tensors_poison(struct kg_device *device, const struct kg_problem *problem,
                                 void *const *tensors, struct kg_error *error)
{
    const struct kg_op *op = problem->op;
    enum kg_status status = KG_OK;
    for (int i = op->input_count; i < op->input_count + op->output_count && !status; i++)
        status =
            device->backend->fill(device, tensors[i], POISON, problem->layouts[i].bytes, error);
    return status;
}

enum kg_status kg_tensors_digest(struct kg_device *device, const struct kg_problem *problem,
                                 void *const *tensors, uint64_t *sum, struct kg_error *error)
{
    const struct kg_op *op = problem->op;
    enum kg_status status = KG_OK;
    *sum = 0;
    for (int i = op->input_count; i < op->input_count + op->output_count && !status; i++)
        status = device->backend->digest(device, tensors[i], problem->layouts[i].bytes, sum, error);
    return status;
}

void kg_tensors_release_inputs(struct kg_device *device, const struct kg_problem *problem,
                               void **tensors)
{
    release(device, 0, problem->op->input_count, tensors);
}

void kg_tensors_release_outputs(struct kg_device *device, const struct kg_problem *problem,
                                void **tensors)
{
    release(device, problem->op->input_count, problem->op->output_count, tensors);
}
