// The list of a kernel's arguments: see arguments.h.

#include "gen/arguments.h"

#include "gen/shared/emit.h"

// A map takes the place of 16 other arguments; the first one is aligned to 64 bytes.
#define MOST (KG_MAX_ARGUMENTS - KG_MAX_MAPS * 16 - 7)

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
    if (count + strides + 1 > MOST)
        return 0;
    for (int i = 0; i < count; i++)
        arguments[i] = all[i];
    for (int id = 0; id < problem->tensor_count && !problem->contiguous; id++)
        for (int dim = 0; needs.tensor[id] && dim < problem->tensors[id]->rank; dim++)
            arguments[count++] = (struct kg_argument){KG_ARGUMENT_STRIDE, id, dim};
    arguments[count++] = (struct kg_argument){KG_ARGUMENT_SCRATCH, 0, 0};
    return count;
}

int kg_group_arguments_and_maps(const struct kg_group *group, int maps,
                                struct kg_argument *arguments)
{
    int count = kg_group_arguments(group, arguments);
    for (int i = 0; i < maps && count > 0; i++)
        arguments[count + i] = (struct kg_argument){KG_ARGUMENT_MAP, i, 0};
    return count > 0 ? count + maps : 0;
}
