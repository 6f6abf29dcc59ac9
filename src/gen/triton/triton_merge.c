// Merging axes of a launch: see triton_merge.h.

#include "gen/triton/triton_merge.h"

#include <string.h>

static bool mentions(const struct kg_expr *expr, const struct kg_size *size)
{
    if (!expr)
        return false;
    if (expr->size == size)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (mentions(expr->arguments[i], size))
            return true;
    return mentions(expr->pad, size);
}

// Whether the axis, whose length is `size`, is nothing but a subscript in the expression.
static bool is_subscript(const struct kg_expr *expr, int axis, const struct kg_size *size)
{
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index->id != axis;
    if (expr->kind != KG_EXPR_READ) {
        if (expr->size == size)
            return false;
        for (int i = 0; i < expr->argument_count; i++)
            if (!is_subscript(expr->arguments[i], axis, size))
                return false;
        return true;
    }
    int seen = 0;
    for (int dim = 0; dim < expr->argument_count; dim++) {
        const struct kg_expr *subscript = expr->arguments[dim];
        bool bare = subscript->kind == KG_EXPR_INDEX && subscript->index->id == axis;
        seen += bare;
        // Another place may be compared with the dimension, and needs its stride.
        if (!bare &&
            (!is_subscript(subscript, axis, size) || mentions(expr->tensor->dims[dim], size)))
            return false;
    }
    return seen <= 1 && (!expr->pad || (seen == 0 && is_subscript(expr->pad, axis, size)));
}

bool kg_triton_can_merge(const struct kg_group *group, const struct kg_nest *shape, int axis)
{
    const struct kg_expr *end = shape->axes[axis]->end;
    if (end->kind != KG_EXPR_SIZE || end->size->is_param)
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int k = 0; k < nest->axis_count; k++) {
            const struct kg_index *other = nest->axes[k];
            if (k == axis) {
                if (!kg_size_same(other->end, end) || !kg_size_same(other->begin, NULL) ||
                    other->relation != KG_RELATION_NONE)
                    return false;
            } else if (mentions(other->begin, end->size) || mentions(other->end, end->size) ||
                       (other->bound && kg_expr_uses(other->bound, axis, true))) {
                return false;
            }
        }
        if (!is_subscript(nest->body, axis, end->size))
            return false;
    }
    return true;
}

// The strides of a tensor along the axes [first, last], by the dimension that each is; "": it does
// not move along them. False: elements of packed tensors have no strides.
static bool add_strides(struct kg_text *text, const struct kg_triton_host *host,
                        const struct kg_tensor *tensor, const int *axis_of, int first, int last)
{
    bool moves = false;
    kg_text_cut(text, 0);
    kg_text_add(text, "(");
    for (int axis = first; axis <= last; axis++) {
        int found = -1;
        for (int dim = 0; dim < tensor->rank; dim++)
            if (axis_of[dim] == axis)
                found = dim;
        kg_text_add(text, axis > first ? ", " : "");
        if (found < 0)
            kg_text_add(text, "0");
        else
            kg_text_format(text, "%s.stride(%d)", host->tensors[tensor->id], found);
        moves |= found >= 0;
    }
    kg_text_add(text, ")");
    if (!moves)
        kg_text_cut(text, 0);
    return !moves || !kg_dtype_is_packed(kg_emit_tensor_dtype(tensor));
}

static void add_once(struct kg_text *all, const struct kg_text *one)
{
    if (one->length && !strstr(kg_text_string(all), kg_text_string(one)))
        kg_text_format(all, ", %s", kg_text_string(one));
}

// Whether a value that stays in the kernel is read at the same place of all of the axes, or of
// none.
static bool is_own_place(const struct kg_access *access, int first, int last)
{
    int moves = 0, same = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        for (int axis = first; axis <= last; axis++) {
            moves += kg_expr_uses(subscript, axis, true);
            same += subscript->kind == KG_EXPR_INDEX && subscript->index->id == axis && dim == axis;
        }
    }
    return moves == same && (same == 0 || same == last - first + 1);
}

// The strides of everything in memory that the group reads and writes.
static bool add_tensors(struct kg_text *all, const struct kg_triton_unit *unit, int first, int last)
{
    struct kg_text one = {0};
    bool strided = true;
    for (int i = 0; i < unit->group->count && strided; i++) {
        const struct kg_nest *nest = kg_group_nest(unit->group, i);
        int axis_of[KG_MAX_RANK];
        for (int a = 0; a < nest->access_count && strided; a++) {
            const struct kg_access *access = &nest->accesses[a];
            if (kg_group_is_private(unit->group, access->tensor)) {
                strided = is_own_place(access, first, last);
                continue;
            }
            for (int dim = 0; dim < access->tensor->rank; dim++) {
                const struct kg_expr *subscript = access->map[dim].subscript;
                axis_of[dim] = subscript->kind == KG_EXPR_INDEX ? subscript->index->id : -1;
            }
            strided = add_strides(&one, unit->host, access->tensor, axis_of, first, last);
            add_once(all, &one);
        }
        if (kg_group_is_private(unit->group, nest->output) || !strided)
            continue;
        for (int dim = 0; dim < nest->output->rank; dim++)
            axis_of[dim] = dim;
        strided = add_strides(&one, unit->host, nest->output, axis_of, first, last);
        add_once(all, &one);
    }
    all->failed |= one.failed;
    kg_text_free(&one);
    return strided;
}

struct kg_triton_host kg_triton_merge(struct kg_triton_unit *unit, const struct kg_nest *shape,
                                      int first, int last)
{
    struct kg_triton_host host = *unit->host;
    int start = last + 1;
    while (start > first && kg_triton_can_merge(unit->group, shape, start - 1))
        start--;
    struct kg_text tensors = {0}, sizes = {0}, names = {0};
    if (last - start >= 1 && add_tensors(&tensors, unit, start, last)) {
        for (int axis = start; axis <= last; axis++) {
            int id = shape->axes[axis]->end->size->id;
            kg_text_format(&sizes, "%s%s", axis > start ? ", " : "", unit->host->sizes[id]);
            kg_text_format(&names, "%s%s", axis > start ? ", " : "", unit->host->runs[id]);
            host.sizes[id] = unit->host->runs[id];
        }
        kg_text_format(unit->launches, "    %s = _merge((%s)%s)\n", kg_text_string(&names),
                       kg_text_string(&sizes), kg_text_string(&tensors));
    }
    unit->launches->failed |= tensors.failed | sizes.failed | names.failed;
    kg_text_free(&tensors);
    kg_text_free(&sizes);
    kg_text_free(&names);
    return host;
}
