// See tensor_reading.h.

#include "tensor_reading.h"

struct numpy_array {
    int two; // a check
    int rank;
    char kind;
    int item_bytes;
    int flags;
    Py_ssize_t *shape;
    Py_ssize_t *strides; // in bytes
    void *data;
};
enum { NUMPY_USABLE = 0x700, NUMPY_READABLE = 0x300 }; // aligned, native byte order; writable

bool reader_set_up(struct reader *reader)
{
    reader->array_struct = PyUnicode_InternFromString("__array_struct__");
    reader->out = PyUnicode_InternFromString("out");
    return reader->array_struct && reader->out;
}

void reader_clear(struct reader *reader)
{
    for (int i = 0; i < reader->count; i++)
        Py_DECREF(reader->types[i].type);
    reader->count = 0;
    Py_CLEAR(reader->array_struct);
    Py_CLEAR(reader->out);
}

bool reader_accept(struct reader *reader, PyObject *type, int kind)
{
    struct tensor_type added = {.type = type, .kind = (enum kind)kind};
    if (kind < 0 || kind >= KIND_COUNT || reader->count == MAX_TYPES)
        return false;
    if (kind != KIND_NUMPY) {
        PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
        added.exchange = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
        Py_XDECREF(capsule); // the type keeps it
        PyErr_Clear();
        if (!added.exchange || added.exchange->major != 1 || !added.exchange->view ||
            !added.exchange->current_stream)
            return false;
    }
    Py_INCREF(type);
    reader->types[reader->count++] = added;
    return true;
}

static const struct tensor_type *find_type(const struct reader *reader, PyObject *object)
{
    PyObject *type = (PyObject *)Py_TYPE(object);
    for (int i = 0; i < reader->count; i++)
        if (reader->types[i].type == type)
            return &reader->types[i];
    return NULL;
}

static void add_word(struct layout *layout, int64_t word)
{
    layout->words[layout->count++] = word;
    layout->hash = (layout->hash ^ (uint64_t)word) * 0x9e3779b97f4a7c15u;
    layout->hash ^= layout->hash >> 29;
}

// Adds shape and strides. `unit` is what strides are counted in.
static void add_dimensions(struct call *call, int rank, const int64_t *shape,
                           const int64_t *strides, int64_t unit)
{
    int64_t expected = unit;
    for (int d = rank - 1; d >= 0; d--) {
        add_word(&call->layout, shape[d]);
        add_word(&call->layout, strides[d]);
        call->is_contiguous = call->is_contiguous && strides[d] == expected;
        expected *= shape[d];
    }
}

static bool read_numpy(const struct reader *reader, struct call *call, PyObject *object,
                       bool is_written)
{
    _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "addresses of 64 bits");
    PyObject *capsule = PyObject_GetAttr(object, reader->array_struct);
    const struct numpy_array *array = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    int needed = is_written ? NUMPY_USABLE : NUMPY_READABLE;
    bool is_known = array && array->two == 2 && array->rank <= KG_MAX_RANK && array->kind != 'V' &&
                    (array->flags & needed) == needed;
    if (is_known) {
        add_word(&call->layout, array->rank);
        add_word(&call->layout, array->kind);
        add_word(&call->layout, array->item_bytes);
        add_dimensions(call, array->rank, (const int64_t *)array->shape,
                       (const int64_t *)array->strides, array->item_bytes);
        call->pointers[call->tensor_count] = array->data;
    }
    Py_XDECREF(capsule);
    return is_known;
}

static bool read_view(struct call *call, const struct dl_tensor *tensor)
{
    if (tensor->rank > KG_MAX_RANK || !tensor->strides)
        return false;
    add_word(&call->layout, 0x100 | tensor->rank);
    add_word(&call->layout,
             (int64_t)tensor->code << 32 | (int64_t)tensor->bits << 16 | tensor->lanes);
    add_word(&call->layout, (int64_t)tensor->device.type << 32 | tensor->device.id);
    add_dimensions(call, tensor->rank, tensor->shape, tensor->strides, 1);
    call->pointers[call->tensor_count] = (char *)tensor->data + tensor->byte_offset;
    call->device = tensor->device;
    return true;
}

bool reader_add_view(struct call *call, const struct dl_tensor *tensor)
{
    bool is_read = call->tensor_count < MAX_TENSORS && read_view(call, tensor);
    call->tensor_count += is_read;
    return is_read;
}

static bool read_exchange(const struct dl_exchange *exchange, struct call *call, PyObject *object)
{
    struct dl_tensor tensor;
    return exchange->view(object, &tensor) == 0 && read_view(call, &tensor);
}

// Adds one tensor to a call. All come from one library.
static bool add_tensor(const struct reader *reader, struct call *call, PyObject *object,
                       bool is_written)
{
    const struct tensor_type *type = find_type(reader, object);
    if (!type || call->tensor_count == MAX_TENSORS)
        return false;
    if (call->tensor_count > 0 && type->exchange != call->exchange)
        return false;
    call->exchange = type->exchange;
    call->is_torch = type->kind == KIND_TORCH;
    bool is_read = type->exchange ? read_exchange(type->exchange, call, object)
                                  : read_numpy(reader, call, object, is_written);
    call->objects[call->tensor_count++] = object;
    return is_read;
}

static bool add_outputs(const struct reader *reader, struct call *call, PyObject *out)
{
    if (!PyTuple_Check(out))
        return add_tensor(reader, call, out, true);
    for (Py_ssize_t i = 0; i < PyTuple_Size(out); i++)
        if (!add_tensor(reader, call, PyTuple_GetItem(out, i), true))
            return false;
    return true;
}

const struct dl_exchange *reader_torch_exchange(const struct reader *reader)
{
    for (int i = 0; i < reader->count; i++)
        if (reader->types[i].kind == KIND_TORCH)
            return reader->types[i].exchange;
    return NULL;
}

void reader_begin(struct call *call)
{
    call->layout.hash = 0;
    call->layout.count = 0;
    call->tensor_count = 0;
    call->is_contiguous = true;
    call->device = (struct dl_device){DL_CPU, 0};
}

void reader_end_arguments(struct call *call)
{
    call->argument_count = call->tensor_count;
    add_word(&call->layout, call->argument_count);
}

bool reader_read(const struct reader *reader, PyObject *args, PyObject *kwargs, struct call *call)
{
    reader_begin(call);
    Py_ssize_t count = PyTuple_Size(args), named = PyDict_Size(kwargs);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!add_tensor(reader, call, PyTuple_GetItem(args, i), false))
            return false;
    reader_end_arguments(call);
    if (named == 0)
        return count > 0;
    PyObject *out = PyDict_GetItemWithError(kwargs, reader->out);
    return count > 0 && named == 1 && out && add_outputs(reader, call, out);
}

bool reader_add_output(const struct reader *reader, PyObject *object, struct call *call)
{
    return add_tensor(reader, call, object, true);
}
