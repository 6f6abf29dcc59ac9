// A problem: an instance with every size bound, its statements normalised into nests, its costs
// known. Immutable once created. Generators read the nests; the reference reads the instance, so
// that the gate detects mistakes made here.

#ifndef KG_ANALYZE_PROBLEM_H
#define KG_ANALYZE_PROBLEM_H

#include "lang/lang.h"

#include <stdatomic.h>

#define KG_MAX_NESTS 64
#define KG_MAX_ACCESSES 64

// One subscript as a function of the nest's axes: sum(coefficient[a] * axis[a]) + offset + base.
struct kg_affine {
    bool is_affine; // otherwise only `subscript` describes it (/, %, gather)
    bool is_gather; // reads another tensor
    int64_t coefficient[KG_MAX_INDICES];
    int64_t offset;
    const struct kg_expr *base; // a further term that depends on sizes only; NULL: none
    const struct kg_expr *subscript;
};

// One read of one tensor inside a nest.
struct kg_access {
    const struct kg_expr *read; // the KG_EXPR_READ node
    const struct kg_tensor *tensor;
    struct kg_affine map[KG_MAX_RANK];
};

enum kg_class {
    KG_CLASS_POINTWISE, // no reduction, every access injective or broadcast
    KG_CLASS_GATHER,    // no reduction, a subscript is read from a tensor
    KG_CLASS_REDUCE,
    KG_CLASS_SCAN,
    KG_CLASS_CONTRACT, // sum over a product, factors of which vary with different output axes
    KG_CLASS_WINDOW,   // a reduction whose access mixes an output and a reduced index
    KG_CLASS_COUNT
};

// One normalised statement: output[axes 0..output_axes) = reduce(axes output_axes..axis_count)
// body. The body contains no reduction: inner ones are hoisted into earlier nests. Index ids inside
// `body` are positions in `axes`.
struct kg_nest {
    int id;
    const struct kg_tensor *output;
    int output_axes;
    int axis_count;
    const struct kg_index *axes[KG_MAX_INDICES];
    bool has_reduce;
    enum kg_reduce reduce;
    const struct kg_expr *body;
    enum kg_class class;
    int access_count;
    // In order of appearance, including reads in subscripts; as many as there are.
    struct kg_access *accesses;
    int64_t extent[KG_MAX_INDICES]; // of each axis: end - begin, >= 0
    // Least number of FLOPs: each operation counts once per combination of the axes it depends on,
    // by its table row; one per element reduced; subscripts are free. A scan whose body does not
    // depend on the bound's axis takes one step per element; others take the steps that their
    // relation allows.
    double operations;
    double transcendentals; // calls of transcendental functions, counted likewise
    double iterations;      // steps of the innermost loop of a good kernel, counted likewise
};

// The layout of a tensor in memory. Strides are in elements; dimensions of size 1 may have any
// stride.
struct kg_layout {
    int64_t shape[KG_MAX_RANK];
    int64_t stride[KG_MAX_RANK];
    bool contiguous; // row-major, no gaps
    int64_t elements;
    size_t bytes; // from the first to one past the last element
};

// Data that later layers compute for a problem and attach to it; freed with it. It does not depend
// on sizes.
struct kg_problem_cache {
    void (*free)(struct kg_problem_cache *cache);
};

struct kg_problem {
    struct kg_arena arena;
    const struct kg_op *op;      // the instance, without hoisted intermediates
    int64_t sizes[KG_MAX_SIZES]; // by kg_size id; params included
    int tensor_count;            // op->tensors first, then hoisted tensors
    const struct kg_tensor *tensors[KG_MAX_NESTS + KG_MAX_TENSORS];
    struct kg_layout layouts[KG_MAX_NESTS + KG_MAX_TENSORS]; // by tensor id
    bool contiguous; // every tensor is: kernels may then merge dimensions and ignore strides
    int nest_count;
    const struct kg_nest *nests[KG_MAX_NESTS];
    struct kg_nest **own_nests; // the same, for kg_problem_rebind
    // By statement of the op: no sizes make it read outside a tensor (bounds.c).
    bool is_inside[KG_MAX_TENSORS];

    double operations;      // FLOPs of the whole op
    double transcendentals; // calls of transcendental functions
    double read_bytes;      // compulsory: each input element that is used, once; see cost.c
    double write_bytes;     // each output element, once
    double intensity;       // operations / (read_bytes + write_bytes)
    enum kg_class class;    // of the most expensive nest
    void *owner;            // used by the public layer; NULL elsewhere
    _Atomic(struct kg_problem_cache *) *cache; // see gen/match.c
};

// Sizes by id (params are taken from the instance); `strides[i]` for tensor i in elements, or a
// NULL `strides` for contiguous tensors. The problem refers to the instance, which must outlive it.
// Negative strides, and strides that give two elements of an output the same address, are refused.
// Reads outside a tensor without pad() are errors that name the statement, read, dimension and
// range.
enum kg_status kg_problem_make(const struct kg_op *instance, const int64_t *sizes,
                               const int64_t (*strides)[KG_MAX_RANK], struct kg_problem **problem,
                               struct kg_error *error);
void kg_problem_free(struct kg_problem *problem);
// Binds other sizes to a problem that only the caller uses; its tensors become contiguous. Nests
// are not made again, and what is attached to the problem stays, as neither depends on sizes.
// Errors are those of kg_problem_make; after one the problem can only be bound again or freed.
enum kg_status kg_problem_rebind(struct kg_problem *problem, const int64_t *sizes,
                                 struct kg_error *error);

// "m[p] = max(d) x[p, d]", for display.
void kg_nest_print(struct kg_text *text, const struct kg_nest *nest);

extern const char *const kg_class_names[KG_CLASS_COUNT];

#endif
