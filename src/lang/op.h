// The data structures of a definition: what the parser makes, the checker completes, and every
// later layer reads. Everything lives in one arena and is immutable once `kg_lang_parse` or
// `kg_lang_instantiate` has returned.
//
// Two stages share the structures. A *generic* op, as parsed: dtypes may be variables, params have
// defaults only, `kg_expr.type` is KG_TYPE_NONE. An *instance*: every dtype bound, every param
// replaced by its number, every expression typed. Sizes stay symbolic in both; they are bound when
// a problem is made.

#ifndef KG_LANG_OP_H
#define KG_LANG_OP_H

#include "base/arena.h"
#include "base/error.h"
#include "lang/dtype.h"
#include "lang/function.h"

#include <stdbool.h>
#include <stdint.h>

#define KG_MAX_TENSORS 32 // inputs, outputs and intermediates of one op
#define KG_MAX_SIZES 32   // sizes and params of one op
#define KG_MAX_INDICES 16 // indices visible in one statement: output and reduced
#define KG_MAX_DEPTH 200  // nesting of an expression

struct kg_span {
    int line;   // from 1
    int column; // from 1, in bytes
    int length; // in bytes, at least 1
    // Of what calls of the file's own functions were replaced by; NULL: it stands where it is used.
    const struct kg_expansion *origin;
};

// How a part of a function's body, or an argument in it, came to where it is used.
struct kg_expansion {
    const char *note;     // "f() is called here"
    struct kg_span place; // with an origin of its own if that is in a function, too
};

// A stretch of an op's source: where its first byte stands in the file.
struct kg_piece {
    size_t offset; // in the source; it ends where the next one begins
    int line;      // from 1
    int column;
};

// A size of the signature (bound by the tensors' shapes) or a param (bound at build time).
struct kg_size {
    const char *name;
    struct kg_span span;
    int id;        // position in op->sizes
    bool is_param; // `param G = 128`
    bool is_real;  // a param with a fractional default, usable in values only: `param eps = 1e-5`
    int64_t value; // a param's default (generic) or binding (instance)
    double real;   // the same for a real param; equals `value` otherwise
};

// `T in f16 bf16 f32`
struct kg_typevar {
    const char *name;
    struct kg_span span;
    int id;
    int count;
    enum kg_dtype allowed[KG_DTYPE_COUNT]; // in the order written; the first is the default
};

// The dtype of a tensor or of a cast: a variable, or (always, in an instance) a dtype.
struct kg_type_name {
    const struct kg_typevar *variable; // NULL when bound
    enum kg_dtype dtype;
};

enum kg_role { KG_ROLE_INPUT, KG_ROLE_OUTPUT, KG_ROLE_LOCAL };

struct kg_tensor {
    const char *name;
    struct kg_span span;
    int id; // position in op->tensors: inputs, then outputs, then intermediates
    enum kg_role role;
    struct kg_type_name type; // of inputs and outputs; of an intermediate, in an instance: the
                              // dtype that stores `compute` exactly
    enum kg_type compute;     // instance: the type its elements have inside expressions
    enum kg_dtype memory;     // instance, of an intermediate: what it lies in memory as
    int rank;
    const struct kg_expr *dims[KG_MAX_RANK]; // size expressions (sizes, numbers, + - * / % ceildiv)
    // Of an input declared `packed`: its rows and columns. `rank` and `dims` are those of the
    // panels in memory (panels.h). NULL: an ordinary tensor.
    const struct kg_expr *panel_rows, *panel_columns;
};

enum kg_relation {
    KG_RELATION_NONE,
    KG_RELATION_LE, // sum(j <= d): a scan
    KG_RELATION_LT,
    KG_RELATION_GE,
    KG_RELATION_GT,
};

// One index variable: on the left of a statement, or bound by a reduction. Runs over
// [begin, end), cut down by the relation. Two variables of the same name are two structs.
struct kg_index {
    const char *name;
    struct kg_span span;
    int id;                      // unique in its statement, < KG_MAX_INDICES
    const struct kg_expr *begin; // size expression; NULL is 0
    const struct kg_expr *end;   // size expression, inferred from use when no range was written
    bool written;                // the range was written, not inferred
    enum kg_relation relation;   // reduced indices only
    const struct kg_expr *bound; // the right side of the relation: an index expression
};

