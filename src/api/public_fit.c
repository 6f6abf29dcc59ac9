// Fitting the model, and what it is fitted to, at the public surface.

#include "api/assembly_handle.h"

#include "base/printable.h"
#include "report/fit_report.h"

#include <math.h>
#include <string.h>

// Where there is a model there is a launch with a grid.
static struct kg_forecast forecast_of(const struct kg_appraisal *appraisal,
                                      const struct kg_assembly_launch *launch)
{
    const struct kg_model *model = &appraisal->model;
    struct kg_forecast forecast = {.known = true,
                                   .bound = model->bound,
                                   .estimate = model->estimate,
                                   .points = appraisal->points,
                                   .launches = 1};
    memcpy(forecast.feature, model->feature, sizeof forecast.feature);
    forecast.longest = (struct kg_model_launch){.grid = 1,
                                                .threads = appraisal->threads,
                                                .dynamic_shared = launch->shared_bytes,
                                                .cluster = appraisal->cluster};
    for (int i = 0; i < 3; i++)
        forecast.longest.grid *= launch->grid[i] > 0 ? launch->grid[i] : 1;
    return forecast;
}

enum kg_status kg_assembly_sample(const struct kg_assembly *assembly, int index,
                                  const struct kg_assembly_launch *their_launch,
                                  const struct kg_measurement *measured, char **line)
{
    struct kg_context *context = kg_api_assembly_context(assembly);
    enum kg_status status = KG_API_NEEDS(context, assembly, measured, line);
    if (status != KG_OK)
        return status;
    struct kg_error *error = &context->error;
    struct kg_text text = {0};
    struct kg_appraisal appraisal;
    struct kg_assembly_launch launch;
    struct kg_measurement taken;
    status = kg_api_take(&kg_sized_measurement, measured, &taken, error);
    if (status == KG_OK)
        status = kg_api_take_launch(assembly, their_launch, &launch);
    if (status == KG_OK)
        status = kg_api_appraise(assembly, index, &launch, &appraisal);
    if (status == KG_OK && !appraisal.has_model)
        status = kg_error_set(error, KG_ERROR_ARGUMENT, "there is no model of this launch: %s",
                              appraisal.missing[0] ? appraisal.missing : "no grid was given");
    bool sane = taken.seconds > 0 && isfinite(taken.seconds) && taken.spread >= 0 &&
                isfinite(taken.spread) && taken.problem;
    if (status == KG_OK && !sane)
        status = kg_error_set(error, KG_ERROR_ARGUMENT,
                              "a measurement has a problem, seconds above 0, and a spread");
    if (status == KG_OK) {
        struct kg_sample sample = {
            .device = appraisal.gpu->name,
            .family = taken.family ? taken.family : "",
            .op = taken.op ? taken.op : "",
            .problem = taken.problem,
            .candidate = assembly->subject.file.kernels[index].name,
            .warm = launch.warm,
            .seconds = taken.seconds,
            .spread = taken.spread,
            .forecast = forecast_of(&appraisal, &launch),
        };
        kg_samples_write(&sample, &text);
    }
    return kg_api_give(assembly->context, status, &text, line);
}

static bool is_set(const struct kg_sample_filter *filter)
{
    return filter && (filter->op || filter->device || filter->family);
}

static enum kg_status collect(struct kg_context *context, struct kg_samples *samples)
{
    struct kg_error *error = &context->error;
    enum kg_status status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_samples_collect(context->session.store, samples, error);
    if (status != KG_OK || samples->count > 0)
        return status;
    return kg_error_set(error, KG_ERROR_NO_WISDOM,
                        is_set(samples->filter)
                            ? "the records hold nothing measured of that op, device and family"
                            : "nothing was measured yet that a bound is known of");
}

static enum kg_status read_lines(struct kg_context *context, const char *lines, size_t length,
                                 struct kg_samples *samples)
{
    enum kg_status status = kg_samples_read(lines, length, samples, &context->error);
    if (status == KG_OK && samples->count == 0)
        status = kg_error_set(&context->error, KG_ERROR_ARGUMENT, "there are no samples in it%s",
                              is_set(samples->filter) ? " of that op, device and family" : "");
    return status;
}

enum kg_status kg_fit(struct kg_context *context, const char *name, const char *lines,
                      size_t length, const struct kg_sample_filter *theirs, bool json, char **text)
{
    struct kg_sample_filter filter;
    struct kg_samples samples = {.filter = &filter};
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, text);
    if (status == KG_OK)
        status = kg_api_take(&kg_sized_sample_filter, theirs, &filter, &context->error);
    if (status == KG_OK)
        status = kg_api_name_device(context, &filter.device);
    if (status != KG_OK)
        return status;
    status = lines ? read_lines(context, lines, length, &samples) : collect(context, &samples);
    if (status != KG_OK && lines && name)
        kg_error_prefix(&context->error, "%s", name);
    if (status == KG_OK)
        status = kg_report_fit(&samples, json, &written, &context->error);
    if (written.data) // the samples' names come from a file
        kg_printable_text(written.data, written.length);
    kg_samples_free(&samples);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_samples_export(struct kg_context *context, const struct kg_sample_filter *theirs,
                                 char **lines)
{
    struct kg_sample_filter filter;
    struct kg_samples samples = {.filter = &filter};
    struct kg_text text = {0};
    enum kg_status status = KG_API_NEEDS(context, context, lines);
    if (status == KG_OK)
        status = kg_api_take(&kg_sized_sample_filter, theirs, &filter, &context->error);
    if (status == KG_OK)
        status = kg_api_name_device(context, &filter.device);
    if (status == KG_OK)
        status = collect(context, &samples);
    for (int s = 0; s < samples.count && status == KG_OK; s++)
        kg_samples_write(&samples.list[s], &text);
    kg_samples_free(&samples);
    return kg_api_give(context, status, &text, lines);
}
