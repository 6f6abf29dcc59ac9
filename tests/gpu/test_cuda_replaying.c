// Executions of small plans on a real GPU: the first ones are launched, later ones replayed, with
// the same tensors and with others, in several streams, and into a capture. All give the same bits.
// Without a GPU or NVRTC it is skipped. Times are printed, not judged.

#include "device/cuda/cuda_driver.h"
#include "flow/plan_handle.h"
#include "flow/replaying.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>
#include <time.h>

enum { SETS = 3, ROUNDS = 60, MOST = 8 };

static const struct {
    const char *file, *op;
    struct kg_binding bindings[MOST];
} cases[] = {
    {"bias_relu.kg", "bias_relu", {{"T", "f16"}, {"P", "64"}, {"D", "256"}}},
    {"softmax.kg", "softmax", {{"T", "f32"}, {"P", "33"}, {"D", "1000"}}},
    {"reductions.kg", "sum_all", {{"T", "f16"}, {"N", "500000"}}}, // two functions
    {"reductions.kg", "sum_first", {{"T", "f16"}, {"P", "700"}, {"D", "300"}}},
    {"matmul.kg", "matmul_nt", {{"T", "f16"}, {"M", "200"}, {"N", "136"}, {"K", "256"}}}, // maps
    {"matmul.kg", "matmul_nt", {{"T", "f16"}, {"M", "60"}, {"N", "72"}, {"K", "8000"}}},  // pieces
    {"matmul.kg", "matmul_nt", {{"T", "f16"}, {"M", "60"}, {"N", "72"}, {"K", "1001"}}},  // copies
    {"attention.kg",
     "attention",
     {{"T", "f16"}, {"B", "1"}, {"H", "2"}, {"M", "64"}, {"N", "64"}, {"E", "64"}}}, // kernels
};

static char home[] = "/tmp/kg-test-gpu-replay-XXXXXX";
static struct kg_error error;
static struct kg_context *context;
static struct kg_device *device;
static struct kg_cuda_driver driver;

// What one case runs on: tensors in several places, and what the outputs should be.
struct run {
    struct kg_plan *plan;
    int count;
    struct kg_tensor_info info[MOST];
    void *tensors[SETS][MOST];
    void *wanted[SETS][MOST];
};

static void copy(void *to, const void *from, size_t bytes)
{
    CHECK_STATUS(device->backend->copy(device, to, from, bytes, &error), KG_OK, &error);
}

// Numbers of moderate size, whatever their dtype.
static void fill(void *tensor, size_t bytes)
{
    static uint32_t state = 1;
    uint16_t *halves = malloc(bytes + 1);
    CHECK(halves != NULL);
    for (size_t i = 0; halves && i < bytes / 2; i++) {
        state = state * 1664525 + 1013904223;
        halves[i] = (uint16_t)(0x3400 | (state >> 16 & 0x83ff));
    }
    if (halves)
        copy(tensor, halves, bytes);
    free(halves);
}

static void forget_outputs(const struct run *run, int set)
{
    for (int i = 0; i < run->count; i++)
        if (run->info[i].is_output)
            CHECK_STATUS(device->backend->fill(device, run->tensors[set][i], 0xff,
                                               run->info[i].bytes, &error),
                         KG_OK, &error);
    CHECK(driver.context_synchronize() == 0);
}

static bool is_right(const struct run *run, int set)
{
    bool right = true;
    CHECK(driver.context_synchronize() == 0);
    for (int i = 0; i < run->count; i++) {
        if (!run->info[i].is_output)
            continue;
        void *found = malloc(run->info[i].bytes);
        copy(found, run->tensors[set][i], run->info[i].bytes);
        right = right && found && memcmp(found, run->wanted[set][i], run->info[i].bytes) == 0;
        free(found);
    }
    return right;
}

static void execute(const struct run *run, int set, void *stream)
{
    CHECK(kg_plan_execute(run->plan, run->tensors[set], stream) == KG_OK);
}

