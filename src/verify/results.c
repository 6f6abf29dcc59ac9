// What the reference's results say of an op: can they be verified, do they depend on its inputs?

#include "verify/case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Of the results of ordinary inputs, at least this fraction must be decidable.
#define LEAST_DECIDED 0.1

static bool is_empty(const struct kg_case *item)
{
    const struct kg_problem *problem = item->problem;
    int64_t elements = 0;
    for (int o = 0; o < problem->op->output_count; o++)
        elements += problem->layouts[problem->op->input_count + o].elements;
    return elements == 0;
}

enum kg_status kg_cases_check_outputs(const struct kg_cases *cases, const struct kg_op *instance,
                                      struct kg_error *error)
{
    int empty = 0;
    for (int c = 0; c < cases->count; c++)
        empty += is_empty(cases->items[c]);
    if (cases->count > 0 && empty < cases->count)
        return KG_OK;
    return kg_error_set(error, KG_ERROR_SHAPE,
                        "no sizes were found for which %s has a result%s%s; give some in its goal: "
                        "verify ...",
                        instance->name, cases->remarks[0] ? "; " : "", cases->remarks);
}

// Counts elements whose slack is small compared with the output's largest value.
static double count_decided(const struct kg_expected *expected)
{
    double largest = 0, decided = 0;
    for (int64_t n = 0; n < expected->count; n++)
        if (isfinite(expected->value[n]))
            largest = fmax(largest, fabs(expected->value[n]));
    for (int64_t n = 0; n < expected->count; n++)
        decided += expected->slack[n] <= largest / 2;
    return decided;
}

// If no result is decidable, every impostor would count as the op itself. Each case counts alike:
// in a long running product nearly all results are undecidable, in a short one few.
static enum kg_status check_decidable(const struct kg_cases *cases, const struct kg_op *op,
                                      struct kg_error *error)
{
    double decided = 0, all = 0;
    for (int i = 0; i < cases->count; i++) {
        const struct kg_case *item = cases->items[i];
        for (int o = 0; o < op->output_count && item->class == KG_INPUT_NORMAL; o++) {
            const struct kg_expected *expected = &item->expected[0][o];
            all += expected->count > 0;
            decided += expected->count > 0 ? count_decided(expected) / (double)expected->count : 0;
        }
    }
    if (decided > 0 && decided >= LEAST_DECIDED * all)
        return KG_OK;
    return kg_error_set(error, KG_ERROR_WRONG,
                        "rounding decides %.0f%% of the results of %s: nothing can be verified",
                        all > 0 ? 100 * (1 - decided / all) : 100, op->name);
}

// The result that all elements of all cases have, if there is one.
static bool find_only_result(const struct kg_cases *cases, const struct kg_op *op, double *result)
{
    bool found = false;
    for (int i = 0; i < cases->count; i++) {
        const struct kg_case *item = cases->items[i];
        for (int o = 0; o < op->output_count; o++) {
            const struct kg_expected *expected = &item->expected[0][o];
            for (int64_t n = 0; n < expected->count; n++) {
                double value = expected->value[n];
                if (found && value != *result && !(isnan(value) && isnan(*result)))
                    return false;
                *result = value;
                found = true;
            }
        }
    }
    return found;
}

static void remark_only_result(struct kg_cases *cases, const struct kg_op *op)
{
    double result = 0;
    size_t used = strlen(cases->remarks);
    if (find_only_result(cases, op, &result))
        snprintf(cases->remarks + used, sizeof cases->remarks - used,
                 "%severy result of %s is %g, whatever the inputs are", used ? "; " : "", op->name,
                 result);
}

enum kg_status kg_cases_check_results(struct kg_cases *cases, const struct kg_op *op,
                                      struct kg_error *error)
{
    remark_only_result(cases, op);
    return check_decidable(cases, op, error);
}
