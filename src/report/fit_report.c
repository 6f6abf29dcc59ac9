// Samples of one device and one family are a group, which is fitted and judged by itself. The fit
// is judged on problems that it has not seen: each problem is estimated from the others.

#include "report/fit_report.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RIDGE 1.0
#define MOST_OF_PROBLEM 4000 // samples: pairs are compared one by one

enum order { ORDER_BOUND, ORDER_POINTS, ORDER_PRIOR, ORDER_FITTED, ORDER_COUNT };

static const struct {
    const char *key, *label;
} orders[ORDER_COUNT] = {
    [ORDER_BOUND] = {"bound", "bound"},
    [ORDER_POINTS] = {"points", "points"},
    [ORDER_PRIOR] = {"prior", "model, prior"},
    [ORDER_FITTED] = {"fitted", "model, fitted to the other problems"},
};

struct group {
    const struct kg_sample *samples;
    int count;
    struct kg_fit_sample *fits; // as the samples stand, with numbers of problems
    double *scores;
    bool has_features, has_points;
    bool judged[ORDER_COUNT];
    struct kg_fit_report reports[ORDER_COUNT];
    struct kg_model_coefficients fitted;
};

static int compare_groups(const struct kg_sample *a, const struct kg_sample *b)
{
    int device = strcmp(a->device, b->device);
    return device ? device : strcmp(a->family, b->family);
}

static int compare(const void *left, const void *right)
{
    const struct kg_sample *a = left, *b = right;
    int group = compare_groups(a, b), problem = strcmp(a->problem, b->problem);
    if (group || problem)
        return group ? group : problem;
    int candidate = strcmp(a->candidate, b->candidate);
    if (candidate || a->fit.measured == b->fit.measured)
        return candidate;
    return a->fit.measured < b->fit.measured ? -1 : 1;
}

static enum kg_status open_group(struct group *group, struct kg_error *error)
{
    size_t count = (size_t)group->count;
    group->fits = calloc(count, sizeof *group->fits);
    group->scores = calloc(count, sizeof *group->scores);
    if (!group->fits || !group->scores)
        return kg_error_memory(error, "a fit");
    group->has_features = group->has_points = true;
    int problem = 0, first = 0;
    for (int s = 0; s < group->count; s++) {
        const struct kg_sample *sample = &group->samples[s];
        if (s > 0 && strcmp(sample->problem, sample[-1].problem) != 0) {
            problem++;
            first = s;
        }
        if (s - first >= MOST_OF_PROBLEM)
            return kg_error_set(error, KG_ERROR_ARGUMENT,
                                "problem '%.200s' has more than %d samples", sample->problem,
                                MOST_OF_PROBLEM);
        group->fits[s] = sample->fit;
        group->fits[s].problem = problem;
        group->has_features &= sample->has_features;
        group->has_points &= !isnan(sample->points);
    }
    return KG_OK;
}

static double score_of(const struct group *group, int s, enum order order)
{
    const struct kg_fit_sample *fit = &group->fits[s];
    if (order == ORDER_BOUND)
        return fit->bound;
    if (order == ORDER_POINTS)
        return -group->samples[s].points; // more of them is better
    return kg_model_estimate(fit->bound, fit->feature, fit->warm, &kg_model_prior);
}

static enum kg_status judge_order(struct group *group, enum order order, struct kg_error *error)
{
    group->judged[order] = true;
    if (order == ORDER_FITTED)
        return kg_fit_holdout(group->fits, group->count, &kg_model_prior, RIDGE, 0,
                              &group->reports[order], error);
    for (int s = 0; s < group->count; s++)
        group->scores[s] = score_of(group, s, order);
    return kg_fit_judge(group->fits, group->count, group->scores, 0, &group->reports[order], error);
}

static enum kg_status judge_group(struct group *group, struct kg_error *error)
{
    enum kg_status status = judge_order(group, ORDER_BOUND, error);
    if (status == KG_OK && group->has_points)
        status = judge_order(group, ORDER_POINTS, error);
    if (status == KG_OK && group->has_features)
        status = judge_order(group, ORDER_PRIOR, error);
    if (status == KG_OK && group->has_features)
        status =
            kg_fit_make(group->fits, group->count, &kg_model_prior, RIDGE, &group->fitted, error);
    // With one problem nothing is left to fit to when it is held out.
    if (status == KG_OK && group->has_features && group->reports[ORDER_BOUND].problems > 1)
        status = judge_order(group, ORDER_FITTED, error);
    return status;
}

// ---- Text

static void add_orders(const struct group *group, struct kg_text *text)
{
    kg_text_format(text, "\n  %-38s %9s   %s\n", "", "pairs in",
                   "slower than the best, of the first");
    kg_text_format(text, "  %-38s %9s", "", "order");
    for (int t = 0; t < KG_FIT_TOPS; t++)
        kg_text_format(text, " %10d", kg_fit_tops[t]);
    kg_text_format(text, " %10s\n", "1, worst");
    for (int o = 0; o < ORDER_COUNT; o++) {
        const struct kg_fit_report *report = &group->reports[o];
        if (!group->judged[o])
            continue;
        kg_text_format(text, "  %-38s %9.3f", orders[o].label, report->ordered);
        for (int t = 0; t < KG_FIT_TOPS; t++)
            kg_text_format(text, " %9.1f%%", 100 * report->regret[t]);
        kg_text_format(text, " %9.1f%%\n", 100 * report->worst_regret[0]);
    }
}

