// How statements share rows: see rowwise_plan.h.

#include "gen/shared/rowwise_plan.h"

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static bool same_axes(const struct kg_nest *a, const struct kg_nest *b, int count)
{
    for (int axis = 0; axis < count; axis++)
        if (!kg_axes_same(a->axes[axis], b->axes[axis]))
            return false;
    return true;
}

static bool find_shape(struct kg_rowwise_plan *plan, struct kg_text *reason)
{
    const struct kg_group *group = plan->group;
    for (int i = 0; i < group->count && !plan->shape; i++)
        if (kg_group_nest(group, i)->has_reduce)
            plan->shape = kg_group_nest(group, i);
    if (!plan->shape)
        return refuse(reason, "no reduction");
    plan->rows = plan->shape->output_axes;
    plan->last = plan->shape->axis_count - 1;
    if (plan->rows == 0)
        return refuse(reason, "reduces all there is: no rows to work on apart");
    for (int axis = plan->rows; axis <= plan->last; axis++)
        if (plan->shape->axes[axis]->relation != KG_RELATION_NONE ||
            !kg_axes_from_zero(plan->shape->axes[axis]))
            return refuse(reason, "reduces a part of the row");
    return true;
}

static bool find_role(struct kg_rowwise_plan *plan, int i, struct kg_text *reason)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, i), *shape = plan->shape;
    if (nest->has_reduce && nest->output_axes == plan->rows &&
        nest->axis_count == shape->axis_count)
        plan->role[i] = KG_ROWWISE_REDUCE;
    else if (!nest->has_reduce && nest->output_axes == shape->axis_count)
        plan->role[i] = KG_ROWWISE_COLUMN;
    else if (!nest->has_reduce && nest->output_axes == plan->rows)
        plan->role[i] = KG_ROWWISE_SCALAR;
    else
        return refuse(reason, "the statements do not share rows and columns");
    if (!same_axes(nest, shape, nest->axis_count))
        return refuse(reason, "the statements differ in their rows or columns");
    if (kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return refuse(reason, "outputs of less than a byte");
    return true;
}

// The first pass in which everything that nest `i` reads is available.
static bool find_pass(struct kg_rowwise_plan *plan, int i, struct kg_text *reason)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, i);
    for (int a = 0; a < nest->access_count; a++) {
        int maker = kg_group_maker(plan->group, nest->accesses[a].tensor);
        if (maker < 0)
            continue;
        if (!kg_axes_identity(&nest->accesses[a]) ||
            (plan->role[maker] == KG_ROWWISE_COLUMN && plan->role[i] == KG_ROWWISE_SCALAR))
            return refuse(reason, "an intermediate is read at another place than it is made");
        int ready = plan->pass[maker] + (plan->role[maker] == KG_ROWWISE_REDUCE);
        if (plan->pass[i] < ready)
            plan->pass[i] = ready;
    }
    return true;
}

static bool reads(const struct kg_nest *nest, const struct kg_tensor *tensor)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].tensor == tensor)
            return true;
    return false;
}

// Private columns are computed in the first pass that needs them, and kept if a later one needs
// them too.
static void place_columns(struct kg_rowwise_plan *plan)
{
    for (int i = plan->group->count - 1; i >= 0; i--) {
        const struct kg_tensor *output = kg_group_nest(plan->group, i)->output;
        int first = -1, last = -1;
        if (plan->role[i] != KG_ROWWISE_COLUMN || !kg_group_is_private(plan->group, output))
            continue;
        for (int j = i + 1; j < plan->group->count; j++) {
            if (!reads(kg_group_nest(plan->group, j), output))
                continue;
            first = first < 0 || plan->pass[j] < first ? plan->pass[j] : first;
            last = plan->pass[j] > last ? plan->pass[j] : last;
        }
        plan->pass[i] = first >= 0 ? first : plan->pass[i];
        plan->kept[i] = last > plan->pass[i];
    }
}

bool kg_rowwise_plan_make(const struct kg_group *group, struct kg_rowwise_plan *plan,
                          struct kg_text *reason)
{
    *plan = (struct kg_rowwise_plan){.group = group};
    if (!find_shape(plan, reason))
        return false;
    for (int i = 0; i < group->count; i++)
        if (!find_role(plan, i, reason) || !find_pass(plan, i, reason))
            return false;
    place_columns(plan);
    plan->run = plan->rows;
    for (int i = 0; i < group->count; i++) {
        if (plan->role[i] == KG_ROWWISE_SCALAR)
            continue;
        int run = kg_axes_run(group, kg_group_nest(group, i), plan->rows, plan->last);
        plan->run = run > plan->run ? run : plan->run;
        plan->passes = plan->pass[i] + 1 > plan->passes ? plan->pass[i] + 1 : plan->passes;
    }
    return true;
}
