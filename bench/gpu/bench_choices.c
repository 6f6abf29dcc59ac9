// Times choices of families and configs by hand, on a GPU: what a search would measure, without
// one.
//
//     bench_choices OP.kg OP T=f16 P=65536,D=4096 ["pointwise: threads=256 ..." ...]
//
// Without choices, the one that the rules make. A choice that ends in '*' stands for all that begin
// so. The L2 is flushed before each run; the median of 15, beside a copy of as many bytes.

#include "base/files.h"
#include "gen/built.h"
#include "gen/prepared.h"
#include "lang/lang.h"
#include "verify/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 15, WARM = 3, FRESH = 1000003 };

static struct kg_error error;
static struct kg_device *device;

static void stop(const char *doing)
{
    fprintf(stderr, "bench_choices: %s: %s\n", doing, error.text);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(enum kg_status (*run)(void *user), void *user)
{
    double samples[RUNS];
    for (int i = -WARM; i < RUNS; i++) {
        double seconds;
        device->backend->flush(device);
        if (device->backend->start(device, &error) != KG_OK || run(user) != KG_OK ||
            device->backend->stop(device, &seconds, &error) != KG_OK)
            stop("running");
        if (i >= 0)
            samples[i] = seconds;
    }
    qsort(samples, RUNS, sizeof samples[0], compare);
    return samples[RUNS / 2];
}

struct prepared_run {
    struct kg_prepared *prepared;
    void **tensors;
    void *workspace;
};

static enum kg_status run_prepared(void *user)
{
    struct prepared_run *run = user;
    return kg_prepared_run(run->prepared, run->tensors, run->workspace, NULL, &error);
}

static void time_choice(const struct kg_problem *problem, const struct kg_choice *choice,
                        void **tensors)
{
    struct kg_built *built;
    struct prepared_run run = {.tensors = tensors};
    struct kg_text text = {0};
    kg_choice_print(choice, &device->facts, KG_TARGET_CUDA, &text);
    if (kg_built_make(device, problem, choice, 60, &built, &error) != KG_OK ||
        kg_prepared_make(built, problem, &run.prepared, &error) != KG_OK ||
        device->backend->allocate(device, kg_prepared_workspace(run.prepared), &run.workspace,
                                  &error) != KG_OK)
        stop(kg_text_string(&text));
    double seconds = median_of(run_prepared, &run);
    double bytes = problem->read_bytes + problem->write_bytes;
    printf("%9.1f us  %6.0f GB/s  %s\n", seconds * 1e6, bytes / seconds * 1e-9,
           kg_text_string(&text));
    fflush(stdout);
    device->backend->release(device, run.workspace);
    kg_prepared_free(run.prepared);
    kg_built_free(built);
    kg_text_free(&text);
}

// All valid configs of a single family whose text begins as `prefix` does.
static void time_matching(const struct kg_problem *problem, const char *prefix, void **tensors)
{
    struct kg_choice choice;
    struct kg_space space;
    kg_choice_guess(problem, &device->facts, KG_TARGET_CUDA, &choice);
    const struct kg_family *family = choice.partition.families[0];
    const struct kg_group *group = &choice.partition.groups[0];
    family->space(group, &device->facts, KG_TARGET_CUDA, &space);
    for (int64_t n = 0; n < kg_space_size(&space); n++) {
        struct kg_text text = {0}, reason = {0};
        choice.configs[0] = kg_space_config(&space, n);
        bool valid =
            family->valid(group, &device->facts, KG_TARGET_CUDA, &choice.configs[0], &reason);
        kg_choice_print(&choice, &device->facts, KG_TARGET_CUDA, &text);
        const char *words = kg_text_string(&text);
        if (valid && strncmp(words, prefix, strlen(prefix) - 1) == 0)
            time_choice(problem, &choice, tensors);
        kg_text_free(&text);
        kg_text_free(&reason);
    }
}

static void set_dtypes(const struct kg_op *op, const char *words, struct kg_bindings *bindings)
{
    for (int i = 0; i < op->typevar_count; i++)
        for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++)
            if (strcmp(words + 2, kg_dtypes[dtype].name) == 0)
                bindings->dtypes[i] = (enum kg_dtype)dtype;
}

