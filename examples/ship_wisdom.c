// Tunes an operator once and ships what was learned.
//
//     cc ship_wisdom.c $(pkg-config --cflags --libs kernelgen) -o ship_wisdom
//     ./ship_wisdom tune wisdom.jsonl      on the build machine: searches, then exports
//     ./ship_wisdom use wisdom.jsonl       on the user's machine: imports, never searches
//
// Wisdom fits the device and compiler it was found with. Where it does not fit, `use`
// falls back to the rule-based plan, which needs no measurement.

#include <kernelgen.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char definition[] =
    "# Adds a bias along the last dimension, then ReLU.\n"
    "op bias_relu(x: T[P, D], bias: T[D]) -> (y: T[P, D]) where T in f32\n"
    "{\n"
    "    y[p, d] = relu(x[p, d] + bias[d])\n"
    "}\n"
    "goal { tune P D = 4096 1024 }\n";

static int fail(struct kg_context *context, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, kg_context_error(context));
    return 1;
}

static int write_wisdom(struct kg_context *context, const char *path)
{
    char *lines;
    if (kg_wisdom_export(context, &lines) != KG_OK)
        return fail(context, "export");
    FILE *file = fopen(path, "w");
    int bad = !file || fputs(lines, file) < 0;
    if (file)
        bad |= fclose(file) != 0;
    kg_text_release(lines);
    if (bad)
        fprintf(stderr, "%s could not be written\n", path);
    return bad;
}

static int tune(struct kg_context *context, struct kg_problem *problem, struct kg_device *device,
                const char *path)
{
    struct kg_plan *plan;
    if (kg_plan_create(problem, device, KG_RIGOR_MEASURE, 20.0, &plan) != KG_OK)
        return fail(context, "search");
    double measured, bound;
    kg_plan_cost(plan, &measured, &bound);
    printf("found: %s\n%.3g ms measured, %.3g ms is the bound\n", kg_plan_choice(plan),
           measured * 1e3, bound * 1e3);
    kg_plan_destroy(plan);
    return write_wisdom(context, path);
}

static int read_wisdom(struct kg_context *context, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return 1;
    }
    char lines[65536];
    size_t length = fread(lines, 1, sizeof lines, file);
    fclose(file);
    char *summary;
    if (kg_wisdom_import(context, lines, length, &summary) != KG_OK)
        return fail(context, "import");
    fputs(summary, stdout);
    kg_text_release(summary);
    return 0;
}

static int use(struct kg_context *context, struct kg_problem *problem, struct kg_device *device,
               const char *path)
{
    if (read_wisdom(context, path))
        return 1;
    struct kg_plan *plan;
    enum kg_status status = kg_plan_create(problem, device, KG_RIGOR_WISDOM, 0, &plan);
    if (status == KG_ERROR_NO_WISDOM) {
        printf("no wisdom fits this machine (%s); going by rule\n", kg_context_error(context));
        status = kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan);
    }
    if (status != KG_OK)
        return fail(context, "plan");
    printf("using: %s\n", kg_plan_choice(plan));
    kg_plan_destroy(plan);
    return 0;
}

int main(int count, char **words)
{
    if (count != 3 || (strcmp(words[1], "tune") != 0 && strcmp(words[1], "use") != 0)) {
        fprintf(stderr, "usage: %s tune|use WISDOM.jsonl\n", words[0]);
        return 2;
    }
    struct kg_context *context;
    struct kg_op *op = NULL;
    struct kg_device *device = NULL;
    struct kg_problem *problem = NULL;
    int exit_status = 1;
    if (kg_context_create(NULL, &context) != KG_OK ||
        kg_op_parse(context, "bias_relu.kg", definition, strlen(definition), NULL, &op) != KG_OK ||
        kg_context_device(context, "host", &device) != KG_OK ||
        kg_problem_create(context, op, NULL, 0, &problem) != KG_OK)
        fail(context, "setting up");
    else
        exit_status = strcmp(words[1], "tune") == 0 ? tune(context, problem, device, words[2])
                                                    : use(context, problem, device, words[2]);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    return exit_status;
}
