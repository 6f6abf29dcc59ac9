// The host's cost of executing a plan, compared with the driver's cost of the same launch.
//
//     bench_launch [OP.kg OP BINDING ...]
//
// Without arguments, runs bias_relu on tensors of 1 KB, 64 KB and 1 MB. Prints nanoseconds per
// call, the median of bursts that fit the driver's queue, without a wait inside a burst; then the
// cost of replaying the same as a graph, for the host and for the device.

#include "device/cuda/cuda_driver.h"
#include "flow/plan_handle.h"
#include "flow/replaying.h"
#include "gen/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BURST = 200, BURSTS = 41, RECORDED = 100, MAX_BINDINGS = 16, MAX_LAUNCHES = 16 };

// The driver's arguments of one launch.
struct raw {
    void *function;
    struct kg_grid grid;
    void *arguments[KG_MAX_ARGUMENTS];
    int64_t numbers[KG_MAX_ARGUMENTS];
};

struct bench {
    struct kg_context *context;
    struct kg_plan *plan;
    struct kg_device *device;
    struct kg_cuda_driver driver;
    void *tensors[KG_MAX_TENSORS];
    void *scratch;
    void *stream;
    struct kg_graph *graph;
    int raw_count;
    struct raw raw[MAX_LAUNCHES];
};

static struct kg_error error;

static void stop(const char *doing, const char *why)
{
    fprintf(stderr, "bench_launch: %s: %s\n", doing, why);
    exit(1);
}

