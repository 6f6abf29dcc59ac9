// Reads the plan's cubins with src/asm and reports them with src/report, one function at a time.

#include "flow/analysis.h"

#include "asm/gpu.h"
#include "report/assembly.h"

#include <string.h>

// Compulsory bytes and operations are known for the problem as a whole, so only plans with one
// launch use them.
static struct kg_assembly_launch describe_launch(const struct kg_plan *plan,
                                                 const struct kg_grid *grid, bool alone)
{
    const struct kg_device_facts *facts = &plan->device->facts;
    struct kg_assembly_launch launch = {
        .device = kg_gpu_find(facts->name) ? facts->name : NULL,
        .shared_bytes = grid->shared,
    };
    memcpy(launch.grid, grid->blocks, sizeof launch.grid);
    memcpy(launch.block, grid->threads, sizeof launch.block);
    if (alone) {
        launch.read_bytes = plan->problem->read_bytes;
        launch.write_bytes = plan->problem->write_bytes;
        launch.flops = plan->problem->operations;
    }
    return launch;
}

static enum kg_status analyse_group(const struct kg_plan *plan, int position, struct kg_text *text,
                                    struct kg_error *error)
{
    const struct kg_choice *choice = &plan->built->choice;
    const struct kg_binary *binary = &plan->built->binaries[position];
    struct kg_arena arena = {0};
    struct kg_assembly_subject subject = {.name = plan->problem->op->name};
    struct kg_grids grids = {0};
    enum kg_status status =
        kg_asm_read(binary->bytes, binary->length, &arena, &subject.file, error);
    choice->matches[position]->family->grids(choice->matches[position], &choice->configs[position],
                                             &grids);
    int launched = 0;
    for (int i = 0; i < grids.count; i++)
        launched += kg_forecast_is_launched(&grids.grids[i]);
    bool alone = choice->count == 1 && launched == 1;
    for (int i = 0; i < grids.count && status == KG_OK; i++) {
        const struct kg_grid *grid = &grids.grids[i];
        const struct kg_asm_kernel *function = kg_forecast_function(&subject.file, i);
        if (!function || !kg_forecast_is_launched(grid))
            continue;
        struct kg_assembly_launch launch = describe_launch(plan, grid, alone);
        status = kg_report_assembly(&subject, (int)(function - subject.file.kernels), &launch,
                                    false, text, error);
        kg_text_add(text, "\n");
    }
    kg_arena_free(&arena);
    return status;
}

enum kg_status kg_flow_analyse(const struct kg_plan *plan, struct kg_text *text,
                               struct kg_error *error)
{
    enum kg_status status = KG_OK;
    int count = plan->built->choice.count;
    if (!plan->device->backend->runs_grids)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "the assembly of %s is not kept",
                            plan->device->backend->name);
    for (int i = 0; i < count && status == KG_OK; i++) {
        if (count > 1)
            kg_text_format(text, "kernel %d of %d\n\n", i + 1, count);
        status = analyse_group(plan, i, text, error);
    }
    if (status == KG_OK && text->failed)
        status = kg_error_memory(error, "the analysis of a plan");
    return status;
}
