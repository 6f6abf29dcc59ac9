// Printing expressions of nests as C. Families decide where values come from; this file decides how
// arithmetic is written. A table in emit.c maps functions to those of the preludes:
// kernels/host/prelude.h and those it names.
//
// Names in generated code: tensors and sizes keep theirs, made safe by kg_emit_name; the strides
// of `x` are x_s0, x_s1, ...; axes are i0, i1, ... Families use names that are reserved, so that
// kg_emit_name renames the user's (see reserved_words in emit_names.c), or some of them followed by
// digits: v0, acc1, at2.

#ifndef KG_GEN_EMIT_H
#define KG_GEN_EMIT_H

#include "gen/shared/split.h"

// How a family prints names. Each callback appends an expression of the target language. All zero
// is a valid default.
struct kg_emit_names {
    void *user;
    bool contiguous; // problem->contiguous: last strides are 1 and omitted
    uint64_t narrow; // functions, 1 << each, that are kg_NAME_narrow_f32: see kg_group_narrow
    // Values that depend on this axis are vectors of floats (kernels/host/floats.h); 0: none.
    int vector_axis;
    struct kg_split split; // divisions of this axis are written without one
    // The current value of axis `axis` (an int64_t expression, of primary precedence). NULL:
    // "i<axis>".
    void (*axis)(void *user, struct kg_text *text, int axis);
    // The value of a read, converted to its compute type (primary precedence). NULL, or false
    // returned: the default, a load from memory with pad handled (kg_emit_load).
    bool (*read)(void *user, struct kg_text *text, const struct kg_access *access);
    // The subscript of a gather, clamped, where it has a name; false: it has none. May be NULL.
    bool (*place)(void *user, struct kg_text *text, const struct kg_access *access, int dim);
    // The name of a kg_divisor made of what `access` reads, or NULL: dividing by it is then a call
    // of kg_over_f32 (of kg_over_floats for vectors). May be NULL.
    const char *(*divisor)(void *user, const struct kg_access *access);
};

// The value of `expr`, a sub-expression of `nest->body`, in its compute type. Parenthesised where
// it is not of primary precedence, so it can be pasted anywhere.
void kg_emit_expr(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                  const struct kg_emit_names *names);
// The same, converted to `type` and without outer parentheses: for the right side of "=" and for
// arguments.
void kg_emit_value(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                   enum kg_type type, const struct kg_emit_names *names);
// A load of one element: "kg_load_f16(x, i0 * x_s0 + i1)"; pad() as a guarded load; gathers
// clamped to the tensor.
void kg_emit_load(struct kg_text *text, const struct kg_nest *nest, const struct kg_access *access,
                  const struct kg_emit_names *names);
// The condition under which a padded read lies inside its tensor; false when it always does (and
// nothing was written).
bool kg_emit_inside(struct kg_text *text, const struct kg_nest *nest,
                    const struct kg_access *access, const struct kg_emit_names *names);
// A division of the axis that `names` splits: "(run * 4 + lane / 2)", "(lane % 8)". False: it is
// none, and nothing was written.
bool kg_emit_split(struct kg_text *text, const struct kg_expr *expr,
                   const struct kg_emit_names *names);
// An index expression (a subscript, the bound of a relation) as plain index arithmetic.
void kg_emit_index(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                   const struct kg_emit_names *names);
// A size expression: sizes appear under their own names ("P", "D"), which the bindings declare.
// Parenthesised where it is not of primary precedence.
void kg_emit_size(struct kg_text *text, const struct kg_expr *expr);
// The first value of an axis, and one past its last, before any relation.
void kg_emit_axis_begin(struct kg_text *text, const struct kg_index *axis);
void kg_emit_axis_end(struct kg_text *text, const struct kg_index *axis);

// The element offset of an access: "i0 * x_s0 + i1".
void kg_emit_offset(struct kg_text *text, const struct kg_nest *nest,
                    const struct kg_access *access, const struct kg_emit_names *names);
// The same for the dimensions whose bit is set in `dims` only; "0" for none.
void kg_emit_offset_part(struct kg_text *text, const struct kg_nest *nest,
                         const struct kg_access *access, unsigned dims,
                         const struct kg_emit_names *names);
