// The shortest way from a Python call to a plan.
//
// A `Calls` object belongs to one op of the Python package. `run(args, kwargs)` reads where the
// arguments' elements are and how they lie, looks for a plan that was made for exactly this,
// allocates the outputs with the arguments' own library, and executes the plan. It returns None
// where it knows no plan or is in any doubt: kernelgen/calls.py then does the same in Python, with
// all checks, and calls `remember` for next time.
//
// Everything runs under the GIL, but for the execution itself.

#include "tensor_reading.h"

#include <string.h>

enum { MAX_PLANS = 1024 }; // of an op; further ones are found by calls.py

// A plan, and all that a call of it needs.
struct remembered {
    uint64_t hash;
    int word_count;
    int64_t *words;
    PyObject *plan; // keeps the handle alive
    const struct kg_plan *handle;
    int size_count; // 0: the plan's own sizes
    int64_t sizes[MAX_TENSORS];
    int input_count;
    int output_count;
    PyObject *makers; // of outputs: (function, args, kwargs) each
    int64_t bytes[MAX_TENSORS];
};

typedef enum kg_status execute_function(const struct kg_plan *plan, void *const *tensors,
                                        void *stream);
typedef enum kg_status execute_sized_function(const struct kg_plan *plan, const int64_t *sizes,
                                              int count, void *const *tensors, void *stream);

struct calls {
    PyObject object;
    execute_function *execute;
    execute_sized_function *execute_sized;
    PyObject *fail;                   // called with the status of an execution that failed
    PyObject *is_grad_on;             // torch.is_grad_enabled; NULL: no torch yet
    PyObject *requires_grad, *is_neg; // names
    struct reader reader;
    int count;
    struct remembered *plans;
};

static const struct remembered *find(const struct calls *calls, const struct layout *layout)
{
    for (int i = 0; i < calls->count; i++) {
        const struct remembered *plan = &calls->plans[i];
        if (plan->hash == layout->hash && plan->word_count == layout->count &&
            memcmp(plan->words, layout->words, (size_t)layout->count * sizeof(int64_t)) == 0)
            return plan;
    }
    return NULL;
}

// Whether an attribute, or the result of a function without arguments, is true; -1: an exception.
static int is_true(PyObject *value)
{
    int result = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return result;
}

// Gradients would be lost without a word, and so would a sign that PyTorch keeps beside a view.
static bool is_plain(const struct calls *calls, const struct call *call)
{
    bool needs_gradient = false;
    for (int i = 0; i < call->tensor_count && call->is_torch; i++) {
        needs_gradient |= is_true(PyObject_GetAttr(call->objects[i], calls->requires_grad)) != 0;
        if (!call->is_contiguous &&
            is_true(PyObject_CallMethodObjArgs(call->objects[i], calls->is_neg, NULL)) != 0)
            return false;
    }
    return !needs_gradient ||
           (calls->is_grad_on && is_true(PyObject_CallObject(calls->is_grad_on, NULL)) == 0);
}

static bool overlap(const struct remembered *plan, const struct call *call, int a, int b)
{
    const char *first = call->pointers[a], *second = call->pointers[b];
    return first < second + plan->bytes[b] && second < first + plan->bytes[a];
}

static bool outputs_are_apart(const struct remembered *plan, const struct call *call)
{
    for (int i = plan->input_count; i < call->tensor_count; i++)
        for (int j = 0; j < i; j++)
            if (overlap(plan, call, i, j))
                return false;
    return true;
}

static PyObject *make_output(PyObject *maker)
{
    return PyObject_Call(PyTuple_GetItem(maker, 0), PyTuple_GetItem(maker, 1),
                         PyTuple_GetItem(maker, 2));
}

// Makes the outputs: one object, or a tuple. NULL: an exception.
static PyObject *make_outputs(const struct calls *calls, const struct remembered *plan,
                              struct call *call)
{
    PyObject *all = plan->output_count == 1 ? NULL : PyTuple_New(plan->output_count);
    if (plan->output_count != 1 && !all)
        return NULL;
    for (int i = 0; i < plan->output_count; i++) {
        PyObject *output = make_output(PyTuple_GetItem(plan->makers, i));
        bool is_read = output && reader_add_output(&calls->reader, output, call);
        if (!all && is_read)
            return output;
        if (all && output)
            PyTuple_SetItem(all, i, output);
        else
            Py_XDECREF(output);
        if (!is_read) {
            Py_XDECREF(all);
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "an output of an unknown type");
            return NULL;
        }
    }
    return all;
}

