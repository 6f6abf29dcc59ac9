// The list of a kernel's arguments: see arguments.h.

#include "gen/arguments.h"

#include "gen/emit.h"

int kg_group_arguments(const struct kg_group *group, struct kg_argument *arguments)
{
    const struct kg_problem *problem = group->problem;
    struct kg_argument all[KG_MAX_NESTS + KG_MAX_TENSORS + KG_MAX_SIZES + 1];
    struct kg_needs needs;
    int count = 0, strides = 0;
    kg_group_needs(group, &needs);
    for (int id = 0; id < problem->tensor_count; id++) {
        needs.tensor[id] = needs.tensor[id] && !kg_group_is_private(group, problem->tensors[id]);
        if (needs.tensor[id]) {
            all[count++] = (struct kg_argument){KG_ARGUMENT_TENSOR, id, 0};
            strides += problem->contiguous ? 0 : problem->tensors[id]->rank;
        }
    }
    for (int id = 0; id < problem->op->size_count; id++)
        if (needs.size[id])
            all[count++] = (struct kg_argument){KG_ARGUMENT_SIZE, id, 0};
    if (count + strides + 1 > KG_MAX_ARGUMENTS)
        return 0;
    for (int i = 0; i < count; i++)
        arguments[i] = all[i];
    for (int id = 0; id < problem->tensor_count && !problem->contiguous; id++)
        for (int dim = 0; needs.tensor[id] && dim < problem->tensors[id]->rank; dim++)
            arguments[count++] = (struct kg_argument){KG_ARGUMENT_STRIDE, id, dim};
    arguments[count++] = (struct kg_argument){KG_ARGUMENT_SCRATCH, 0, 0};
    return count;
}
