// Launch by launch: see promise.h.

#include "tune/promise.h"

#include "gen/families.h"

#include <stdio.h>
#include <string.h>

bool kg_promise_is_launched(const struct kg_grid *grid)
{
    return grid->blocks[0] > 0 && grid->blocks[1] > 0 && grid->blocks[2] > 0;
}

// Its name ends in "_<number>".
const struct kg_asm_kernel *kg_promise_function(const struct kg_asm_file *file, int number)
{
    char ending[16];
    size_t length = (size_t)snprintf(ending, sizeof ending, "_%d", number);
    for (int i = 0; i < file->kernel_count; i++) {
        const char *name = file->kernels[i].name;
        size_t all = strlen(name);
        if (all > length && strcmp(name + all - length, ending) == 0)
            return &file->kernels[i];
    }
    return NULL;
}

// What must be done whatever the kernel. Of several groups it is not known how they share the work;
// what they move is charged as written, some of which a cache may keep.
static struct kg_model_problem describe_work(const struct kg_problem *problem,
                                             const struct kg_group *group, bool alone, bool warm)
{
    struct kg_model_problem work = {.warm = warm};
    if (alone) {
        work.read_bytes = problem->read_bytes;
        work.write_bytes = problem->write_bytes;
        work.flops = problem->operations;
    } else {
        work.write_bytes = kg_group_bytes(group);
    }
    return work;
}

static void add_launch(const struct kg_asm_file *file, int number, const struct kg_gpu *gpu,
                       const struct kg_grid *grid, struct kg_model_problem *work, double *largest,
                       struct kg_promise *promise)
{
    const struct kg_asm_kernel *kernel = kg_promise_function(file, number);
    struct kg_model_launch launch = {
        .grid = grid->blocks[0] * grid->blocks[1] * grid->blocks[2],
        .threads = grid->threads[0] * grid->threads[1] * grid->threads[2],
        .dynamic_shared = grid->shared,
        .cluster = grid->cluster,
    };
    struct kg_model model;
    struct kg_error error = {0};
    enum kg_status status = KG_ERROR_MISSING;
    if (kernel && work->flops > 0 && kg_model_format(kernel, gpu->sm, &work->factors))
        work->on_matrix_units = true;
    if (kernel)
        status = kg_model_make(kernel, file->format, gpu, &launch, work, NULL, &model, &error);
    if (status == KG_ERROR_UNSUPPORTED)
        snprintf(promise->refusal, sizeof promise->refusal, "%.250s", error.text);
    promise->known = promise->known && (status == KG_OK || status == KG_ERROR_UNSUPPORTED);
    if (status)
        return;
    promise->bound += model.bound;
    promise->estimate += model.estimate;
    if (model.bound > *largest) {
        *largest = model.bound;
        memcpy(promise->feature, model.feature, sizeof promise->feature);
    }
}

static void add_group(const struct kg_built *built, int position, const struct kg_problem *problem,
                      const struct kg_gpu *gpu, bool warm, double *largest,
                      struct kg_promise *promise)
{
    const struct kg_partition *partition = &built->choice.partition;
    const struct kg_group *group = &partition->groups[position];
    const struct kg_binary *binary = &built->binaries[position];
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    struct kg_grids grids = {0};
    promise->known = promise->known && binary->bytes &&
                     kg_asm_read(binary->bytes, binary->length, &arena, &file, NULL) == KG_OK;
    if (promise->known) {
        struct kg_model_problem work = describe_work(problem, group, partition->count == 1, warm);
        partition->families[position]->grids(group, &built->device->facts,
                                             &built->choice.configs[position], &grids);
        for (int i = 0; i < grids.count; i++) {
            if (!kg_promise_is_launched(&grids.grids[i]))
                continue;
            add_launch(&file, i, gpu, &grids.grids[i], &work, largest, promise);
            work = (struct kg_model_problem){.warm = warm}; // it is done once
        }
    }
    kg_arena_free(&arena);
}

void kg_promise_make(const struct kg_built *built, const struct kg_problem *problem, bool warm,
                     struct kg_promise *promise)
{
    struct kg_gpu gpu;
    double largest = 0;
    *promise = (struct kg_promise){0};
    promise->known =
        built->device->backend->runs_grids && kg_gpu_of(&built->device->facts, &gpu, NULL) == KG_OK;
    for (int i = 0; i < built->choice.partition.count && promise->known; i++)
        add_group(built, i, problem, &gpu, warm, &largest, promise);
    promise->known = promise->known && (promise->bound > 0 || promise->refusal[0]);
}
