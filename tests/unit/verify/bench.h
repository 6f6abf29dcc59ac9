// From the text of an op to values of the reference, for tests: one op, contiguous tensors, inputs
// given as doubles.

#ifndef KG_TESTS_BENCH_H
#define KG_TESTS_BENCH_H

#include "verify/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct kg_arena arena;
    struct kg_error error;
    struct kg_op *instance;
    struct kg_problem problem; // op, sizes and layouts only: all the reference may look at
    void *inputs[KG_MAX_TENSORS];
    struct kg_expected outputs[KG_MAX_TENSORS];
    bool ready;
};

static void bench_stop(const struct bench *bench, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bench->error.text);
    exit(1);
}

static void bench_layout(struct bench *bench, int id)
{
    const struct kg_tensor *tensor = bench->instance->tensors[id];
    struct kg_layout *layout = &bench->problem.layouts[id];
    layout->elements = 1;
    layout->contiguous = true;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        if (kg_lang_size_value(tensor->dims[d], bench->problem.sizes, &layout->shape[d],
                               &bench->error) != KG_OK)
            bench_stop(bench, "size");
        layout->stride[d] = layout->elements;
        layout->elements *= layout->shape[d];
    }
    enum kg_dtype dtype = tensor->role == KG_ROLE_LOCAL ? KG_F64 : tensor->type.dtype;
    layout->bytes = kg_dtype_bytes(dtype, (size_t)layout->elements);
}

// `sizes`: "N=4 M=3", values of sizes; `dtype` binds every type variable, NULL takes the first.
static void bench_make(struct bench *bench, const char *text, const char *dtype, const char *sizes)
{
    memset(bench, 0, sizeof *bench);
    struct kg_file *file;
    struct kg_op *op;
    if (kg_lang_parse(&bench->arena, "test.kg", text, strlen(text), &file, &bench->error) != KG_OK)
        bench_stop(bench, text);
    if (kg_lang_select(file, NULL, &op, &bench->error) != KG_OK)
        bench_stop(bench, "select");
    struct kg_bindings bindings;
    kg_lang_default_bindings(op, &bindings);
    for (int v = 0; dtype && v < op->typevar_count; v++)
        bindings.dtypes[v] = kg_dtype_find(dtype, strlen(dtype));
    if (kg_lang_instantiate(&bench->arena, op, &bindings, &bench->instance, &bench->error) != KG_OK)
        bench_stop(bench, "instantiate");
    bench->problem.op = bench->instance;
    for (int s = 0; s < op->size_count; s++) {
        const struct kg_size *size = bench->instance->sizes[s];
        bench->problem.sizes[s] = size->value;
        size_t length = strlen(size->name);
        for (const char *at = sizes; (at = strstr(at, size->name)); at++)
            if (at[length] == '=' && (at == sizes || at[-1] == ' '))
                bench->problem.sizes[s] = strtoll(at + length + 1, NULL, 10);
    }
    for (int t = 0; t < bench->instance->tensor_count; t++)
        bench_layout(bench, t);
    for (int i = 0; i < bench->instance->input_count; i++)
        bench->inputs[i] = calloc(bench->problem.layouts[i].bytes + 1, 1);
}

static void bench_input(struct bench *bench, int input, const double *values)
{
    enum kg_dtype dtype = bench->instance->tensors[input]->type.dtype;
    for (int64_t i = 0; i < bench->problem.layouts[input].elements; i++)
        kg_dtype_store(dtype, bench->inputs[input], (size_t)i, values[i]);
}

static void bench_run(struct bench *bench)
{
    if (kg_reference_run(&bench->problem, (const void *const *)bench->inputs, 2, NULL,
                         bench->outputs, &bench->error) != KG_OK)
        bench_stop(bench, "reference");
    bench->ready = true;
}

static void bench_free(struct bench *bench)
{
    for (int i = 0; i < bench->instance->input_count; i++)
        free(bench->inputs[i]);
    if (bench->ready)
        kg_expected_free(bench->outputs, bench->instance->output_count);
    kg_arena_free(&bench->arena);
}

#endif
