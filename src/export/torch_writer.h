// From the statements of an instance to a Python function of PyTorch's operations on whole tensors.
// Every visible index is a slot of a frame, outer indices first; a value has a dimension for each
// slot that it depends on. The files of this room share what is declared here; torch_function.h is
// for the others.

#ifndef KG_EXPORT_TORCH_WRITER_H
#define KG_EXPORT_TORCH_WRITER_H

#include "export/python_names.h"

// Precedence in Python, loosest first.
enum kg_python_level {
    PYTHON_ANY,
    PYTHON_COMPARE,
    PYTHON_BIT_OR,
    PYTHON_BIT_XOR,
    PYTHON_BIT_AND,
    PYTHON_SHIFT,
    PYTHON_SUM,
    PYTHON_PRODUCT,
    PYTHON_UNARY,
    PYTHON_PRIMARY
};

struct kg_torch_value {
    const char *text;
    enum kg_python_level level;
    bool scalar; // a number of Python, not a tensor
    // The value's dimensions, by slots. Ascending, but for reads that are not yet put in order.
    int axis_count;
    int axes[KG_MAX_INDICES];
    enum kg_type type;
    // Of 16-bit floats that were not yet widened to the compute type: the tensor whose dtype they
    // have. NULL: the value is as computed.
    const struct kg_tensor *raw;
    bool is_view;  // may share memory with a tensor
    bool is_exact; // scalars: a value of every float dtype that is allowed where it stands
};

struct kg_torch_frame {
    int count;
    const struct kg_index *indices[KG_MAX_INDICES];
};

// Functions beside PyTorch's own (kernels/bundle/helpers.py).
enum kg_torch_helper {
    HELPER_READ_PADDED,
    HELPER_QUOTIENT,
    HELPER_REMAINDER,
    HELPER_SHIFT_LEFT,
    HELPER_SHIFT_RIGHT,
    HELPER_TO_INTEGER,
    HELPER_UNPACKED,
    HELPER_PACKED,
    HELPER_SHIFTED,
    HELPER_LARGEST,
    HELPER_SMALLEST,
    HELPER_FIRST_LARGEST,
    HELPER_FIRST_SMALLEST,
    HELPER_COUNT
};

struct kg_torch_range {
    const struct kg_index *index; // the first of this name and range
    const char *name;             // of the variable
};

struct kg_torch_writer {
    const struct kg_op *op;      // the instance
    const struct kg_op *generic; // what it was made of
    // Evaluates in f64, whatever the dtypes are; else in each expression's own type.
    bool is_reference;
    struct kg_arena arena;
    struct kg_text body; // statements of the function
    unsigned helpers;    // a bit each
    unsigned dtypes;     // tensors whose dtype the reference needs, a bit each
    int range_count;
    struct kg_torch_range ranges[KG_MAX_TENSORS * 4];
    const struct kg_tensor *local_raw[KG_MAX_TENSORS]; // of what is assigned, by tensor
    bool keep_raw; // the sum of products being written may stay in its factors' dtype
    bool failed;
};

// ---- torch_values.c

const char *kg_torch_format(struct kg_torch_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *kg_torch_size_text(struct kg_torch_writer *writer, const struct kg_expr *size);
const char *kg_torch_name(struct kg_torch_writer *writer, const char *name);
void kg_torch_use(struct kg_torch_writer *writer, enum kg_torch_helper helper);
// The dtype that elements of an input or output have.
const char *kg_torch_dtype_text(struct kg_torch_writer *writer, int tensor);
// May its elements stay as they lie in memory until something is computed with them?
bool kg_torch_may_be_raw(const struct kg_torch_writer *writer, const struct kg_tensor *tensor);
// In parentheses where it binds looser than `level`.
const char *kg_torch_at(struct kg_torch_writer *writer, const struct kg_torch_value *value,
                        enum kg_python_level level);
struct kg_torch_value kg_torch_scalar(const char *text, enum kg_python_level level,
                                      enum kg_type type);
// Widened or converted to a compute type.
void kg_torch_convert(struct kg_torch_writer *writer, struct kg_torch_value *value,
                      enum kg_type type);
// Adds the slots of `value` to the ascending list `axes`.
void kg_torch_join(const struct kg_torch_value *value, int *count, int *axes);
// With None for slots that it lacks, so that it broadcasts against values of all of `axes`.
void kg_torch_align(struct kg_torch_writer *writer, struct kg_torch_value *value, int count,
                    const int *axes);
// With a dimension for each of `axes`, which are the frame's.
void kg_torch_expand(struct kg_torch_writer *writer, const struct kg_torch_frame *frame,
                     struct kg_torch_value *value, int count, const int *axes);
// Dimensions in the order of the slots.
void kg_torch_sort(struct kg_torch_writer *writer, struct kg_torch_value *value);
int kg_torch_slot(const struct kg_torch_frame *frame, const struct kg_index *index);
// The index as a tensor: the variable of an arange.
struct kg_torch_value kg_torch_index(struct kg_torch_writer *writer,
                                     const struct kg_torch_frame *frame,
                                     const struct kg_index *index);
// a SIGN b, aligned. `level` is the sign's.
struct kg_torch_value kg_torch_binary(struct kg_torch_writer *writer, struct kg_torch_value a,
                                      const char *sign, struct kg_torch_value b,
                                      enum kg_python_level level, enum kg_type type);
// name(a, b), aligned.
struct kg_torch_value kg_torch_call(struct kg_torch_writer *writer, const char *name, int count,
                                    struct kg_torch_value *arguments, enum kg_type type);
// "(N, K)" of slots.
const char *kg_torch_extents(struct kg_torch_writer *writer, const struct kg_torch_frame *frame,
                             int count, const int *axes);
const char *kg_torch_extent(struct kg_torch_writer *writer, const struct kg_index *index);

// ---- the expressions

struct kg_torch_value kg_torch_expression(struct kg_torch_writer *writer,
                                          const struct kg_torch_frame *frame,
                                          const struct kg_expr *expr);
struct kg_torch_value kg_torch_function_call(struct kg_torch_writer *writer,
                                             const struct kg_torch_frame *frame,
                                             const struct kg_expr *expr);
// Its dimensions are in the tensor's order where it is a plain read.
struct kg_torch_value kg_torch_read(struct kg_torch_writer *writer,
                                    const struct kg_torch_frame *frame, const struct kg_expr *expr);
struct kg_torch_value kg_torch_reduction(struct kg_torch_writer *writer,
                                         const struct kg_torch_frame *frame,
                                         const struct kg_expr *expr);

#endif
