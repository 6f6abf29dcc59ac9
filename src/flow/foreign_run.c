// Foreign kernels judged and timed: see foreign.h. Code for the host is loaded only in the confined
// child that judges or times it, because loading it runs code of its own.

#include "flow/foreign_parts.h"
#include "flow/judging.h"
#include "gen/prepared.h"
#include "tune/test_rig.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_SECONDS 120.0 // one kernel on all cases; a longer time is a hang
#define GPU_SECONDS 30.0
#define LOAD_SECONDS 20.0     // for loading it once more
#define RACE_SECONDS 300.0    // for a whole race; a longer time is a hang
#define DECLARED_ALIGNMENT 16 // bytes: what tensors of files with launches of their own begin at
#define HOST_BYTES ((size_t)4 << 30) // that a kernel on the host may take for itself
#define GATE_BYTES ((size_t)1 << 30) // that judging may take
#define GATE_COPIES 4                // of the problem's tensors, besides

// On the host.

static enum kg_status load_on_host(void *user, struct kg_error *error)
{
    struct kg_foreign *foreign = user;
    char threads[16];
    // This is the child. OpenMP has as many threads as generated kernels have, and its idle ones
    // sleep as theirs do: spinning ones would take a core from what is timed next.
    snprintf(threads, sizeof threads, "%d", foreign->device->facts.units);
    setenv("OMP_NUM_THREADS", threads, 1);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    return foreign->device->backend->load(foreign->device, &foreign->binary, KG_FOREIGN_ENTRY,
                                          &foreign->kernel, error);
}

static enum kg_status unload_on_host(void *user, struct kg_error *error)
{
    struct kg_foreign *foreign = user;
    (void)error;
    foreign->device->backend->unload(foreign->kernel);
    foreign->kernel = NULL;
    return KG_OK;
}

static enum kg_status run_on_host(void *user, const struct kg_problem *problem,
                                  void *const *tensors, struct kg_error *error)
{
    const struct kg_foreign *foreign = user;
    if (!problem->contiguous)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "the signature has no strides");
    struct kg_launch launch = {.tensors = tensors, .sizes = problem->sizes};
    return foreign->device->backend->launch(foreign->kernel, &launch, error);
}

// What a kernel may do on the host: its calls are judged on copies of the tensors.
static struct kg_confinement confinement_for(const struct kg_request *request)
{
    const struct kg_problem *problem = request->problem;
    int threads = request->device->facts.units;
    size_t tensors = 0;
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++)
        tensors += problem->layouts[i].bytes;
    return (struct kg_confinement){.memory = GATE_BYTES + GATE_COPIES * tensors + HOST_BYTES,
                                   .threads = threads,
                                   .seconds = 2 * HOST_SECONDS * threads};
}

// On GPUs: a kernel with everything that running it on one problem again and again needs. It must
// not be moved: arguments point into it.
struct prepared {
    const struct kg_foreign *foreign;
    struct kg_prepared *built; // of a file with a choice
    void *memory;              // the workspace, or the scratch that the file declares
    void *tensors[KG_MAX_TENSORS];
    struct {
        struct kg_grid grid;
        int64_t numbers[KG_MAX_ARGUMENTS];
        void *arguments[KG_MAX_ARGUMENTS];
    } launches[KG_MOST_DECLARED];
};

static void release(struct prepared *prepared)
{
    struct kg_device *device = prepared->foreign->device;
    if (prepared->memory)
        device->backend->release(device, prepared->memory);
    kg_prepared_free(prepared->built);
}

// One launch as declared by the file.
static enum kg_status prepare_launch(struct prepared *prepared, int position,
                                     const struct kg_problem *problem, struct kg_error *error)
{
    const struct kg_declared *file = &prepared->foreign->declared;
    const struct kg_declared_launch *declared = &file->launches[position];
    int64_t *numbers = prepared->launches[position].numbers;
    void **arguments = prepared->launches[position].arguments;
    struct kg_grid *grid = &prepared->launches[position].grid;
    enum kg_status status = kg_declared_grid(file, position, problem->sizes, grid, error);
    if (status || grid->blocks[0] == 0)
        return status;
    for (int i = 0; i < declared->argument_count; i++) {
        const struct kg_argument *argument = &declared->arguments[i];
        bool is_size = argument->kind == KG_ARGUMENT_SIZE;
        numbers[i] = is_size ? problem->sizes[argument->id]
                     : argument->kind == KG_ARGUMENT_STRIDE //
                         ? problem->layouts[argument->id].stride[argument->dim]
                         : 0;
        arguments[i] = argument->kind == KG_ARGUMENT_TENSOR
                           ? (void *)&prepared->tensors[argument->id]
                       : argument->kind == KG_ARGUMENT_SCRATCH ? (void *)&prepared->memory
                                                               : (void *)&numbers[i];
        if (declared->widths[i] == 4 && (numbers[i] > INT_MAX || numbers[i] < INT_MIN))
            return kg_error_set(error, KG_ERROR_SHAPE, "parameter %d of %s has 32 bits: %lld",
                                i + 1, declared->function, (long long)numbers[i]);
    }
    return KG_OK;
}

