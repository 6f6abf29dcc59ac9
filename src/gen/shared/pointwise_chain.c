// What makes a chain of element-wise formulas: see pointwise_chain.h.

#include "gen/shared/pointwise_chain.h"

int kg_pointwise_producer(const struct kg_group *group, const struct kg_tensor *tensor, int limit)
{
    for (int i = 0; i < limit; i++)
        if (kg_group_nest(group, i)->output == tensor)
            return i;
    return -1;
}

bool kg_pointwise_bare(const struct kg_access *access, int dim, int axis)
{
    const struct kg_expr *subscript = access->map[dim].subscript;
    return subscript->kind == KG_EXPR_INDEX && subscript->index->id == axis;
}

static bool is_identity(const struct kg_nest *nest, const struct kg_access *access)
{
    if (access->read->pad || access->tensor->rank != nest->output_axes)
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!kg_pointwise_bare(access, dim, dim))
            return false;
    return true;
}

static bool same_axes(const struct kg_nest *a, const struct kg_nest *b)
{
    if (a->output_axes != b->output_axes)
        return false;
    for (int i = 0; i < a->output_axes; i++)
        if (!kg_size_same(a->axes[i]->end, b->axes[i]->end))
            return false;
    return true;
}

const char *kg_pointwise_obstacle(const struct kg_group *group, int i)
{
    const struct kg_nest *nest = kg_group_nest(group, i);
    if (nest->has_reduce)
        return "it reduces";
    if (!same_axes(nest, kg_group_nest(group, 0)))
        return "its axes differ from those before";
    if (kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return "its elements share bytes";
    for (int j = 0; j < nest->access_count; j++)
        if (kg_pointwise_producer(group, nest->accesses[j].tensor, i) >= 0 &&
            !is_identity(nest, &nest->accesses[j]))
            return "it reads other elements of a value made in the same loop";
    return NULL;
}

bool kg_pointwise_allows_merge(const struct kg_nest *nest, const struct kg_access *access, int axis)
{
    int first = -1, uses = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        bool left = kg_expr_uses(subscript, axis, false);
        bool right = kg_expr_uses(subscript, axis + 1, false);
        uses += left + right;
        if (left && first < 0)
            first = dim;
    }
    if (uses == 0)
        return true;
    return uses == 2 && first >= 0 && first + 1 < access->tensor->rank && !access->read->pad &&
           kg_pointwise_bare(access, first, axis) &&
           kg_pointwise_bare(access, first + 1, axis + 1) &&
           kg_size_same(nest->axes[axis + 1]->end, access->tensor->dims[first + 1]);
}

bool kg_pointwise_can_merge(const struct kg_group *group, int axis)
{
    if (!group->problem->contiguous)
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (kg_expr_uses(nest->body, axis, false) || kg_expr_uses(nest->body, axis + 1, false))
            return false;
        for (int j = 0; j < nest->access_count; j++)
            if (kg_pointwise_producer(group, nest->accesses[j].tensor, i) < 0 &&
                !kg_pointwise_allows_merge(nest, &nest->accesses[j], axis))
                return false;
    }
    return true;
}
