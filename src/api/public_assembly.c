// Assembly files at the public surface.

#include "api/assembly_handle.h"

#include "asm/advisories.h"
#include "base/names.h"
#include "base/printable.h"
#include "store/fitted.h"

#include <stdlib.h>
#include <string.h>

struct kg_context *kg_api_assembly_context(const struct kg_assembly *assembly)
{
    return assembly ? assembly->context : NULL;
}

enum kg_status kg_api_take_launch(const struct kg_assembly *assembly,
                                  const struct kg_assembly_launch *theirs,
                                  struct kg_assembly_launch *launch)
{
    struct kg_error *error = &assembly->context->error;
    const struct kg_asm_file *file = &assembly->subject.file;
    enum kg_status status = kg_api_take(&kg_sized_assembly_launch, theirs, launch, error);
    if (status != KG_OK || !launch->device)
        return status;
    if (strcmp(launch->device, "host") != 0)
        return kg_api_name_device(assembly->context, &launch->device);
    launch->device = NULL;
    return file->format == KG_ASM_OBJECT
               ? KG_OK
               : kg_error_set(error, KG_ERROR_ARGUMENT, "code for %s does not run on the host",
                              file->kernels[0].arch);
}

static enum kg_status read_file(struct kg_assembly *assembly, const char *name, const void *bytes,
                                size_t length)
{
    struct kg_error *error = &assembly->context->error;
    assembly->subject.name = kg_arena_copy(&assembly->arena, name, strlen(name));
    if (!assembly->subject.name)
        return kg_error_memory(error, "an assembly file");
    enum kg_status status =
        kg_asm_read(bytes, length, &assembly->arena, &assembly->subject.file, error);
    if (status == KG_OK && assembly->subject.file.kernel_count == 0)
        status =
            kg_error_set(error, KG_ERROR_CORRUPT, "there is no %s in it",
                         assembly->subject.file.format == KG_ASM_OBJECT ? "function" : "kernel");
    if (status == KG_OK)
        assembly->subject.notice = kg_asm_notice(bytes, length);
    else
        kg_error_prefix(error, "%s", name);
    return status;
}

enum kg_status kg_assembly_read(struct kg_context *context, const char *name, const void *bytes,
                                size_t length, struct kg_assembly **assembly)
{
    enum kg_status status = KG_API_NEEDS(context, context, bytes, assembly);
    if (status != KG_OK)
        return status;
    *assembly = NULL;
    struct kg_assembly *opened = calloc(1, sizeof *opened);
    if (!opened)
        return kg_error_memory(&context->error, "an assembly file");
    opened->context = context;
    status = read_file(opened, name ? name : "assembly", bytes, length);
    if (status == KG_OK)
        *assembly = opened;
    else
        kg_assembly_destroy(opened);
    return status;
}

void kg_assembly_destroy(struct kg_assembly *assembly)
{
    if (!assembly)
        return;
    kg_arena_free(&assembly->arena);
    free(assembly);
}

static void take_figure(int *figure, int logged)
{
    if (*figure < 0)
        *figure = logged;
}

static void take_bytes(int64_t *figure, int64_t logged)
{
    if (*figure < 0)
        *figure = logged;
}

static bool has_advice(const struct kg_asm_kernel *kernel, const char *code)
{
    for (int a = 0; a < kernel->advice_count; a++)
        if (strcmp(kernel->advice[a].code, code) == 0)
            return true;
    return false;
}

// What the file itself tells stands.
static bool merge(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                  const struct kg_asm_kernel *logged)
{
    take_figure(&kernel->registers, logged->registers);
    take_figure(&kernel->barriers, logged->barriers);
    take_bytes(&kernel->stack_bytes, logged->stack_bytes);
    take_bytes(&kernel->spill_store_bytes, logged->spill_store_bytes);
    take_bytes(&kernel->spill_load_bytes, logged->spill_load_bytes);
    for (int a = 0; a < logged->advice_count; a++) {
        const struct kg_advice *advice = &logged->advice[a];
        if (!has_advice(kernel, advice->code) &&
            !kg_asm_add_advice(arena, kernel, advice->level, advice->code, advice->text))
            return false;
    }
    return true;
}

