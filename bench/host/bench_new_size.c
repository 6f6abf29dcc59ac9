// bench_new_size [DEVICE [FOLDER [OP]]]: what the first execution of a plan at new sizes takes,
// beside one at sizes that are known already, for some ops of FOLDER (default: ops), or one of
// them. Plans are made by rule. Tensors are small, so that kernels take little of the time.

#include "device/device.h"
#include "kernelgen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT 40        // new sets of sizes of each op
#define AGAIN 20        // executions at known sizes, for each of them
#define BYTES (1 << 22) // of each tensor's memory, more than any needs
#define MOST_TENSORS 16
#define MOST_SIZES 16

static const struct subject {
    const char *file, *op, *sizes; // those that may not vary: "C=8,"
} subjects[] = {
    {"arithmetic.kg", "add", ""},      {"softmax.kg", "softmax", ""},
    {"matmul.kg", "matmul", ""},       {"normalisation.kg", "layer_norm", ""},
    {"scans.kg", "cumsum", ""},        {"reductions.kg", "sum_last", ""},
    {"attention.kg", "attention", ""}, {"convolution.kg", "conv2d", "R V"},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count ? values[count / 2] : 0;
}

static char *read_text(const char *folder, const char *name, size_t *length)
{
    char path[1024];
    static char text[1 << 20];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    *length = fread(text, 1, sizeof text, file);
    fclose(file);
    return text;
}

static void measure(const struct kg_plan *plan, const struct kg_op *op,
                    const struct subject *subject, void **tensors)
{
    double first[COUNT], again[COUNT];
    int64_t sizes[MOST_SIZES];
    int count = 0, done = 0;
    while (count < MOST_SIZES && kg_op_size_name(op, count))
        count++;
    int least = count > 3 ? 2 : 8; // of tensors of many dimensions
    for (int i = 0; i < COUNT; i++) {
        for (int s = 0; s < count; s++)
            sizes[s] =
                strstr(subject->sizes, kg_op_size_name(op, s)) ? 1 : least + (s == 0 ? i : i % 4);
        double start = now();
        enum kg_status status = kg_plan_execute_sized(plan, sizes, count, tensors, NULL);
        double end = now();
        if (status != KG_OK)
            continue;
        for (int k = 0; k < AGAIN; k++)
            kg_plan_execute_sized(plan, sizes, count, tensors, NULL);
        again[done] = (now() - end) / AGAIN;
        first[done++] = end - start;
    }
    double known = median(again, done), fresh = median(first, done);
    printf("%-12s %11.1f %11.1f %12.1f %7d\n", subject->op, 1e6 * fresh, 1e6 * first[done * 9 / 10],
           1e6 * known, done);
}

static enum kg_status run(struct kg_context *context, const char *folder, struct kg_device *device,
                          const struct subject *subject, void **tensors)
{
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    struct kg_plan *plan = NULL;
    size_t length = 0;
    const char *text = read_text(folder, subject->file, &length);
    enum kg_status status =
        text ? kg_op_parse(context, subject->file, text, length, subject->op, &op) : KG_ERROR_IO;
    if (status == KG_OK)
        status = kg_problem_create(context, op, NULL, 0, &problem);
    if (status == KG_OK)
        status = kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan);
    if (status == KG_OK)
        measure(plan, op, subject, tensors);
    else
        printf("%-12s %s\n", subject->op, text ? kg_context_error(context) : "cannot be read");
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return status;
}

int main(int count, char **words)
{
    struct kg_context *context;
    struct kg_device *device = NULL;
    void *tensors[MOST_TENSORS] = {0};
    enum kg_status status = kg_context_create(NULL, &context);
    if (status == KG_OK)
        status = kg_context_device(context, count > 1 ? words[1] : "host", &device);
    for (int i = 0; i < MOST_TENSORS && status == KG_OK; i++)
        status = device->backend->allocate(device, BYTES, &tensors[i], NULL);
    if (status != KG_OK) {
        fprintf(stderr, "bench_new_size: %s\n", kg_context_error(context));
        return 1;
    }
    bool failed = false;
    printf("us, medians     new size   90 in 100   known size   sizes\n");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (count < 4 || strcmp(words[3], subjects[i].op) == 0)
            failed |=
                run(context, count > 2 ? words[2] : "ops", device, &subjects[i], tensors) != KG_OK;
    for (int i = 0; i < MOST_TENSORS; i++)
        device->backend->release(device, tensors[i]);
    kg_context_destroy(context);
    return failed;
}
