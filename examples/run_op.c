// Runs one operator: definition in, result out.
//
//     cc run_op.c $(pkg-config --cflags --libs kernelgen) -lm -o run_op && ./run_op
//
// The definition is a string here; it may as well come from a file. The plan is made once and can
// then be executed any number of times, from any thread.

#include <kernelgen.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char definition[] = "# Softmax along the last dimension.\n"
                                 "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f32 f64\n"
                                 "{\n"
                                 "    m[p] = max(d) x[p, d]\n"
                                 "    e[p, d] = exp(x[p, d] - m[p])\n"
                                 "    y[p, d] = e[p, d] / (sum(d) e[p, d])\n"
                                 "}\n";

#define ROWS 1000
#define COLUMNS 513

static int fail(struct kg_context *context, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, kg_context_error(context));
    kg_context_destroy(context);
    return 1;
}

// Each row of a softmax sums to one.
static double worst_sum(const float *y)
{
    double worst = 0;
    for (int p = 0; p < ROWS; p++) {
        double sum = 0;
        for (int d = 0; d < COLUMNS; d++)
            sum += y[p * COLUMNS + d];
        worst = fmax(worst, fabs(sum - 1));
    }
    return worst;
}

static int execute(struct kg_context *context, struct kg_plan *plan)
{
    float *x = malloc(sizeof *x * ROWS * COLUMNS);
    float *y = malloc(sizeof *y * ROWS * COLUMNS);
    if (!x || !y)
        return fail(context, "no memory");
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i * 37 % 101) / 10.0f - 5.0f;

    // In the order of the definition: inputs, then outputs. On a GPU they would be addresses of its
    // memory, or kg_plan_run would copy these there and back.
    void *tensors[] = {x, y};
    enum kg_status status = kg_plan_execute(plan, tensors, NULL);
    if (status == KG_OK)
        printf("kernel: %s\nlargest |sum of a row - 1|: %.2g\n", kg_plan_choice(plan),
               worst_sum(y));
    else
        fprintf(stderr, "execute: %s\n", kg_status_name(status));
    free(x);
    free(y);
    return status != KG_OK;
}

int main(void)
{
    struct kg_context *context;
    if (kg_context_create(NULL, &context) != KG_OK)
        return fail(context, "context");

    struct kg_op *op;
    if (kg_op_parse(context, "softmax.kg", definition, strlen(definition), NULL, &op) != KG_OK)
        return fail(context, "definition");

    struct kg_device *device;
    if (kg_context_device(context, "host", &device) != KG_OK)
        return fail(context, "device");

    char rows[16], columns[16];
    snprintf(rows, sizeof rows, "%d", ROWS);
    snprintf(columns, sizeof columns, "%d", COLUMNS);
    struct kg_binding bindings[] = {{"T", "f32"}, {"P", rows}, {"D", columns}};
    struct kg_problem *problem;
    if (kg_problem_create(context, op, bindings, 3, &problem) != KG_OK)
        return fail(context, "problem");

    // By rule, without a search; then proved right before it is used.
    struct kg_plan *plan;
    if (kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan) != KG_OK)
        return fail(context, "plan");
    struct kg_verify_result verdict = {.size = sizeof verdict};
    if (kg_plan_verify(plan, 0, &verdict) != KG_OK)
        return fail(context, "verify");
    printf("verified: %s, %d cases, %lld elements\n", verdict.passed ? "yes" : verdict.reason,
           verdict.cases, (long long)verdict.elements);

    int exit_status = verdict.passed ? execute(context, plan) : 1;
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    return exit_status;
}
