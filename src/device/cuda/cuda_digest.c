// Checksums of the device's memory, computed on the device: outputs of hundreds of megabytes are
// compared without a copy. The kernel is compiled when first needed, and cached like any other.

#include "device/cuda/cuda_device.h"

#include <string.h>

#define ENTRY "kg_digest"
#define THREADS 256
#define BLOCKS_PER_SM 8
#define COMPILE_SECONDS 60.0

// Every word is mixed with its position, and the results are added, so that sums do not depend on
// the order.
static const char source_text[] =
    "typedef unsigned long long word;\n"
    "static __device__ word mix(word value)\n"
    "{\n"
    "    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;\n"
    "    value = (value ^ value >> 27) * 0x94d049bb133111ebull;\n"
    "    return value ^ value >> 31;\n"
    "}\n"
    "extern \"C\" __global__ void " ENTRY "_0(const unsigned char *bytes, word count, word *sum)\n"
    "{\n"
    "    word first = blockIdx.x * (word)blockDim.x + threadIdx.x, part = 0;\n"
    "    word step = gridDim.x * (word)blockDim.x, begin = -(word)bytes % 16;\n"
    "    if (begin > count)\n"
    "        begin = count;\n"
    "    const ulonglong2 *pairs = (const ulonglong2 *)(bytes + begin);\n"
    "    word pair_count = (count - begin) / 16;\n"
    "    for (word i = first; i < begin; i += step)\n"
    "        part += mix(bytes[i] + (i + 1) * 0xd1b54a32d192ed03ull);\n"
    "    for (word i = first; i < pair_count; i += step) {\n"
    "        ulonglong2 pair = pairs[i];\n"
    "        part += mix(pair.x + (2 * i + 1) * 0x9e3779b97f4a7c15ull);\n"
    "        part += mix(pair.y + (2 * i + 2) * 0x9e3779b97f4a7c15ull);\n"
    "    }\n"
    "    for (word i = begin + pair_count * 16 + first; i < count; i += step)\n"
    "        part += mix(bytes[i] + (i + 1) * 0xd1b54a32d192ed03ull);\n"
    "    for (int lane = 16; lane > 0; lane /= 2)\n"
    "        part += __shfl_down_sync(0xffffffffu, part, lane);\n"
    "    if (threadIdx.x % 32 == 0)\n"
    "        atomicAdd(sum, part);\n"
    "}\n";

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static enum kg_status compile(struct kg_device *device, struct kg_binary *binary,
                              struct kg_error *error)
{
    struct kg_source source = {.text = source_text, .entry = ENTRY, .options = ""};
    return kg_cuda_compile(device, &source, COMPILE_SECONDS, binary, error);
}

void kg_cuda_compile_digest(struct kg_device *device)
{
    struct kg_binary binary;
    compile(device, &binary, NULL); // a later call of `digest` reports errors
    kg_binary_free(&binary);
}

static enum kg_status prepare(struct kg_cuda_device *cuda, struct kg_error *error)
{
    struct kg_cuda_context *context = &cuda->context;
    enum kg_status status = KG_OK;
    if (!context->digest) {
        struct kg_binary binary;
        status = compile(&cuda->base, &binary, error);
        if (!status)
            status = kg_cuda_load(&cuda->base, &binary, ENTRY, &context->digest, error);
        kg_binary_free(&binary);
    }
    if (!status && !context->digest_sum) {
        void *memory;
        status = kg_cuda_allocate(&cuda->base, sizeof(uint64_t), &memory, error);
        context->digest_sum = (kg_cuda_pointer)(uintptr_t)memory;
    }
    return status;
}

enum kg_status kg_cuda_digest(struct kg_device *device, const void *memory, size_t bytes,
                              uint64_t *sum, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    enum kg_status status = prepare(cuda, error);
    if (status)
        return status;
    void *place = (void *)(uintptr_t)cuda->context.digest_sum;
    uint64_t count = bytes, total = 0;
    void *arguments[] = {&memory, &count, &place};
    int64_t max = (int64_t)device->facts.units * BLOCKS_PER_SM;
    int64_t blocks = (int64_t)(bytes / 16 / THREADS);
    blocks = blocks < max ? blocks : max;
    struct kg_grid grid = {.blocks = {blocks > 0 ? blocks : 1, 1, 1}, .threads = {THREADS, 1, 1}};
    struct kg_launch launch = {.grids = &grid, .grid_count = 1, .arguments = arguments};
    status = kg_cuda_fill(device, place, 0, sizeof total, error);
    if (!status)
        status = kg_cuda_launch(cuda->context.digest, &launch, error);
    if (!status)
        status = kg_cuda_copy(device, &total, place, sizeof total, error);
    *sum = mix(*sum ^ mix(total + count));
    return status;
}
