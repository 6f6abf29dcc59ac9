// Turns a question about a kernel into the inputs of occupancy and model.

#include "asm/appraisal.h"

#include "asm/points.h"
#include "base/names.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define USUAL_THREADS 128
#define MAX_DEVICES 64
#define MUCH_TAIL 0.2 // share of block slots of all waves that stay empty
#define MAX_BLOCKS ((int64_t)1 << 48)

void kg_asm_list_devices(struct kg_text *text, const struct kg_sm *sm)
{
    bool any = false;
    for (const struct kg_gpu *gpu = kg_gpus; gpu->name; gpu++)
        if (!sm || gpu->sm == sm) {
            kg_text_format(text, "%s%s", any ? ", " : "", gpu->handle);
            any = true;
        }
}

static enum kg_status unknown_device(const char *name, struct kg_error *error)
{
    const char *names[MAX_DEVICES] = {0};
    size_t count = 0;
    for (const struct kg_gpu *gpu = kg_gpus; gpu->name && count < MAX_DEVICES; gpu++)
        names[count++] = gpu->handle;
    const char *nearest = kg_names_nearest(name, names, count);
    struct kg_text known = {0};
    kg_asm_list_devices(&known, NULL);
    kg_error_set(error, KG_ERROR_ARGUMENT, "no device '%s' is known%s%s%s; known are %s", name,
                 nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
                 kg_text_string(&known));
    kg_text_free(&known);
    return KG_ERROR_ARGUMENT;
}

// Code whose architecture has a letter runs on that architecture only ('f': on its family). A cubin
// runs on equal and higher minor versions of its major version; PTX runs on everything newer.
static bool runs_on(const struct kg_asm_kernel *kernel, enum kg_asm_format format, int sm)
{
    size_t length = strlen(kernel->arch);
    char letter = length ? kernel->arch[length - 1] : '0';
    if (letter == 'a')
        return kernel->sm == sm;
    if (letter == 'f' || format != KG_ASM_PTX)
        return kernel->sm / 10 == sm / 10 && kernel->sm <= sm;
    return kernel->sm <= sm;
}

static enum kg_status wrong_device(const struct kg_asm_kernel *kernel, const struct kg_gpu *gpu,
                                   struct kg_error *error)
{
    struct kg_text known = {0};
    const struct kg_sm *own = kg_sm_find(kernel->arch);
    if (own)
        kg_asm_list_devices(&known, own);
    kg_error_set(error, KG_ERROR_ARGUMENT, "code for %s does not run on %s, which is sm_%d%s%s",
                 kernel->arch, gpu->name, gpu->sm->sm, known.length ? "; it does on " : "",
                 kg_text_string(&known));
    kg_text_free(&known);
    return KG_ERROR_ARGUMENT;
}

static enum kg_status find_device(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                                  const char *name, struct kg_appraisal *appraisal,
                                  struct kg_error *error)
{
    if (name) {
        appraisal->gpu = kg_gpu_named(name);
        if (!appraisal->gpu)
            return unknown_device(name, error);
        if (!runs_on(kernel, format, appraisal->gpu->sm->sm))
            return wrong_device(kernel, appraisal->gpu, error);
        appraisal->sm = appraisal->gpu->sm;
        return KG_OK;
    }
    appraisal->sm = kg_sm_find(kernel->arch);
    if (!appraisal->sm) {
        snprintf(appraisal->missing, sizeof appraisal->missing, "no table of %.32s is at hand",
                 kernel->arch);
        return KG_OK;
    }
    appraisal->gpu = kg_gpu_first(appraisal->sm);
    appraisal->gpu_assumed = appraisal->gpu != NULL;
    return KG_OK;
}

// A dimension of 0 counts as 1, unless all are 0.
static int64_t volume(const int64_t size[3])
{
    if (size[0] == 0 && size[1] == 0 && size[2] == 0)
        return 0;
    int64_t product = 1;
    for (int i = 0; i < 3; i++) {
        int64_t side = size[i] == 0 ? 1 : size[i];
        if (side < 0 || side > MAX_BLOCKS / product)
            return -1;
        product *= side;
    }
    return product;
}

static int64_t volume_of(const int size[3])
{
    return volume((const int64_t[3]){size[0], size[1], size[2]});
}