static enum kg_status execute(const struct calls *calls, const struct remembered *plan,
                              const struct call *call, void *stream)
{
    PyThreadState *state = PyEval_SaveThread();
    enum kg_status status = plan->size_count
                                ? calls->execute_sized(plan->handle, plan->sizes, plan->size_count,
                                                       call->pointers, stream)
                                : calls->execute(plan->handle, call->pointers, stream);
    PyEval_RestoreThread(state);
    return status;
}

static PyObject *raise_status(const struct calls *calls, enum kg_status status)
{
    PyObject *result = PyObject_CallFunction(calls->fail, "i", (int)status);
    if (result) {
        Py_DECREF(result);
        PyErr_SetString(PyExc_RuntimeError, "an execution failed");
    }
    return NULL;
}

static PyObject *run_plan(const struct calls *calls, const struct remembered *plan,
                          struct call *call, PyObject *out)
{
    void *stream = NULL;
    if (call->device.type == DL_CUDA &&
        call->exchange->current_stream(call->device.type, call->device.id, &stream) != 0)
        return NULL;
    PyObject *result = out;
    if (out)
        Py_INCREF(out);
    else
        result = make_outputs(calls, plan, call);
    if (!result)
        return NULL;
    enum kg_status status = execute(calls, plan, call, stream);
    if (status == KG_OK)
        return result;
    Py_DECREF(result);
    return raise_status(calls, status);
}

static PyObject *none(void)
{
    PyErr_Clear(); // calls.py finds out again, and says it
    Py_RETURN_NONE;
}

static PyObject *run(PyObject *self, PyObject *arguments)
{
    const struct calls *calls = (const struct calls *)self;
    PyObject *args, *kwargs;
    struct call call;
    if (!PyArg_UnpackTuple(arguments, "run", 2, 2, &args, &kwargs))
        return NULL;
    if (!reader_read(&calls->reader, args, kwargs, &call))
        return none();
    const struct remembered *found = find(calls, &call.layout);
    if (!found || !is_plain(calls, &call) || !outputs_are_apart(found, &call))
        return none();
    const struct remembered plan = *found; // other threads may change the list meanwhile
    Py_INCREF(plan.plan);
    Py_INCREF(plan.makers);
    PyObject *out = call.tensor_count > call.argument_count
                        ? PyDict_GetItemWithError(kwargs, calls->reader.out)
                        : NULL;
    PyObject *result = run_plan(calls, &plan, &call, out);
    Py_DECREF(plan.plan);
    Py_DECREF(plan.makers);
    return result;
}

// ---- What calls.py tells

// accept(type, kind): objects of exactly this type are read here. False: they cannot be.
static PyObject *accept(PyObject *self, PyObject *arguments)
{
    struct calls *calls = (struct calls *)self;
    PyObject *type;
    int kind;
    if (!PyArg_ParseTuple(arguments, "Oi", &type, &kind))
        return NULL;
    return PyBool_FromLong(reader_accept(&calls->reader, type, kind));
}

static PyObject *set_is_grad_on(PyObject *self, PyObject *function)
{
    struct calls *calls = (struct calls *)self;
    Py_XDECREF(calls->is_grad_on);
    Py_INCREF(function);
    calls->is_grad_on = function;
    Py_RETURN_NONE;
}

static void free_remembered(struct remembered *plan)
{
    PyMem_Free(plan->words);
    Py_XDECREF(plan->plan);
    Py_XDECREF(plan->makers);
}

// Copies a tuple of whole numbers. -1: an exception.
static int read_numbers(PyObject *tuple, int64_t *numbers, int most)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > most)
        PyErr_SetString(PyExc_ValueError, "too many numbers");
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() ? -1 : (int)count;
}

static bool keep_layout(const struct layout *layout, struct remembered *plan)
{
    size_t bytes = (size_t)layout->count * sizeof(int64_t);
    plan->hash = layout->hash;
    plan->word_count = layout->count;
    plan->words = PyMem_Malloc(bytes);
    if (plan->words)
        memcpy(plan->words, layout->words, bytes);
    else
        PyErr_NoMemory();
    return plan->words;
}

// `sizes` is a tuple, or None for the plan's own.
static bool keep_sizes(PyObject *sizes, struct remembered *plan)
{
    int count = sizes == Py_None ? 0 : read_numbers(sizes, plan->sizes, MAX_TENSORS);
    plan->size_count = count;
    return count >= 0;
}

