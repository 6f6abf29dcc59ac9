// The file that `emit --target cuda` shows: it compiles alone, whatever the number of kernels.

#include "gen/standalone.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

static char folder[] = "/tmp/kg-test-standalone-XXXXXX";
static struct kg_device *device;
static struct kg_error error;

static void compiles(const char *op, const char *sizes, int least_kernels)
{
    struct made made = make(op, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_choice choice;
    struct kg_text text = {0};
    struct kg_binary binary = {0};
    kg_choice_guess(made.problem, &device->facts, &kg_target_cuda, &choice);
    CHECK(choice.count >= least_kernels);
    CHECK(kg_gen_standalone_cuda(made.problem, &choice, &device->facts, &text));
    CHECK(strstr(kg_text_string(&text), "// Launch:  ") != NULL);
    struct kg_source source = {.text = kg_text_string(&text), .entry = "", .options = ""};
    CHECK_STATUS(device->backend->compile(device, &source, 120, &binary, &error), KG_OK, &error);
    kg_binary_free(&binary);
    kg_text_free(&text);
    // With host functions around it, which NVRTC does not see, it is the same file.
    CHECK(kg_gen_launcher_cuda(made.problem, &choice, &device->facts, &text));
    CHECK(strstr(kg_text_string(&text), "extern \"C\" cudaError_t ") != NULL);
    source.text = kg_text_string(&text);
    CHECK_STATUS(device->backend->compile(device, &source, 120, &binary, &error), KG_OK, &error);
    kg_binary_free(&binary);
    kg_text_free(&text);
    unmake(&made);
}

// Whoever launches it learns of every map what it is, and of which there is nothing to map.
static void maps_are_told(const char *sizes, int empty)
{
    struct made made = make("op nt(a: f16[M, K], b: f16[N, K]) -> (c: f16[M, N])\n"
                            "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n",
                            sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_choice choice;
    struct kg_text text = {0};
    kg_choice_guess(made.problem, &device->facts, &kg_target_cuda, &choice);
    CHECK(kg_gen_standalone_cuda(made.problem, &choice, &device->facts, &text));
    for (int i = 0; i < 5; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n//          map_%d: of ", i);
        const char *found = strstr(kg_text_string(&text), line);
        CHECK(found != NULL);
        empty -= found && strncmp(found + strlen(line), "nothing", 7) == 0;
    }
    CHECK(empty == 0);
    kg_text_free(&text);
    unmake(&made);
}

int main(void)
{
    CHECK(folder_make(folder));
    CHECK_STATUS(kg_device_open("sm_90a", folder, 0, &device, &error), KG_OK, &error);
    bool able = device && device->compiler[0];
    if (able) {
        compiles("op scale(x: f16[P, D], s: f32[P]) -> (y: f16[P, D])\n"
                 "{ y[p, d] = x[p, d] * s[p] }\n",
                 "P=100 D=64", 1);
        compiles("op two(x: f32[P, D]) -> (a: f32[P], b: f32[D])\n"
                 "{ a[p] = sum(d) x[p, d]\n  b[d] = max(p) x[p, d] }\n",
                 "P=100 D=64", 2);
        compiles("op gated(x: f16[M, K], w: f16[K, N], v: f16[K, N]) -> (y: f16[M, N])\n"
                 "{ a[m, n] = sum(k) x[m, k] * w[k, n]\n  b[m, n] = sum(k) x[m, k] * v[k, n]\n"
                 "  y[m, n] = silu(a[m, n]) * b[m, n] }\n",
                 "M=64 N=64 K=64", 2);
    }
    if (device) {
        maps_are_told("M=2048 N=2048 K=2048", 2); // no tile is cut off
        maps_are_told("M=2001 N=2024 K=2048", 0);
    }
    kg_device_close(device);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures ? 1 : able ? 0 : 77;
}
