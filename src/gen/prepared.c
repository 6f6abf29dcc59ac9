// Running a built choice: see prepared.h.

#include "gen/prepared.h"

#include "gen/arguments.h"
#include "gen/maps.h"
#include "gen/shared/emit.h"
#include "gen/workspace.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = KG_MAX_NESTS + KG_MAX_TENSORS };

// One kernel. `numbers` has the values of the arguments that are not addresses.
struct step {
    const struct kg_kernel *kernel;
    struct kg_grids grids;
    int argument_count;
    struct kg_argument *arguments;
    int64_t *numbers;     // by argument
    struct kg_maps *maps; // NULL: none
};

struct kg_prepared {
    struct kg_device *device;
    int outer; // tensors of the caller
    int tensor_count;
    struct kg_workspace workspace; // the others
    int64_t sizes[KG_MAX_SIZES];
    int64_t *strides; // NULL: contiguous
    int step_count;
    struct step steps[];
};

static int64_t number_of(const struct kg_problem *problem, const struct kg_argument *argument)
{
    switch (argument->kind) {
    case KG_ARGUMENT_SIZE:
        return problem->sizes[argument->id];
    case KG_ARGUMENT_STRIDE:
        return problem->layouts[argument->id].stride[argument->dim];
    default:
        return 0;
    }
}

// Whether 32 bits count the elements of the axes [first, last), and of a tile beyond them. A single
// axis is not divided into digits.
static bool counts_in_int(const struct kg_nest *nest, int first, int last)
{
    double elements = 1;
    for (int axis = first; axis < last; axis++)
        elements *= (double)nest->extent[axis];
    return last - first < 2 || elements <= INT32_MAX / 2;
}

// Whether a kernel is right at the problem's sizes. Sources depend on sizes only where these are so
// large that 32 bits no longer count the elements of axes: see kg_cuda_axes.
static bool is_source_of(const struct kg_built *built, int position, const struct kg_match *match)
{
    const struct kg_match *own = built->choice.matches[position];
    const struct kg_config *config = &built->choice.configs[position];
    struct kg_text ours = {0}, theirs = {0};
    bool counts = true;
    for (int i = 0; i < match->group.count; i++) {
        const struct kg_nest *nest = kg_group_nest(&match->group, i);
        counts &= counts_in_int(nest, 0, nest->output_axes) &&
                  counts_in_int(nest, nest->output_axes, nest->axis_count);
    }
    if (counts)
        return true;
    bool is_same = own->family->emit(own, config, "kernel", &ours) &&
                   match->family->emit(match, config, "kernel", &theirs) &&
                   strcmp(kg_text_string(&ours), kg_text_string(&theirs)) == 0;
    kg_text_free(&ours);
    kg_text_free(&theirs);
    return is_same;
}

// The launch arguments of a kernel with grids.
static enum kg_status prepare_grids(const struct kg_built *built, const struct kg_problem *problem,
                                    int position, const struct step *like, struct step *step,
                                    struct kg_error *error)
{
    struct kg_argument list[KG_MAX_ARGUMENTS];
    const struct kg_argument *arguments = like ? like->arguments : list;
    const struct kg_match *match = kg_match_again(built->choice.matches[position], problem);
    if (!match)
        return kg_error_memory(error, "a kernel's launch");
    if (!is_source_of(built, position, match))
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "the plan's kernels count in 32 bits: these sizes need their own plan");
    match->family->grids(match, &built->choice.configs[position], &step->grids);
    int count = like ? like->argument_count : kg_group_arguments(&match->group, list);
    step->argument_count = count;
    step->arguments = malloc(((size_t)count + 1) * sizeof *step->arguments);
    step->numbers = malloc(((size_t)count + 1) * sizeof *step->numbers);
    if (!step->arguments || !step->numbers)
        return kg_error_memory(error, "the arguments of a kernel");
    for (int i = 0; i < count; i++) {
        step->arguments[i] = arguments[i];
        step->numbers[i] = number_of(problem, &arguments[i]);
    }
    return kg_maps_make(built->device, problem, &step->grids, &step->maps, error);
}

