#include "verify/survey.h"

#include "verify/case.h"
#include "verify/decode.h"
#include "verify/random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of the fields while one part of an output is evaluated.
#define PART_BYTES 1.5e8
#define MAX_PARTS 1024
#define RUN 1024 // elements that are compared at once
// Suspects that are judged.
#define MAX_WORST 256
#define MAX_OTHERS 256
// A run of elements whose error as a whole is this multiple of the usual one is suspect.
#define USUAL_RMS 3.0
// Errors are far below the slack. One that is more than this multiple of the median is suspect.
#define USUAL_SLACK 4
#define SAMPLE 2048        // slacks of a window
#define SUSPECTS_STREAM 23 // of random numbers

struct part {
    int output;
    struct kg_window window;
};

// The values of one output, dense.
struct values {
    enum kg_dtype dtype;
    int64_t count;
    void *data;   // in the output's dtype for integers, else float or double
    double slack; // the median of those in the windows; the largest of several windows
    double scale; // root mean square of the values, where those above 1 count as 1
};

struct kg_survey {
    const struct kg_problem *problem;
    int part_count;
    struct part *parts;
    struct values values[KG_MAX_TENSORS];
};

static enum kg_dtype kept_as(enum kg_dtype dtype)
{
    bool is_float = kg_dtypes[dtype].is_float;
    return !is_float || kg_dtypes[dtype].bits == 64 ? dtype : KG_F32;
}

// Windows of all outputs, of which only one is not empty.
static void only(const struct part *part, struct kg_window windows[KG_MAX_TENSORS])
{
    for (int i = 0; i < KG_MAX_TENSORS; i++)
        windows[i] = (struct kg_window){.none = true};
    windows[part->output] = part->window;
}

static enum kg_status cost_of(const struct kg_problem *problem, const struct part *part,
                              struct kg_survey_limits *cost, struct kg_error *error)
{
    struct kg_window windows[KG_MAX_TENSORS];
    only(part, windows);
    return kg_reference_values_cost(problem, windows, &cost->operations, &cost->bytes, error);
}

static struct part half_of(const struct part *part, int dimension, bool second)
{
    struct part half = *part;
    int64_t extent = part->window.extent[dimension], first = extent / 2;
    half.window.low[dimension] += second ? first : 0;
    half.window.extent[dimension] = second ? extent - first : first;
    return half;
}

// The dimension whose halves are the cheapest; -1: there is nothing to divide.
static enum kg_status best_cut(const struct kg_problem *problem, const struct part *part, int rank,
                               int *best, struct kg_error *error)
{
    double least = INFINITY;
    *best = -1;
    for (int d = 0; d < rank; d++) {
        if (part->window.extent[d] < 2)
            continue;
        struct part half = half_of(part, d, true);
        struct kg_survey_limits cost;
        enum kg_status status = cost_of(problem, &half, &cost, error);
        if (status)
            return status;
        if (cost.operations < least) {
            least = cost.operations;
            *best = d;
        }
    }
    return KG_OK;
}

// The parts of one output, in a stack: parts[count - 1] is divided until it is small enough.
static enum kg_status divide(const struct kg_problem *problem, struct kg_survey *survey, int output,
                             struct kg_survey_limits *total, struct kg_error *error)
{
    int tensor = problem->op->input_count + output, rank = problem->op->tensors[tensor]->rank;
    struct part waiting[64];
    int depth = 1;
    waiting[0] = (struct part){.output = output};
    for (int d = 0; d < rank; d++)
        waiting[0].window.extent[d] = problem->layouts[tensor].shape[d];
    while (depth > 0) {
        struct part part = waiting[--depth];
        struct kg_survey_limits cost;
        int cut = -1;
        enum kg_status status = cost_of(problem, &part, &cost, error);
        if (!status && cost.bytes > PART_BYTES)
            status = best_cut(problem, &part, rank, &cut, error);
        if (status)
            return status;
        if (cut >= 0 && depth + 2 <= 64) {
            waiting[depth++] = half_of(&part, cut, true);
            waiting[depth++] = half_of(&part, cut, false);
            continue;
        }
        if (cost.bytes > PART_BYTES || survey->part_count == MAX_PARTS) {
            total->operations = INFINITY;
            return KG_OK;
        }
        total->operations += cost.operations;
        survey->parts[survey->part_count++] = part;
    }
    return KG_OK;
}