static enum kg_status find_threads(const struct kg_asm_kernel *kernel,
                                   const struct kg_assembly_launch *launch,
                                   struct kg_appraisal *appraisal, struct kg_error *error)
{
    int64_t given = volume_of(launch->block);
    int64_t required = volume_of(kernel->required_threads);
    int64_t bounded = volume_of(kernel->max_threads);
    if (given < 0 || given > 1 << 20)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "a block of %d x %d x %d threads cannot be",
                            launch->block[0], launch->block[1], launch->block[2]);
    if (given > 0 && required > 0 && given != required)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "'%s' runs in blocks of %lld threads only (.reqntid), not of %lld",
                            kernel->name, (long long)required, (long long)given);
    if (given > 0 && bounded > 0 && given > bounded)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "'%s' runs in blocks of at most %lld threads (launch bounds), not of "
                            "%lld",
                            kernel->name, (long long)bounded, (long long)given);
    const struct {
        int64_t threads;
        enum kg_threads_from from;
    } sources[] = {{given, KG_THREADS_GIVEN},
                   {required, KG_THREADS_REQUIRED},
                   {bounded, KG_THREADS_BOUNDED},
                   {USUAL_THREADS, KG_THREADS_ASSUMED}};
    size_t s = 0;
    while (sources[s].threads <= 0 || sources[s].threads > 1 << 20)
        s++;
    appraisal->threads = (int)sources[s].threads;
    appraisal->threads_from = sources[s].from;
    return KG_OK;
}

static void find_occupancy(const struct kg_asm_kernel *kernel,
                           const struct kg_assembly_launch *launch, struct kg_appraisal *appraisal)
{
    struct kg_block_needs needs = {
        .threads = appraisal->threads,
        .registers = kernel->registers,
        .static_shared = kernel->shared_bytes,
        .dynamic_shared = launch->shared_bytes,
        .barriers = kernel->barriers,
        .cluster = appraisal->cluster,
    };
    appraisal->registers_known = kernel->registers > 0;
    appraisal->occupancy = kg_occupancy_of(appraisal->sm, &needs);
}

// The fastest format of its matrix instructions; an unknown one counts as the fastest of the SM, so
// that the bound stays valid.
static enum kg_matrix factors_of(const struct kg_asm_kernel *kernel, const struct kg_sm *sm)
{
    enum kg_matrix format;
    if (kg_model_format(kernel, sm, &format))
        return format;
    format = KG_MATRIX_64;
    for (int f = 0; f < KG_MATRIX_COUNT; f++)
        if (kg_sm_matrix(sm, (enum kg_matrix)f) > kg_sm_matrix(sm, format))
            format = (enum kg_matrix)f;
    return format;
}

static const struct kg_model_coefficients *coefficients_for(const struct kg_fitted_list *fitted,
                                                            const char *device, const char *family)
{
    for (int i = 0; i < fitted->count; i++)
        if (strcmp(fitted->list[i].device, device) == 0)
            return &fitted->list[i].coefficients;
    return kg_model_prior_of(family);
}

static void find_model(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                       const struct kg_assembly_launch *launch, int64_t grid,
                       const struct kg_fitted_list *fitted, struct kg_appraisal *appraisal)
{
    struct kg_model_launch on = {.grid = grid,
                                 .threads = appraisal->threads,
                                 .dynamic_shared = launch->shared_bytes,
                                 .cluster = appraisal->cluster};
    struct kg_model_problem problem = {.read_bytes = launch->read_bytes,
                                       .write_bytes = launch->write_bytes,
                                       .flops = launch->flops,
                                       .warm = launch->warm};
    problem.on_matrix_units = kernel->mix.count[KG_WORK_TENSOR] > 0;
    if (problem.on_matrix_units)
        problem.factors = factors_of(kernel, appraisal->sm);
    const struct kg_model_coefficients *coefficients =
        coefficients_for(fitted, appraisal->gpu->name, launch->family);
    appraisal->coefficients = coefficients->source;
    struct kg_error error = {0};
    enum kg_status status = kg_model_make(kernel, format, appraisal->gpu, &on, &problem,
                                          coefficients, &appraisal->model, &error);
    appraisal->has_model = status == KG_OK;
    if (status == KG_OK)
        appraisal->waves = appraisal->model.waves;
    else
        snprintf(appraisal->missing, sizeof appraisal->missing, "%.*s",
                 (int)sizeof appraisal->missing - 1, error.text);
}

