// The quality of an order of candidates, per problem: pairs in order, the best of the first few,
// and what pruning would lose.

#include "asm/fit_samples.h"

#include <math.h>
#include <stdlib.h>

const int kg_fit_tops[KG_FIT_TOPS] = {1, 8, 16};

struct candidate {
    const struct kg_fit_sample *sample;
    double score;
};

// By problem, then by score, then in the given order.
static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->sample->problem != b->sample->problem)
        return a->sample->problem < b->sample->problem ? -1 : 1;
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->sample < b->sample ? -1 : a->sample > b->sample;
}

static int problem_end(const struct candidate *all, int count, int first)
{
    int end = first;
    while (end < count && all[end].sample->problem == all[first].sample->problem)
        end++;
    return end;
}

static double best_of(const struct candidate *first, int count)
{
    double best = first->sample->measured;
    for (int c = 1; c < count; c++)
        best = fmin(best, first[c].sample->measured);
    return best;
}

// Are the times equal within their spread?
static bool is_tie(const struct kg_fit_sample *a, const struct kg_fit_sample *b)
{
    double noise = a->measured * a->spread + b->measured * b->spread;
    return fabs(a->measured - b->measured) <= noise;
}

static void judge_pairs(const struct candidate *first, int count, struct kg_fit_report *report)
{
    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            if (is_tie(first[a].sample, first[b].sample))
                continue;
            report->pairs++;
            if (first[a].score == first[b].score)
                report->ordered += 0.5;
            else
                report->ordered += first[a].sample->measured < first[b].sample->measured;
        }
}

static void judge_tops(const struct candidate *first, int count, struct kg_fit_report *report)
{
    double best = best_of(first, count);
    for (int t = 0; t < KG_FIT_TOPS; t++) {
        int top = kg_fit_tops[t] < count ? kg_fit_tops[t] : count;
        double regret = best_of(first, top) / best - 1;
        report->regret[t] += regret;
        report->worst_regret[t] = fmax(report->worst_regret[t], regret);
    }
}

static void judge_bounds(const struct candidate *first, int count, double epsilon,
                         struct kg_fit_report *report)
{
    double limit = best_of(first, count) * (1 + epsilon);
    for (int c = 0; c < count; c++) {
        const struct kg_fit_sample *sample = first[c].sample;
        report->violations += sample->bound > sample->measured * (1 + sample->spread);
        if (sample->bound <= limit)
            continue;
        report->pruned++;
        report->false_prunes += sample->measured <= limit;
    }
}

// The best of the first half need not be the best of all; within the noise it counts as such.
static void judge_halves(const struct candidate *first, int count, struct kg_fit_report *report)
{
    int kept = count - count / 2;
    const struct kg_fit_sample *best = first->sample;
    for (int c = 1; c < kept; c++)
        if (first[c].sample->measured < best->measured)
            best = first[c].sample;
    report->dropped += count - kept;
    for (int c = kept; c < count; c++)
        report->false_drops +=
            first[c].sample->measured < best->measured && !is_tie(first[c].sample, best);
}

static void judge(struct candidate *all, int count, double epsilon, struct kg_fit_report *report)
{
    qsort(all, (size_t)count, sizeof *all, compare);
    for (int first = 0; first < count;) {
        int end = problem_end(all, count, first);
        judge_pairs(all + first, end - first, report);
        judge_tops(all + first, end - first, report);
        judge_bounds(all + first, end - first, epsilon, report);
        judge_halves(all + first, end - first, report);
        report->problems++;
        first = end;
    }
    report->samples = count;
    report->ordered = report->pairs > 0 ? report->ordered / (double)report->pairs : 0.5;
    for (int t = 0; t < KG_FIT_TOPS && report->problems > 0; t++)
        report->regret[t] /= report->problems;
}

// Checks the samples and allocates the candidates.
static enum kg_status prepare(const struct kg_fit_sample *samples, int count, double epsilon,
                              struct candidate **all, struct kg_error *error)
{
    *all = NULL;
    if (!(epsilon >= 0) || !isfinite(epsilon))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "an epsilon of %g; it must be at least 0",
                            epsilon);
    enum kg_status status = kg_fit_check(samples, count, error);
    if (status != KG_OK)
        return status;
    *all = calloc((size_t)count + 1, sizeof **all);
    if (!*all)
        return kg_error_memory(error, "judging an order");
    for (int c = 0; c < count; c++)
        (*all)[c].sample = &samples[c];
    return KG_OK;
}

enum kg_status kg_fit_judge(const struct kg_fit_sample *samples, int count, const double *score,
                            double epsilon, struct kg_fit_report *report, struct kg_error *error)
{
    *report = (struct kg_fit_report){0};
    struct candidate *all;
    enum kg_status status = prepare(samples, count, epsilon, &all, error);
    for (int c = 0; c < count && status == KG_OK; c++) {
        all[c].score = score[c];
        if (!isfinite(score[c]))
            status = kg_error_set(error, KG_ERROR_ARGUMENT, "score %d of %d is %g", c + 1, count,
                                  score[c]);
    }
    if (status == KG_OK)
        judge(all, count, epsilon, report);
    free(all);
    return status;
}

static int compare_held_out(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return a->sample->held_out < b->sample->held_out ? -1
                                                     : a->sample->held_out > b->sample->held_out;
}

// Estimates candidates that are held out together, with coefficients fitted to the others.
static enum kg_status score_held_out(const struct kg_fit_sample *samples, int count,
                                     const struct kg_model_coefficients *prior, double ridge,
                                     struct candidate *first, int held_out, struct kg_error *error)
{
    struct kg_model_coefficients fitted;
    enum kg_status status =
        kg_fit_without(samples, count, &first->sample->held_out, prior, ridge, &fitted, error);
    for (int c = 0; c < held_out && status == KG_OK; c++) {
        const struct kg_fit_sample *sample = first[c].sample;
        first[c].score = kg_model_estimate(sample->bound, sample->feature, sample->launches,
                                           sample->warm, &fitted);
    }
    return status;
}

enum kg_status kg_fit_holdout(const struct kg_fit_sample *samples, int count,
                              const struct kg_model_coefficients *prior, double ridge,
                              double epsilon, struct kg_fit_report *report, struct kg_error *error)
{
    *report = (struct kg_fit_report){0};
    struct candidate *all;
    enum kg_status status = prepare(samples, count, epsilon, &all, error);
    if (status == KG_OK)
        qsort(all, (size_t)count, sizeof *all, compare_held_out);
    for (int first = 0, end = 0; first < count && status == KG_OK;) {
        while (end < count && all[end].sample->held_out == all[first].sample->held_out)
            end++;
        status = score_held_out(samples, count, prior, ridge, all + first, end - first, error);
        first = end;
    }
    if (status == KG_OK)
        judge(all, count, epsilon, report);
    free(all);
    return status;
}
