// See torch_operators.h.

#include "torch_operators.h"

#include <dlfcn.h>
#include <string.h>

// A tensor is a handle, which is owned: what is passed to a kernel has to be deleted, what it
// returns is deleted by others. Functions return 0, or have printed an exception.
typedef uint64_t slot_value;
typedef void kernel_function(slot_value *stack, uint64_t arguments, uint64_t results);

static struct {
    int (*open_library)(const char *space, const char *key, const char *file, uint32_t line,
                        void **library);
    int (*implement)(void *library, const char *name, kernel_function *kernel);
    int (*data)(void *tensor, void **data);
    int (*rank)(void *tensor, int64_t *rank);
    int (*shape)(void *tensor, int64_t **shape);
    int (*strides)(void *tensor, int64_t **strides);
    int (*dtype)(void *tensor, int32_t *dtype);
    int (*device_type)(void *tensor, int32_t *type);
    int (*device_index)(void *tensor, int32_t *index);
    int (*make)(int64_t rank, const int64_t *shape, const int64_t *strides, int32_t dtype,
                int32_t device_type, int32_t device_index, void **tensor);
    int (*destroy)(void *tensor);
    bool (*is_grad_on)(void);
    void (*check)(bool is_right, const char *function, const char *file, uint32_t line,
                  const char *message);
    int32_t (*cpu)(void);
    int32_t (*cuda)(void);
    bool (*requires_gradient)(const void *tensor); // a method of TensorImpl
} torch;

static const struct {
    const char *library, *name;
    void *to;
} functions[] = {
    {"libtorch_cpu.so", "aoti_torch_library_init_impl", &torch.open_library},
    {"libtorch_cpu.so", "aoti_torch_library_impl", &torch.implement},
    {"libtorch_cpu.so", "aoti_torch_get_data_ptr", &torch.data},
    {"libtorch_cpu.so", "aoti_torch_get_dim", &torch.rank},
    {"libtorch_cpu.so", "aoti_torch_get_sizes", &torch.shape},
    {"libtorch_cpu.so", "aoti_torch_get_strides", &torch.strides},
    {"libtorch_cpu.so", "aoti_torch_get_dtype", &torch.dtype},
    {"libtorch_cpu.so", "aoti_torch_get_device_type", &torch.device_type},
    {"libtorch_cpu.so", "aoti_torch_get_device_index", &torch.device_index},
    {"libtorch_cpu.so", "aoti_torch_empty_strided", &torch.make},
    {"libtorch_cpu.so", "aoti_torch_delete_tensor_object", &torch.destroy},
    {"libtorch_cpu.so", "aoti_torch_grad_mode_is_enabled", &torch.is_grad_on},
    {"libtorch_cpu.so", "aoti_torch_check", &torch.check},
    {"libtorch_cpu.so", "aoti_torch_device_type_cpu", &torch.cpu},
    {"libtorch_cpu.so", "aoti_torch_device_type_cuda", &torch.cuda},
    // There is no C function for this. torch_ops.py tries it on two tensors before it is relied on.
    {"libc10.so", "_ZNK3c1010TensorImpl13requires_gradEv", &torch.requires_gradient},
};

// As DLPack has them, and as PyTorch does: by a function for each.
static struct {
    const char *name, *function;
    uint8_t code, bits;
    int32_t value;
} dtypes[] = {
    {"f16", "aoti_torch_dtype_float16", 2, 16, -1},
    {"bf16", "aoti_torch_dtype_bfloat16", 4, 16, -1},
    {"f32", "aoti_torch_dtype_float32", 2, 32, -1},
    {"f64", "aoti_torch_dtype_float64", 2, 64, -1},
    {"i8", "aoti_torch_dtype_int8", 0, 8, -1},
    {"u8", "aoti_torch_dtype_uint8", 1, 8, -1},
    {"i16", "aoti_torch_dtype_int16", 0, 16, -1},
    {"u16", "aoti_torch_dtype_uint16", 1, 16, -1},
    {"i32", "aoti_torch_dtype_int32", 0, 32, -1},
    {"u32", "aoti_torch_dtype_uint32", 1, 32, -1},
    {"i64", "aoti_torch_dtype_int64", 0, 64, -1},
    {"bool", "aoti_torch_dtype_bool", 6, 8, -1},
    {"f8e4m3", "aoti_torch_dtype_float8_e4m3fn", 10, 8, -1},
    {"f8e5m2", "aoti_torch_dtype_float8_e5m2", 12, 8, -1},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

// ---- What PyTorch has

static void *look_up(const char *library, const char *name)
{
    void *loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = loaded ? dlsym(loaded, name) : NULL;
    if (loaded)
        dlclose(loaded);
    return found;
}

static bool look_up_dtypes(void)
{
    for (int i = 0; i < DTYPES; i++) {
        int32_t (*value)(void);
        *(void **)&value = look_up("libtorch_cpu.so", dtypes[i].function);
        if (!value)
            return false;
        dtypes[i].value = value();
    }
    return true;
}

bool torch_operators_exist(void)
{
    static enum { UNKNOWN, NO, YES } known;
    if (known != UNKNOWN)
        return known == YES;
    known = NO;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = look_up(functions[i].library, functions[i].name);
        if (!found)
            return false;
        memcpy(functions[i].to, &found, sizeof found);
    }
    if (look_up_dtypes())
        known = YES;
    return known == YES;
}

