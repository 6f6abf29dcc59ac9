// The preludes of generated CUDA kernels on a GPU: functions of f32 over all 2^32 floats against
// the same in f64, conversions bit by bit, folds, vectors, integers. Prints the largest error of
// each function. KG_DEVICE=cuda:1 takes another device; KG_FLOATS=65536 tries fewer floats.

#include "base/files.h"
#include "device/device.h"
#include "gen/skeleton.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>

static char folder[] = "/tmp/kg-test-cuda-prelude-XXXXXX";
static struct kg_error error;
static struct kg_device *device;

// By number of error_at in cuda_checks.cu: the most units in the last place that are allowed.
static const struct {
    const char *name;
    double most;
} functions[] = {
    {"exp", 2},
    {"exp2", 2.5},
    {"expm1", 2},
    {"log", 2},
    {"log2", 2},
    {"log1p", 2},
    {"tanh", 2.6},
    {"erf", 2},
    {"sigmoid", 4.5},
    {"silu", 5},
    {"softplus", 4},
    {"gelu, in units of x", 4},
    {"gelu_tanh, in units of x", 4},
    {"sqrt", 0.5},
    {"rsqrt", 1},
    {"sin", 2},
    {"cos", 2},
    {"gelu's tail down to -10", 11000},
    {"pow(abs(x), 0.75)", 4},
    {"exp of nothing positive, for f16 and bf16", 66},
    {"gelu, for f16 and bf16", 1450},
    {"gelu_tanh, for f16 and bf16", 1024},
    {"sigmoid, for f16 and bf16", 75},
    {"silu, for f16 and bf16", 75},
    {"round", 0},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static struct kg_kernel *load(void)
{
    static const char *const preludes[] = {
        "cuda/prelude.cuh", "elements.h",       "values.h",      "cuda/maths.cuh",
        "cuda/narrow.cuh",  "cuda/vectors.cuh", "cuda/lanes.cuh"};
    struct kg_text text = {0};
    struct kg_binary binary = {0};
    struct kg_kernel *kernel = NULL;
    char *checks;
    size_t length;
    for (size_t i = 0; i < sizeof preludes / sizeof preludes[0]; i++) {
        kg_text_add(&text, kg_skeleton_find(preludes[i]));
        kg_text_add(&text, "\n");
    }
    CHECK_STATUS(kg_files_read(KG_SOURCE_DIR "/tests/data/cuda_checks.cu", 1 << 20, &checks,
                               &length, &error),
                 KG_OK, &error);
    kg_text_add(&text, checks);
    free(checks);
    const struct kg_source source = {
        .text = kg_text_string(&text), .entry = "check", .options = ""};
    enum kg_status status = device->backend->compile(device, &source, 300, &binary, &error);
    CHECK_STATUS(status, KG_OK, &error);
    if (status == KG_OK)
        CHECK_STATUS(device->backend->load(device, &binary, "check", &kernel, &error), KG_OK,
                     &error);
    kg_binary_free(&binary);
    kg_text_free(&text);
    return kernel;
}

// What check_0 leaves in its result.
static uint64_t run(const struct kg_kernel *kernel, int64_t which, int64_t floats, int64_t blocks,
                    void *memory)
{
    uint64_t result = 0;
    void *vectors = (char *)memory + 256;
    struct kg_grid grid = {.blocks = {blocks, 1, 1}, .threads = {256, 1, 1}};
    void *arguments[] = {&which, &floats, &memory, &vectors};
    const struct kg_launch launch = {.grids = &grid, .grid_count = 1, .arguments = arguments};
    const struct kg_backend *backend = device->backend;
    CHECK_STATUS(backend->copy(device, memory, &result, sizeof result, &error), KG_OK, &error);
    CHECK_STATUS(backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK_STATUS(backend->copy(device, &result, memory, sizeof result, &error), KG_OK, &error);
    return result;
}

static void measure_functions(const struct kg_kernel *kernel, void *memory)
{
    const char *fewer = getenv("KG_FLOATS");
    int64_t floats = fewer ? strtoll(fewer, NULL, 10) : INT64_C(1) << 32;
    for (int64_t i = 0; i < FUNCTIONS; i++) {
        uint64_t result = run(kernel, i, floats, 8 * device->facts.units, memory);
        uint32_t error_bits = (uint32_t)(result >> 32), at_bits = (uint32_t)result;
        float worst, at;
        memcpy(&worst, &error_bits, sizeof worst);
        memcpy(&at, &at_bits, sizeof at);
        printf("%-26s %8.3f units at %.9g (%a)\n", functions[i].name, (double)worst, (double)at,
               (double)at);
        CHECK((double)worst <= functions[i].most);
    }
}

static void count_mistakes(const struct kg_kernel *kernel, void *memory)
{
    uint64_t conversions = run(kernel, 100, 0, 8 * device->facts.units, memory);
    uint64_t folds = run(kernel, 101, 0, 4, memory), rest = run(kernel, 102, 0, 1, memory);
    printf("wrong: %llu conversions or divisions, %llu folds, %llu others\n",
           (unsigned long long)conversions, (unsigned long long)folds, (unsigned long long)rest);
    CHECK(conversions == 0);
    CHECK(folds == 0);
    CHECK(rest == 0);
}

int main(void)
{
    const char *name = getenv("KG_DEVICE") ? getenv("KG_DEVICE") : "cuda:0";
    CHECK(folder_make(folder));
    if (kg_device_open(name, folder, 0, &device, &error) == KG_ERROR_MISSING) {
        printf("skipped: %s\n", error.text);
        folder_remove(folder);
        return 77;
    }
    void *memory = NULL;
    struct kg_kernel *kernel = device ? load() : NULL;
    CHECK(kernel != NULL);
    if (kernel) {
        CHECK_STATUS(device->backend->allocate(device, 16384, &memory, &error), KG_OK, &error);
        measure_functions(kernel, memory);
        count_mistakes(kernel, memory);
        device->backend->release(device, memory);
        device->backend->unload(kernel);
    }
    if (device)
        kg_device_close(device);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
