// Fitting the model, and what it is fitted to, at the public surface.

#include "api/assembly_handle.h"

#include "report/fit_report.h"

#include <math.h>

enum kg_status kg_assembly_sample(const struct kg_assembly *assembly, int index,
                                  const struct kg_assembly_launch *launch,
                                  const struct kg_measurement *measured, char **line)
{
    struct kg_error *error = &assembly->context->error;
    struct kg_text text = {0};
    struct kg_appraisal appraisal;
    enum kg_status status = kg_api_appraise(assembly, index, launch, &appraisal);
    if (status == KG_OK && !appraisal.has_model)
        status = kg_error_set(error, KG_ERROR_ARGUMENT, "there is no model of this launch: %s",
                              appraisal.missing[0] ? appraisal.missing : "no grid was given");
    bool sane = measured->seconds > 0 && isfinite(measured->seconds) && measured->spread >= 0 &&
                isfinite(measured->spread) && measured->problem;
    if (status == KG_OK && !sane)
        status = kg_error_set(error, KG_ERROR_ARGUMENT,
                              "a measurement has a problem, seconds above 0, and a spread");
    if (status == KG_OK) {
        struct kg_sample sample = {
            .device = appraisal.gpu->name,
            .family = measured->family ? measured->family : "",
            .problem = measured->problem,
            .candidate = assembly->subject.file.kernels[index].name,
            .points = appraisal.points,
            .has_features = true,
            .fit = {.bound = appraisal.model.bound,
                    .measured = measured->seconds,
                    .spread = measured->spread,
                    .warm = launch && launch->warm},
        };
        for (int f = 0; f < KG_FEATURE_COUNT; f++)
            sample.fit.feature[f] = appraisal.model.feature[f];
        kg_samples_write(&sample, &text);
    }
    return kg_api_give(assembly->context, status, &text, line);
}

enum kg_status kg_fit(struct kg_context *context, const char *name, const char *lines,
                      size_t length, bool json, char **out)
{
    struct kg_samples samples = {.count = 0};
    struct kg_text text = {0};
    enum kg_status status;
    if (lines)
        status = kg_samples_read(lines, length, &samples, &context->error);
    else if (context->session.store)
        status = kg_samples_collect(context->session.store, NULL, &samples, &context->error);
    else
        status = kg_error_set(&context->error, KG_ERROR_IO,
                              "there are no records: they could not be opened");
    if (status == KG_OK && samples.count == 0)
        status =
            lines ? kg_error_set(&context->error, KG_ERROR_ARGUMENT, "there are no samples in it")
                  : kg_error_set(&context->error, KG_ERROR_NO_WISDOM,
                                 "nothing with a bound was measured yet");
    if (status != KG_OK && lines && name)
        kg_error_prefix(&context->error, "%s", name);
    if (status == KG_OK)
        status = kg_report_fit(&samples, json, &text, &context->error);
    kg_samples_free(&samples);
    return kg_api_give(context, status, &text, out);
}