static enum kg_status plan(const struct kg_problem *problem, struct kg_survey *survey,
                           struct kg_survey_limits *cost, struct kg_error *error)
{
    const struct kg_op *op = problem->op;
    *cost = (struct kg_survey_limits){0, 0};
    survey->problem = problem;
    survey->parts = malloc(MAX_PARTS * sizeof *survey->parts);
    if (!survey->parts)
        return kg_error_memory(error, "the survey's parts");
    for (int o = 0; o < op->output_count; o++) {
        struct values *values = &survey->values[o];
        values->dtype = op->tensors[op->input_count + o]->type.dtype;
        values->count = problem->layouts[op->input_count + o].elements;
        cost->bytes += (double)kg_dtype_bytes(kept_as(values->dtype), (size_t)values->count);
        enum kg_status status = values->count > 0 ? divide(problem, survey, o, cost, error) : KG_OK;
        if (status)
            return status;
    }
    return KG_OK;
}

void kg_survey_free(struct kg_survey *survey)
{
    if (!survey)
        return;
    for (int o = 0; o < KG_MAX_TENSORS; o++)
        free(survey->values[o].data);
    free(survey->parts);
    free(survey);
}

enum kg_status kg_survey_cost(const struct kg_problem *problem, struct kg_survey_limits *cost,
                              struct kg_error *error)
{
    struct kg_survey *survey = calloc(1, sizeof *survey);
    if (!survey)
        return kg_error_memory(error, "a survey");
    enum kg_status status = plan(problem, survey, cost, error);
    kg_survey_free(survey);
    return status;
}

// Calls `take` for every row of a window: contiguous along the last dimension of a dense tensor.
// `number`: of the row's first element in the window; `at`: in the whole output.
struct row {
    int64_t index[KG_MAX_RANK];
    int64_t number, at, length;
};

static struct row first_row(const struct kg_layout *layout, int rank,
                            const struct kg_window *window)
{
    struct row row = {.length = rank > 0 ? window->extent[rank - 1] : 1};
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        row.index[d] = window->low[d];
        row.at += window->low[d] * step;
        step *= layout->shape[d];
    }
    return row;
}

// False after the last row.
static bool next_row(const struct kg_layout *layout, int rank, const struct kg_window *window,
                     struct row *row)
{
    int64_t step = rank > 0 ? layout->shape[rank - 1] : 1;
    row->number += row->length;
    for (int d = rank - 2; d >= 0; d--) {
        row->at += step;
        if (++row->index[d] < window->low[d] + window->extent[d])
            return true;
        row->at -= window->extent[d] * step;
        row->index[d] = window->low[d];
        step *= layout->shape[d];
    }
    return false;
}

static void keep(struct values *values, int64_t at, const struct kg_expected *expected,
                 int64_t number, int64_t length)
{
    enum kg_dtype kept = kept_as(values->dtype);
    for (int64_t i = 0; i < length; i++)
        if (expected->integer)
            kg_dtype_store_integer(values->dtype, values->data, (size_t)(at + i),
                                   expected->integer[number + i]);
        else if (kept == KG_F32)
            ((float *)values->data)[at + i] = (float)expected->value[number + i];
        else
            ((double *)values->data)[at + i] = expected->value[number + i];
}

static enum kg_status evaluate(struct kg_survey *survey, const struct part *part,
                               const void *const *inputs, int threads, const volatile int *cancel,
                               struct kg_error *error)
{
    const struct kg_problem *problem = survey->problem;
    int tensor = problem->op->input_count + part->output;
    int rank = problem->op->tensors[tensor]->rank;
    const struct kg_layout *layout = &problem->layouts[tensor];
    struct kg_window windows[KG_MAX_TENSORS];
    struct kg_expected expected[KG_MAX_TENSORS];
    only(part, windows);
    enum kg_status status =
        kg_reference_values(problem, inputs, windows, threads, cancel, expected, error);
    if (status)
        return status;
    struct row row = first_row(layout, rank, &part->window);
    do
        keep(&survey->values[part->output], row.at, &expected[part->output], row.number,
             row.length);
    while (next_row(layout, rank, &part->window, &row));
    kg_expected_free(expected, problem->op->output_count);
    return KG_OK;
}