enum kg_expr_kind {
    KG_EXPR_NUMBER, // integer or real literal, inf, nan, true, false, a bound param
    KG_EXPR_SIZE,   // a size, or an unbound param, used as a value
    KG_EXPR_INDEX,  // an index used as a value
    KG_EXPR_READ,   // tensor[subscripts]: arguments are the subscripts
    KG_EXPR_CALL,   // operator or function: arguments
    KG_EXPR_CAST,   // one argument, converted as if stored in the dtype and loaded again
    KG_EXPR_REDUCE, // one argument: the body
};

// One node. Which members hold is said by `kind`. In an instance literals have the type of what
// they are combined with; otherwise an argument may be narrower than its call (x + i with x F32 and
// i I64 is F32), and is then converted to the call's type.
struct kg_expr {
    enum kg_expr_kind kind;
    enum kg_type type; // instance: the compute type; before: NONE (BOOL for true and false)
    struct kg_span span;

    double number;   // NUMBER
    int64_t integer; // NUMBER, when is_integer
    bool is_integer; // NUMBER: written without point or exponent (true and false too)

    const struct kg_size *size;      // SIZE; NUMBER: the param that it is the value of, or NULL
    const struct kg_index *index;    // INDEX
    const struct kg_tensor *tensor;  // READ
    const struct kg_expr *pad;       // READ: value outside the tensor, from pad(); NULL: none
    enum kg_function function;       // CALL
    struct kg_type_name cast;        // CAST
    enum kg_reduce reduce;           // REDUCE
    const struct kg_index **indices; // REDUCE: the indices it binds
    int index_count;

    const struct kg_expr **arguments;
    int argument_count;
};

struct kg_statement {
    struct kg_span span;
    const struct kg_tensor *tensor; // what it defines; each tensor is defined exactly once
    int index_count;                // == tensor->rank
    const struct kg_index *indices[KG_MAX_RANK];
    const struct kg_expr *value;
};

// Rows of sizes: `verify P D = 1 1, 7 513`.
struct kg_shapes {
    struct kg_span span; // of the keyword
    int size_count;
    const struct kg_size *sizes[KG_MAX_SIZES];
    int row_count;
    int64_t *rows; // row_count * size_count
};

struct kg_tolerance {
    bool given;
    double relative;
    double absolute;
    struct kg_span span; // of the relative one
};

// Of the values of an input, ends included: `verify x in 0..1`. An end may be infinite.
struct kg_range {
    bool given;
    double low;
    double high;
    int64_t least; // of integers
    int64_t most;
    struct kg_span span; // of the input's name
};

struct kg_goal {
    bool given;
    const char *baseline_kind; // "torch", or NULL when none was written
    const char *baseline;      // its text
    double speedup;            // 1.0 unless written
    int rounds;                // 5 unless written
    // Where these stand; without a line where they were not written.
    struct kg_span baseline_span, speedup_span, rounds_span;
    struct kg_tolerance tolerance[KG_DTYPE_COUNT];
    struct kg_shapes verify;
    struct kg_shapes tune;
    struct kg_range ranges[KG_MAX_TENSORS]; // of inputs, by tensor
};

struct kg_op {
    const char *name;
    const char *description; // the comment above it, "" when there is none
    struct kg_span span;
    // A file of its own: the functions it calls, and the op with its comment and goal, as written.
    const char *source;
    const char *file;     // name of the file it came from, as shown in diagnostics
    const char *warnings; // of what it never uses, "" for none
    int piece_count;
    const struct kg_piece *pieces; // of `source`, by their places in the file
    int size_count;
    struct kg_size *sizes[KG_MAX_SIZES]; // in order of first appearance; params among them
    int typevar_count;
    struct kg_typevar *typevars[KG_DTYPE_COUNT];
    int input_count;
    int output_count;
    int tensor_count;
    struct kg_tensor *tensors[KG_MAX_TENSORS];
    int statement_count;
    struct kg_statement *statements[KG_MAX_TENSORS];
    struct kg_goal goal;
    bool is_instance;
    enum kg_dtype bound[KG_DTYPE_COUNT]; // instance: the dtype of each type variable
    void *owner;                         // the public layer's bookkeeping; NULL elsewhere
};

#endif
