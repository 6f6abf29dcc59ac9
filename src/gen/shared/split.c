#include "gen/shared/split.h"

#include "gen/shared/emit.h"

enum { LONGEST_STEP = 256 };

int64_t kg_split_divisor(const struct kg_expr *expr, int axis)
{
    if (expr->kind != KG_EXPR_CALL || expr->type != KG_TYPE_I64 ||
        (expr->function != KG_FN_DIV && expr->function != KG_FN_MOD))
        return 0;
    const struct kg_expr *index = expr->arguments[0], *divisor = expr->arguments[1];
    if (index->kind != KG_EXPR_INDEX || index->index->id != axis || index->index->begin ||
        divisor->kind != KG_EXPR_NUMBER || !divisor->is_integer || divisor->integer < 1)
        return 0;
    return divisor->integer;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y > 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a > LONGEST_STEP || b > LONGEST_STEP ? LONGEST_STEP + 1 : a / x * b;
}

static int64_t step_of(const struct kg_expr *expr, int axis)
{
    int64_t step = kg_split_divisor(expr, axis);
    if (step > 0)
        return step;
    step = expr->pad ? step_of(expr->pad, axis) : 1;
    for (int i = 0; i < expr->argument_count; i++)
        step = common_multiple(step, step_of(expr->arguments[i], axis));
    return step;
}

bool kg_split_shares_bytes(const struct kg_group *group, const struct kg_access *access, int axis)
{
    const int last = access->tensor->rank - 1;
    if (!group->problem->contiguous || last < 0 || access->read->pad ||
        !kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)))
        return false;
    for (int dim = 0; dim < last; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return false;
    const struct kg_expr *subscript = access->map[last].subscript;
    return subscript->kind == KG_EXPR_INDEX && subscript->index->id == axis;
}

int64_t kg_split_step(const struct kg_group *group, int axis)
{
    int64_t step = 1;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        step = common_multiple(step, step_of(nest->body, axis));
        for (int j = 0; j < nest->access_count; j++)
            if (kg_split_shares_bytes(group, &nest->accesses[j], axis))
                step = common_multiple(step, 2);
    }
    return step > LONGEST_STEP ? 1 : step;
}

// Does the axis stand in the expression outside of such divisions?
static bool is_free(const struct kg_expr *expr, const struct kg_split *split)
{
    const int64_t divisor = kg_split_divisor(expr, split->axis);
    if (divisor > 0 && split->step % divisor == 0)
        return false;
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index->id == split->axis;
    if (expr->pad && is_free(expr->pad, split))
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (is_free(expr->arguments[i], split))
            return true;
    return false;
}

bool kg_split_is_fixed(const struct kg_access *access, const struct kg_split *split)
{
    if (split->step == 0 || (access->read->pad && is_free(access->read->pad, split)))
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (is_free(access->map[dim].subscript, split))
            return false;
    return true;
}