// The very first executions, which are launched, say what is right.
static void prepare(struct run *run, struct kg_problem *problem)
{
    run->count = kg_problem_tensor_count(problem);
    CHECK(run->count <= MOST);
    for (int set = 0; set < SETS; set++) {
        for (int i = 0; i < run->count; i++) {
            run->info[i].size = sizeof run->info[i];
            CHECK(kg_problem_tensor(problem, i, &run->info[i]) == KG_OK);
            CHECK_STATUS(device->backend->allocate(device, run->info[i].bytes,
                                                   &run->tensors[set][i], &error),
                         KG_OK, &error);
            fill(run->tensors[set][i], run->info[i].bytes);
            run->wanted[set][i] = malloc(run->info[i].bytes + 1);
        }
        forget_outputs(run, set);
        execute(run, set, NULL);
        CHECK(driver.context_synchronize() == 0);
        for (int i = 0; i < run->count; i++)
            copy(run->wanted[set][i], run->tensors[set][i], run->info[i].bytes);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

// Microseconds of an execution that is not waited for.
static double time_of(const struct run *run, void *stream, int sets)
{
    enum { CALLS = 100 };
    CHECK(driver.context_synchronize() == 0);
    double start = now();
    for (int i = 0; i < CALLS; i++)
        execute(run, i % sets, stream);
    double taken = (now() - start) / CALLS;
    CHECK(driver.context_synchronize() == 0);
    return taken;
}

static void run_in(const struct run *run, void *stream)
{
    int wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int set = i / 3 % SETS; // the same, the same, another
        forget_outputs(run, set);
        execute(run, set, stream);
        wrong += !is_right(run, set);
    }
    CHECK(wrong == 0);
    CHECK(kg_replay_is_ready(run->plan->replay, stream)); // else launches alone were right
}

static void run_captured(const struct run *run, void *stream)
{
    void *graph = NULL, *executable = NULL;
    CHECK(driver.capture_begin(stream, KG_CUDA_CAPTURE_RELAXED) == 0);
    for (int set = 0; set < SETS; set++)
        execute(run, set, stream);
    CHECK(driver.capture_end(stream, &graph) == 0);
    CHECK(driver.graph_prepare(&executable, graph, 0) == 0);
    for (int set = 0; set < SETS; set++)
        forget_outputs(run, set);
    CHECK(driver.executable_launch(executable, stream) == 0);
    for (int set = 0; set < SETS; set++)
        CHECK(is_right(run, set));
    CHECK(driver.executable_free(executable) == 0 && driver.graph_free(graph) == 0);
}

static void release(struct run *run)
{
    kg_plan_destroy(run->plan);
    for (int set = 0; set < SETS; set++)
        for (int i = 0; i < run->count; i++) {
            device->backend->release(device, run->tensors[set][i]);
            free(run->wanted[set][i]);
        }
}

static void run_case(int number)
{
    static char text[1 << 17];
    char path[256];
    struct kg_op *op;
    struct kg_problem *problem;
    struct run run = {0};
    int bindings = 0;
    while (bindings < MOST && cases[number].bindings[bindings].name)
        bindings++;
    snprintf(path, sizeof path, "%s/ops/%s", KG_SOURCE_DIR, cases[number].file);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    enum kg_status status =
        kg_op_parse(context, path, text, length, cases[number].op, &op) ||
        kg_problem_create(context, op, cases[number].bindings, bindings, &problem) ||
        kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &run.plan);
    if (status != KG_OK)
        fprintf(stderr, "%s: %s\n", cases[number].op, kg_context_error(context));
    CHECK(status == KG_OK);
    if (status != KG_OK)
        return;
    void *streams[2];
    prepare(&run, problem);
    for (int i = 0; i < 2; i++)
        CHECK(driver.stream_make(&streams[i], KG_CUDA_STREAM_NON_BLOCKING) == 0);
    run_in(&run, NULL);
    for (int i = 0; i < 2; i++)
        run_in(&run, streams[i]);
    run_captured(&run, streams[0]);
    run_in(&run, streams[0]);
    printf("%-12s %s: %.2f us with the same tensors, %.2f with others\n", cases[number].op,
           kg_replay_is_ready(run.plan->replay, streams[0]) ? "replayed" : "launched",
           time_of(&run, streams[0], 1), time_of(&run, streams[0], SETS));
    release(&run);
    for (int i = 0; i < 2; i++)
        CHECK(driver.stream_free(streams[i]) == 0);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
}

static void test_all(void)
{
    CHECK(folder_make(home));
    const struct kg_options options = {.home = home};
    CHECK(kg_context_create(&options, &context) == KG_OK);
    if (kg_context_device(context, "cuda:0", &device) != KG_OK) {
        printf("skipped: %s\n", kg_context_error(context));
        kg_context_destroy(context);
        folder_remove(home);
        exit(77);
    }
    CHECK_STATUS(kg_cuda_driver_open(&driver, &error), KG_OK, &error);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case((int)i);
    kg_context_destroy(context);
    folder_remove(home);
}

TEST_MAIN(test_all)
