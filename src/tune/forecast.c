// Forecasts launch by launch; see forecast.h.

#include "tune/forecast.h"

#include "asm/points.h"
#include "gen/shared/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool kg_forecast_is_launched(const struct kg_grid *grid)
{
    return grid->blocks[0] > 0 && grid->blocks[1] > 0 && grid->blocks[2] > 0;
}

// The function whose name ends in "_<number>".
const struct kg_asm_kernel *kg_forecast_function(const struct kg_asm_file *file, int number)
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

// The work that any kernel must do. With several groups, their shares of the work are not known;
// the bytes they move are counted as written, although a cache may keep some of them.
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

// The forecast so far.
struct sum {
    struct kg_model_joined joined;
    double longest; // seconds, expected of the longest launch
    struct kg_forecast *forecast;
};

static void add_launch(const struct kg_asm_file *file, int number, const struct kg_gpu *gpu,
                       const struct kg_grid *grid, struct kg_model_problem *work, struct sum *sum)
{
    struct kg_forecast *forecast = sum->forecast;
    const struct kg_asm_kernel *kernel = kg_forecast_function(file, number);
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
        snprintf(forecast->refusal, sizeof forecast->refusal, "%.250s", error.text);
    forecast->known = forecast->known && (status == KG_OK || status == KG_ERROR_UNSUPPORTED);
    if (status)
        return;
    forecast->points += kg_points_of(kernel, &kg_points_baseline);
    if (kernel->registers > forecast->registers)
        forecast->registers = kernel->registers;
    kg_model_join(&sum->joined, model.bound, model.feature);
    double expected = model.bound * exp(model.feature[KG_FEATURE_EXPECTED]);
    if (expected > sum->longest) {
        sum->longest = expected;
        forecast->longest = launch;
    }
}

static void add_group(const struct kg_built *built, int position, const struct kg_problem *problem,
                      const struct kg_gpu *gpu, bool warm, struct sum *sum)
{
    struct kg_forecast *forecast = sum->forecast;
    const struct kg_choice *choice = &built->choice;
    const struct kg_group *group = &choice->matches[position]->group;
    const struct kg_binary *binary = &built->binaries[position];
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    struct kg_grids grids = {0};
    forecast->known = forecast->known && binary->bytes &&
                      kg_asm_read(binary->bytes, binary->length, &arena, &file, NULL) == KG_OK;
    if (forecast->known) {
        struct kg_model_problem work = describe_work(problem, group, choice->count == 1, warm);
        choice->matches[position]->family->grids(choice->matches[position],
                                                 &built->choice.configs[position], &grids);
        for (int i = 0; i < grids.count; i++) {
            if (!kg_forecast_is_launched(&grids.grids[i]))
                continue;
            add_launch(&file, i, gpu, &grids.grids[i], &work, sum);
            work = (struct kg_model_problem){.warm = warm}; // the problem's work counts once
        }
    }
    kg_arena_free(&arena);
}

void kg_forecast_make(const struct kg_built *built, const struct kg_problem *problem, bool warm,
                      struct kg_forecast *forecast)
{
    struct kg_gpu gpu;
    *forecast = (struct kg_forecast){0};
    struct sum sum = {.forecast = forecast};
    forecast->known =
        built->device->backend->runs_grids && kg_gpu_of(&built->device->facts, &gpu, NULL) == KG_OK;
    for (int i = 0; i < built->choice.count && forecast->known; i++)
        add_group(built, i, problem, &gpu, warm, &sum);
    const struct kg_model_joined *joined = &sum.joined;
    forecast->known = forecast->known && (joined->launches > 0 || forecast->refusal[0]);
    if (!forecast->known || joined->launches == 0)
        return;
    forecast->bound = joined->bound;
    memcpy(forecast->feature, joined->feature, sizeof forecast->feature);
    forecast->launches = joined->launches;
    kg_model_derive(forecast->bound, &forecast->longest, &gpu, forecast->feature);
    const struct kg_choice *choice = &built->choice;
    const char *family = choice->count == 1 ? choice->matches[0]->family->name : NULL;
    forecast->estimate = kg_model_estimate(forecast->bound, forecast->feature, forecast->launches,
                                           warm, kg_model_prior_of(family));
}
