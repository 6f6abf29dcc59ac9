// Advice on who copies: compiled here, for there is no cubin of it in tests/data.

#include "asm/advisories.h"
#include "device/device.h"
#include "support/folder.h"
#include "test.h"

#include <string.h>

// Reads a line into shared memory, by the thread that `alone` chooses.
#define KERNEL(alone)                                                                              \
    "extern \"C\" __global__ void copy_0(const float4 *from, float *to)\n"                         \
    "{\n"                                                                                          \
    "    extern __shared__ __align__(128) char shared[];\n"                                        \
    "    unsigned place = (unsigned)__cvta_generic_to_shared(shared);\n"                           \
    "    if (threadIdx.x == 0)\n"                                                                  \
    "        asm volatile(\"mbarrier.init.shared::cta.b64 [%0], 1;\" ::\"r\"(place));\n"           \
    "    __syncthreads();\n"                                                                       \
    "    int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), alone = 0;\n"                    \
    "    " alone "\n"                                                                              \
    "    for (int i = 0; alone && i < 8; i++)\n"                                                   \
    "        asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes\"\n" \
    "                     \" [%0], [%1], 128, [%2];\" ::\"r\"(place + 128 + i * 128),\n"           \
    "                     \"l\"(from + i * gridDim.x), \"r\"(place) : \"memory\");\n"              \
    "    __syncthreads();\n"                                                                       \
    "    to[threadIdx.x] = ((float *)shared)[threadIdx.x + warp];\n"                               \
    "}\n"
#define BY_NUMBER KERNEL("alone = threadIdx.x == 0;")
#define BY_ELECTION                                                                                \
    KERNEL("if (warp == 0) asm volatile(\"{ .reg .pred p; elect.sync _|p, 0xffffffff;\"\n"         \
           "    \" selp.u32 %0, 1, 0, p; }\" : \"=r\"(alone));")

static struct kg_error error;

static int count_advice(struct kg_device *device, const char *text)
{
    struct kg_source source = {.text = text, .entry = "copy", .options = ""};
    struct kg_binary binary;
    struct kg_arena arena = {0};
    struct kg_asm_file file = {0};
    int found = 0;
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    CHECK_STATUS(kg_asm_read(binary.bytes, binary.length, &arena, &file, &error), KG_OK, &error);
    CHECK(file.kernel_count == 1);
    for (int i = 0; i < file.kernel_count; i++)
        for (int a = 0; a < file.kernels[i].advice_count; a++) {
            const struct kg_advice *advice = &file.kernels[i].advice[a];
            bool is_it = strcmp(advice->code, "copies-by-thread") == 0;
            CHECK(!is_it || strstr(advice->text, "elect.sync"));
            found += is_it;
        }
    kg_arena_free(&arena);
    kg_binary_free(&binary);
    return found;
}

int main(void)
{
    char folder[] = "/tmp/kg-test-copies-XXXXXX";
    struct kg_device *device = NULL;
    CHECK(folder_make(folder));
    CHECK_STATUS(kg_device_open("sm_90a", folder, 0, &device, &error), KG_OK, &error);
    bool skipped = device && !device->compiler[0]; // no NVRTC
    if (device && !skipped) {
        CHECK(count_advice(device, BY_NUMBER) == 1);
        CHECK(count_advice(device, BY_ELECTION) == 0);
    }
    kg_device_close(device);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return skipped ? 77 : test_failures != 0;
}
