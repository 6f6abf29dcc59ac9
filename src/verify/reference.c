// The interface of the reference: decodes the inputs, runs the passes, returns the outputs.

#include "verify/reference.h"

#include "verify/decode.h"
#include "verify/program.h"

#include <stdlib.h>
#include <string.h>

#define NANOSECONDS 4.0                 // of one operation, for kg_reference_cost
#define MOST_DECODED ((int64_t)1 << 22) // elements of an input; more are read where they lie

void kg_expected_free(struct kg_expected *expected, int count)
{
    for (int i = 0; expected && i < count; i++) {
        free(expected[i].value);
        free(expected[i].integer);
        free(expected[i].slack);
        memset(&expected[i], 0, sizeof expected[i]);
    }
}

// Reads a large input where it lies.
static void read_in_place(struct kg_field *field, const struct kg_layout *layout, const void *data)
{
    field->raw = data;
    field->count = layout->elements;
    memset(field->low, 0, sizeof field->low);
    memcpy(field->extent, field->shape, sizeof field->extent);
    memcpy(field->stride, layout->stride, sizeof layout->stride);
}

// Decodes the required box of an input.
static enum kg_status decode(struct kg_field *field, const struct kg_layout *layout,
                             const void *data, struct kg_error *error)
{
    size_t count = (size_t)field->count + 1;
    if (field->count > MOST_DECODED) {
        read_in_place(field, layout, data);
        return KG_OK;
    }
    if (field->is_real)
        field->real = malloc(count * sizeof *field->real);
    else
        field->integer = malloc(count * sizeof *field->integer);
    if (!field->real && !field->integer)
        return kg_error_memory(error, "the reference's inputs");
    enum kg_dtype dtype = field->tensor->type.dtype;
    int64_t place[KG_MAX_RANK] = {0};
    int64_t row = field->rank > 0 ? field->extent[field->rank - 1] : 1;
    int64_t stride = field->rank > 0 ? layout->stride[field->rank - 1] : 1;
    for (int64_t i = 0; i < field->count; i += row) {
        int64_t from = 0;
        for (int d = 0; d < field->rank; d++)
            from += (field->low[d] + place[d]) * layout->stride[d];
        if (field->is_real)
            kg_decode_reals(dtype, data, from, stride, row, field->real + i);
        else
            kg_decode_integers(dtype, data, from, stride, row, field->integer + i);
        for (int d = field->rank - 2; d >= 0 && ++place[d] == field->extent[d]; d--)
            place[d] = 0;
    }
    return KG_OK;
}

// Moves the field's arrays to `expected`.
static enum kg_status hand_out(struct kg_field *field, bool has_slack, struct kg_expected *expected,
                               struct kg_error *error)
{
    enum kg_dtype dtype = field->tensor->type.dtype;
    expected->count = field->count;
    expected->rank = field->rank;
    memcpy(expected->low, field->low, sizeof expected->low);
    memcpy(expected->extent, field->extent, sizeof expected->extent);
    if (field->is_real) {
        expected->value = field->real;
        field->real = NULL;
    } else {
        expected->integer = field->integer;
        field->integer = NULL;
        expected->value = malloc(((size_t)field->count + 1) * sizeof *expected->value);
        if (!expected->value)
            return kg_error_memory(error, "the reference");
        for (int64_t i = 0; i < field->count; i++) {
            expected->integer[i] = kg_integers_wrap(dtype, expected->integer[i]);
            expected->value[i] = (double)expected->integer[i];
        }
    }
    expected->slack = field->slack;
    field->slack = NULL;
    if (!expected->slack && has_slack)
        expected->slack = calloc((size_t)field->count + 1, sizeof *expected->slack);
    return expected->slack || !has_slack ? KG_OK : kg_error_memory(error, "the reference");
}

static void want(struct kg_field *field, const struct kg_window *window)
{
    field->wanted = !window || !window->none;
    if (!field->wanted) // other outputs may be computed from elements of this one
        return;
    for (int d = 0; d < field->rank; d++) {
        field->low[d] = window ? window->low[d] : 0;
        field->extent[d] = window ? window->extent[d] : field->shape[d];
    }
}

