// The loops around a nest: which of its axes form one run of neighbours in memory, how the others
// follow from a linear counter, and how values are printed when intermediates of the group live in
// variables or are computed where they are used.

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
// True when both axes run over the same values, whatever the sizes, and have no relation.
bool kg_axes_same(const struct kg_index *a, const struct kg_index *b);

// The axes [result, last] may be counted as one: every access that uses them has them as its last
// subscripts, in order, without gaps. `first` is the least result wanted. Always `last` when the
// problem has strides.
int kg_axes_run(const struct kg_group *group, const struct kg_nest *nest, int first, int last);

// The number of values of axis `axis`, and of the axes [first, last] together; "1" for none.
void kg_axes_extent(struct kg_text *text, const struct kg_index *axis);
void kg_axes_product(struct kg_text *text, const struct kg_nest *nest, int first, int last);
// The same, of the sizes at hand.
double kg_axes_count(const struct kg_nest *nest, int first, int last);

// Declares i<first> .. i<last>, the values that the linear counter `linear` stands for; the last
// axis counts fastest.
void kg_axes_split(struct kg_code *code, const struct kg_nest *nest, int first, int last,
                   const char *linear);

// How reads of tensors made in the group, and axes, are spelled.
struct kg_values {
    const struct kg_group *group;
    // The spelling of the nest's axes; NULL: "i<axis>".
    const char *axes[KG_MAX_INDICES];
    // What moves with this axis is a vector of floats (kernels/host/floats.h); 0: nothing is.
    int vector_axis;
    // By position in the group: what the output of that nest is called when its elements at hand
    // are in a variable. NULL: private ones are computed in place, others are loaded.
    const char *locals[KG_MAX_NESTS];
    // Likewise: a kg_divisor made of it. NULL: there is none.
    const char *divisors[KG_MAX_NESTS];
    uint64_t narrow; // functions, 1 << each, that are kg_NAME_narrow_f32
    // Reads of what is in memory, where they are to be other than loads; false: a load. May be
    // NULL.
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
// Fetches ahead what the nest reads at the axes as spelled: `count` elements of each tensor that
// moves with axis `across` and follows axis `along` in the order of memory. `seen`, by tensor id,
// marks those that were fetched already.
void kg_values_prefetch(struct kg_code *code, const struct kg_values *values, int position,
                        int across, int along, const char *count, bool *seen);

// The position in the group of the nest that makes `tensor`, or -1.
int kg_group_maker(const struct kg_group *group, const struct kg_tensor *tensor);
// Does the nest at `position` have the output axes of the one at `k`, and read what was made from
// that one on at its own place only?
bool kg_group_follows(const struct kg_group *group, int k, int position);
// The functions, 1 << each, that may be off by little of a step of f16, relative to what they give
// or, in the tails of gelu, beside 0: all that is stored of what they become is f16 or bf16, and
// nothing on the way makes it more.
uint64_t kg_group_narrow(const struct kg_group *group);
// Whether every read of a private intermediate can be replaced by its formula: false, and the
// reason, for padded ones and for those made by a reduction outside `but` (a position, or -1).
bool kg_group_inlines(const struct kg_group *group, int but, struct kg_text *reason);

#endif
