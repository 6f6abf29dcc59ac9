// Memory-bound operators on the host against the streaming copy of the same number of bytes, timed
// alternately in one run: bench_memory OPS_FOLDER [LABEL...], where a label may be a part of one.

#include "copy.h"
#include "kernelgen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_PAIRS 61
#define LEAST_PAIRS 9
#define SECONDS_PER_OP 6.0

struct subject {
    const char *file;
    const char *op;
    const char *label;
    struct kg_binding bindings[4];
    int binding_count;
    double goal; // share of the copy; 0: none
};

static const struct subject subjects[] = {
    {"bias_relu.kg",
     "bias_relu",
     "bias_relu f32, 1 GiB",
     {{"T", "f32"}, {"P", "131072"}, {"D", "1024"}},
     3,
     0.95},
    {"bias_relu.kg",
     "bias_relu",
     "bias_relu f16, 512 MiB",
     {{"T", "f16"}, {"P", "131072"}, {"D", "1024"}},
     3,
     0.85},
    {"bias_relu.kg",
     "bias_relu",
     "bias_relu bf16, 512 MiB",
     {{"T", "bf16"}, {"P", "131072"}, {"D", "1024"}},
     3,
     0.85},
    {"broadcast.kg",
     "bias_gelu",
     "bias_gelu f16, 512 MiB",
     {{"T", "f16"}, {"P", "131072"}, {"D", "1024"}},
     3,
     0}, // bound by its exponentials
    {"softmax.kg",
     "softmax",
     "softmax f32 [4096, 4096]",
     {{"T", "f32"}, {"P", "4096"}, {"D", "4096"}},
     3,
     0.85},
    {"normalisation.kg",
     "rms_norm",
     "rms_norm f32 [4096, 4096]",
     {{"T", "f32"}, {"P", "4096"}, {"D", "4096"}},
     3,
     0.85},
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

struct times {
    int count;
    double copy[MOST_PAIRS];
    double plan[MOST_PAIRS];
    double ratio[MOST_PAIRS]; // of each pair
};

static void race(const struct kg_plan *plan, void *const *tensors, struct copier *copier, char *to,
                 const char *from, size_t bytes, struct times *times)
{
    double began = now();
    copier_run(copier, to, from, bytes);
    kg_plan_execute(plan, tensors, NULL);
    times->count = 0;
    while (times->count < MOST_PAIRS &&
           (times->count < LEAST_PAIRS || now() - began < SECONDS_PER_OP)) {
        double start = now();
        copier_run(copier, to, from, bytes);
        double middle = now();
        kg_plan_execute(plan, tensors, NULL);
        double end = now();
        int i = times->count++;
        times->copy[i] = middle - start;
        times->plan[i] = end - middle;
        times->ratio[i] = (middle - start) / (end - middle);
    }
    size_t count = (size_t)times->count;
    qsort(times->copy, count, sizeof(double), by_value);
    qsort(times->plan, count, sizeof(double), by_value);
    qsort(times->ratio, count, sizeof(double), by_value);
}

static void *touch(size_t bytes)
{
    void *memory = NULL;
    size_t rounded = (bytes + 63) / 64 * 64;
    if (posix_memalign(&memory, 2 << 20, rounded ? rounded : 64))
        return NULL;
    // Values that are neither denormal nor special in any float type.
    memset(memory, 0x3c, rounded);
    return memory;
}

static int bench(const struct subject *subject, const struct kg_problem *problem,
                 struct kg_plan *plan, struct copier *copier)
{
    void *tensors[16] = {0};
    int count = kg_problem_tensor_count(problem);
    size_t bytes = 0;
    int failed = count > 16;
    for (int i = 0; i < count && !failed; i++) {
        struct kg_tensor_info info = {.size = sizeof info};
        kg_problem_tensor(problem, i, &info);
        bytes += info.bytes;
        tensors[i] = touch(info.bytes);
        failed |= !tensors[i];
    }
    size_t half = bytes / 2 / 64 * 64; // a copy reads half of the traffic and writes the other
    char *from = touch(half), *to = touch(half);
    if (!failed && from && to) {
        struct times times;
        race(plan, tensors, copier, to, from, half, &times);
        int middle = times.count / 2;
        double ratio = times.ratio[middle];
        const char *verdict = subject->goal <= 0 ? "-" : ratio >= subject->goal ? "ok" : "MISS";
        printf("%-28s %8.2f %8.2f %6.3f  %.3f..%.3f  %.2f %-4s  %s\n", subject->label,
               times.copy[middle] * 1e3, times.plan[middle] * 1e3, ratio,
               times.ratio[times.count / 4], times.ratio[times.count * 3 / 4], subject->goal,
               verdict, kg_plan_choice(plan));
        fflush(stdout);
    }
    for (int i = 0; i < count && i < 16; i++)
        free(tensors[i]);
    free(from);
    free(to);
    return failed;
}

static char *read_file(const char *folder, const char *name, size_t *length)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return NULL;
    }
    char *text = malloc(1 << 20);
    *length = text ? fread(text, 1, 1 << 20, file) : 0;
    fclose(file);
    return text;
}

static int run(struct kg_context *context, const char *folder, const struct subject *subject,
               struct copier *copier)
{
    size_t length;
    char *text = read_file(folder, subject->file, &length);
    if (!text)
        return 1;
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    struct kg_device *device = NULL;
    struct kg_plan *plan = NULL;
    enum kg_status status = kg_op_parse(context, subject->file, text, length, subject->op, &op);
    free(text);
    if (status == KG_OK)
        status =
            kg_problem_create(context, op, subject->bindings, subject->binding_count, &problem);
    if (status == KG_OK)
        status = kg_context_device(context, "host", &device);
    if (status == KG_OK)
        status = kg_plan_create(problem, device, KG_RIGOR_MEASURE, 0, &plan);
    int failed = status != KG_OK;
    if (failed)
        fprintf(stderr, "%s: %s\n", subject->op, kg_context_error(context));
    else
        failed = bench(subject, problem, plan, copier);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return failed;
}

static bool is_wanted(const struct subject *subject, char *const *labels)
{
    bool wanted = !labels[0];
    for (; *labels; labels++)
        wanted |= strstr(subject->label, *labels) != NULL;
    return wanted;
}

int main(int count, char **words)
{
    if (count < 2) {
        fprintf(stderr, "usage: %s OPS_FOLDER [LABEL...]\n", words[0]);
        return 2;
    }
    struct kg_context *context;
    if (kg_context_create(NULL, &context) != KG_OK) {
        fprintf(stderr, "%s\n", kg_context_error(context));
        return 3;
    }
    struct copier *copier = copier_create((int)sysconf(_SC_NPROCESSORS_ONLN));
    printf("%-28s %8s %8s %6s  %-12s  %-9s  %s\n", "memory-bound, all cores", "copy ms", "kg ms",
           "ratio", "quartiles", "goal", "choice");
    int failed = 0;
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (is_wanted(&subjects[i], words + 2))
            failed |= run(context, words[1], &subjects[i], copier);
    copier_destroy(copier);
    kg_context_destroy(context);
    return failed;
}