int torch_dtype_of(const char *name)
{
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return i;
    return -1;
}

bool torch_requires_gradient(void *handle)
{
    return torch.requires_gradient(*(void **)handle); // a handle is the address of a Tensor
}

// ---- Reading a call

static void *handle_of(slot_value value)
{
    return (void *)(uintptr_t)value;
}

static bool read_device(void *handle, struct dl_device *device)
{
    int32_t type = -1, index = -1;
    if (torch.device_type(handle, &type) != 0 || torch.device_index(handle, &index) != 0)
        return false;
    *device =
        type == torch.cuda() ? (struct dl_device){DL_CUDA, index} : (struct dl_device){DL_CPU, 0};
    return type == torch.cuda() || type == torch.cpu();
}

static bool read_handle(struct call *call, void *handle)
{
    struct dl_tensor tensor = {.lanes = 1};
    int64_t rank = 0;
    int32_t dtype = -1;
    if (torch.rank(handle, &rank) != 0 || rank > KG_MAX_RANK ||
        torch.shape(handle, &tensor.shape) != 0 || torch.strides(handle, &tensor.strides) != 0 ||
        torch.dtype(handle, &dtype) != 0 || torch.data(handle, &tensor.data) != 0 ||
        !read_device(handle, &tensor.device))
        return false;
    tensor.rank = (int32_t)rank;
    for (int i = 0; i < DTYPES; i++) {
        if (dtypes[i].value != dtype)
            continue;
        tensor.code = dtypes[i].code;
        tensor.bits = dtypes[i].bits;
        return reader_add_view(call, &tensor);
    }
    return false;
}

// Gradients would be lost without a word: Python refuses such calls.
static bool needs_gradient(const slot_value *stack, uint64_t count)
{
    bool needs = false;
    for (uint64_t i = 0; i < count; i++)
        needs |= torch_requires_gradient(handle_of(stack[i]));
    return needs && torch.is_grad_on();
}

static bool read_call(const struct torch_operator *op, const slot_value *stack, uint64_t inputs,
                      uint64_t count, struct call *call)
{
    reader_begin(call);
    call->exchange = reader_torch_exchange(op->reader);
    bool is_read = call->exchange && count <= MAX_TENSORS;
    for (uint64_t i = 0; i < inputs && is_read; i++)
        is_read = read_handle(call, handle_of(stack[i]));
    reader_end_arguments(call);
    for (uint64_t i = inputs; i < count && is_read; i++)
        is_read = read_handle(call, handle_of(stack[i]));
    return is_read && call->argument_count > 0 && !needs_gradient(stack, count);
}

// ---- Calls of a known kind

static void destroy_all(slot_value *stack, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        torch.destroy(handle_of(stack[i]));
}

// Makes the outputs. On failure none is left.
static bool make_outputs(const struct remembered *plan, struct call *call, slot_value *made)
{
    for (int i = 0; i < plan->output_count; i++) {
        const struct new_output *output = &plan->outputs[i];
        bool is_cuda = call->device.type == DL_CUDA;
        void *handle = NULL;
        if (output->dtype < 0 ||
            torch.make(output->rank, output->shape, output->strides, dtypes[output->dtype].value,
                       is_cuda ? torch.cuda() : torch.cpu(), is_cuda ? call->device.id : 0,
                       &handle) != 0 ||
            torch.data(handle, &call->pointers[call->tensor_count]) != 0) {
            destroy_all(made, (uint64_t)i);
            return false;
        }
        made[i] = (slot_value)(uintptr_t)handle;
        call->tensor_count++;
    }
    return true;
}

static bool execute(const struct torch_operator *op, const struct remembered *plan,
                    const struct call *call)
{
    void *stream = NULL;
    if (call->device.type == DL_CUDA &&
        call->exchange->current_stream(call->device.type, call->device.id, &stream) != 0)
        return false;
    enum kg_status status =
        plan->size_count
            ? op->execute_sized(plan->handle, plan->sizes, plan->size_count, call->pointers, stream)
            : op->execute(plan->handle, call->pointers, stream);
    return status == KG_OK;
}

// False: Python has to do it, or to say why it cannot be done. Then the stack is as it was.
static bool run_plan(const struct torch_operator *op, const struct remembered *plan,
                     struct call *call, slot_value *stack, uint64_t arguments, uint64_t results)
{
    slot_value made[MAX_TENSORS];
    if ((uint64_t)plan->output_count != results || plan_outputs_overlap(plan, call) ||
        !make_outputs(plan, call, made))
        return false;
    if (!execute(op, plan, call)) {
        destroy_all(made, results);
        return false;
    }
    destroy_all(stack, arguments);
    memcpy(stack, made, results * sizeof *stack);
    return true;
}