static enum kg_status prepare_steps(const struct kg_built *built, const struct kg_problem *problem,
                                    const struct kg_prepared *like, struct kg_prepared *prepared,
                                    struct kg_error *error)
{
    size_t scratch = 0;
    prepared->step_count = built->choice.count;
    for (int i = 0; i < prepared->step_count; i++) {
        struct step *step = &prepared->steps[i];
        step->kernel = built->kernels[i];
        enum kg_status status = KG_OK;
        if (prepared->device->backend->runs_grids)
            status = prepare_grids(built, problem, i, like ? &like->steps[i] : NULL, step, error);
        if (status != KG_OK)
            return status;
        scratch = step->grids.scratch > scratch ? step->grids.scratch : scratch;
    }
    kg_workspace_lay_out(&built->choice, problem, scratch, &prepared->workspace);
    return KG_OK;
}

static enum kg_status keep_strides(const struct kg_problem *problem, struct kg_prepared *prepared,
                                   struct kg_error *error)
{
    if (problem->contiguous)
        return KG_OK;
    prepared->strides =
        malloc((size_t)problem->tensor_count * KG_MAX_RANK * sizeof *prepared->strides);
    if (!prepared->strides)
        return kg_error_memory(error, "the strides of a kernel");
    for (int id = 0; id < problem->tensor_count; id++)
        memcpy(prepared->strides + id * KG_MAX_RANK, problem->layouts[id].stride,
               sizeof problem->layouts[id].stride);
    return KG_OK;
}

enum kg_status kg_prepared_make_like(const struct kg_prepared *like, const struct kg_built *built,
                                     const struct kg_problem *problem, struct kg_prepared **out,
                                     struct kg_error *error)
{
    *out = NULL;
    if (problem->contiguous != built->contiguous)
        return kg_error_set(error, KG_ERROR_SHAPE, "a kernel for %s tensors was given %s ones",
                            built->contiguous ? "contiguous" : "strided",
                            problem->contiguous ? "contiguous" : "strided");
    struct kg_prepared *prepared =
        calloc(1, sizeof *prepared + (size_t)built->choice.count * sizeof prepared->steps[0]);
    if (!prepared)
        return kg_error_memory(error, "a kernel's launch");
    prepared->device = built->device;
    prepared->outer = problem->op->input_count + problem->op->output_count;
    prepared->tensor_count = problem->tensor_count;
    memcpy(prepared->sizes, problem->sizes, sizeof prepared->sizes);
    enum kg_status status = keep_strides(problem, prepared, error);
    if (status == KG_OK)
        status = prepare_steps(built, problem, like, prepared, error);
    if (status != KG_OK) {
        kg_prepared_free(prepared);
        return status;
    }
    *out = prepared;
    return KG_OK;
}

enum kg_status kg_prepared_make(const struct kg_built *built, const struct kg_problem *problem,
                                struct kg_prepared **prepared, struct kg_error *error)
{
    return kg_prepared_make_like(NULL, built, problem, prepared, error);
}

void kg_prepared_free(struct kg_prepared *prepared)
{
    if (!prepared)
        return;
    for (int i = 0; i < prepared->step_count; i++) {
        free(prepared->steps[i].arguments);
        free(prepared->steps[i].numbers);
        kg_maps_free(prepared->steps[i].maps);
    }
    free(prepared->strides);
    free(prepared);
}

size_t kg_prepared_workspace(const struct kg_prepared *prepared)
{
    return prepared->workspace.bytes;
}

// Maps come after the group's other arguments.
static enum kg_status pass_maps(const struct step *step, bool is_aligned, void *const *pointers,
                                void *scratch, struct kg_map_set *spare, void **arguments,
                                struct kg_error *error)
{
    const struct kg_map_set *set;
    enum kg_status status =
        kg_maps_find(step->maps, is_aligned, pointers, scratch, spare, &set, error);
    for (int i = 0; i < step->grids.map_count && !status; i++)
        arguments[step->argument_count + i] = (void *)&set->encoded[i];
    return status;
}

static enum kg_status launch_or_renew(const struct kg_prepared *prepared, const struct step *step,
                                      const struct kg_launch *launch, struct kg_graph *graph,
                                      struct kg_error *error)
{
    const struct kg_backend *backend = prepared->device->backend;
    return graph ? backend->renew(graph, step->kernel, launch, error)
                 : backend->launch(step->kernel, launch, error);
}

