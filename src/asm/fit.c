// Fitting. The unknowns are the differences of the weights from the prior's, so that ridge
// regression shrinks towards the prior. The normal equations are positive definite for all samples,
// and Cholesky solves them.

#include "asm/fit_samples.h"

#include "base/cholesky.h"

#include <math.h>

#define FEATURES KG_FEATURE_COUNT
// Features are of the order of one; squares of values beyond this would swamp the ridge term.
#define MAX_FEATURE 1e6

struct equations {
    double matrix[FEATURES][FEATURES]; // symmetric
    double right[FEATURES];
};

static bool is_time(double value)
{
    return value > 0 && isfinite(value);
}

static bool is_sane(const struct kg_fit_sample *sample)
{
    for (int f = 0; f < FEATURES; f++)
        if (!(fabs(sample->feature[f]) <= MAX_FEATURE))
            return false;
    return is_time(sample->bound) && is_time(sample->measured) && sample->spread >= 0 &&
           isfinite(sample->spread) && sample->launches > 0;
}

enum kg_status kg_fit_check(const struct kg_fit_sample *samples, int count, struct kg_error *error)
{
    for (int s = 0; s < count; s++)
        if (!is_sane(&samples[s]))
            return kg_error_set(error, KG_ERROR_ARGUMENT,
                                "sample %d of %d cannot be fitted: bound %g s, measured %g s, "
                                "spread %g, %d launches, or a feature beyond %g",
                                s + 1, count, samples[s].bound, samples[s].measured,
                                samples[s].spread, samples[s].launches, MAX_FEATURE);
    return KG_OK;
}

// The logarithm of the measured time over the prior's estimate. A time that consists of overhead
// only says just that the bound was met.
static double residual(const struct kg_fit_sample *sample,
                       const struct kg_model_coefficients *prior)
{
    double overhead = kg_model_overhead(sample->launches, sample->warm, prior);
    double value = log(fmax(sample->measured - overhead, sample->bound) / sample->bound);
    for (int f = 0; f < FEATURES; f++)
        value -= prior->beta[f] * sample->feature[f];
    return value;
}

static void add_sample(struct equations *equations, const struct kg_fit_sample *sample,
                       double value)
{
    for (int i = 0; i < FEATURES; i++) {
        for (int j = 0; j < FEATURES; j++)
            equations->matrix[i][j] += sample->feature[i] * sample->feature[j];
        equations->right[i] += sample->feature[i] * value;
    }
}

enum kg_status kg_fit_without(const struct kg_fit_sample *samples, int count, const int *without,
                              const struct kg_model_coefficients *prior, double ridge,
                              struct kg_model_coefficients *fitted, struct kg_error *error)
{
    *fitted = (struct kg_model_coefficients){0};
    if (!(ridge > 0) || !isfinite(ridge))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "a ridge of %g; it must be above 0", ridge);
    struct equations equations = {0};
    for (int f = 0; f < FEATURES; f++)
        equations.matrix[f][f] = ridge;
    for (int s = 0; s < count; s++)
        if (!without || samples[s].held_out != *without)
            add_sample(&equations, &samples[s], residual(&samples[s], prior));
    if (!kg_cholesky_solve(equations.matrix[0], equations.right, FEATURES))
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%d samples cannot be fitted with a ridge of %g: features too large",
                            count, ridge);
    *fitted = *prior;
    fitted->source = "fitted";
    for (int f = 0; f < FEATURES; f++)
        fitted->beta[f] += equations.right[f];
    return KG_OK;
}

enum kg_status kg_fit_make(const struct kg_fit_sample *samples, int count,
                           const struct kg_model_coefficients *prior, double ridge,
                           struct kg_model_coefficients *fitted, struct kg_error *error)
{
    *fitted = (struct kg_model_coefficients){0};
    enum kg_status status = kg_fit_check(samples, count, error);
    if (status == KG_OK)
        status = kg_fit_without(samples, count, NULL, prior, ridge, fitted, error);
    return status;
}
