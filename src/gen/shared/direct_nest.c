// Plain loops for a nest: see direct_nest.h.

#include "gen/shared/direct_nest.h"

// The output axis that a relation's bound follows with coefficient 1 ("d", "d + 1", "d - W"), or
// -1.
static int followed_axis(const struct kg_nest *nest, const struct kg_expr *bound)
{
    while (bound->kind == KG_EXPR_CALL &&
           (bound->function == KG_FN_ADD || bound->function == KG_FN_SUB)) {
        const struct kg_expr *rest = bound->arguments[1];
        if (rest->kind != KG_EXPR_NUMBER && rest->kind != KG_EXPR_SIZE)
            return -1;
        bound = bound->arguments[0];
    }
    if (bound->kind != KG_EXPR_INDEX || bound->index->id >= nest->output_axes)
        return -1;
    return bound->index->id;
}

bool kg_direct_is_backward(const struct kg_nest *nest)
{
    enum kg_relation relation = nest->axes[nest->output_axes]->relation;
    return relation == KG_RELATION_GE || relation == KG_RELATION_GT;
}

int kg_direct_scanned_axis(const struct kg_nest *nest)
{
    if (!nest->has_reduce || nest->axis_count != nest->output_axes + 1)
        return -1;
    const struct kg_index *reduced = nest->axes[nest->output_axes];
    if (reduced->relation == KG_RELATION_NONE)
        return -1;
    // Of equal values the first wins; backward, the first comes last.
    if (kg_reduces[nest->reduce].is_argument && kg_direct_is_backward(nest))
        return -1;
    int axis = followed_axis(nest, reduced->bound);
    return axis >= 0 && !kg_expr_uses(nest->body, axis, true) ? axis : -1;
}

bool kg_direct_is_packed(const struct kg_tensor *tensor)
{
    return kg_dtype_is_packed(kg_emit_tensor_dtype(tensor));
}

bool kg_direct_has_relation(const struct kg_nest *nest)
{
    for (int i = nest->output_axes; i < nest->axis_count; i++)
        if (nest->axes[i]->relation != KG_RELATION_NONE)
            return true;
    return false;
}
