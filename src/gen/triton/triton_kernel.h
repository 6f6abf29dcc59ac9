// One Triton kernel while it is written: its names, its lines, and what its signature needs.
//
// A kernel works on a tile: a few axes are vectors along a dimension of the tile, the others are
// scalars. Values of expressions broadcast, so that an expression is written the same way whatever
// its axes are. Reads are statements of their own, in front of the line that uses them.

#ifndef KG_GEN_TRITON_KERNEL_H
#define KG_GEN_TRITON_KERNEL_H

#include "base/arena.h"
#include "gen/shared/emit.h"
#include "gen/shared/group.h"
#include "gen/triton/triton_names.h"

#define KG_TRITON_MAX_LOADS 512
#define KG_TRITON_TENSORS (KG_MAX_NESTS + KG_MAX_TENSORS)

// An axis of the current nest.
struct kg_triton_axis {
    const char *name;   // of its value
    const char *inside; // of the mask of the values that are in its range; NULL: all are
    bool is_row;        // these values have a tile's rows for a shape, and one column
};

// A read that has a name.
struct kg_triton_load {
    const struct kg_tensor *tensor;
    const char *place; // offset and mask: equal places are equal reads
    const char *value;
    int level; // of the block that it belongs to
};

struct kg_triton_kernel {
    const struct kg_group *group;
    char entry[160];
    struct kg_arena arena;
    struct kg_triton_names names;
    struct kg_text body;
    int level; // of indentation

    const struct kg_nest *nest; // whose expressions are written
    struct kg_triton_axis axes[KG_MAX_INDICES];
    // Its axes in the order in which masks name them, so that statements whose axes are permuted
    // have the same mask for the same element; NULL: as they stand.
    const int *order;
    const char *values[KG_MAX_NESTS]; // by position in the group: the variable with its value

    // A program computes a tile in each of its turns: see _number in kernels/triton/values.py.
    const char *turns, *last, *across, *turn;
    const char *program, *column; // where the tile lies along both dimensions of the grid
    bool uses_column;

    // The last two output axes, walked as one: the name of both together, NULL: they are not; and
    // the second of them. Its length is a constant of a compiled kernel.
    const char *walk;
    int walked;

    bool ties;   // no axis is the one for Triton to follow: the tile's rows are made by _down
    bool whole;  // reads of integers keep the dtype that they have in memory
    bool native; // reads of floats keep the dtype that they have in memory
    bool small;  // reads of integers are of 32 bits: the values of the formula are known to be few
    bool narrow; // integers are computed in 32 bits: see triton_range.h
    bool again;  // a later pass reads the same elements,
    bool later;  // or this is the last of several passes
    bool shared; // what is read is read by other programs as well, whatever its subscripts

    int load_count;
    struct kg_triton_load loads[KG_TRITON_MAX_LOADS];

    // What the body uses. Names by id, NULL: not used.
    bool uses_once; // the constant ONCE
    const char *pointers[KG_TRITON_TENSORS];
    const char *strides[KG_TRITON_TENSORS][KG_MAX_RANK];
    const char *sizes[KG_MAX_SIZES];
    bool uses_size[KG_MAX_SIZES];
    bool is_constant[KG_MAX_SIZES]; // sizes as constants of a compiled kernel, as params always are
    int extent_count;
    struct {
        const struct kg_expr *expr; // of sizes, computed by the public function
        const char *name;
    } extents[16];
    // Axes whose lengths divide an index, with the names of what multiplies instead: see _quotient
    // in kernels/triton/values.py.
    int divisor_count;
    struct {
        const struct kg_index *axis;
        const char *name;
    } divisors[KG_MAX_INDICES];
    int extra_count;
    struct {
        const char *name, *argument; // in the kernel, and in the public function
    } extras[4];
    int block_count;
    const char *blocks[4]; // constants of the tile: "BLOCK_ROWS"
};

void kg_triton_kernel_begin(struct kg_triton_kernel *kernel, const struct kg_group *group,
                            const char *entry);
void kg_triton_kernel_free(struct kg_triton_kernel *kernel);
// Appends the complete kernel: decorator, signature, body.
void kg_triton_kernel_text(const struct kg_triton_kernel *kernel, const char *comment,
                           struct kg_text *text);
bool kg_triton_kernel_failed(const struct kg_triton_kernel *kernel);

// How many values of 4 bytes an element of the tile has at most: one for each assignment, as none
// is known to be dead, or two where some are of 64 bits.
int kg_triton_values(const struct kg_triton_kernel *kernel);