enum kg_status kg_assembly_add_log(struct kg_assembly *assembly, const char *text, size_t length,
                                   int *matched)
{
    enum kg_status status = KG_API_NEEDS(kg_api_assembly_context(assembly), assembly, text);
    if (status != KG_OK)
        return status;
    struct kg_error *error = &assembly->context->error;
    struct kg_asm_file log;
    int count = 0;
    if (matched)
        *matched = 0;
    status = kg_asm_log_read(text, length, &assembly->arena, &log, error);
    for (int k = 0; k < assembly->subject.file.kernel_count && status == KG_OK; k++) {
        struct kg_asm_kernel *kernel = &assembly->subject.file.kernels[k];
        const struct kg_asm_kernel *logged = kg_asm_find(&log, kernel->name);
        count += logged != NULL;
        if (logged && !merge(&assembly->arena, kernel, logged))
            status = kg_error_memory(error, "the advisories of a log");
    }
    if (matched && status == KG_OK)
        *matched = count;
    return status;
}

enum kg_status kg_assembly_use_fit(struct kg_assembly *assembly, const char *json, size_t length,
                                   const char *family)
{
    enum kg_status status = KG_API_NEEDS(kg_api_assembly_context(assembly), assembly, json);
    if (status != KG_OK)
        return status;
    return kg_fitted_read(json, length, family, &assembly->arena, &assembly->subject.fitted,
                          &assembly->context->error);
}

int kg_assembly_kernel_count(const struct kg_assembly *assembly)
{
    return assembly ? assembly->subject.file.kernel_count : 0;
}

static bool is_kernel(const struct kg_assembly *assembly, int index)
{
    return index >= 0 && index < assembly->subject.file.kernel_count;
}

static enum kg_status check_kernel(const struct kg_assembly *assembly, int index)
{
    return is_kernel(assembly, index)
               ? KG_OK
               : kg_error_set(&assembly->context->error, KG_ERROR_ARGUMENT,
                              "%s has %d kernels, and none of number %d", assembly->subject.name,
                              assembly->subject.file.kernel_count, index);
}

enum kg_status kg_assembly_kernel(const struct kg_assembly *assembly, int index,
                                  struct kg_kernel_figures *figures)
{
    struct kg_context *context = kg_api_assembly_context(assembly);
    enum kg_status status = KG_API_NEEDS(context, assembly, figures);
    if (status == KG_OK)
        status = kg_api_clear(&kg_sized_kernel_figures, 0, figures, &context->error);
    if (status == KG_OK)
        status = check_kernel(assembly, index);
    if (status != KG_OK)
        return status;
    const struct kg_asm_kernel *kernel = &assembly->subject.file.kernels[index];
    struct kg_asm_summary summary;
    bool known = kg_asm_summarise(kernel, assembly->subject.file.format, &summary);
    const struct kg_kernel_figures ours = {
        .name = kernel->name,
        .arch = kernel->arch,
        .registers = kernel->registers,
        .barriers = kernel->barriers,
        .loops = kernel->flow.loop_count,
        .shared_bytes = kernel->shared_bytes,
        .stack_bytes = kernel->stack_bytes,
        .spill_store_bytes = kernel->spill_store_bytes,
        .spill_load_bytes = kernel->spill_load_bytes,
        .loop_spill_bytes = known ? summary.loop_spill_bytes : -1,
        .parameter_bytes = kernel->parameter_bytes,
        .instructions = kernel->instructions,
    };
    kg_api_fill(&kg_sized_kernel_figures, 0, &ours, figures);
    return KG_OK;
}

static enum kg_status no_kernel(const struct kg_assembly *assembly, const char *name)
{
    const struct kg_asm_file *file = &assembly->subject.file;
    struct kg_error *error = &assembly->context->error;
    const char **names = calloc((size_t)file->kernel_count + 1, sizeof *names);
    if (!names)
        return kg_error_memory(error, "the names of kernels");
    for (int k = 0; k < file->kernel_count; k++)
        names[k] = file->kernels[k].name;
    const char *nearest = kg_names_nearest(name, names, (size_t)file->kernel_count);
    free(names);
    if (!nearest && file->kernel_count == 1)
        nearest = file->kernels[0].name;
    return kg_error_set(error, KG_ERROR_ARGUMENT, "%s has no '%.200s'%s%.1000s%s",
                        assembly->subject.name, name, nearest ? "; did you mean " : "",
                        nearest ? nearest : "", nearest ? "?" : "");
}

enum kg_status kg_assembly_find(const struct kg_assembly *assembly, const char *name, int *index)
{
    enum kg_status status = KG_API_NEEDS(kg_api_assembly_context(assembly), assembly, name, index);
    if (status != KG_OK)
        return status;
    const struct kg_asm_file *file = &assembly->subject.file;
    int found = -1, second = -1;
    *index = -1;
    for (int k = 0; k < file->kernel_count; k++) {
        if (strcmp(file->kernels[k].name, name) == 0) {
            *index = k;
            return KG_OK;
        }
        if (!strstr(file->kernels[k].name, name))
            continue;
        second = found < 0 ? -1 : k;
        found = found < 0 ? k : found;
    }
    if (found < 0)
        return no_kernel(assembly, name);
    if (second >= 0)
        return kg_error_set(&assembly->context->error, KG_ERROR_ARGUMENT,
                            "%s has several kernels with '%.200s' in their names, such as %.500s "
                            "and %.500s",
                            assembly->subject.name, name, file->kernels[found].name,
                            file->kernels[second].name);
    *index = found;
    return KG_OK;
}