static void set_sizes(const struct kg_op *op, const char *words, int64_t *sizes)
{
    for (int i = 0; i < op->size_count; i++) {
        size_t length = strlen(op->sizes[i]->name);
        sizes[i] = 1;
        for (const char *at = words; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
            if (strncmp(at, op->sizes[i]->name, length) == 0 && at[length] == '=')
                sizes[i] = strtoll(at + length + 1, NULL, 10);
    }
}

// Numbers between -1 and 1, repeated after a while: a gigabyte of fresh ones takes its time.
static void fill_floats(enum kg_dtype dtype, void *values, size_t bytes)
{
    size_t size = (size_t)kg_dtypes[dtype].bits / 8, count = bytes / size;
    size_t fresh = count < FRESH ? count : FRESH;
    uint32_t state = 1;
    for (size_t i = 0; i < fresh; i++) {
        state = state * 1664525 + 1013904223;
        kg_dtype_store(dtype, values, i, (double)(int32_t)state * 0x1p-31);
    }
    for (size_t done = fresh; done < count; done += fresh)
        memcpy((char *)values + done * size, values,
               (count - done < fresh ? count - done : fresh) * size);
}

static void *make_tensor(const struct kg_problem *problem, int tensor)
{
    void *memory;
    size_t bytes = problem->layouts[tensor].bytes;
    if (device->backend->allocate(device, bytes, &memory, &error) != KG_OK)
        stop("allocating");
    if (tensor >= problem->op->input_count)
        return memory;
    void *values = calloc(1, bytes ? bytes : 1);
    if (!values)
        stop("allocating");
    enum kg_dtype dtype = problem->tensors[tensor]->type.dtype;
    if (kg_dtypes[dtype].is_float)
        fill_floats(dtype, values, bytes);
    else
        kg_verify_fill(problem, tensor, 1, values);
    if (device->backend->copy(device, memory, values, bytes, &error) != KG_OK)
        stop("copying");
    free(values);
    return memory;
}

int main(int argc, char **argv)
{
    char *text;
    size_t length;
    struct kg_arena arena = {0};
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem;
    int64_t sizes[KG_MAX_SIZES];
    void *tensors[KG_MAX_TENSORS] = {0};
    if (argc < 5) {
        fprintf(stderr, "usage: bench_choices OP.kg OP T=f16 P=65536,D=4096 [CHOICE...]\n");
        return 2;
    }
    if (kg_files_read(argv[1], 1 << 20, &text, &length, &error) != KG_OK ||
        kg_lang_parse(&arena, argv[1], text, length, &file, &error) != KG_OK ||
        kg_lang_select(file, argv[2], &op, &error) != KG_OK)
        stop("reading the definition");
    kg_lang_default_bindings(op, &bindings);
    set_dtypes(op, argv[3], &bindings);
    set_sizes(op, argv[4], sizes);
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, sizes, NULL, &problem, &error) != KG_OK ||
        kg_device_open("cuda:0", "", 1, &device, &error) != KG_OK)
        stop("opening");
    int count = instance->input_count + instance->output_count;
    for (int i = 0; i < count; i++)
        tensors[i] = make_tensor(problem, i);
    printf("%s %s %s: %.0f MB to move\n", argv[2], argv[3], argv[4],
           (problem->read_bytes + problem->write_bytes) * 1e-6);
    struct kg_choice choice;
    if (argc == 5) {
        kg_choice_guess(problem, &device->facts, KG_TARGET_CUDA, &choice);
        time_choice(problem, &choice, tensors);
    }
    for (int i = 5; i < argc; i++) {
        size_t words = strlen(argv[i]);
        if (words > 0 && argv[i][words - 1] == '*')
            time_matching(problem, argv[i], tensors);
        else if (kg_choice_read(problem, &device->facts, KG_TARGET_CUDA, argv[i], &choice))
            time_choice(problem, &choice, tensors);
        else
            printf("no such choice: %s\n", argv[i]);
    }
    kg_problem_free(problem);
    kg_device_close(device);
    kg_arena_free(&arena);
    free(text);
    return 0;
}