// The tile's place along a dimension of the grid, as a number; `as_index`: in the type of offsets.
const char *kg_triton_program(struct kg_triton_kernel *kernel, int dimension, bool as_index);
// A line of the body.
void kg_triton_line(struct kg_triton_kernel *kernel, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A line that opens a block, and its end, which forgets what was read inside.
void kg_triton_open(struct kg_triton_kernel *kernel, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void kg_triton_close(struct kg_triton_kernel *kernel);
// A text that lives as long as the kernel.
const char *kg_triton_format(struct kg_triton_kernel *kernel, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *kg_triton_keep(struct kg_triton_kernel *kernel, struct kg_text *text);
// A free name of the kernel.
const char *kg_triton_fresh(struct kg_triton_kernel *kernel, const char *base);
const char *kg_triton_block(struct kg_triton_kernel *kernel, const char *name);

// An argument that is no tensor of the definition and no size.
void kg_triton_extra(struct kg_triton_kernel *kernel, const char *name, const char *argument);

// The value of an expression of the current nest, converted to `type`. May write reads in front.
const char *kg_triton_value(struct kg_triton_kernel *kernel, const struct kg_expr *expr,
                            enum kg_type type);
// The same in the expression's own type, to be stored alone: integers may be of 32 bits.
const char *kg_triton_stored(struct kg_triton_kernel *kernel, const struct kg_expr *expr);
// An index expression as it stands in a subscript, and a size expression; of primary precedence.
const char *kg_triton_index(struct kg_triton_kernel *kernel, const struct kg_expr *expr);
// begin and end of an axis; the number of its values.
const char *kg_triton_begin_of(struct kg_triton_kernel *kernel, const struct kg_index *axis);
const char *kg_triton_end_of(struct kg_triton_kernel *kernel, const struct kg_index *axis);
const char *kg_triton_extent(struct kg_triton_kernel *kernel, const struct kg_index *axis);
// A size expression that is an argument of the kernel of its own if it is more than a name or a
// number; `base` is a name for it.
const char *kg_triton_size(struct kg_triton_kernel *kernel, const struct kg_expr *expr,
                           const char *base);
// Names of a tensor's pointer and of its stride along a dimension, arguments of the kernel.
const char *kg_triton_pointer(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor);
const char *kg_triton_stride(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                             int dim);
// The condition that the current element is inside along the axes that are used; NULL: it always
// is.
const char *kg_triton_mask(struct kg_triton_kernel *kernel, const bool used[KG_MAX_INDICES]);
// The variable with the value of a read, in its compute type.
const char *kg_triton_read(struct kg_triton_kernel *kernel, const struct kg_access *access);
// Reads what does not depend on the axes from `first` on, so that loops over these do not repeat
// it.
void kg_triton_hoist(struct kg_triton_kernel *kernel, int first);
// The statement at a position of the group, which does not reduce, at the current axes: a variable
// with its value for later statements, and a store if others need it in memory.
void kg_triton_element(struct kg_triton_kernel *kernel, int position);
// Its value alone.
void kg_triton_recompute(struct kg_triton_kernel *kernel, int position);
// The same for a value that is known.
void kg_triton_settle(struct kg_triton_kernel *kernel, int position, const char *value,
                      enum kg_type type);
// Stores `value`, of `type`, as the current element of the current nest's output.
void kg_triton_store(struct kg_triton_kernel *kernel, const char *value, enum kg_type type);
// A product or sum as an operand of something that binds tighter: in parentheses, if it needs them.
const char *kg_triton_operand(struct kg_triton_kernel *kernel, const char *text);
// Whether a read goes along both of two neighbouring axes, of which `inner` is the second, with its
// whole dimensions as the axes' lengths: `dims` are those.
bool kg_triton_is_walked(const struct kg_nest *nest, const struct kg_access *access, int inner,
                         int dims[2]);
// The condition that the relation of an axis holds; NULL: it has none.
const char *kg_triton_relation(struct kg_triton_kernel *kernel, const struct kg_index *axis);
// "a & b"; either may be NULL.
const char *kg_triton_and(struct kg_triton_kernel *kernel, const char *a, const char *b);

// Names of Triton: "tl.float32".
const char *kg_triton_type(enum kg_type type);
const char *kg_triton_dtype(enum kg_dtype dtype);
// A param's name as a constant of the module: "EPS".
void kg_triton_param(struct kg_text *text, const struct kg_op *op, const struct kg_size *param);
void kg_triton_real(struct kg_text *text, double number, bool single);

#endif
