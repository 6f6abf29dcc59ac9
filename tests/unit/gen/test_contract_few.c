// Products of a few elements: kernels that gather them instead of packing panels, around the sizes
// at which panels begin, and how many of them are worth another thread.

#include "device/host/host_abi.h"
#include "support/built_contract.h"

#include <dlfcn.h>
#include <unistd.h>

// Panels begin at 17 rows, 33 terms, or a register tile's columns: 8 to 64.
static const char *const shapes[] = {
    "B=3 M=1 N=1 K=1",
    "B=7 M=4 N=4 K=4",
    "B=2 M=5 N=3 K=0",
    "B=2 M=0 N=3 K=4",
    "B=0 M=5 N=3 K=4",
    "B=2 M=16 N=7 K=32",
    "B=2 M=17 N=7 K=32",
    "B=2 M=16 N=7 K=33",
    "B=2 M=3 N=15 K=17",
    "B=2 M=3 N=16 K=17",
    "B=2 M=3 N=17 K=17",
    "B=2 M=15 N=31 K=9",
    "B=2 M=15 N=32 K=9",
    "B=2 M=15 N=33 K=9",
    "B=2 M=16 N=63 K=31",
    "B=2 M=16 N=64 K=31",
    "B=300 M=2 N=5 K=3",
    "B=41 M=5 N=2 K=32",
    NULL,
};

static void operands_in_memory(void)
{
    static const char *const types[] = {"T=f32", "T=f16", "T=bf16", "T=f64", "T=i64"};
    for (int i = 0; i < 5; i++) {
        check("op nn(a: T[B, M, K], b: T[B, K, N]) -> (c: T[B, M, N])\n"
              "where T in f32 f16 bf16 f64 i64\n"
              "{ c[b, m, n] = sum(k) a[b, m, k] * b[b, k, n] }",
              types[i], 1, shapes);
        check("op tt(a: T[B, K, M], b: T[B, N, K]) -> (c: T[B, M, N])\n"
              "where T in f32 f16 bf16 f64 i64\n"
              "{ c[b, m, n] = sum(k) a[b, k, m] * b[b, n, k] }",
              types[i], 1, shapes);
    }
}

static void other_operands(void)
{
    check("op mixed(a: f32[B, M, K], b: f16[B, N, K], s: f32[N]) -> (c: f16[B, M, N])\n"
          "{ c[b, m, n] = (sum(k) a[b, m, k] * b[b, n, k]) * s[n] + m }",
          "", 1, shapes);
    check("op computed(a: i8[B, M, K], b: f16[B, K, N], s: f32[M]) -> (c: f32[B, M, N])\n"
          "{ c[b, m, n] = sum(k) (a[b, m, k] * s[m]) * exp(b[b, k, n]) }",
          "", 1, shapes);
    check("op turned(a: f16[B, M, K], b: f16[B, K, N]) -> (c: f16[N, M, B])\n"
          "{ c[n, m, b] = sum(k) a[b, m, k] * b[b, k, n] }",
          "", 1, shapes);
}

// The items that are worth a thread, of so many batches of 4 x 4 x 4 or larger.
static int64_t grain_of(const struct kg_built *built, int64_t size)
{
    int64_t (*bytes)(const struct kg_host_call *call, int kind);
    void *library = dlopen(built->binaries[0].path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    void *found = library ? dlsym(library, "kg_kernel_bytes") : NULL;
    CHECK(found != NULL);
    if (!found)
        return 0;
    memcpy(&bytes, &found, sizeof bytes);
    static float memory[64];
    void *tensors[] = {memory, memory, memory};
    const int64_t sizes[] = {100, size, size, size};
    const int64_t strides[3 * KG_MAX_RANK] = {0};
    const struct kg_host_call call = {
        .tensor = tensors, .size = sizes, .stride = strides, .threads = 2};
    int64_t grain = bytes(&call, KG_HOST_GRAIN);
    dlclose(library);
    return grain;
}

// A hundred products of 64 terms are done before a thread has woken.
static void no_thread_for_little(void)
{
    struct made made = make("op nn(a: f32[B, M, K], b: f32[B, K, N]) -> (c: f32[B, M, N])\n"
                            "{ c[b, m, n] = sum(k) a[b, m, k] * b[b, k, n] }",
                            "B=8 M=8 N=8 K=8");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_built *built = build(made.problem, NULL, 1);
    CHECK(grain_of(built, 4) >= 100);
    CHECK(grain_of(built, 7) >= 40 && grain_of(built, 7) < 100);
    CHECK(grain_of(built, 64) >= 1 && grain_of(built, 64) < 10);
    kg_built_free(built);
    unmake(&made);
}

int main(void)
{
    char folder[] = "/tmp/test-contract-few-XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    if (kg_device_open("host", folder, 2, &device, &error) != KG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    operands_in_memory();
    other_operands();
    no_thread_for_little();
    kg_device_close(device);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
