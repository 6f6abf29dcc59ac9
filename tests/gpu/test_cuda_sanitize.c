// Kernels that are right in every result under compute-sanitizer, on a real GPU: those that read
// outside, race or leave a barrier out are refused, and a plan of this library is not. Skipped
// without a GPU, NVRTC or compute-sanitizer.

#include "device/sanitizer.h"
#include "kernelgen.h"
#include "support/folder.h"
#include "test.h"

static char folder[] = "/tmp/kg-test-sanitize-XXXXXX";

#define HEAD "// Launch: twice, ceil(N / 128) blocks of 128 threads\n"
#define BEGIN                                                                                      \
    "extern \"C\" __global__ void twice(const float *x, float *y, long long N)\n"                  \
    "{\n"                                                                                          \
    "    __shared__ float row[128];\n"                                                             \
    "    __shared__ volatile int last;\n"                                                          \
    "    const int t = threadIdx.x;\n"                                                             \
    "    const long long i = blockIdx.x * 128ll + t;\n"
#define END                                                                                        \
    "    if (i < N)\n"                                                                             \
    "        y[i] = 2 * x[i];\n"                                                                   \
    "}\n"

static const struct {
    const char *name, *body, *finding; // NULL: none
} kernels[] = {
    {"is right", "    row[t] = t;\n    last = 0;\n", NULL},
    {"reads behind x",
     "    last = 0;\n    row[t] = 0;\n    if (i == N - 1 && x[N] == 1234567.f)\n"
     "        return;\n",
     "memcheck: Invalid __global__ read of size 4 bytes"},
    {"two threads race",
     "    row[t] = t;\n    last = t;\n    if (last < 0 || row[t ^ 33] < -1)\n"
     "        return;\n",
     "racecheck: "},
    {"half a barrier",
     "    row[t] = t;\n    last = 0;\n    if (t < 5 && N > 64)\n"
     "        __syncthreads();\n",
     "synccheck: "},
};

static void write_file(const char *path, const char *body)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "%s%s%s%s", HEAD, BEGIN, body, END) > 0);
    if (file)
        fclose(file);
}

static bool is_installed(void)
{
    struct kg_sanitizer_command command = {.count = 0};
    enum kg_status status =
        kg_cuda_sanitizers[0].command(NULL, kg_cuda_sanitizers[0].name, &command, NULL);
    kg_sanitizer_command_free(&command);
    return status == KG_OK;
}

static void candidates(struct kg_problem *problem, struct kg_device *device)
{
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/twice.cu", folder);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        struct kg_verify_result result = {.size = sizeof result};
        write_file(path, kernels[i].body);
        enum kg_status status = kg_problem_verify_file(problem, device, path, 7, &result);
        printf("  %-18s %s %.200s%s\n", kernels[i].name, result.passed ? "passed" : "refused",
               result.reason, result.sanitized);
        CHECK(status == KG_OK);
        CHECK(result.passed == !kernels[i].finding);
        CHECK(!kernels[i].finding || strstr(result.reason, kernels[i].finding));
        CHECK(kernels[i].finding || strstr(result.sanitized, "synccheck"));
    }
}

static void sanitized(void)
{
    struct kg_context *context = NULL;
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    struct kg_device *device = NULL;
    struct kg_plan *plan = NULL;
    struct kg_verify_result result = {.size = sizeof result};
    const char *text = "op twice(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }";
    const struct kg_binding sizes[] = {{"N", "1000"}};
    CHECK(folder_make(folder));
    const struct kg_options options = {.size = sizeof options, .home = folder};
    CHECK(kg_context_create(&options, &context) == KG_OK);
    if (kg_context_device(context, "cuda:0", &device) != KG_OK || !is_installed()) {
        printf("skipped: %s\n", device ? "no compute-sanitizer" : kg_context_error(context));
        folder_remove(folder);
        exit(77);
    }
    kg_context_set_sanitize(context, true);
    CHECK(kg_op_parse(context, "twice.kg", text, strlen(text), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, sizes, 1, &problem) == KG_OK);
    candidates(problem, device);
    CHECK(kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
    CHECK(kg_plan_verify(plan, 7, &result) == KG_OK);
    printf("  a plan             %s%s\n", result.reason, result.sanitized);
    CHECK(result.passed && strstr(result.sanitized, "memcheck"));
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    folder_remove(folder);
}

TEST_MAIN(sanitized)
