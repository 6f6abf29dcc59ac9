// The memory of a case for tools that watch a kernel: see kg_gate_exercise.

#include "verify/case.h"

#include <stdlib.h>
#include <string.h>

static int tensor_count(const struct kg_case *item)
{
    return item->problem->op->input_count + item->problem->op->output_count;
}

static void *allocate(struct kg_device *device, size_t bytes, struct kg_error *error)
{
    void *memory = NULL;
    bytes = bytes ? bytes : 1;
    if (device->backend->shares_memory) { // its allocator rounds up
        memory = malloc(bytes);
        if (!memory)
            kg_error_memory(error, "a tensor");
    } else if (device->backend->allocate(device, bytes, &memory, error) != KG_OK) {
        memory = NULL;
    }
    return memory;
}

enum kg_status kg_exercise_open(struct kg_device *device, const struct kg_case *item,
                                void **tensors, struct kg_error *error)
{
    const struct kg_backend *backend = device->backend;
    memset(tensors, 0, KG_MAX_TENSORS * sizeof *tensors);
    for (int i = 0; i < tensor_count(item); i++) {
        size_t bytes = item->problem->layouts[i].bytes;
        tensors[i] = allocate(device, bytes, error);
        if (!tensors[i])
            return KG_ERROR_MEMORY;
        enum kg_status status =
            i < item->problem->op->input_count
                ? backend->copy(device, tensors[i], item->inputs[i], bytes, error)
                : backend->fill(device, tensors[i], kg_image_fills[0], bytes, error);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
}

enum kg_status kg_exercise_wait(struct kg_device *device, const struct kg_case *item,
                                void *const *tensors, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int i = item->problem->op->input_count; i < tensor_count(item) && status == KG_OK; i++) {
        size_t bytes = item->problem->layouts[i].bytes;
        void *copied = malloc(bytes ? bytes : 1);
        status = copied ? device->backend->copy(device, copied, tensors[i], bytes, error)
                        : kg_error_memory(error, "an output");
        free(copied);
    }
    return status;
}

void kg_exercise_close(struct kg_device *device, void **tensors)
{
    for (int i = 0; i < KG_MAX_TENSORS; i++) {
        if (tensors[i] && device->backend->shares_memory)
            free(tensors[i]);
        else if (tensors[i])
            device->backend->release(device, tensors[i]);
    }
}