static void add_coefficients(const struct group *group, struct kg_text *text)
{
    kg_text_format(text, "\n  %-14s %9s %9s\n", "coefficient", "prior", "fitted");
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        kg_text_format(text, "  %-14s %9.3f %9.3f\n", kg_feature_name((enum kg_feature)f),
                       kg_model_prior.beta[f], group->fitted.beta[f]);
}

static void add_group(const struct group *group, struct kg_text *text)
{
    const struct kg_fit_report *report = &group->reports[ORDER_BOUND];
    kg_text_format(text, "%s%s%s: %d samples of %d problem%s, %lld pairs that differ\n",
                   group->samples[0].device, *group->samples[0].family ? ", " : "",
                   group->samples[0].family, report->samples, report->problems,
                   report->problems == 1 ? "" : "s", (long long)report->pairs);
    add_orders(group, text);
    kg_text_format(text,
                   "\n  pruning by the bound alone: %lld of %d, wrongly %lld; bounds above the "
                   "time: %lld\n",
                   (long long)report->pruned, report->samples, (long long)report->false_prunes,
                   (long long)report->violations);
    if (group->has_features)
        add_coefficients(group, text);
    else
        kg_text_add(text, "  without features there is nothing to fit\n");
    if (group->has_features && !group->judged[ORDER_FITTED])
        kg_text_add(text, "  one problem: the fit cannot be judged on another\n");
}

// ---- JSON

static void add_order_json(struct kg_json *json, const char *key,
                           const struct kg_fit_report *report)
{
    kg_json_begin_object(json, key);
    kg_json_number(json, "ordered", report->ordered);
    kg_json_begin_array(json, "regret");
    for (int t = 0; t < KG_FIT_TOPS; t++)
        kg_json_number(json, NULL, report->regret[t]);
    kg_json_end_array(json);
    kg_json_begin_array(json, "worst_regret");
    for (int t = 0; t < KG_FIT_TOPS; t++)
        kg_json_number(json, NULL, report->worst_regret[t]);
    kg_json_end_array(json);
    kg_json_end_object(json);
}

static void add_group_json(const struct group *group, struct kg_json *json)
{
    const struct kg_fit_report *report = &group->reports[ORDER_BOUND];
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "device", group->samples[0].device);
    kg_json_text(json, "family", group->samples[0].family);
    kg_json_integer(json, "samples", report->samples);
    kg_json_integer(json, "problems", report->problems);
    kg_json_integer(json, "pairs", report->pairs);
    kg_json_begin_object(json, "orders");
    for (int o = 0; o < ORDER_COUNT; o++)
        if (group->judged[o])
            add_order_json(json, orders[o].key, &group->reports[o]);
    kg_json_end_object(json);
    kg_json_integer(json, "pruned", report->pruned);
    kg_json_integer(json, "false_prunes", report->false_prunes);
    kg_json_integer(json, "violations", report->violations);
    if (!group->has_features)
        kg_json_text(json, "coefficients", NULL);
    else
        kg_json_begin_object(json, "coefficients");
    for (int f = 0; f < KG_FEATURE_COUNT && group->has_features; f++)
        kg_json_number(json, kg_feature_name((enum kg_feature)f), group->fitted.beta[f]);
    if (group->has_features)
        kg_json_end_object(json);
    kg_json_end_object(json);
}

// ----

static enum kg_status report_group(const struct kg_sample *first, int count, struct kg_json *json,
                                   struct kg_text *text, struct kg_error *error)
{
    struct group group = {.samples = first, .count = count};
    enum kg_status status = open_group(&group, error);
    if (status == KG_OK)
        status = judge_group(&group, error);
    if (status == KG_OK && json)
        add_group_json(&group, json);
    else if (status == KG_OK)
        add_group(&group, text);
    free(group.fits);
    free(group.scores);
    return status;
}

enum kg_status kg_report_fit(struct kg_samples *samples, bool json, struct kg_text *text,
                             struct kg_error *error)
{
    struct kg_json out = {.text = text};
    enum kg_status status = KG_OK;
    if (samples->count)
        qsort(samples->list, (size_t)samples->count, sizeof *samples->list, compare);
    if (json) {
        kg_json_begin_object(&out, NULL);
        kg_json_integer(&out, "schema", KG_SAMPLE_SCHEMA);
        kg_json_begin_array(&out, "tops");
        for (int t = 0; t < KG_FIT_TOPS; t++)
            kg_json_integer(&out, NULL, kg_fit_tops[t]);
        kg_json_end_array(&out);
        kg_json_begin_array(&out, "groups");
    }
    for (int first = 0, end; first < samples->count && status == KG_OK; first = end) {
        for (end = first + 1; end < samples->count; end++)
            if (compare_groups(&samples->list[end], &samples->list[first]) != 0)
                break;
        if (first > 0 && !json)
            kg_text_add(text, "\n");
        status = report_group(&samples->list[first], end - first, json ? &out : NULL, text, error);
    }
    if (json) {
        kg_json_end_array(&out);
        kg_json_end_object(&out);
        kg_text_add(text, "\n");
    }
    return status;
}