enum kg_status kg_api_appraise(const struct kg_assembly *assembly, int index,
                               const struct kg_assembly_launch *launch,
                               struct kg_appraisal *appraisal)
{
    *appraisal = (struct kg_appraisal){0};
    enum kg_status status = check_kernel(assembly, index);
    if (status == KG_OK)
        status = kg_asm_appraise(&assembly->subject.file.kernels[index],
                                 assembly->subject.file.format, launch, &assembly->subject.fitted,
                                 appraisal, &assembly->context->error);
    return status;
}

enum kg_status kg_assembly_predict(const struct kg_assembly *assembly, int index,
                                   const struct kg_assembly_launch *theirs,
                                   struct kg_prediction *prediction)
{
    struct kg_context *context = kg_api_assembly_context(assembly);
    struct kg_assembly_launch launch;
    struct kg_appraisal appraisal;
    enum kg_status status = KG_API_NEEDS(context, assembly, prediction);
    if (status == KG_OK)
        status = kg_api_clear(&kg_sized_prediction, 0, prediction, &context->error);
    if (status == KG_OK)
        status = kg_api_take_launch(assembly, theirs, &launch);
    if (status == KG_OK)
        status = kg_api_appraise(assembly, index, &launch, &appraisal);
    if (status == KG_OK && !appraisal.sm)
        status = kg_error_set(&context->error, KG_ERROR_UNSUPPORTED, "%s",
                              appraisal.missing[0] ? appraisal.missing
                                                   : "code of the host has no occupancy");
    if (status != KG_OK)
        return status;
    struct kg_prediction ours = {
        .device = appraisal.gpu ? appraisal.gpu->name : NULL,
        .threads = appraisal.threads,
        .exact = appraisal.registers_known,
        .blocks = appraisal.occupancy.blocks,
        .warps = appraisal.occupancy.warps,
        .occupancy = appraisal.occupancy.share,
        .limiter = kg_limiter_name(appraisal.occupancy.limiter),
    };
    if (appraisal.has_model) {
        ours.waves = appraisal.waves.waves;
        ours.tail = appraisal.waves.idle;
        ours.bound = appraisal.model.bound;
        ours.estimate = appraisal.model.estimate;
        ours.bound_by = kg_term_name(appraisal.model.limiter);
    }
    kg_api_fill(&kg_sized_prediction, 0, &ours, prediction);
    return KG_OK;
}

// Names in a file of assembly may be any bytes.
static void show_names(struct kg_text *text)
{
    if (text->data)
        kg_printable_text(text->data, text->length);
}

enum kg_status kg_assembly_report(const struct kg_assembly *assembly, int index,
                                  const struct kg_assembly_launch *theirs, bool json, char **text)
{
    struct kg_context *context = kg_api_assembly_context(assembly);
    struct kg_assembly_launch launch;
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, assembly, text);
    if (status == KG_OK)
        status = kg_api_take_launch(assembly, theirs, &launch);
    if (status == KG_OK && index >= 0)
        status = check_kernel(assembly, index);
    if (status == KG_OK)
        status =
            kg_report_assembly(&assembly->subject, index, &launch, json, &written, &context->error);
    show_names(&written);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_assembly_compare(const struct kg_assembly *assembly, int index,
                                   const struct kg_assembly *other, int other_index,
                                   const struct kg_assembly_launch *theirs, bool json, char **text)
{
    struct kg_context *context = kg_api_assembly_context(assembly);
    struct kg_assembly_launch launch;
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, assembly, other, text);
    if (status == KG_OK)
        status = kg_api_take_launch(assembly, theirs, &launch);
    if (status == KG_OK && (index >= 0 || other_index >= 0))
        status = check_kernel(assembly, index);
    if (status == KG_OK && index >= 0 && !is_kernel(other, other_index))
        status = kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                              "%s has %d kernels, and none of number %d", other->subject.name,
                              other->subject.file.kernel_count, other_index);
    if (status == KG_OK)
        status = kg_report_comparison(&assembly->subject, index, &other->subject, other_index,
                                      &launch, json, &written, &context->error);
    show_names(&written);
    return kg_api_give(context, status, &written, text);
}