static void check(int result, const char *doing)
{
    char number[32];
    snprintf(number, sizeof number, "CUDA error %d", result);
    if (result)
        stop(doing, number);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void execute(struct bench *bench)
{
    if (kg_plan_execute(bench->plan, bench->tensors, bench->stream) != KG_OK)
        stop("executing a plan", "it failed");
}

static void launch_raw(struct bench *bench)
{
    for (int i = 0; i < bench->raw_count; i++) {
        struct raw *raw = &bench->raw[i];
        const int64_t *blocks = raw->grid.blocks;
        const int *threads = raw->grid.threads;
        check(bench->driver.launch(raw->function, (unsigned)blocks[0], (unsigned)blocks[1],
                                   (unsigned)blocks[2], (unsigned)threads[0], (unsigned)threads[1],
                                   (unsigned)threads[2], (unsigned)raw->grid.shared, bench->stream,
                                   raw->arguments, NULL),
              "launching");
    }
}

static void replay(struct bench *bench)
{
    if (bench->device->backend->replay(bench->graph, bench->stream, &error) != KG_OK)
        stop("replaying", error.text);
}

static void ask_context(struct bench *bench)
{
    void *current;
    check(bench->driver.context_current(&current), "asking for the context");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Seconds per call for the host, and for host and device until the work is done.
static double time_bursts(struct bench *bench, void (*call)(struct bench *bench), int burst,
                          double *whole)
{
    double host[BURSTS], both[BURSTS];
    for (int i = -2; i < BURSTS; i++) {
        check(bench->driver.context_synchronize(), "waiting");
        double start = now();
        for (int n = 0; n < burst; n++)
            call(bench);
        double given = now();
        check(bench->driver.context_synchronize(), "waiting");
        if (i < 0)
            continue;
        host[i] = (given - start) / burst;
        both[i] = (now() - start) / burst;
    }
    qsort(host, BURSTS, sizeof host[0], compare);
    qsort(both, BURSTS, sizeof both[0], compare);
    *whole = both[BURSTS / 2];
    return host[BURSTS / 2];
}

static void open_raw(struct bench *bench)
{
    const struct kg_built *built = bench->plan->built;
    const struct kg_choice *choice = &built->choice;
    for (int group = 0; group < choice->count; group++) {
        struct kg_grids grids = {0};
        struct kg_argument arguments[KG_MAX_ARGUMENTS];
        void *module;
        choice->matches[group]->family->grids(choice->matches[group], &built->choice.configs[group],
                                              &grids);
        int count = kg_group_arguments(&choice->matches[group]->group, arguments);
        check(bench->driver.module_load(&module, built->binaries[group].bytes, 0, NULL, NULL),
              "loading");
        for (int n = 0; n < grids.count; n++) {
            char name[32];
            struct raw *raw = &bench->raw[bench->raw_count];
            raw->grid = grids.grids[n];
            if (raw->grid.blocks[0] * raw->grid.blocks[1] * raw->grid.blocks[2] == 0)
                continue;
            if (bench->raw_count == MAX_LAUNCHES || raw->grid.cluster > 1)
                stop("launching", "too many kernels, or clusters");
            snprintf(name, sizeof name, "kg_kernel_%d", n);
            check(bench->driver.module_function(&raw->function, module, name), name);
            for (int i = 0; i < count; i++) {
                const struct kg_argument *argument = &arguments[i];
                if (argument->kind == KG_ARGUMENT_SIZE)
                    raw->numbers[i] = bench->plan->problem->sizes[argument->id];
                raw->arguments[i] = argument->kind == KG_ARGUMENT_TENSOR
                                        ? (void *)&bench->tensors[argument->id]
                                        : (void *)&raw->numbers[i];
            }
            bench->raw_count++;
        }
    }
}

static enum kg_status execute_some(void *user, struct kg_error *why)
{
    struct bench *bench = user;
    enum kg_status status = KG_OK;
    for (int i = 0; i < RECORDED && !status; i++)
        status = kg_flow_execute(bench->plan, bench->tensors, NULL, why);
    return status;
}

static void show(const char *what, double host, double whole)
{
    printf("  %-42s %8.0f ns host %8.0f ns until done\n", what, host * 1e9, whole * 1e9);
}

static void time_all(struct bench *bench)
{
    double whole;
    double host = time_bursts(bench, ask_context, BURST, &whole);
    show("cuCtxGetCurrent", host, whole);
    for (int own = 0; own < 2; own++) {
        void *made = NULL;
        if (own)
            check(bench->driver.stream_make(&made, KG_CUDA_STREAM_NON_BLOCKING), "a stream");
        bench->stream = made;
        printf("  on %s stream\n", own ? "a non-blocking" : "the NULL");
        for (int turn = 0; turn < 2; turn++) { // alternately, so that drift affects both
            host = time_bursts(bench, launch_raw, BURST, &whole);
            show("cuLaunchKernel", host, whole);
            host = time_bursts(bench, execute, BURST, &whole);
            show(kg_replay_is_ready(bench->plan->replay, made) ? "kg_plan_execute, replayed"
                                                               : "kg_plan_execute",
                 host, whole);
        }
    }
    if (bench->device->backend->record(bench->device, execute_some, bench, &bench->graph, &error))
        stop("recording", error.text);
    host = time_bursts(bench, replay, 5, &whole);
    show("graph of 100, per execution", host / RECORDED, whole / RECORDED);
    bench->device->backend->forget(bench->graph);
}

static void bench_one(const char *path, const char *name, const struct kg_binding *bindings,
                      int binding_count)
{
    struct bench bench = {0};
    struct kg_op *op;
    struct kg_problem *problem;
    char text[1 << 16] = "";
    FILE *file = fopen(path, "rb");
    if (!file || fread(text, 1, sizeof text - 1, file) == 0)
        stop(path, "cannot be read");
    fclose(file);
    if (kg_context_create(NULL, &bench.context) != KG_OK ||
        kg_op_parse(bench.context, path, text, strlen(text), name, &op) != KG_OK ||
        kg_problem_create(bench.context, op, bindings, binding_count, &problem) != KG_OK ||
        kg_context_device(bench.context, "cuda:0", &bench.device) != KG_OK ||
        kg_plan_create(problem, bench.device, KG_RIGOR_ESTIMATE, 0, &bench.plan) != KG_OK)
        stop(name, kg_context_error(bench.context));
    if (kg_cuda_driver_open(&bench.driver, &error) != KG_OK)
        stop("opening the driver", error.text);
    int count = kg_problem_tensor_count(problem);
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        struct kg_tensor_info info = {.size = sizeof info};
        kg_problem_tensor(problem, i, &info);
        size_t size = info.bytes;
        bytes = (double)size > bytes ? (double)size : bytes;
        if (bench.device->backend->allocate(bench.device, size, &bench.tensors[i], &error) ||
            bench.device->backend->fill(bench.device, bench.tensors[i], 0, size, &error))
            stop("allocating", error.text);
    }
    execute(&bench);
    open_raw(&bench);
    printf("%s, largest tensor %.0f bytes: %s, %d launches\n", name, bytes,
           kg_plan_choice(bench.plan), bench.raw_count);
    time_all(&bench);
    for (int i = 0; i < count; i++)
        bench.device->backend->release(bench.device, bench.tensors[i]);
    kg_plan_destroy(bench.plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(bench.context);
}

int main(int argc, char **argv)
{
    struct kg_binding bindings[MAX_BINDINGS];
    int count = 0;
    if (argc >= 3) {
        for (int i = 3; i < argc && count < MAX_BINDINGS; i++) {
            char *equals = strchr(argv[i], '=');
            if (!equals)
                stop(argv[i], "is not NAME=VALUE");
            *equals = '\0';
            bindings[count++] = (struct kg_binding){argv[i], equals + 1};
        }
        bench_one(argv[1], argv[2], bindings, count);
        return 0;
    }
    static const char *const rows[] = {"1", "64", "1024"};
    for (int i = 0; i < 3; i++) {
        struct kg_binding sizes[] = {{"T", "f32"}, {"P", rows[i]}, {"D", "256"}};
        bench_one("ops/bias_relu.kg", "bias_relu", sizes, 3);
    }
    return 0;
}
