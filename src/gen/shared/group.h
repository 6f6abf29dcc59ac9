// Facts about groups, nests and expressions that families and emitters ask for.

#ifndef KG_GEN_GROUP_H
#define KG_GEN_GROUP_H

#include "gen/family.h"

// What a group needs declared: tensors, and sizes, by id.
struct kg_needs {
    bool tensor[KG_MAX_NESTS + KG_MAX_TENSORS];
    bool size[KG_MAX_SIZES];
};
void kg_group_needs(const struct kg_group *group, struct kg_needs *needs);
bool kg_group_writes(const struct kg_group *group, const struct kg_tensor *tensor);
// True when the local tensor is defined and used inside the group only.
bool kg_group_is_private(const struct kg_group *group, const struct kg_tensor *tensor);
// Does the expression use axis `axis`? With `reads`, also inside the subscripts of reads.
bool kg_expr_uses(const struct kg_expr *expr, int axis, bool reads);
// True when both size expressions are the same whatever the sizes (by structure: never false
// friends, may miss equal ones). NULL is 0.
bool kg_size_same(const struct kg_expr *a, const struct kg_expr *b);
// The access of a read of the nest.
const struct kg_access *kg_nest_access(const struct kg_nest *nest, const struct kg_expr *read);

#endif
