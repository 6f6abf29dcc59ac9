// Problems on disk, for judges that are not written in C: a definition, inputs, and what the
// reference makes of them.
//
//     write_problem FOLDER SEED            a random definition
//     write_problem FOLDER SEED FILE.kg OP "P=3 D=5 T=f16"
//
// FOLDER gets op.kg, about.txt, the bits of each input in NAME.bits, and for each output
// NAME.value (f64, or int64 for integers and truth values) and NAME.slack (f64). Lines of
// about.txt:
//
//     op NAME        the op
//     class NAME     the class of the inputs
//     bind NAME=V    a size, a param or a type variable
//     tensor NAME ROLE DTYPE DIM...
//
// Exit status 3: the definition does not allow these sizes, or there is too much to compute.

#include "base/files.h"
#include "property/random_op.h"
#include "support/sample_problem.h"
#include "verify/inputs.h"
#include "verify/reference.h"

#include <inttypes.h>
#include <stdio.h>

#define MOST_OPERATIONS 2e7 // of the reference
#define MOST_BYTES (64 << 20)
#define NOT_ALLOWED 3

static bool write_file(const char *folder, const char *name, const char *suffix, const void *data,
                       size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *file = fopen(path, "wb");
    bool done = file && fwrite(data, 1, bytes, file) == bytes;
    if (file && fclose(file) != 0)
        done = false;
    if (!done)
        fprintf(stderr, "%s cannot be written\n", path);
    return done;
}

// The choices as they were given, one a line.
static void add_bindings(struct kg_text *about, const char *choices)
{
    while (*choices) {
        size_t length = strcspn(choices, " ");
        if (length > 0)
            kg_text_format(about, "bind %.*s\n", (int)length, choices);
        choices += length + (choices[length] == ' ');
    }
}

static bool write_about(const char *folder, const struct kg_problem *problem, const char *choices,
                        enum kg_input_class class)
{
    const struct kg_op *op = problem->op;
    struct kg_text about = {0};
    kg_text_format(&about, "op %s\nclass %s\n", op->name, kg_input_class_names[class]);
    add_bindings(&about, choices);
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        const struct kg_layout *layout = &problem->layouts[i];
        kg_text_format(&about, "tensor %s %s %s", op->tensors[i]->name,
                       i < op->input_count ? "input" : "output",
                       kg_dtypes[op->tensors[i]->type.dtype].name);
        for (int d = 0; d < op->tensors[i]->rank; d++)
            kg_text_format(&about, " %" PRId64, layout->shape[d]);
        kg_text_add(&about, "\n");
    }
    bool done = write_file(folder, "about", ".txt", kg_text_string(&about), about.length);
    kg_text_free(&about);
    return done;
}

static bool write_expected(const char *folder, const struct kg_problem *problem,
                           const struct kg_expected *expected)
{
    const struct kg_op *op = problem->op;
    bool done = true;
    for (int o = 0; o < op->output_count && done; o++) {
        const char *name = op->tensors[op->input_count + o]->name;
        size_t bytes = (size_t)expected[o].count * sizeof(double);
        const void *values =
            expected[o].integer ? (const void *)expected[o].integer : expected[o].value;
        done = write_file(folder, name, ".value", values, bytes) &&
               write_file(folder, name, ".slack", expected[o].slack, bytes);
    }
    return done;
}

static bool is_small(const struct kg_problem *problem)
{
    struct kg_error error = {0};
    double operations = 0;
    size_t bytes = 0;
    for (int i = 0; i < problem->tensor_count; i++)
        bytes += problem->layouts[i].bytes;
    return bytes <= MOST_BYTES && kg_reference_cost(problem, NULL, &operations, &error) == KG_OK &&
           operations <= MOST_OPERATIONS;
}

static int write_all(const char *folder, const struct kg_problem *problem, const char *choices,
                     uint64_t seed)
{
    static const enum kg_input_class classes[] = {KG_INPUT_NORMAL, KG_INPUT_NORMAL,
                                                  KG_INPUT_NAN,    KG_INPUT_INFINITE,
                                                  KG_INPUT_WHOLE,  KG_INPUT_TIES};
    enum kg_input_class class = classes[seed % (sizeof classes / sizeof classes[0])];
    void *inputs[KG_MAX_TENSORS] = {NULL};
    struct kg_expected expected[KG_MAX_TENSORS];
    struct kg_error error = {0};
    bool done = write_about(folder, problem, choices, class);
    for (int i = 0; i < problem->op->input_count && done; i++) {
        inputs[i] = calloc(problem->layouts[i].bytes + 1, 1);
        if (!inputs[i])
            return 1;
        kg_inputs_fill(problem, i, class, seed + (uint64_t)i, inputs[i]);
        done = write_file(folder, problem->op->tensors[i]->name, ".bits", inputs[i],
                          problem->layouts[i].bytes);
    }
    if (done && kg_reference_run(problem, (const void *const *)inputs, 1, NULL, expected, &error) !=
                    KG_OK) {
        fprintf(stderr, "%s\n", error.text);
        done = false;
    } else if (done) {
        done = write_expected(folder, problem, expected);
        kg_expected_free(expected, problem->op->output_count);
    }
    for (int i = 0; i < problem->op->input_count; i++)
        free(inputs[i]);
    return done ? 0 : 1;
}

static int write_problem(const char *folder, const char *text, const char *op, const char *choices,
                         uint64_t seed)
{
    struct made made = make_strided(text, op, choices, NULL);
    int exit_status = NOT_ALLOWED;
    if (made.status == KG_OK && is_small(made.problem))
        exit_status = write_file(folder, "op", ".kg", text, strlen(text))
                          ? write_all(folder, made.problem, choices, seed)
                          : 1;
    else if (made.status != KG_OK)
        fprintf(stderr, "%s\n", made.error.text);
    unmake(&made);
    return exit_status;
}

int main(int count, char **words)
{
    if (count != 3 && count != 6) {
        fprintf(stderr, "write_problem FOLDER SEED [FILE.kg OP CHOICES]\n");
        return 2;
    }
    uint64_t seed = strtoull(words[2], NULL, 0);
    if (count == 3) {
        struct random_op random = {0};
        random_op_make(&random, seed, seed % 4 ? RANDOM_STABLE : RANDOM_ANY);
        int exit_status = write_problem(words[1], kg_text_string(&random.text), NULL,
                                        kg_text_string(&random.sizes), seed);
        random_op_free(&random);
        return exit_status;
    }
    char *text = NULL;
    size_t length;
    struct kg_error error = {0};
    if (kg_files_read(words[3], MOST_BYTES, &text, &length, &error) != KG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    int exit_status = write_problem(words[1], text, words[4], words[5], seed);
    free(text);
    return exit_status;
}
