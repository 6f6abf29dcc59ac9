// The shortest way from a Python call to a plan.
//
// A `Calls` object belongs to one op of the Python package. `run(args, kwargs)` reads where the
// arguments' elements are and how they lie, looks for a plan that was made for exactly this,
// allocates the outputs with the arguments' own library, and executes the plan. It returns None
// where it knows no plan or is in any doubt: kernelgen/calls.py then does the same in Python, with
// all checks, and calls `remember` for next time. Operators of PyTorch are served by the same plans
// (torch_operators.c).
//
// Everything here runs under the GIL, but for the execution itself.

#include "known_plans.h"
#include "torch_operators.h"

#include <string.h>

struct calls {
    PyObject object;
    execute_function *execute;
    execute_sized_function *execute_sized;
    PyObject *fail;                   // called with the status of an execution that failed
    PyObject *is_grad_on;             // torch.is_grad_enabled; NULL: no torch yet
    PyObject *requires_grad, *is_neg; // names
    struct reader reader;
    struct plans plans;
};

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
    if (!is_plain(calls, &call))
        return none();
    struct remembered *plan = plans_find(&calls->plans, &call.layout);
    if (!plan)
        return none();
    PyObject *out = call.tensor_count > call.argument_count
                        ? PyDict_GetItemWithError(kwargs, calls->reader.out)
                        : NULL;
    PyObject *result =
        plan_outputs_overlap(plan, &call) ? none() : run_plan(calls, plan, &call, out);
    plan_release(plan);
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

// `outputs` are pairs of a dtype's name and a shape.
static bool keep_outputs(PyObject *outputs, struct remembered *plan)
{
    Py_ssize_t count = PyTuple_Size(outputs);
    plan->outputs = PyMem_Malloc((size_t)(count + 1) * sizeof *plan->outputs);
    if (!plan->outputs)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        struct new_output *output = &plan->outputs[i];
        const char *dtype;
        PyObject *shape;
        if (!PyArg_ParseTuple(PyTuple_GetItem(outputs, i), "sO!", &dtype, &PyTuple_Type, &shape))
            break;
        output->dtype = torch_dtype_of(dtype);
        output->rank = read_numbers(shape, output->shape, KG_MAX_RANK);
        int64_t step = 1;
        for (int d = output->rank - 1; d >= 0; d--) {
            output->strides[d] = step;
            step *= output->shape[d] > 0 ? output->shape[d] : 1;
        }
    }
    return !PyErr_Occurred();
}

// remember(args, kwargs, plan, address, sizes, makers, bytes, outputs): what such calls need from
// now on. `bytes` are the extents of inputs and outputs. False: such calls cannot be read here.
static PyObject *remember(PyObject *self, PyObject *arguments)
{
    struct calls *calls = (struct calls *)self;
    PyObject *args, *kwargs, *object, *sizes, *makers, *bytes, *outputs;
    unsigned long long address;
    struct call call;
    if (!PyArg_ParseTuple(arguments, "O!O!OKOO!O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs,
                          &object, &address, &sizes, &PyTuple_Type, &makers, &PyTuple_Type, &bytes,
                          &PyTuple_Type, &outputs))
        return NULL;
    bool is_read = reader_read(&calls->reader, args, kwargs, &call);
    struct remembered *known = is_read ? plans_find(&calls->plans, &call.layout) : NULL;
    if (known)
        plan_release(known);
    if (!is_read || known) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    struct remembered *plan = PyMem_Calloc(1, sizeof *plan);
    if (!plan)
        return PyErr_NoMemory();
    plan->holders = 1;
    plan->handle = (const struct kg_plan *)(uintptr_t)address;
    plan->input_count = call.argument_count;
    plan->output_count = call.tensor_count > call.argument_count ? 0 : (int)PyTuple_Size(makers);
    Py_INCREF(object);
    plan->plan = object;
    Py_INCREF(makers);
    plan->makers = makers;
    bool is_kept = read_numbers(bytes, plan->bytes, MAX_TENSORS) >= 0 &&
                   keep_layout(&call.layout, plan) && keep_sizes(sizes, plan) &&
                   keep_outputs(outputs, plan);
    bool is_added = is_kept && plans_add(&calls->plans, plan);
    if (!is_added)
        plan_release(plan);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(is_added);
}

static PyObject *forget(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct calls *calls = (struct calls *)self;
    plans_forget(&calls->plans);
    Py_RETURN_NONE;
}

// serve(namespace, name, given, in_python): calls of an operator of PyTorch that is defined already
// are served here, where nothing is new about them, and otherwise by `in_python`, a function of
// handles to tensors and to handles. `given` outputs are arguments. False: not with this PyTorch.
static PyObject *serve(PyObject *self, PyObject *arguments)
{
    struct calls *calls = (struct calls *)self;
    const char *space, *name;
    struct torch_operator op = {.owner = self,
                                .plans = &calls->plans,
                                .reader = &calls->reader,
                                .execute = calls->execute,
                                .execute_sized = calls->execute_sized};
    if (!PyArg_ParseTuple(arguments, "ssiO", &space, &name, &op.given, &op.in_python))
        return NULL;
    return PyBool_FromLong(torch_operator_register(&op, space, name));
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
    {"serve", serve, METH_VARARGS, "serve(namespace, name, given, in_python): False: it cannot"},
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

// requires_gradient(handle): as torch_operators.c finds it. None: this PyTorch has no such
// function.
static PyObject *requires_gradient(PyObject *self, PyObject *handle)
{
    (void)self;
    if (!torch_operators_exist())
        Py_RETURN_NONE;
    void *tensor = PyCapsule_GetPointer(handle, NULL);
    return tensor ? PyBool_FromLong(torch_requires_gradient(tensor)) : NULL;
}

static PyMethodDef functions[] = {
    {"requires_gradient", requires_gradient, METH_O, "requires_gradient(handle of a tensor)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_call_path", .m_size = -1,
                                    .m_methods = functions};

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