__attribute__((format(printf, 4, 5))) static void note(struct kg_appraisal *appraisal,
                                                       enum kg_advice_level level, const char *code,
                                                       const char *format, ...)
{
    struct kg_launch_note *made = &appraisal->notes[appraisal->note_count++];
    made->level = level;
    made->code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(made->text, sizeof made->text, format, arguments);
    va_end(arguments);
}

static void find_notes(int64_t grid, struct kg_appraisal *appraisal)
{
    const struct kg_occupancy *occupancy = &appraisal->occupancy;
    const struct kg_waves *waves = &appraisal->waves;
    if (occupancy->blocks > 0 && occupancy->opt_in)
        note(appraisal, KG_ADVICE_NOTE, "shared-opt-in",
             "more than %d bytes of shared memory must be asked for "
             "(cudaFuncAttributeMaxDynamicSharedMemorySize)",
             appraisal->sm->shared_default);
    if (!appraisal->has_model)
        return;
    if (grid < appraisal->gpu->sms)
        note(appraisal, KG_ADVICE_WARNING, "few-blocks",
             "%lld block%s leave %lld of %d SMs without work", (long long)grid,
             grid == 1 ? "" : "s", (long long)(appraisal->gpu->sms - grid), appraisal->gpu->sms);
    else if (waves->waves > 1 && waves->idle >= MUCH_TAIL)
        note(appraisal, KG_ADVICE_WARNING, "tail",
             "the last wave fills %lld of %lld places for blocks: the device is idle beside it",
             (long long)((grid - 1) % waves->resident + 1), (long long)waves->resident);
}

static enum kg_status check(const struct kg_assembly_launch *launch, int64_t grid,
                            struct kg_error *error)
{
    if (grid < 0)
        return kg_error_set(
            error, KG_ERROR_ARGUMENT, "a grid of %lld x %lld x %lld blocks cannot be",
            (long long)launch->grid[0], (long long)launch->grid[1], (long long)launch->grid[2]);
    if (launch->shared_bytes < 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%lld bytes of shared memory cannot be",
                            (long long)launch->shared_bytes);
    const double amounts[] = {launch->read_bytes, launch->write_bytes, launch->flops};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        if (!(amounts[i] >= 0) || !isfinite(amounts[i]))
            return kg_error_set(error, KG_ERROR_ARGUMENT,
                                "bytes and FLOPs of a problem are numbers of at least 0");
    return KG_OK;
}

enum kg_status kg_asm_appraise(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                               const struct kg_assembly_launch *launch,
                               const struct kg_fitted_list *fitted, struct kg_appraisal *appraisal,
                               struct kg_error *error)
{
    *appraisal = (struct kg_appraisal){.points = kg_points_of(kernel, &kg_points_baseline)};
    if (!kg_asm_summarise(kernel, format, &appraisal->summary))
        return kg_error_memory(error, "the summary of a kernel");
    int64_t grid = volume(launch->grid);
    enum kg_status status = check(launch, grid, error);
    if (format == KG_ASM_OBJECT && status == KG_OK) {
        bool asked = launch->device || grid > 0 || volume_of(launch->block) > 0;
        return !asked ? KG_OK
                      : kg_error_set(error, KG_ERROR_ARGUMENT,
                                     "code for %s has no occupancy: a device, a grid and a block "
                                     "are for GPUs",
                                     kernel->arch);
    }
    if (status == KG_OK)
        status = find_device(kernel, format, launch->device, appraisal, error);
    if (status == KG_OK)
        status = find_threads(kernel, launch, appraisal, error);
    if (status != KG_OK || !appraisal->sm)
        return status;
    int64_t cluster = volume_of(kernel->cluster);
    appraisal->cluster = cluster > 0 && cluster <= 1024 ? (int)cluster : 0;
    find_occupancy(kernel, launch, appraisal);
    if (grid > 0 && appraisal->gpu)
        find_model(kernel, format, launch, grid, fitted, appraisal);
    else if (grid > 0)
        snprintf(appraisal->missing, sizeof appraisal->missing,
                 "no device of sm_%d is known, so there is nothing to estimate times for",
                 appraisal->sm->sm);
    find_notes(grid, appraisal);
    return KG_OK;
}