// The caller releases it, after a failure too.
static enum kg_status prepare(struct prepared *prepared, const struct kg_foreign *foreign,
                              const struct kg_problem *problem, struct kg_error *error)
{
    *prepared = (struct prepared){.foreign = foreign};
    size_t bytes = 0;
    enum kg_status status = KG_OK;
    if (foreign->built) {
        status = kg_prepared_make(foreign->built, problem, &prepared->built, error);
        bytes = status ? 0 : kg_prepared_workspace(prepared->built);
    } else if (!problem->contiguous) {
        status = kg_error_set(error, KG_ERROR_UNSUPPORTED, "it is for contiguous tensors");
    } else {
        status = kg_declared_scratch(&foreign->declared, problem->sizes, &bytes, error);
        for (int i = 0; i < foreign->declared.count && !status; i++)
            status = prepare_launch(prepared, i, problem, error);
    }
    if (!status && bytes > 0)
        status =
            foreign->device->backend->allocate(foreign->device, bytes, &prepared->memory, error);
    return status;
}

static enum kg_status run_prepared(void *user, const struct kg_problem *problem,
                                   void *const *tensors, struct kg_error *error)
{
    struct prepared *prepared = user;
    const struct kg_foreign *foreign = prepared->foreign;
    if (prepared->built)
        return kg_prepared_run(prepared->built, tensors, prepared->memory, NULL, error);
    size_t count = (size_t)problem->op->input_count + (size_t)problem->op->output_count;
    memcpy(prepared->tensors, tensors, count * sizeof tensors[0]);
    enum kg_status status = KG_OK;
    for (int i = 0; i < foreign->declared.count && !status; i++) {
        struct kg_launch launch = {.grids = &prepared->launches[i].grid,
                                   .grid_count = 1,
                                   .arguments = prepared->launches[i].arguments};
        if (prepared->launches[i].grid.blocks[0] > 0)
            status = foreign->device->backend->launch(foreign->kernels[i], &launch, error);
    }
    return status;
}

static enum kg_status run_on_gpu(void *user, const struct kg_problem *problem, void *const *tensors,
                                 struct kg_error *error)
{
    struct prepared prepared;
    enum kg_status status = prepare(&prepared, user, problem, error);
    if (!status)
        status = run_prepared(&prepared, problem, tensors, error);
    release(&prepared);
    return status;
}

size_t kg_foreign_alignment(const struct kg_foreign *foreign)
{
    return foreign->built ? 0 : DECLARED_ALIGNMENT;
}

enum kg_status kg_foreign_judge(const struct kg_request *request, struct kg_foreign *foreign,
                                const struct kg_gate *gate, struct kg_verdict *verdict,
                                struct kg_error *error)
{
    bool runs_grids = foreign->device->backend->runs_grids;
    struct kg_subject subject = {foreign->path, foreign, runs_grids ? run_on_gpu : run_on_host};
    struct kg_guest guest = {load_on_host, unload_on_host, confinement_for(request)};
    return kg_flow_judge(request, gate, &subject, runs_grids ? NULL : &guest,
                         runs_grids ? GPU_SECONDS : HOST_SECONDS, verdict, error);
}

// Racing, in a child of its own.

struct race {
    struct kg_foreign *foreign;
    const struct kg_search *terms;
    struct kg_test_rig *rig; // on the host: the child has it from its parent
    struct kg_built *const *rivals;
    int count;
};

static enum kg_status load_racer(void *user, void *result, size_t size, struct kg_error *error)
{
    const struct race *race = user;
    (void)result;
    (void)size;
    return load_on_host(race->foreign, error);
}

static enum kg_status race_on_host(void *user, void *result, size_t size, struct kg_error *error)
{
    const struct race *race = user;
    const struct kg_subject subject = {race->foreign->path, race->foreign, run_on_host};
    (void)size;
    return kg_test_rig_race_guest(race->rig, &subject, race->rivals, race->count, result, error);
}

static enum kg_status race_on_gpu(void *user, void *result, size_t size, struct kg_error *error)
{
    const struct race *race = user;
    struct prepared prepared;
    const struct kg_subject subject = {race->foreign->path, &prepared, run_prepared};
    struct kg_test_rig *rig;
    (void)size;
    enum kg_status status = kg_test_rig_make(race->terms, &rig, error);
    if (status)
        return status;
    status = prepare(&prepared, race->foreign, race->terms->problem, error);
    if (!status)
        status = kg_test_rig_race_guest(rig, &subject, race->rivals, race->count, result, error);
    release(&prepared);
    kg_test_rig_free(rig);
    return status;
}

enum kg_status kg_foreign_race(const struct kg_request *request, struct kg_foreign *foreign,
                               const struct kg_search *terms, struct kg_test_rig *rig,
                               struct kg_built *const *rivals, int count, struct kg_timing *timings,
                               struct kg_error *error)
{
    const struct kg_worker_step steps[] = {
        {load_racer, LOAD_SECONDS, "while it was loaded"},
        {race_on_host, RACE_SECONDS, "while it was timed"},
    };
    struct race race = {foreign, terms, rig, rivals, count};
    const struct kg_confinement confinement = confinement_for(request);
    size_t size = (size_t)(count + 1) * sizeof *timings;
    double start = kg_times_now();
    enum kg_status status =
        foreign->device->backend->runs_grids
            ? kg_worker_run_on(foreign->device, race_on_gpu, &race, RACE_SECONDS, terms->cancel,
                               timings, size, error)
            : kg_worker_run_steps(steps, sizeof steps / sizeof steps[0], &race, &confinement,
                                  terms->cancel, timings, size, error);
    kg_times_since(&request->session->times, KG_ACTIVITY_RACE, start);
    return status;
}