static enum kg_status run_grids(const struct kg_prepared *prepared, const struct step *step,
                                void **pointers, void **scratch, struct kg_launch *launch,
                                struct kg_graph *graph, struct kg_error *error)
{
    void *arguments[KG_MAX_ARGUMENTS];
    uintptr_t places = 0;
    for (int i = 0; i < step->argument_count; i++) {
        const struct kg_argument *argument = &step->arguments[i];
        if (argument->kind == KG_ARGUMENT_TENSOR) {
            arguments[i] = &pointers[argument->id];
            places |= (uintptr_t)pointers[argument->id];
        } else if (argument->kind == KG_ARGUMENT_SCRATCH) {
            arguments[i] = scratch;
        } else {
            arguments[i] = &step->numbers[i];
        }
    }
    bool is_aligned = step->grids.alignment == 0 || places % (unsigned)step->grids.alignment == 0;
    launch->grids = is_aligned ? step->grids.grids : step->grids.unaligned;
    launch->grid_count = step->grids.count;
    launch->arguments = arguments;
    struct kg_map_set spare;
    if (step->maps) {
        enum kg_status status =
            pass_maps(step, is_aligned, pointers, *scratch, &spare, arguments, error);
        if (status)
            return status;
    }
    return launch_or_renew(prepared, step, launch, graph, error);
}

// Launches in the stream; or, given a graph, updates its launches. The device was entered.
static enum kg_status run_steps(const struct kg_prepared *prepared, void *const *tensors,
                                void *workspace, void *stream, struct kg_graph *graph,
                                struct kg_error *error)
{
    void *pointers[MAX_TENSORS];
    void *scratch = workspace ? (char *)workspace + prepared->workspace.scratch : NULL;
    memcpy(pointers, tensors, (size_t)prepared->outer * sizeof *tensors);
    for (int id = prepared->outer; id < prepared->tensor_count; id++)
        pointers[id] = workspace ? (char *)workspace + prepared->workspace.places[id] : NULL;
    struct kg_launch launch = {
        .tensors = pointers,
        .sizes = prepared->sizes,
        .strides = prepared->strides,
        .stream = stream,
        .is_entered = true,
    };
    for (int i = 0; i < prepared->step_count; i++) {
        const struct step *step = &prepared->steps[i];
        enum kg_status status =
            prepared->device->backend->runs_grids
                ? run_grids(prepared, step, pointers, &scratch, &launch, graph, error)
                : launch_or_renew(prepared, step, &launch, graph, error);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
}

int64_t kg_prepared_ranges(const struct kg_prepared *prepared, int kernel)
{
    const struct kg_backend *backend = prepared->device->backend;
    void *pointers[MAX_TENSORS] = {NULL};
    const struct kg_launch launch = {
        .tensors = pointers, .sizes = prepared->sizes, .strides = prepared->strides};
    if (!backend->ranges || kernel >= prepared->step_count)
        return 0;
    return backend->ranges(prepared->steps[kernel].kernel, &launch);
}

static enum kg_status enter_and_run(const struct kg_prepared *prepared, void *const *tensors,
                                    void *workspace, void *stream, struct kg_graph *graph,
                                    struct kg_error *error)
{
    const struct kg_backend *backend = prepared->device->backend;
    bool changed = false;
    enum kg_status status =
        backend->enter ? backend->enter(prepared->device, &changed, error) : KG_OK;
    if (status != KG_OK)
        return status;
    status = run_steps(prepared, tensors, workspace, stream, graph, error);
    if (backend->leave)
        backend->leave(prepared->device, changed);
    return status;
}

enum kg_status kg_prepared_run(const struct kg_prepared *prepared, void *const *tensors,
                               void *workspace, void *stream, struct kg_error *error)
{
    return enter_and_run(prepared, tensors, workspace, stream, NULL, error);
}

enum kg_status kg_prepared_renew(const struct kg_prepared *prepared, void *const *tensors,
                                 void *workspace, struct kg_graph *graph, struct kg_error *error)
{
    return enter_and_run(prepared, tensors, workspace, NULL, graph, error);
}
