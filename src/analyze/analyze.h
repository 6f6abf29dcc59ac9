// Declarations shared by the files of this layer. Other layers include only problem.h and
// roofline.h.

#ifndef KG_ANALYZE_ANALYZE_H
#define KG_ANALYZE_ANALYZE_H

#include "analyze/problem.h"

// Fills nests, and the tensors they add. Needs op and arena; independent of the sizes. `nests` has
// room for KG_MAX_NESTS and receives the same nests as writable pointers.
enum kg_status kg_analyze_normalise(struct kg_problem *problem, struct kg_nest **nests,
                                    struct kg_error *error);

// Fills the accesses and the class of a nest whose axes and body are complete.
enum kg_status kg_analyze_accesses(struct kg_arena *arena, struct kg_nest *nest,
                                   struct kg_error *error);

// Finds the statements that need no check of bounds, whatever the sizes: problem->is_inside.
void kg_analyze_inside(struct kg_problem *problem);
// Refuses reads outside their tensors. Reads the instance as written; needs sizes and layouts.
enum kg_status kg_analyze_bounds(const struct kg_problem *problem, struct kg_error *error);

// Fills the extents of a nest.
enum kg_status kg_analyze_extents(const struct kg_problem *problem, struct kg_nest *nest,
                                  struct kg_error *error);
// Fills the costs of every nest (`nests` are the writable problem->nests) and of the problem.
void kg_analyze_costs(struct kg_problem *problem, struct kg_nest *const *nests);

// The axes that a good kernel loops over: all except the axis that bounds a scan which keeps a
// running result.
void kg_analyze_loops(const struct kg_nest *nest, bool loops[KG_MAX_INDICES]);

// Distinct elements of its tensor that the access touches: exact for strided and windowed
// accesses, else an upper bound.
int64_t kg_analyze_footprint(const struct kg_problem *problem, const struct kg_nest *nest,
                             const struct kg_access *access);

// Marks the ids of the indices that occur in `expr`, in subscripts, pads and relations too, and
// are not bound inside it.
void kg_analyze_used(const struct kg_expr *expr, bool used[KG_MAX_INDICES]);

// Does a tensor's element, or a reduction, occur in `expr`?
bool kg_analyze_reads(const struct kg_expr *expr);

// The same formula? Indices are compared by id, tensors and sizes by identity.
bool kg_analyze_equal(const struct kg_expr *a, const struct kg_expr *b);

// Intervals of index expressions with known sizes. Indices are identified by their ids.
struct kg_interval {
    bool known;  // false: nothing is known about the values
    bool gather; // reads a tensor (or a reduction): clamped when used as a subscript
    int64_t low; // inclusive
    int64_t high;
};

struct kg_scope {
    const int64_t *sizes;
    int count;
    const struct kg_index *order[KG_MAX_INDICES]; // outermost first
    int64_t low[KG_MAX_INDICES];                  // by index id, inclusive
    int64_t high[KG_MAX_INDICES];                 // below low: the index takes no value
};

// Adds an index with its own range and then applies its relation. Outer indices are narrowed to the
// values for which the relation leaves it any value.
enum kg_status kg_scope_push(struct kg_scope *scope, const struct kg_index *index,
                             struct kg_error *error);
struct kg_interval kg_scope_interval(const struct kg_scope *scope, const struct kg_expr *expr);

#endif