static enum kg_status plan(const struct kg_problem *problem, const struct kg_window *windows,
                           bool values_only, struct kg_program **program, struct kg_error *error)
{
    enum kg_status status = kg_program_make(problem, values_only, program, error);
    if (status != KG_OK)
        return status;
    for (int i = 0; i < problem->op->output_count; i++)
        want(&(*program)->fields[problem->op->input_count + i], windows ? &windows[i] : NULL);
    kg_program_plan(*program);
    return KG_OK;
}

static enum kg_status run(const struct kg_problem *problem, const void *const *inputs,
                          const struct kg_window *windows, bool values_only, int threads,
                          const volatile int *cancel, struct kg_expected *expected,
                          struct kg_error *error)
{
    const struct kg_op *op = problem->op;
    memset(expected, 0, (size_t)op->output_count * sizeof *expected);
    struct kg_program *program;
    enum kg_status status = plan(problem, windows, values_only, &program, error);
    if (status != KG_OK)
        return status;
    for (int i = 0; i < op->input_count && status == KG_OK; i++)
        status = decode(&program->fields[i], &problem->layouts[i], inputs[i], error);
    if (status == KG_OK)
        status = kg_program_run(program, threads, cancel, error);
    for (int i = 0; i < op->output_count && status == KG_OK; i++)
        status = hand_out(&program->fields[op->input_count + i], !values_only, &expected[i], error);
    kg_program_free(program);
    if (status != KG_OK)
        kg_expected_free(expected, op->output_count);
    return status;
}

enum kg_status kg_reference_window(const struct kg_problem *problem, const void *const *inputs,
                                   const struct kg_window *windows, int threads,
                                   const volatile int *cancel, struct kg_expected *expected,
                                   struct kg_error *error)
{
    return run(problem, inputs, windows, false, threads, cancel, expected, error);
}

enum kg_status kg_reference_run(const struct kg_problem *problem, const void *const *inputs,
                                int threads, const volatile int *cancel,
                                struct kg_expected *expected, struct kg_error *error)
{
    return run(problem, inputs, NULL, false, threads, cancel, expected, error);
}

enum kg_status kg_reference_values(const struct kg_problem *problem, const void *const *inputs,
                                   const struct kg_window *windows, int threads,
                                   const volatile int *cancel, struct kg_expected *expected,
                                   struct kg_error *error)
{
    return run(problem, inputs, windows, true, threads, cancel, expected, error);
}

static double cost_of(const struct kg_program *program)
{
    double operations = 0;
    for (int p = 0; p < program->pass_count; p++)
        operations += program->passes[p]->cost / NANOSECONDS;
    for (int i = 0; i < program->problem->op->input_count; i++)
        operations += (double)program->fields[i].count;
    return operations;
}

enum kg_status kg_reference_cost(const struct kg_problem *problem, const struct kg_window *windows,
                                 double *operations, struct kg_error *error)
{
    *operations = 0;
    struct kg_program *program;
    enum kg_status status = plan(problem, windows, false, &program, error);
    if (status != KG_OK)
        return status;
    *operations = cost_of(program);
    kg_program_free(program);
    return KG_OK;
}

enum kg_status kg_reference_values_cost(const struct kg_problem *problem,
                                        const struct kg_window *windows, double *operations,
                                        double *bytes, struct kg_error *error)
{
    *operations = *bytes = 0;
    struct kg_program *program;
    enum kg_status status = plan(problem, windows, true, &program, error);
    if (status != KG_OK)
        return status;
    *operations = cost_of(program);
    for (int f = 0; f < program->field_count; f++)
        if (f >= problem->op->input_count || program->fields[f].count <= MOST_DECODED)
            *bytes += (double)program->fields[f].count * sizeof(double);
    kg_program_free(program);
    return KG_OK;
}
