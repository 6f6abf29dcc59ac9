// Offsets in the memory that kernels share: see workspace.h.

#include "gen/workspace.h"

static size_t aligned(size_t bytes)
{
    return (bytes + KG_WORKSPACE_ALIGNMENT - 1) / KG_WORKSPACE_ALIGNMENT * KG_WORKSPACE_ALIGNMENT;
}

void kg_workspace_lay_out(const struct kg_choice *choice, const struct kg_problem *problem,
                          size_t scratch, struct kg_workspace *workspace)
{
    size_t used = 0;
    *workspace = (struct kg_workspace){0};
    for (int id = 0; id < problem->tensor_count; id++) {
        if (problem->tensors[id]->role != KG_ROLE_LOCAL || !kg_choice_in_memory(choice, id))
            continue;
        workspace->places[id] = used;
        used += aligned(problem->layouts[id].bytes);
    }
    workspace->scratch = used;
    workspace->bytes = used + aligned(scratch);
}
