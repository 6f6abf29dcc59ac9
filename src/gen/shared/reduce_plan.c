// Reading a group as one reduction: see reduce_plan.h.

#include "gen/shared/reduce_plan.h"

#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static int find_reduction(const struct kg_group *group, struct kg_text *reason)
{
    int found = -1;
    for (int i = 0; i < group->count; i++) {
        if (!kg_group_nest(group, i)->has_reduce)
            continue;
        if (found >= 0) {
            kg_text_add(reason, "more than one reduction");
            return -1;
        }
        found = i;
    }
    if (found < 0)
        kg_text_add(reason, "no reduction");
    return found;
}

int kg_reduce_position(const struct kg_group *group, struct kg_text *reason)
{
    int k = find_reduction(group, reason);
    if (k < 0 || !kg_group_inlines(group, k, reason))
        return -1;
    const struct kg_nest *nest = kg_group_nest(group, k);
    for (int i = nest->output_axes; i < nest->axis_count; i++)
        if (nest->axes[i]->relation != KG_RELATION_NONE)
            return refuse(reason, "the range of the reduction depends on an output index"), -1;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        if (i < k && !kg_group_is_private(group, output))
            return refuse(reason, "what stands before the reduction is needed elsewhere"), -1;
        if (i > k && !kg_group_follows(group, k, i))
            return refuse(reason, "what follows the reduction has other axes"), -1;
        if (kg_dtype_is_packed(kg_emit_tensor_dtype(output)))
            return refuse(reason, "outputs of less than a byte"), -1;
    }
    return k;
}
