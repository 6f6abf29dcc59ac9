// Reads a call's tensors through what their libraries export for C: `__array_struct__` of NumPy,
// and DLPack's exchange table (`__dlpack_c_exchange_api__`) of PyTorch and others. No library's
// headers are needed, and none is imported. Functions need the GIL unless they say otherwise.

#ifndef KG_PYTHON_TENSOR_READING_H
#define KG_PYTHON_TENSOR_READING_H

#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <kernelgen.h>

enum {
    MAX_TENSORS = 32,
    MAX_TYPES = 8,
    TENSOR_WORDS = 3 + 2 * KG_MAX_RANK,
    LAYOUT_WORDS = MAX_TENSORS * TENSOR_WORDS + 1,
};

// ---- What libraries export, as their specifications lay it out

struct dl_device {
    int32_t type;
    int32_t id;
};
enum { DL_CPU = 1, DL_CUDA = 2 };

struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
};

struct dl_exchange {
    uint32_t major, minor;
    void *older;
    void *allocate, *from_object, *to_object; // not used
    int (*view)(void *object, struct dl_tensor *tensor);
    int (*current_stream)(int device_type, int32_t device, void **stream);
};

// ---- What is read

enum kind { KIND_NUMPY, KIND_TORCH, KIND_EXCHANGE, KIND_COUNT };

struct tensor_type {
    PyObject *type;
    enum kind kind;
    const struct dl_exchange *exchange; // NULL: NumPy
};

// The types that are read. All zero before use.
struct reader {
    PyObject *array_struct, *out; // names
    int count;
    struct tensor_type types[MAX_TYPES];
};

// How the elements of all tensors of a call lie: what a plan is found by.
struct layout {
    uint64_t hash;
    int count;
    int64_t words[LAYOUT_WORDS];
};

struct call {
    struct layout layout;
    int tensor_count; // arguments, then given outputs
    int argument_count;
    PyObject *objects[MAX_TENSORS]; // borrowed
    void *pointers[MAX_TENSORS];
    const struct dl_exchange *exchange; // NULL: NumPy
    struct dl_device device;
    bool is_torch;
    bool is_contiguous;
};

// False: an exception.
bool reader_set_up(struct reader *reader);
void reader_clear(struct reader *reader);
// Objects of exactly this type are read from now on. False: they cannot be.
bool reader_accept(struct reader *reader, PyObject *type, int kind);
// Reads `args`, and `out` of `kwargs`, the only keyword that is known here. False: this is not a
// call for here, or an exception is set.
bool reader_read(const struct reader *reader, PyObject *args, PyObject *kwargs, struct call *call);
// Adds one more output. False as above.
bool reader_add_output(const struct reader *reader, PyObject *object, struct call *call);

// The same step by step, for tensors that are no objects: begin, add the arguments, end them, add
// given outputs. None of these needs the GIL.
void reader_begin(struct call *call);
bool reader_add_view(struct call *call, const struct dl_tensor *tensor);
void reader_end_arguments(struct call *call);
// The table of PyTorch, if its tensors are read; NULL otherwise.
const struct dl_exchange *reader_torch_exchange(const struct reader *reader);

#endif
