// From what size on does a search pay? Every problem is planned twice from nothing, by rule and by
// a search, and both plans are timed in turn:
//
//     KERNELGEN_HOME=$(mktemp -d) bench_small [--device NAME] [--time SECONDS] [OP...]
//
// A search pays when what it gains comes back within PAYBACK executions. The last line says under
// how many bytes and operations none did: what src/flow/small.c holds for the device.
// docs/timing.md tells what was measured.

#include "kernelgen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAYBACK 1e6
#define LEAST_GAIN 0.02 // below that it is noise
#define TURNS 3
#define STEPS 5

static const struct subject {
    const char *name;
    const char *text;
    const char *size; // that grows
    int64_t first;
    int factor;        // from step to step
    double operations; // for each unit of it
} subjects[] = {
    {"bias_relu",
     "op bias_relu(x: f32[P, D], bias: f32[D]) -> (y: f32[P, D])\n"
     "{ y[p, d] = relu(x[p, d] + bias[d]) }\ngoal { tune P D = 1 256 }\n",
     "P", 4, 8, 512},
    {"softmax",
     "op softmax(x: f32[P, D]) -> (y: f32[P, D])\n"
     "{ m[p] = max(d) x[p, d]\n e[p, d] = exp(x[p, d] - m[p])\n"
     "y[p, d] = e[p, d] / (sum(d) e[p, d]) }\ngoal { tune P D = 1 256 }\n",
     "P", 4, 8, 1280},
    {"sum_last",
     "op sum_last(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }\n"
     "goal { tune P D = 1 256 }\n",
     "P", 8, 8, 256},
    {"matmul",
     "op matmul(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
     "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\ngoal { tune M K N = 16 64 64 }\n",
     "M", 4, 4, 8192},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int fail(struct kg_context *context, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, kg_context_error(context));
    return 1;
}

// What the two plans of one problem take, at the best of a few turns.
struct pair {
    double rule, found; // seconds of an execution
    double search;      // seconds the search took beyond the plan by rule
};

static enum kg_status compare(struct kg_problem *problem, struct kg_device *device, double limit,
                              struct pair *pair)
{
    struct kg_plan *plans[2] = {NULL};
    double began = now(), middle;
    enum kg_status status = kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plans[0]);
    middle = now();
    if (status == KG_OK)
        status = kg_plan_create(problem, device, KG_RIGOR_MEASURE, limit, &plans[1]);
    *pair = (struct pair){INFINITY, INFINITY, now() - middle - (middle - began)};
    bool same = status == KG_OK && strcmp(kg_plan_choice(plans[0]), kg_plan_choice(plans[1])) == 0;
    for (int turn = 0; turn < TURNS && status == KG_OK; turn++)
        for (int i = 0; i < (same ? 1 : 2) && status == KG_OK; i++) {
            struct kg_bench_result result = {.size = sizeof result};
            double *best = i ? &pair->found : &pair->rule;
            status = kg_plan_bench(plans[i], &result);
            *best = fmin(*best, result.seconds);
        }
    if (same)
        pair->found = pair->rule;
    kg_plan_destroy(plans[0]);
    kg_plan_destroy(plans[1]);
    return status;
}

// The smallest problem for which a search paid, over all ops.
struct limit {
    double bytes, operations;
};

static void show(const struct subject *subject, int64_t size, double bytes, const struct pair *pair,
                 struct limit *limit)
{
    double gain = pair->rule - pair->found;
    double runs = gain > LEAST_GAIN * pair->rule ? pair->search / gain : INFINITY;
    printf("%-10s %s=%-7lld %10.0f %9.2f %9.2f %6.1f%% %7.1f %10.2g%s\n", subject->name,
           subject->size, (long long)size, bytes, pair->rule * 1e6, pair->found * 1e6,
           100 * gain / pair->rule, pair->search, runs, runs <= PAYBACK ? "  pays" : "");
    fflush(stdout);
    if (runs <= PAYBACK) {
        limit->bytes = fmin(limit->bytes, bytes);
        limit->operations = fmin(limit->operations, (double)size * subject->operations);
    }
}

static int run(const struct subject *subject, const char *device_name, double seconds,
               struct limit *limit)
{
    struct kg_context *context = NULL;
    struct kg_device *device = NULL;
    struct kg_op *op = NULL;
    const struct kg_options options = {.wisdom = ""};
    int failed = kg_context_create(&options, &context) != KG_OK ||
                 kg_context_device(context, device_name, &device) != KG_OK ||
                 kg_op_parse(context, subject->name, subject->text, strlen(subject->text), NULL,
                             &op) != KG_OK;
    int64_t size = subject->first;
    for (int step = 0; step < STEPS && !failed; step++, size *= subject->factor) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)size);
        struct kg_binding binding = {subject->size, number};
        struct kg_problem *problem = NULL;
        struct pair pair;
        failed = kg_problem_create(context, op, &binding, 1, &problem) != KG_OK ||
                 compare(problem, device, seconds, &pair) != KG_OK;
        double bytes = 0;
        for (int i = 0; !failed && i < kg_problem_tensor_count(problem); i++) {
            struct kg_tensor_info info = {.size = sizeof info};
            failed = kg_problem_tensor(problem, i, &info) != KG_OK;
            bytes += (double)info.bytes;
        }
        if (!failed)
            show(subject, size, bytes, &pair, limit);
        kg_problem_destroy(problem);
    }
    if (failed)
        fail(context, subject->name);
    kg_op_destroy(op);
    kg_context_destroy(context);
    return failed;
}

static bool is_wanted(const struct subject *subject, int count, char **words)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], subject->name) == 0)
            return true;
    return count == 0;
}

int main(int count, char **words)
{
    const char *device = "host";
    double seconds = 0;
    int at = 1, failed = 0;
    for (; at + 1 < count && strncmp(words[at], "--", 2) == 0; at += 2) {
        if (strcmp(words[at], "--device") == 0)
            device = words[at + 1];
        else if (strcmp(words[at], "--time") == 0)
            seconds = strtod(words[at + 1], NULL);
    }
    struct limit limit = {INFINITY, INFINITY};
    printf("%-10s %-9s %10s %9s %9s %7s %7s %10s\n", "op", "size", "bytes", "rule us", "found us",
           "gain", "search", "pays after");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (is_wanted(&subjects[i], count - at, words + at))
            failed |= run(&subjects[i], device, seconds, &limit);
    printf("no search paid under %.0f bytes and %.0f operations\n", limit.bytes, limit.operations);
    return failed;
}
