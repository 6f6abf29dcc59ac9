// A plan as a function of tvm-ffi, the calling convention that kernel libraries share: one C
// signature for PyTorch, JAX, CuPy and others. Its layouts are those of tvm-ffi 0.1 (c_api.h) and
// of DLPack. The two services that only its library has are looked up when they are needed: nothing
// is linked.

#include "api/context.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANY_INT = 1, ANY_POINTER = 4, ANY_DLTENSOR = 7, ANY_TENSOR = 70 };

struct any {
    int32_t type;
    uint32_t padding;
    union {
        int64_t integer;
        void *pointer;
    };
};

struct object { // the head of a tensor that is an object; its DLTensor follows
    uint64_t references;
    int32_t type;
    uint32_t padding;
    void *deleter;
};

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *shape;
    const int64_t *strides; // in elements; NULL: contiguous
    uint64_t byte_offset;
};

static int raise_error(const char *kind, const char *text)
{
    void (*raise_in_tvm)(const char *, const char *);
    *(void **)&raise_in_tvm = dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaisedFromCStr");
    if (raise_in_tvm)
        raise_in_tvm(kind, text);
    return -1;
}

static void *stream_of(int device_type, int device)
{
    void *(*stream_in_tvm)(int32_t, int32_t);
    *(void **)&stream_in_tvm = dlsym(RTLD_DEFAULT, "TVMFFIEnvGetStream");
    return stream_in_tvm ? stream_in_tvm(device_type, device) : NULL;
}

static const struct dl_tensor *tensor_of(const struct any *argument)
{
    if (argument->type == ANY_DLTENSOR)
        return argument->pointer;
    if (argument->type == ANY_TENSOR)
        return (const void *)((const struct object *)argument->pointer + 1);
    return NULL;
}

// 0 of "cuda:0", and of devices without a number.
static int ordinal_of(const struct kg_device *device)
{
    const char *colon = strchr(device->name, ':');
    return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

static bool lies_as(const struct dl_tensor *tensor, const struct kg_layout *layout, int rank)
{
    int64_t contiguous = 1;
    bool same = tensor->rank == rank;
    for (int d = rank - 1; d >= 0 && same; d--) {
        int64_t stride = tensor->strides ? tensor->strides[d] : contiguous;
        same = tensor->shape[d] == layout->shape[d] &&
               (stride == layout->stride[d] || layout->shape[d] < 2);
        contiguous *= layout->shape[d];
    }
    return same;
}

// Two elements that share a byte come as contiguous bytes of any shape.
static bool has_bytes(const struct dl_tensor *tensor, size_t bytes)
{
    int64_t count = 1;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        if (tensor->strides && tensor->strides[d] != count && tensor->shape[d] > 1)
            return false;
        count *= tensor->shape[d];
    }
    return (size_t)count == bytes;
}

// NULL, or what of an argument differs from the plan's tensor.
static const char *difference(const struct kg_plan *plan, int index, const struct dl_tensor *tensor)
{
    const struct kg_tensor *expected = plan->problem->op->tensors[index];
    const struct kg_layout *layout = &plan->problem->layouts[index];
    const struct kg_dtype_info *dtype = &kg_dtypes[expected->type.dtype];
    bool is_packed = kg_dtype_is_packed(expected->type.dtype);
    if (!tensor)
        return "is no tensor";
    if (tensor->device_type != plan->device->backend->dlpack ||
        tensor->device_id != ordinal_of(plan->device))
        return "is on another device than the plan";
    if (is_packed ? tensor->code != kg_dtypes[KG_U8].dlpack || tensor->bits != 8
                  : tensor->code != dtype->dlpack || tensor->bits != dtype->bits)
        return "has another dtype than the plan";
    if (tensor->lanes != 1)
        return "has vectors as elements";
    if (is_packed ? !has_bytes(tensor, layout->bytes) : !lies_as(tensor, layout, expected->rank))
        return "has other sizes or strides than the plan";
    return NULL;
}

static int execute(const struct kg_plan *plan, const struct any *arguments, int count)
{
    char text[512];
    const struct kg_op *op = plan->problem->op;
    void *tensors[KG_MAX_TENSORS];
    if (count != op->input_count + op->output_count) {
        snprintf(text, sizeof text, "a plan of op %s takes its handle and %d tensors, not %d",
                 op->name, op->input_count + op->output_count, count);
        return raise_error("TypeError", text);
    }
    for (int i = 0; i < count; i++) {
        const struct dl_tensor *tensor = tensor_of(&arguments[i]);
        const char *wrong = difference(plan, i, tensor);
        if (wrong) {
            snprintf(text, sizeof text, "op %s: %s %s", op->name, op->tensors[i]->name, wrong);
            return raise_error(tensor ? "ValueError" : "TypeError", text);
        }
        tensors[i] = (char *)tensor->data + tensor->byte_offset;
    }
    struct kg_error error = {0};
    void *stream = plan->device->backend->runs_grids
                       ? stream_of(plan->device->backend->dlpack, ordinal_of(plan->device))
                       : NULL;
    if (kg_flow_execute(plan, tensors, stream, &error) == KG_OK)
        return 0;
    return raise_error("RuntimeError", error.text);
}

// kernelgen_execute(plan, inputs..., outputs...): `plan` is the address of a struct kg_plan.
KG_API int __tvm_ffi_kernelgen_execute(void *self, const struct any *arguments, int32_t count,
                                       struct any *result);
int __tvm_ffi_kernelgen_execute(void *self, const struct any *arguments, int32_t count,
                                struct any *result)
{
    (void)self;
    *result = (struct any){0}; // None
    if (count < 1 || (arguments[0].type != ANY_INT && arguments[0].type != ANY_POINTER) ||
        !arguments[0].pointer)
        return raise_error("TypeError", "the first argument is the handle of a plan");
    return execute(arguments[0].pointer, arguments + 1, count - 1);
}
