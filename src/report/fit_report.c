// Samples of one device and one family form a group, which is fitted and judged separately. Samples
// without features form a separate group, of which only the bounds are judged. The fit is judged on
// held-out samples: each op is estimated from the other ops or, in a group of one op, each problem
// from the other problems.

#include "report/fit_report.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIDGE 1.0
#define MAX_OF_PROBLEM 4000 // samples: all pairs are compared

enum order { ORDER_BOUND, ORDER_POINTS, ORDER_PRIOR, ORDER_FITTED, ORDER_COUNT };

static const struct {
    const char *key, *label;
} orders[ORDER_COUNT] = {
    [ORDER_BOUND] = {"bound", "bound"},
    [ORDER_POINTS] = {"points", "points"},
    [ORDER_PRIOR] = {"prior", "model, prior"},
    [ORDER_FITTED] = {"fitted", "model, fitted to the other "},
};

struct group {
    const struct kg_sample *samples;
    int count;
    struct kg_fit_sample *fits; // in the order of the samples, with numbers of problems
    double *scores;
    bool has_features, has_points;
    bool by_op;   // ops are held out; else problems
    int held_out; // number of ops, or of problems
    bool judged[ORDER_COUNT];
    struct kg_fit_report reports[ORDER_COUNT];
    const struct kg_model_coefficients *prior;
    struct kg_model_coefficients fitted;
};

static int compare_groups(const struct kg_sample *a, const struct kg_sample *b)
{
    int device = strcmp(a->device, b->device), family = strcmp(a->family, b->family);
    return device ? device : family ? family : b->forecast.known - a->forecast.known;
}

static int compare_problems(const struct kg_sample *a, const struct kg_sample *b)
{
    int op = strcmp(a->op, b->op);
    return op ? op : strcmp(a->problem, b->problem);
}

static int compare(const void *left, const void *right)
{
    const struct kg_sample *a = left, *b = right;
    int group = compare_groups(a, b), problem = compare_problems(a, b);
    if (group || problem)
        return group ? group : problem;
    int candidate = strcmp(a->candidate, b->candidate);
    if (candidate || a->seconds == b->seconds)
        return candidate;
    return a->seconds < b->seconds ? -1 : 1;
}

static struct kg_fit_sample fit_sample(const struct kg_sample *sample)
{
    struct kg_fit_sample fit = {.bound = sample->forecast.bound,
                                .measured = sample->seconds,
                                .spread = sample->spread,
                                .warm = sample->warm,
                                .launches = sample->forecast.launches};
    memcpy(fit.feature, sample->forecast.feature, sizeof fit.feature);
    return fit;
}

// Holds out ops if there are several and all are known.
static void choose_held_out(struct group *group)
{
    const struct kg_sample *samples = group->samples;
    int ops = 0;
    bool known = true;
    for (int s = 0; s < group->count; s++) {
        ops += s == 0 || strcmp(samples[s].op, samples[s - 1].op) != 0;
        known &= samples[s].op[0] != '\0';
        group->fits[s].held_out = ops - 1;
    }
    group->by_op = known && ops > 1;
    for (int s = 0; s < group->count && !group->by_op; s++)
        group->fits[s].held_out = group->fits[s].problem;
    group->held_out = group->count ? group->fits[group->count - 1].held_out + 1 : 0;
}

static enum kg_status open_group(struct group *group, struct kg_error *error)
{
    size_t count = (size_t)group->count;
    group->fits = calloc(count, sizeof *group->fits);
    group->scores = calloc(count, sizeof *group->scores);
    if (!group->fits || !group->scores)
        return kg_error_memory(error, "a fit");
    group->prior = kg_model_prior_of(group->samples->family);
    group->has_features = group->samples->forecast.known;
    group->has_points = true;
    int problem = 0, first = 0;
    for (int s = 0; s < group->count; s++) {
        const struct kg_sample *sample = &group->samples[s];
        if (s > 0 && compare_problems(sample, &sample[-1]) != 0) {
            problem++;
            first = s;
        }
        if (s - first >= MAX_OF_PROBLEM)
            return kg_error_set(error, KG_ERROR_ARGUMENT,
                                "problem '%.200s' has more than %d samples", sample->problem,
                                MAX_OF_PROBLEM);
        group->fits[s] = fit_sample(sample);
        group->fits[s].problem = problem;
        group->has_points &= !isnan(sample->forecast.points);
    }
    choose_held_out(group);
    return KG_OK;
}