static bool keep_plan(struct calls *calls, const struct remembered *plan)
{
    struct remembered *more =
        PyMem_Realloc(calls->plans, (size_t)(calls->count + 1) * sizeof *more);
    if (!more) {
        PyErr_NoMemory();
        return false;
    }
    calls->plans = more;
    calls->plans[calls->count++] = *plan;
    return true;
}

// remember(args, kwargs, plan, address, sizes, makers, bytes): what such calls need from now on.
// `bytes` are the extents of inputs and outputs. False: such calls cannot be read here.
static PyObject *remember(PyObject *self, PyObject *arguments)
{
    struct calls *calls = (struct calls *)self;
    PyObject *args, *kwargs, *object, *sizes, *makers, *bytes;
    unsigned long long address;
    struct call call;
    struct remembered plan = {0};
    if (!PyArg_ParseTuple(arguments, "O!O!OKOO!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs,
                          &object, &address, &sizes, &PyTuple_Type, &makers, &PyTuple_Type, &bytes))
        return NULL;
    if (calls->count == MAX_PLANS || !reader_read(&calls->reader, args, kwargs, &call) ||
        find(calls, &call.layout)) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    plan.handle = (const struct kg_plan *)(uintptr_t)address;
    plan.input_count = call.argument_count;
    plan.output_count = (int)PyTuple_Size(makers);
    Py_INCREF(object);
    plan.plan = object;
    Py_INCREF(makers);
    plan.makers = makers;
    if (read_numbers(bytes, plan.bytes, MAX_TENSORS) >= 0 && keep_layout(&call.layout, &plan) &&
        keep_sizes(sizes, &plan) && keep_plan(calls, &plan))
        Py_RETURN_TRUE;
    free_remembered(&plan);
    return NULL;
}

static PyObject *forget(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct calls *calls = (struct calls *)self;
    struct remembered *plans = calls->plans;
    int count = calls->count;
    calls->plans = NULL;
    calls->count = 0;
    for (int i = 0; i < count; i++)
        free_remembered(&plans[i]);
    PyMem_Free(plans);
    Py_RETURN_NONE;
}

// ---- The type

// Calls(execute, execute_sized, fail): the first two are addresses.
static int create(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct calls *calls = (struct calls *)self;
    unsigned long long execute_address, sized_address;
    PyObject *fail;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "KKO", &execute_address, &sized_address, &fail))
        return -1;
    calls->execute = (execute_function *)(uintptr_t)execute_address;
    calls->execute_sized = (execute_sized_function *)(uintptr_t)sized_address;
    Py_INCREF(fail);
    calls->fail = fail;
    calls->requires_grad = PyUnicode_InternFromString("requires_grad");
    calls->is_neg = PyUnicode_InternFromString("is_neg");
    return reader_set_up(&calls->reader) && calls->requires_grad && calls->is_neg ? 0 : -1;
}

static void destroy(PyObject *self)
{
    struct calls *calls = (struct calls *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(forget(self, NULL));
    reader_clear(&calls->reader);
    Py_XDECREF(calls->fail);
    Py_XDECREF(calls->is_grad_on);
    Py_XDECREF(calls->requires_grad);
    Py_XDECREF(calls->is_neg);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "run(args, kwargs): the outputs, or None: not remembered"},
    {"remember", remember, METH_VARARGS, "keeps a plan for calls like this"},
    {"forget", forget, METH_NOARGS, "forgets all plans"},
    {"accept", accept, METH_VARARGS, "accept(type, kind): such arguments are read"},
    {"set_is_grad_on", set_is_grad_on, METH_O, "torch.is_grad_enabled"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, (void *)create},
    {Py_tp_dealloc, (void *)destroy},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec specification = {
    .name = "kernelgen._call_path.Calls",
    .basicsize = sizeof(struct calls),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_call_path", .m_size = -1};

PyMODINIT_FUNC PyInit__call_path(void);
PyMODINIT_FUNC PyInit__call_path(void)
{
    PyObject *made = PyModule_Create(&module);
    PyObject *type = made ? PyType_FromSpec(&specification) : NULL;
    if (type && PyModule_AddObject(made, "Calls", type) == 0)
        return made;
    Py_XDECREF(type);
    Py_XDECREF(made);
    return NULL;
}