// One subscript, clamped if it is a gather (and the read has no pad). Parenthesised as above.
void kg_emit_subscript(struct kg_text *text, const struct kg_nest *nest,
                       const struct kg_access *access, int dim, const struct kg_emit_names *names);
// The element offset of the nest's output at the current axes, and a part of it as above.
void kg_emit_output_offset(struct kg_text *text, const struct kg_nest *nest,
                           const struct kg_emit_names *names);
void kg_emit_output_offset_part(struct kg_text *text, const struct kg_nest *nest, unsigned dims,
                                const struct kg_emit_names *names);

// The element of `tensor` at `base`[`offset`], in its compute type; `base` is an expression of
// pointer type: "x", "x_row". (Pointers to 4-bit elements can be advanced by even counts only.)
void kg_emit_load_at(struct kg_text *text, const struct kg_tensor *tensor, const char *base,
                     const char *offset);
// A statement that stores `value`, which has compute type `type`: "y[i0] = v0;" without newline.
void kg_emit_store_at(struct kg_text *text, const struct kg_tensor *tensor, const char *base,
                      const char *offset, enum kg_type type, const char *value);
// The same for the nest's output at the current axes.
void kg_emit_store(struct kg_text *text, const struct kg_nest *nest,
                   const struct kg_emit_names *names, enum kg_type type, const char *value);
// `value` of type `from` converted to type `to`.
void kg_emit_convert(struct kg_text *text, enum kg_type from, enum kg_type to, const char *value);

// The type of the nest's value: of the body, or what the reduction makes of it.
enum kg_type kg_emit_nest_type(const struct kg_nest *nest);
// The neutral element of a reduction, and one step of it: "a + b", "kg_max_f32(a, b)". Not for
// argmax and argmin; mean is a sum. `type` is that of the accumulator.
void kg_emit_neutral(struct kg_text *text, enum kg_reduce reduce, enum kg_type type);
void kg_emit_combine(struct kg_text *text, enum kg_reduce reduce, enum kg_type type, const char *a,
                     const char *b);

// The stride of a dimension of a contiguous tensor, from sizes and the stride of the next one.
void kg_emit_row_major(struct kg_text *text, const struct kg_tensor *tensor, int dim);

// A comment that describes the kernel: op, formula, family, config, dtypes.
void kg_emit_heading(struct kg_text *text, const struct kg_group *group, const char *family,
                     const struct kg_config *config, const struct kg_space *space);
// Opening of a generated file: a comment (op, formula, family, config, dtypes), the ABI, the
// prelude.
void kg_emit_host_opening(struct kg_text *text, const struct kg_group *group, const char *family,
                          const struct kg_config *config, const struct kg_space *space);
// Declarations inside a function that has `const struct kg_host_call *call`, indented by four:
// typed pointers and strides of the tensors the group touches, and the sizes they need. Tensors
// private to the group are left out unless `locals`. call->tensor and call->stride go by tensor
// id.
void kg_emit_host_bindings(struct kg_text *text, const struct kg_group *group, bool locals);

// One line of code, indented by four columns for each level.
void kg_emit_line(struct kg_text *text, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The three functions of an empty kernel (see device/host/host_abi.h).
void kg_emit_host_nothing(struct kg_text *text, const char *entry);

// C names.
const char *kg_emit_storage(enum kg_dtype dtype); // "float", "kg_f16", "kg_bf16" ...
const char *kg_emit_type(enum kg_type type);      // "float", "double", "int64_t", "bool"
const char *kg_emit_suffix(enum kg_type type);    // "f32", "f64", "i64", "bool"
// Storage type of any tensor of a problem.
const char *kg_emit_tensor_storage(const struct kg_tensor *tensor);
// The dtype a tensor has in memory: its own, or the one an intermediate is kept in without loss.
enum kg_dtype kg_emit_tensor_dtype(const struct kg_tensor *tensor);
// A user's name as it is written in generated code.
void kg_emit_name(struct kg_text *text, const char *name);

#endif
