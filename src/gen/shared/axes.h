// The loops around a nest: which axes are contiguous in memory together, how the others follow from
// a linear counter, and how values are printed if intermediates of the group are in variables or
// computed where they are used.

#ifndef KG_GEN_AXES_H
#define KG_GEN_AXES_H

#include "gen/shared/code.h"
#include "gen/shared/emit.h"

// True when the subscripts of the access are exactly the axes 0, 1, ..., rank - 1 of its nest.
bool kg_axes_identity(const struct kg_access *access);

// True when both read the same element, whatever the sizes; may miss equal ones.
bool kg_access_same(const struct kg_access *a, const struct kg_access *b);

// Is something in the expression, an f32, divided by a read of `tensor`?
bool kg_expr_divides(const struct kg_expr *expr, const struct kg_tensor *tensor);

// Is a subscript made of one of the axes [first, last]?
bool kg_access_uses(const struct kg_access *access, int first, int last);

bool kg_axes_from_zero(const struct kg_index *axis);
// True when both axes have the same range, whatever the sizes, and neither has a relation.
bool kg_axes_same(const struct kg_index *a, const struct kg_index *b);

// The first of the axes that can be merged with `last`, not below `first`: every access that uses
// them has them as its last subscripts, in order, without gaps. Always `last` when the problem has
// strides.
int kg_axes_run(const struct kg_group *group, const struct kg_nest *nest, int first, int last);

// The number of values of axis `axis`, and of the axes [first, last] together; "1" for none.
void kg_axes_extent(struct kg_text *text, const struct kg_index *axis);
void kg_axes_product(struct kg_text *text, const struct kg_nest *nest, int first, int last);
// The same as a number, for the problem's sizes.
double kg_axes_count(const struct kg_nest *nest, int first, int last);

// What argmax and argmin give for the element at the current reduced axes, i<axis>.
void kg_axes_place(struct kg_text *text, const struct kg_nest *nest);

// Declares i<first> .. i<last>, computed from the linear counter `linear`; the last axis is the
// fastest.
void kg_axes_split(struct kg_code *code, const struct kg_nest *nest, int first, int last,
                   const char *linear);

// How axes and reads of the group's intermediates are printed.
struct kg_values {
    const struct kg_group *group;
    // The names of the nest's axes; NULL: "i<axis>".
    const char *axes[KG_MAX_INDICES];
    // Values that depend on this axis are vectors of floats (kernels/host/floats.h); 0: none.
    int vector_axis;
    // By position in the group: the variable that has the current element of that nest's output.
    // NULL: none; private outputs are computed in place, others are loaded.
    const char *locals[KG_MAX_NESTS];
    // By position: the name of a kg_divisor made of it; NULL: none.
    const char *divisors[KG_MAX_NESTS];
    uint64_t narrow; // functions, 1 << each, that are kg_NAME_narrow_f32
    // Prints a read of a tensor in memory; false: as a load. May be NULL.
    bool (*read)(void *user, struct kg_text *text, const struct kg_access *access);
    void *user;
};

// The body of the nest at `position` of the group, as a value of `type`, for the right side of "=".
void kg_values_print(struct kg_text *text, const struct kg_values *values, int position,
                     enum kg_type type);
// Stores `value` of `type` as the element of the nest's output at the current axes.
void kg_values_store(struct kg_text *text, const struct kg_values *values, int position,
                     enum kg_type type, const char *value);
// The element offset of an access of `nest` at the axes as spelled.
void kg_values_access(struct kg_text *text, const struct kg_values *values,
                      const struct kg_nest *nest, const struct kg_access *access);
// The element offset of the nest's output at the current axes.
void kg_values_offset(struct kg_text *text, const struct kg_values *values, int position);
// Prefetches what the nest reads at the current axes: `count` elements of each tensor that depends
// on axis `across` and is contiguous along axis `along`. `seen`, by tensor id, marks those that
// were prefetched already.
void kg_values_prefetch(struct kg_code *code, const struct kg_values *values, int position,
                        int across, int along, const char *count, bool *seen);

// The position in the group of the nest that makes `tensor`, or -1.
int kg_group_maker(const struct kg_group *group, const struct kg_tensor *tensor);
// Whether the nest at `position` has the output axes of the one at `k`, and reads the outputs of
// that one and of later ones only at its own element.
bool kg_group_follows(const struct kg_group *group, int k, int position);
// The functions, 1 << each, that may be computed with reduced accuracy (an error well below the
// rounding of f16): their results are only stored as f16 or bf16, and nothing in between amplifies
// the error.
uint64_t kg_group_narrow(const struct kg_group *group);
// Whether every read of a private intermediate can be replaced by its formula. Returns false, with
// the reason, for padded reads and for results of a reduction other than `but` (a position, or -1).
bool kg_group_inlines(const struct kg_group *group, int but, struct kg_text *reason);

#endif