// ---- Calls of a new kind

static PyObject *capsules_of(const slot_value *stack, uint64_t count)
{
    PyObject *all = PyTuple_New((Py_ssize_t)count);
    for (uint64_t i = 0; i < count && all; i++) {
        PyObject *capsule = PyCapsule_New(handle_of(stack[i]), NULL, NULL);
        if (capsule)
            PyTuple_SetItem(all, (Py_ssize_t)i, capsule);
        else
            Py_CLEAR(all);
    }
    return all;
}

static bool take_results(PyObject *answer, slot_value *stack, uint64_t results)
{
    for (uint64_t i = 0; i < results; i++) {
        PyObject *capsule = PySequence_GetItem(answer, (Py_ssize_t)i);
        void *handle = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
        Py_XDECREF(capsule);
        if (!handle)
            return false;
        stack[i] = (slot_value)(uintptr_t)handle;
    }
    return true;
}

// The text of the exception that is set, which is cleared.
static void take_exception(char *text, size_t size)
{
    PyObject *type, *value, *trace;
    bool is_interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Fetch(&type, &value, &trace);
    PyObject *words = value ? PyObject_Str(value) : NULL;
    PyObject *bytes = words ? PyUnicode_AsUTF8String(words) : NULL;
    const char *found = bytes ? PyBytes_AsString(bytes) : NULL;
    PyOS_snprintf(text, size, "%s", found ? found : "the call failed");
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (is_interrupt)
        PyErr_SetInterrupt(); // again, where it can be raised as what it is
}

// PyTorch's code is left by one of its own exceptions, which Python sees as a RuntimeError.
static void run_in_python(const struct torch_operator *op, slot_value *stack, uint64_t arguments,
                          uint64_t results)
{
    static _Thread_local char text[4096];
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *capsules = capsules_of(stack, arguments);
    PyObject *answer = capsules ? PyObject_CallObject(op->in_python, capsules) : NULL;
    bool is_done = answer && take_results(answer, stack, results);
    if (!is_done)
        take_exception(text, sizeof text);
    Py_XDECREF(answer);
    Py_XDECREF(capsules);
    PyGILState_Release(state);
    torch.check(is_done, __func__, __FILE__, __LINE__, text);
}

// ---- Kernels: PyTorch passes no context, so that each operator needs a function of its own

enum { OPERATORS = 200, FIRST = 100 };
static struct torch_operator operators[OPERATORS];
static int operator_count;

static void serve(const struct torch_operator *op, slot_value *stack, uint64_t arguments,
                  uint64_t results)
{
    uint64_t inputs = arguments - (uint64_t)op->given;
    struct call call;
    struct remembered *plan =
        read_call(op, stack, inputs, arguments, &call) ? plans_find(op->plans, &call.layout) : NULL;
    bool is_done = plan && run_plan(op, plan, &call, stack, arguments, results);
    if (plan)
        plan_release(plan);
    if (!is_done)
        run_in_python(op, stack, arguments, results);
}

#define TEN(use, n)                                                                                \
    use(n##0) use(n##1) use(n##2) use(n##3) use(n##4) use(n##5) use(n##6) use(n##7) use(n##8)      \
        use(n##9)
#define HUNDRED(use, n)                                                                            \
    TEN(use, n##0)                                                                                 \
    TEN(use, n##1)                                                                                 \
    TEN(use, n##2)                                                                                 \
    TEN(use, n##3)                                                                                 \
    TEN(use, n##4)                                                                                 \
    TEN(use, n##5)                                                                                 \
    TEN(use, n##6)                                                                                 \
    TEN(use, n##7)                                                                                 \
    TEN(use, n##8)                                                                                 \
    TEN(use, n##9)
#define KERNEL(n)                                                                                  \
    static void kernel_##n(slot_value *stack, uint64_t arguments, uint64_t results)                \
    {                                                                                              \
        serve(&operators[n - FIRST], stack, arguments, results);                                   \
    }
#define NAME(n) kernel_##n,

HUNDRED(KERNEL, 1)
HUNDRED(KERNEL, 2)
static kernel_function *const kernels[OPERATORS] = {HUNDRED(NAME, 1) HUNDRED(NAME, 2)};

bool torch_operator_register(const struct torch_operator *added, const char *space,
                             const char *name)
{
    static const char *const keys[] = {"CPU", "CUDA"};
    if (!torch_operators_exist() || operator_count == OPERATORS)
        return false;
    operators[operator_count] = *added;
    for (int i = 0; i < 2; i++) {
        void *library; // open as long as the process lasts: closing it would take the kernel back
        if (torch.open_library(space, keys[i], __FILE__, __LINE__, &library) != 0 ||
            torch.implement(library, name, kernels[operator_count]) != 0)
            return false;
    }
    Py_INCREF(added->owner);
    Py_INCREF(added->in_python);
    operator_count++;
    return true;
}
