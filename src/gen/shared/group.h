// Questions about groups, nests and expressions, for families and emitters.

#ifndef KG_GEN_GROUP_H
#define KG_GEN_GROUP_H

#include "gen/family.h"

// The tensors and sizes that a group uses, by id.
struct kg_needs {
    bool tensor[KG_MAX_NESTS + KG_MAX_TENSORS];
    bool size[KG_MAX_SIZES];
};
void kg_group_needs(const struct kg_group *group, struct kg_needs *needs);
bool kg_group_writes(const struct kg_group *group, const struct kg_tensor *tensor);
// True when the local tensor is defined and used inside the group only.
bool kg_group_is_private(const struct kg_group *group, const struct kg_tensor *tensor);
// Whether the expression uses axis `axis`; with `reads`, also in the subscripts of reads.
bool kg_expr_uses(const struct kg_expr *expr, int axis, bool reads);
// Whether the form of an index expression shows that it is not negative: division by truncation
// then rounds as the language's does.
bool kg_expr_is_natural(const struct kg_expr *expr);
// True when both size expressions are equal for all sizes. Compares their structure, so it may miss
// equal ones. NULL is 0.
bool kg_size_same(const struct kg_expr *a, const struct kg_expr *b);
// The access that belongs to a read of the nest.
const struct kg_access *kg_nest_access(const struct kg_nest *nest, const struct kg_expr *read);
// True when the subscript is a bare axis that runs over just this dimension.
bool kg_access_covers(const struct kg_nest *nest, const struct kg_access *access, int dim);

#endif
