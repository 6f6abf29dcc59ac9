// Occupancy against numbers worked out by hand, and, where a CUDA toolkit is installed, against the
// rules NVIDIA publishes: every compute capability, over a sweep of what blocks need.

#include "asm/occupancy.h"
#include "test.h"

#include <limits.h>

#if __has_include(<cuda_occupancy.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#define ORACLE 1
#else
#define ORACLE 0
#endif

static struct kg_occupancy occupancy(const char *arch, int threads, int registers, int64_t shared)
{
    struct kg_block_needs needs = {
        .threads = threads, .registers = registers, .dynamic_shared = shared, .barriers = 1};
    return kg_occupancy_of(kg_sm_find(arch), &needs);
}

static void test_by_hand(void)
{
    static const struct {
        const char *arch;
        int threads, registers;
        int64_t shared;
        int blocks;
        enum kg_limiter limiter;
    } rows[] = {
        {"sm_90a", 256, 32, 0, 8, KG_LIMIT_WARPS},      // 8 * 8 warps = 64
        {"sm_90a", 32, 32, 0, 32, KG_LIMIT_BLOCKS},     // half of the warps at most
        {"sm_90a", 256, 128, 0, 2, KG_LIMIT_REGISTERS}, // 2 * 256 * 128 = 65536
        {"sm_90a", 256, 129, 0, 1, KG_LIMIT_REGISTERS}, // granules: 136 for each thread
        {"sm_90a", 384, 168, 0, 1, KG_LIMIT_REGISTERS},
        {"sm_90a", 128, 64, 100 << 10, 2, KG_LIMIT_SHARED}, // 101 KiB each of 228
        {"sm_90a", 128, 64, 227 << 10, 1, KG_LIMIT_SHARED},
        {"sm_90a", 128, 64, (227 << 10) + 1, 0, KG_LIMIT_SHARED},
        {"sm_90a", 1025, 16, 0, 0, KG_LIMIT_WARPS},
        {"sm_90a", 1024, 65, 0, 0, KG_LIMIT_REGISTERS},
        {"sm_90a", 160, 255, 0, 1, KG_LIMIT_REGISTERS}, // two warps to a partition
        {"sm_90a", 288, 255, 0, 0, KG_LIMIT_REGISTERS}, // three do not fit into one
        {"sm_86", 1024, 32, 0, 1, KG_LIMIT_WARPS},      // 48 warps
        {"sm_75", 64, 16, 20 << 10, 3, KG_LIMIT_SHARED},
        {"sm_120", 32, 16, 0, 24, KG_LIMIT_BLOCKS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kg_occupancy got =
            occupancy(rows[i].arch, rows[i].threads, rows[i].registers, rows[i].shared);
        if (got.blocks != rows[i].blocks || got.limiter != rows[i].limiter)
            fprintf(stderr, "row %zu: %d blocks, limited by %s\n", i, got.blocks,
                    kg_limiter_name(got.limiter));
        CHECK(got.blocks == rows[i].blocks);
        CHECK(got.limiter == rows[i].limiter);
    }
}

static void test_details(void)
{
    struct kg_occupancy got = occupancy("90", 200, 33, 50 << 10);
    CHECK(got.warps == got.blocks * 7);
    CHECK(got.share == got.warps / 64.0);
    CHECK(got.block_registers == 7 * 40 * 32);
    CHECK(got.block_shared == 51 << 10);
    CHECK(got.opt_in);
    CHECK(!occupancy("90", 200, 33, 48 << 10).opt_in);
    CHECK(occupancy("90", 0, 33, 0).blocks == 0);
    // What is unknown limits nothing, and what is absurd fits nowhere.
    CHECK(occupancy("90", 1024, -1, -1).blocks == 2);
    CHECK(occupancy("90", INT_MAX, INT_MAX, INT64_MAX).blocks == 0);
    struct kg_block_needs barriers = {.threads = 64, .barriers = 16};
    CHECK(kg_occupancy_of(kg_sm_find("90"), &barriers).limiter == KG_LIMIT_BARRIERS);
    CHECK(kg_occupancy_of(kg_sm_find("90"), &barriers).blocks == 4);
    CHECK(kg_occupancy_of(kg_sm_find("80"), &barriers).blocks == 32);
}

// What is said to make room does, and one more would not.
static void test_raise(void)
{
    const struct kg_sm *sm = kg_sm_find("90");
    for (int threads = 32; threads <= 1024; threads += 96)
        for (int registers = 24; registers <= 255; registers += 33)
            for (int shared = 0; shared <= 227; shared += 29) {
                struct kg_block_needs needs = {.threads = threads,
                                               .registers = registers,
                                               .dynamic_shared = shared << 10,
                                               .barriers = 3};
                int blocks = kg_occupancy_of(sm, &needs).blocks;
                struct kg_occupancy_step steps[KG_LIMIT_COUNT];
                int count = kg_occupancy_raise(sm, &needs, steps);
                CHECK(count > 0);
                for (int more = 0; more < 2; more++) {
                    struct kg_block_needs next = needs;
                    bool possible = true;
                    for (int i = 0; i < count; i++) {
                        int64_t value = steps[i].max + more;
                        possible &= steps[i].max >= 0;
                        if (steps[i].resource == KG_LIMIT_WARPS)
                            next.threads = (int)value;
                        if (steps[i].resource == KG_LIMIT_REGISTERS)
                            next.registers = (int)value;
                        if (steps[i].resource == KG_LIMIT_SHARED)
                            next.dynamic_shared = value;
                        if (steps[i].resource == KG_LIMIT_BARRIERS)
                            next.barriers = (int)value;
                    }
                    if (possible)
                        CHECK((kg_occupancy_of(sm, &next).blocks > blocks) == !more);
                }
            }
}

static void test_words(void)
{
    struct kg_text text = {0};
    struct kg_block_needs needs = {.threads = 256, .registers = 96, .barriers = 1};
    kg_occupancy_explain(&text, kg_sm_find("90"), &needs);
    CHECK_TEXT(kg_text_string(&text),
               "3 blocks on an SM instead of 2: registers of a thread at most 80 (now 96)");
    kg_text_cut(&text, 0);
    needs = (struct kg_block_needs){.threads = 256, .dynamic_shared = 300 << 10};
    kg_occupancy_explain(&text, kg_sm_find("90"), &needs);
    CHECK_TEXT(kg_text_string(&text), "1 block on an SM instead of 0: bytes of shared memory of a "
                                      "block at most 232448 (now 307200)");
    kg_text_cut(&text, 0);
    needs = (struct kg_block_needs){.threads = 32};
    kg_occupancy_explain(&text, kg_sm_find("90"), &needs);
    CHECK_TEXT(kg_text_string(&text), "an SM holds no more than 32 blocks");
    kg_text_free(&text);
}

static void test_waves(void)
{
    struct kg_occupancy two = occupancy("90", 256, 128, 0);
    struct kg_waves waves = kg_occupancy_waves(&two, 265, 132, 1);
    CHECK(waves.resident == 264);
    CHECK(waves.busiest == 3);
    CHECK(waves.waves == 265.0 / 264);
    CHECK(waves.idle == 1 - 265.0 / 528);
    CHECK(kg_occupancy_waves(&two, 264, 132, 1).idle == 0);
    CHECK(kg_occupancy_waves(&two, 264, 132, 16).resident == 256);
    CHECK(kg_occupancy_waves(&two, 0, 132, 1).waves == 0);
    struct kg_occupancy none = {0};
    CHECK(kg_occupancy_waves(&none, 10, 132, 1).resident == 0);
}

static void test_names(void)
{
    CHECK(kg_sm_find("sm_90a")->sm == 90);
    CHECK(kg_sm_find("compute_100f")->sm == 100);
    CHECK(!kg_sm_find("sm_70"));
    CHECK(!kg_sm_find("sm_90ab"));
    CHECK(!kg_sm_find("x86-64"));
    CHECK(!kg_sm_find(""));
    CHECK(kg_gpu_find("H100")->sms == 132);
    CHECK(kg_gpu_find("nvidia a100-sxm4-80gb")->sm->sm == 80);
    CHECK(!kg_gpu_find("h1000"));
    struct kg_error error = {0};
    struct kg_gpu gpu;
    struct kg_device_facts facts = {.name = "NVIDIA H100 80GB HBM3", .isa = "sm_90a", .units = 66};
    CHECK_STATUS(kg_gpu_of(&facts, &gpu, &error), KG_OK, &error);
    CHECK(gpu.sms == 66 && gpu.clock == 1.98e9 && gpu.bandwidth == 3.352e12);
    facts = (struct kg_device_facts){.name = "Another", .isa = "sm_90a", .units = 66};
    CHECK_STATUS(kg_gpu_of(&facts, &gpu, &error), KG_ERROR_UNSUPPORTED, &error);
    facts = (struct kg_device_facts){.name = "A CPU", .isa = "x86-64 avx2"};
    CHECK_STATUS(kg_gpu_of(&facts, &gpu, &error), KG_ERROR_UNSUPPORTED, &error);
}

// The tables are plausible: a slip of the pen would stand out here.
static void test_tables(void)
{
    int last = 0;
    for (const struct kg_sm *sm = kg_sms; sm->sm; sm++) {
        CHECK(sm->sm > last);
        last = sm->sm;
        CHECK(sm->shared_opt_in + sm->shared_reserved == sm->shared);
        CHECK(sm->fma && sm->half && sm->real64 && sm->integer && sm->special && sm->convert);
        CHECK(sm->source && sm->l2_bytes && sm->cluster);
    }
    for (const struct kg_gpu *gpu = kg_gpus; gpu->name; gpu++)
        CHECK(gpu->sm && gpu->sms && gpu->clock > 1e9 && gpu->bandwidth > 1e11 && gpu->source);
}

#if ORACLE
static int oracle(const struct kg_sm *sm, const struct kg_block_needs *needs)
{
    cudaOccDeviceProp device = {
        .computeMajor = sm->sm / 10,
        .computeMinor = sm->sm % 10,
        .maxThreadsPerBlock = sm->block_threads,
        .maxThreadsPerMultiprocessor = sm->warps * 32,
        .regsPerBlock = sm->registers,
        .regsPerMultiprocessor = sm->registers,
        .warpSize = 32,
        .sharedMemPerBlock = (size_t)sm->shared_default,
        .sharedMemPerMultiprocessor = (size_t)sm->shared,
        .numSms = 1,
        .sharedMemPerBlockOptin = (size_t)sm->shared_opt_in,
        .reservedSharedMemPerBlock = (size_t)sm->shared_reserved,
    };
    cudaOccFuncAttributes kernel = {
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = needs->registers,
        .sharedSizeBytes = (size_t)needs->static_shared,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = (size_t)needs->dynamic_shared,
        .numBlockBarriers = needs->barriers,
    };
    cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult result;
    cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(
        &result, &device, &kernel, &state, needs->threads, (size_t)needs->dynamic_shared);
    return status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

static void test_oracle(void)
{
    static const int barriers[] = {0, 1, 2, 3, 5, 8, 16};
    long cases = 0, mismatches = 0;
    for (const struct kg_sm *sm = kg_sms; sm->sm; sm++)
        for (int threads = 1; threads <= 1056; threads += threads < 97 ? 16 : 31)
            for (int registers = 1; registers <= 256; registers += registers < 24 ? 5 : 1)
                for (int kib = 0; kib <= 230; kib += 5)
                    for (int odd = -1; odd <= 1; odd++) {
                        struct kg_block_needs needs = {
                            .threads = threads,
                            .registers = registers,
                            .static_shared = kib % 3 * 1000,
                            .dynamic_shared = kib ? kib * 1024 + odd : odd + 1,
                            .barriers = barriers[cases % 7],
                        };
                        cases++;
                        if (kg_occupancy_of(sm, &needs).blocks == oracle(sm, &needs))
                            continue;
                        if (mismatches++ < 10)
                            fprintf(stderr, "sm_%d: %d threads %d registers %lld + %lld bytes\n",
                                    sm->sm, threads, registers, (long long)needs.static_shared,
                                    (long long)needs.dynamic_shared);
                    }
    printf("%ld cases compared with NVIDIA's rules, %ld differ\n", cases, mismatches);
    CHECK(mismatches == 0);
}
#else
static void test_oracle(void)
{
    puts("not compared with NVIDIA's rules: no cuda_occupancy.h");
}
#endif

TEST_MAIN(test_by_hand, test_details, test_raise, test_words, test_waves, test_names, test_tables,
          test_oracle)