static double score_of(const struct group *group, int s, enum order order)
{
    const struct kg_fit_sample *fit = &group->fits[s];
    if (order == ORDER_BOUND)
        return fit->bound;
    if (order == ORDER_POINTS)
        return -group->samples[s].forecast.points; // more points are better
    return kg_model_estimate(fit->bound, fit->feature, fit->launches, fit->warm, group->prior);
}

static enum kg_status judge_order(struct group *group, enum order order, struct kg_error *error)
{
    group->judged[order] = true;
    if (order == ORDER_FITTED)
        return kg_fit_holdout(group->fits, group->count, group->prior, RIDGE, 0,
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
        status = kg_fit_make(group->fits, group->count, group->prior, RIDGE, &group->fitted, error);
    // With a single one, nothing remains to fit to.
    if (status == KG_OK && group->has_features && group->held_out > 1)
        status = judge_order(group, ORDER_FITTED, error);
    return status;
}

// ---- Text

static void add_orders(const struct group *group, struct kg_text *text)
{
    kg_text_format(text, "\n  %-36s %9s   %-43s %8s\n", "", "pairs in",
                   "slower than the best, of the first", "false");
    kg_text_format(text, "  %-36s %9s", "", "order");
    for (int t = 0; t < KG_FIT_TOPS; t++)
        kg_text_format(text, " %10d", kg_fit_tops[t]);
    kg_text_format(text, " %11s %10s\n", "1, worst", "prunes");
    for (int o = 0; o < ORDER_COUNT; o++) {
        const struct kg_fit_report *report = &group->reports[o];
        if (!group->judged[o])
            continue;
        char label[48];
        snprintf(label, sizeof label, "%s%s", orders[o].label,
                 o != ORDER_FITTED ? ""
                 : group->by_op    ? "ops"
                                   : "problems");
        kg_text_format(text, "  %-36s %9.3f", label, report->ordered);
        for (int t = 0; t < KG_FIT_TOPS; t++)
            kg_text_format(text, " %9.1f%%", 100 * report->regret[t]);
        kg_text_format(text, " %10.1f%% %10lld\n", 100 * report->worst_regret[0],
                       (long long)report->false_drops);
    }
}

static void add_coefficients(const struct group *group, struct kg_text *text)
{
    kg_text_format(text, "\n  %-14s %9s %9s\n", "coefficient", "prior", "fitted");
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        kg_text_format(text, "  %-14s %9.3f %9.3f\n", kg_feature_name((enum kg_feature)f),
                       group->prior->beta[f], group->fitted.beta[f]);
}

static void add_group(const struct group *group, struct kg_text *text)
{
    const struct kg_fit_report *report = &group->reports[ORDER_BOUND];
    kg_text_format(text, "%s%s%s: %d sample%s of %d problem%s, %lld pairs that differ\n",
                   group->samples[0].device, *group->samples[0].family ? ", " : "",
                   group->samples[0].family, report->samples, report->samples == 1 ? "" : "s",
                   report->problems, report->problems == 1 ? "" : "s", (long long)report->pairs);
    add_orders(group, text);
    kg_text_format(
        text,
        "\n  false prunes: of the %lld in the last half of an order, those faster than all "
        "before\n  pruning by the bound alone: %lld of %d, wrongly %lld; bounds above the "
        "time: %lld\n",
        (long long)report->dropped, (long long)report->pruned, report->samples,
        (long long)report->false_prunes, (long long)report->violations);
    if (group->has_features)
        add_coefficients(group, text);
    else
        kg_text_add(text,
                    "  no features, so nothing is fitted: the model is of GPUs, and of kernels "
                    "for the host\n  there are their families' bounds alone\n");
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
    kg_json_integer(json, "dropped", report->dropped);
    kg_json_integer(json, "false_drops", report->false_drops);
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
    kg_json_text(json, "held_out",
                 !group->judged[ORDER_FITTED] ? NULL
                 : group->by_op               ? "op"
                                              : "problem");
    kg_json_integer(json, "held", group->held_out);
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
        kg_json_integer(&out, "schema", KG_FIT_SCHEMA);
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
