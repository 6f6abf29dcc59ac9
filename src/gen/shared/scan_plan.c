// Reading a group as a scan: see scan_plan.h.

#include "gen/shared/scan_plan.h"

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static int find_scan(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (kg_group_nest(group, i)->has_reduce)
            return i;
    return -1;
}

// The bound has to be an output axis with the range of the reduced one.
static const char *obstacle(const struct kg_nest *nest)
{
    const struct kg_index *reduced = nest->axes[nest->axis_count - 1];
    if (nest->axis_count != nest->output_axes + 1)
        return "more than one reduced index";
    if (reduced->relation == KG_RELATION_NONE)
        return "the reduction does not depend on an output index";
    if (reduced->bound->kind != KG_EXPR_INDEX || reduced->bound->index->id >= nest->output_axes)
        return "the bound is not an output index alone";
    int axis = reduced->bound->index->id;
    if (!kg_axes_from_zero(reduced) || !kg_size_same(reduced->end, nest->axes[axis]->end))
        return "the reduced index and its bound have different ranges";
    if (kg_expr_uses(nest->body, axis, true))
        return "the formula uses the output index of the scan";
    // Backward, the later of two equal values would have to win.
    if (kg_reduces[nest->reduce].is_argument &&
        (reduced->relation == KG_RELATION_GE || reduced->relation == KG_RELATION_GT))
        return "places are looked for forward only";
    return NULL;
}

static bool is_column(const struct kg_nest *nest)
{
    return nest->axes[nest->output_axes]->bound->index->id != nest->output_axes - 1;
}

bool kg_scan_plan_make(const struct kg_group *group, struct kg_scan_plan *plan,
                       struct kg_text *reason)
{
    int k = find_scan(group);
    if (k < 0)
        return refuse(reason, "no reduction");
    const struct kg_nest *nest = kg_group_nest(group, k);
    const char *why = obstacle(nest);
    if (why)
        return refuse(reason, why);
    if (!kg_group_inlines(group, k, reason))
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        if (i != k && kg_group_nest(group, i)->has_reduce)
            return refuse(reason, "more than one reduction");
        if (i < k && !kg_group_is_private(group, output))
            return refuse(reason, "what stands before the scan is needed elsewhere");
        if (i > k && !kg_group_follows(group, k, i))
            return refuse(reason, "what follows the scan has other axes");
        if (kg_dtype_is_packed(kg_emit_tensor_dtype(output)))
            return refuse(reason, "outputs of less than a byte");
    }
    const struct kg_index *reduced = nest->axes[nest->output_axes];
    *plan = (struct kg_scan_plan){
        .group = group,
        .nest = nest,
        .fold = kg_fold_of(nest),
        .k = k,
        .axis = reduced->bound->index->id,
        .bound = nest->output_axes,
        .last = nest->output_axes - 1,
        .column = is_column(nest),
        .backward = reduced->relation == KG_RELATION_GE || reduced->relation == KG_RELATION_GT,
        .exclusive = reduced->relation == KG_RELATION_LT || reduced->relation == KG_RELATION_GT,
    };
    plan->run = plan->last;
    if (plan->column) {
        plan->run = plan->axis + 1;
        for (int i = k; i < group->count; i++) {
            int run = kg_axes_run(group, kg_group_nest(group, i), plan->axis + 1, plan->last);
            plan->run = run > plan->run ? run : plan->run;
        }
    }
    return true;
}

bool kg_scan_is_stored(const struct kg_scan_plan *plan, int position)
{
    return position >= plan->k &&
           !kg_group_is_private(plan->group, kg_group_nest(plan->group, position)->output);
}