static double value_at(const struct values *values, int64_t at)
{
    return kg_dtype_load(kept_as(values->dtype), values->data, (size_t)at);
}

// As compare.c scales absolute tolerances. A sample of a million values is enough.
static void find_scale(struct values *values)
{
    double squares = 0, count = 0;
    int64_t step = values->count / (1 << 20) + 1;
    for (int64_t i = 0; i < values->count; i += step) {
        double magnitude = fabs(value_at(values, i));
        if (!(magnitude <= kg_dtypes[values->dtype].largest))
            continue;
        squares += magnitude < 1 ? magnitude * magnitude : 1;
        count++;
    }
    values->scale = count > 0 ? sqrt(squares / count) : 0;
}

enum kg_status kg_survey_make(const struct kg_problem *problem, const void *const *inputs,
                              int threads, const volatile int *cancel, struct kg_survey **out,
                              struct kg_error *error)
{
    struct kg_survey_limits cost;
    *out = NULL;
    struct kg_survey *survey = calloc(1, sizeof *survey);
    enum kg_status status =
        survey ? plan(problem, survey, &cost, error) : kg_error_memory(error, "a survey");
    for (int o = 0; o < problem->op->output_count && !status; o++) {
        struct values *values = &survey->values[o];
        values->data = calloc(1, kg_dtype_bytes(kept_as(values->dtype), (size_t)values->count) + 1);
        status = values->data ? KG_OK : kg_error_memory(error, "a survey");
    }
    for (int p = 0; !status && p < survey->part_count; p++)
        status = evaluate(survey, &survey->parts[p], inputs, threads, cancel, error);
    if (status) {
        kg_survey_free(survey);
        return status;
    }
    for (int o = 0; o < problem->op->output_count; o++)
        find_scale(&survey->values[o]);
    *out = survey;
    return KG_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of the finite slacks in a sample; 0 if there are none.
static double median_slack(const struct kg_expected *expected)
{
    size_t count = 0;
    double slacks[SAMPLE];
    int64_t step = expected->count / SAMPLE + 1;
    for (int64_t n = 0; n < expected->count; n += step)
        if (expected->slack[n] <= DBL_MAX)
            slacks[count++] = expected->slack[n];
    qsort(slacks, count, sizeof *slacks, by_size);
    return count > 0 ? slacks[count / 2] : 0;
}

void kg_survey_learn(struct kg_survey *survey, const struct kg_expected *expected)
{
    for (int o = 0; o < survey->problem->op->output_count; o++)
        survey->values[o].slack = fmax(survey->values[o].slack, median_slack(&expected[o]));
}

// An element to be judged by the reference, or the first of a run of them.
struct suspect {
    int64_t at; // its number in the output
    int64_t count;
    double excess; // error as a multiple of what is usual
};

// The worst ones, and a random choice of all others: many may be harmless, because rounding decides
// them, and the wrong ones need not be the worst.
struct suspects {
    int64_t found;
    int worst_count, other_count;
    struct suspect worst[MAX_WORST]; // in no order
    int least;                       // the position of the one with the least excess
    struct suspect others[MAX_OTHERS];
    struct kg_random random;
};

static void suspect_as_other(struct suspects *suspects, struct suspect found)
{
    if (suspects->other_count < MAX_OTHERS) {
        suspects->others[suspects->other_count++] = found;
        return;
    }
    uint64_t place =
        kg_random_below(&suspects->random, (uint64_t)(suspects->found - suspects->worst_count));
    if (place < MAX_OTHERS)
        suspects->others[place] = found;
}

static void suspect(struct suspects *suspects, struct suspect found)
{
    suspects->found++;
    if (suspects->worst_count < MAX_WORST) {
        suspects->worst[suspects->worst_count++] = found;
    } else if (found.excess > suspects->worst[suspects->least].excess) {
        suspect_as_other(suspects, suspects->worst[suspects->least]);
        suspects->worst[suspects->least] = found;
    } else {
        suspect_as_other(suspects, found);
        return;
    }
    for (int i = 0; i < suspects->worst_count; i++)
        if (suspects->worst[i].excess < suspects->worst[suspects->least].excess)
            suspects->least = i;
}

// What errors are usual: relative * |value| + constant, and the part of it that no kernel avoids.
struct usual {
    double relative, constant;
    double unavoidable_relative, unavoidable_constant;
};

static struct usual usual_of(const struct kg_survey *survey, const struct values *values)
{
    const struct kg_dtype_info *info = &kg_dtypes[values->dtype];
    const struct kg_tolerance *given = &survey->problem->op->goal.tolerance[values->dtype];
    struct usual usual;
    // Values are kept in f32, which adds an error of its own.
    usual.unavoidable_relative = info->epsilon / 2 + (info->bits == 64 ? 0 : 0x1p-24);
    usual.unavoidable_constant = info->smallest * info->epsilon / 2 + USUAL_SLACK * values->slack;
    usual.relative = usual.unavoidable_relative + (given->given ? given->relative : info->relative);
    usual.constant = usual.unavoidable_constant +
                     (given->given ? given->absolute : info->absolute * values->scale);
    return usual;
}

// Is it right, although it is no finite number that is near enough?
static bool is_right(enum kg_dtype dtype, double value, double got)
{
    return (isnan(value) && isnan(got)) || value == got ||
           (!isfinite(value) && !kg_dtypes[dtype].has_infinity && isnan(got));
}

static void compare_run(const struct values *values, const struct usual *usual, const double *got,
                        int64_t at, int count, struct suspects *suspects)
{
    int wrong = 0;
    double errors = 0, unavoidable = 0;
    double value[RUN];
    for (int i = 0; i < count; i++)
        value[i] = kept_as(values->dtype) == KG_F32 ? (double)((const float *)values->data)[at + i]
                                                    : ((const double *)values->data)[at + i];
    for (int i = 0; i < count; i++) {
        double magnitude = fabs(value[i]), error = fabs(got[i] - value[i]);
        double least = usual->unavoidable_relative * magnitude + usual->unavoidable_constant;
        wrong += !(error <= usual->relative * magnitude + usual->constant);
        errors += error * error;
        unavoidable += least * least;
    }
    if (wrong == 0 && !(errors > USUAL_RMS * USUAL_RMS * unavoidable))
        return;
    double excess = 0;
    for (int i = 0; i < count; i++) {
        double error = fabs(got[i] - value[i]);
        double allowed = usual->relative * fabs(value[i]) + usual->constant;
        if (error <= allowed || is_right(values->dtype, value[i], got[i]))
            continue;
        excess = isfinite(error) && allowed > 0 ? error / allowed : INFINITY;
        suspect(suspects, (struct suspect){at + i, 1, excess});
    }
    if (excess == 0 && isfinite(errors))
        suspect(suspects, (struct suspect){at, count, sqrt(errors / unavoidable) / USUAL_RMS});
}

static void compare_integers(const struct values *values, const void *data, int64_t from,
                             int64_t at, int64_t count, struct suspects *suspects)
{
    for (int64_t i = 0; i < count; i++)
        if (kg_dtype_load_integer(values->dtype, values->data, (size_t)(at + i)) !=
            kg_dtype_load_integer(values->dtype, data, (size_t)(from + i)))
            suspect(suspects, (struct suspect){at + i, 1, INFINITY});
}

static void compare_row(const struct values *values, const struct usual *usual, const void *data,
                        int64_t from, const struct row *row, struct suspects *suspects)
{
    if (!kg_dtypes[values->dtype].is_float) {
        compare_integers(values, data, from, row->at, row->length, suspects);
        return;
    }
    double got[RUN];
    for (int64_t i = 0; i < row->length; i += RUN) {
        int count = (int)(row->length - i < RUN ? row->length - i : RUN);
        kg_decode_reals(values->dtype, data, from + i, 1, count, got);
        compare_run(values, usual, got, row->at + i, count, suspects);
    }
}

static struct kg_window window_of(const struct kg_layout *layout, int rank,
                                  const struct suspect *suspect)
{
    struct kg_window window = {.none = false};
    int64_t rest = suspect->at;
    for (int d = rank - 1; d >= 0; d--) {
        window.low[d] = rest % layout->shape[d];
        window.extent[d] = d == rank - 1 ? suspect->count : 1;
        rest /= layout->shape[d];
    }
    return window;
}

// The reference's judgement of a suspect.
static enum kg_status judge_suspect(const struct kg_survey *survey, int output,
                                    const struct suspect *suspect, const void *const *inputs,
                                    const void *const *outputs, struct kg_verdict *verdict,
                                    bool *right, struct kg_error *error)
{
    const struct kg_problem *problem = survey->problem;
    int tensor = problem->op->input_count + output;
    struct part part = {
        output, window_of(&problem->layouts[tensor], problem->op->tensors[tensor]->rank, suspect)};
    struct kg_window windows[KG_MAX_TENSORS];
    struct kg_expected expected[KG_MAX_TENSORS];
    only(&part, windows);
    enum kg_status status = kg_reference_window(problem, inputs, windows, 1, NULL, expected, error);
    if (status)
        return status;
    *right = kg_compare_outputs(problem, expected, outputs, verdict);
    kg_expected_free(expected, problem->op->output_count);
    return KG_OK;
}

static enum kg_status judge_suspects(const struct kg_survey *survey, int output,
                                     const struct suspects *suspects, const void *const *inputs,
                                     const void *const *outputs, struct kg_verdict *verdict,
                                     bool *right, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    int judged = suspects->worst_count + suspects->other_count;
    for (int i = 0; i < judged && !status && *right; i++) {
        const struct suspect *one = i < suspects->worst_count
                                        ? &suspects->worst[i]
                                        : &suspects->others[i - suspects->worst_count];
        status = judge_suspect(survey, output, one, inputs, outputs, verdict, right, error);
    }
    size_t used = strlen(verdict->remarks);
    if (!status && *right && suspects->found > judged)
        snprintf(verdict->remarks + used, sizeof verdict->remarks - used,
                 "%sof %lld elements of %s whose errors are larger than usual, %d were judged",
                 used ? "; " : "", (long long)suspects->found,
                 survey->problem->op->tensors[survey->problem->op->input_count + output]->name,
                 judged);
    return status;
}

enum kg_status kg_survey_judge(const struct kg_survey *survey, const void *const *inputs,
                               const void *const *outputs, struct kg_verdict *verdict, bool *right,
                               struct kg_error *error)
{
    const struct kg_problem *problem = survey->problem;
    enum kg_status status = KG_OK;
    *right = true;
    struct suspects *suspects = malloc(sizeof *suspects);
    if (!suspects)
        return kg_error_memory(error, "a survey");
    for (int o = 0; o < problem->op->output_count && !status && *right; o++) {
        int tensor = problem->op->input_count + o, rank = problem->op->tensors[tensor]->rank;
        const struct kg_layout *layout = &problem->layouts[tensor];
        const struct values *values = &survey->values[o];
        if (values->count == 0)
            continue;
        struct usual usual = usual_of(survey, values);
        struct kg_window whole = {.none = false};
        for (int d = 0; d < rank; d++)
            whole.extent[d] = layout->shape[d];
        struct row row = first_row(layout, rank, &whole);
        memset(suspects, 0, sizeof *suspects);
        suspects->random = kg_random_make(verdict->seed, SUSPECTS_STREAM);
        do
            compare_row(values, &usual, outputs[o], row.at, &row, suspects);
        while (next_row(layout, rank, &whole, &row));
        status = judge_suspects(survey, o, suspects, inputs, outputs, verdict, right, error);
        verdict->elements += values->count;
    }
    free(suspects);
    return status;
}
