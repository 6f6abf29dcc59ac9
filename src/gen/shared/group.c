// See group.h.

#include "gen/shared/group.h"

static bool is_tensor_of(const struct kg_nest *nest, const struct kg_tensor *tensor)
{
    if (nest->output == tensor)
        return true;
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].tensor == tensor)
            return true;
    return false;
}

bool kg_group_is_private(const struct kg_group *group, const struct kg_tensor *tensor)
{
    if (tensor->role != KG_ROLE_LOCAL)
        return false;
    const struct kg_problem *problem = group->problem;
    for (int i = 0; i < problem->nest_count; i++)
        if ((i < group->first || i >= group->first + group->count) &&
            is_tensor_of(problem->nests[i], tensor))
            return false;
    return true;
}

bool kg_size_same(const struct kg_expr *a, const struct kg_expr *b)
{
    if (!a || !b) {
        const struct kg_expr *other = a ? a : b;
        return !other || (other->kind == KG_EXPR_NUMBER && other->integer == 0);
    }
    if (a == b)
        return true;
    if (a->kind != b->kind)
        return false;
    if (a->kind == KG_EXPR_NUMBER)
        return a->integer == b->integer;
    if (a->kind == KG_EXPR_SIZE)
        return a->size->id == b->size->id;
    if (a->kind != KG_EXPR_CALL || a->function != b->function ||
        a->argument_count != b->argument_count)
        return false;
    for (int i = 0; i < a->argument_count; i++)
        if (!kg_size_same(a->arguments[i], b->arguments[i]))
            return false;
    return true;
}

bool kg_expr_uses(const struct kg_expr *expr, int axis, bool reads)
{
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index->id == axis;
    if (expr->pad && kg_expr_uses(expr->pad, axis, reads))
        return true;
    if (expr->kind == KG_EXPR_READ && !reads)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (kg_expr_uses(expr->arguments[i], axis, reads))
            return true;
    return false;
}

const struct kg_access *kg_nest_access(const struct kg_nest *nest, const struct kg_expr *read)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].read == read)
            return &nest->accesses[i];
    return NULL;
}

static void need_sizes(struct kg_needs *needs, const struct kg_expr *expr)
{
    if (!expr)
        return;
    if (expr->kind == KG_EXPR_SIZE)
        needs->size[expr->size->id] = true;
    if (expr->pad)
        need_sizes(needs, expr->pad);
    for (int i = 0; i < expr->argument_count; i++)
        need_sizes(needs, expr->arguments[i]);
}

static void need_tensor(struct kg_needs *needs, const struct kg_tensor *tensor)
{
    needs->tensor[tensor->id] = true;
    for (int dim = 0; dim < tensor->rank; dim++)
        need_sizes(needs, tensor->dims[dim]);
}

static void need_nest(struct kg_needs *needs, const struct kg_nest *nest)
{
    need_tensor(needs, nest->output);
    for (int i = 0; i < nest->access_count; i++)
        need_tensor(needs, nest->accesses[i].tensor);
    for (int i = 0; i < nest->axis_count; i++) {
        need_sizes(needs, nest->axes[i]->begin);
        need_sizes(needs, nest->axes[i]->end);
        need_sizes(needs, nest->axes[i]->bound);
    }
    need_sizes(needs, nest->body);
}

void kg_group_needs(const struct kg_group *group, struct kg_needs *needs)
{
    *needs = (struct kg_needs){0};
    for (int i = 0; i < group->count; i++)
        need_nest(needs, kg_group_nest(group, i));
}

bool kg_group_writes(const struct kg_group *group, const struct kg_tensor *tensor)
{
    for (int i = 0; i < group->count; i++)
        if (kg_group_nest(group, i)->output == tensor)
            return true;
    return false;
}

bool kg_expr_is_natural(const struct kg_expr *expr)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        return expr->is_integer && expr->integer >= 0;
    case KG_EXPR_SIZE:
        return true;
    case KG_EXPR_INDEX:
        return !expr->index->begin || kg_expr_is_natural(expr->index->begin);
    case KG_EXPR_CALL:
        if (expr->function != KG_FN_ADD && expr->function != KG_FN_MUL &&
            expr->function != KG_FN_DIV && expr->function != KG_FN_MOD)
            return false;
        return kg_expr_is_natural(expr->arguments[0]) && kg_expr_is_natural(expr->arguments[1]);
    default:
        return false;
    }
}

bool kg_access_covers(const struct kg_nest *nest, const struct kg_access *access, int dim)
{
    const struct kg_expr *subscript = access->map[dim].subscript;
    if (subscript->kind != KG_EXPR_INDEX)
        return false;
    const struct kg_index *axis = nest->axes[subscript->index->id];
    return (!axis->begin || kg_expr_is_natural(axis->begin)) &&
           kg_size_same(axis->end, access->tensor->dims[dim]);
}
