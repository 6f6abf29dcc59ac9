// Names of classes, sums, and the sums over nested loops.

#include "asm/weigh.h"
#include "test.h"

static void test_names(void)
{
    CHECK_TEXT(kg_work_name(KG_WORK_LOAD_GLOBAL), "load global");
    for (int a = 0; a < KG_WORK_COUNT; a++)
        for (int b = 0; b < a; b++)
            CHECK(strcmp(kg_work_name((enum kg_work)a), kg_work_name((enum kg_work)b)) != 0);
}

static void test_mix(void)
{
    struct kg_mix sum = {0}, one = {.tensor_flops = 4, .flops = 2};
    one.count[KG_WORK_FMA] = 1;
    one.bytes[KG_WORK_LOAD_GLOBAL] = 16;
    kg_mix_add(&sum, &one, 3);
    kg_mix_add(&sum, &one, 1);
    CHECK(sum.count[KG_WORK_FMA] == 4 && sum.bytes[KG_WORK_LOAD_GLOBAL] == 64);
    CHECK(sum.tensor_flops == 16 && sum.flops == 8 && kg_mix_total(&sum) == 4);
}

static void test_find(void)
{
    struct kg_asm_kernel kernels[] = {{.name = "a"}, {.name = "b"}};
    struct kg_asm_file file = {.kernels = kernels, .kernel_count = 2};
    CHECK(kg_asm_find(&file, "b") == &kernels[1] && kg_asm_find(&file, "c") == NULL);
}

// Block 0, a loop of blocks 1 and 3 around a loop of block 2, block 4; block 5 is never reached.
static const struct kg_step steps[] = {
    {.kind = KG_STEP_NEXT},
    {.kind = KG_STEP_NEXT},
    {.kind = KG_STEP_BRANCH, .target = 2},
    {.kind = KG_STEP_BRANCH, .target = 1},
    {.kind = KG_STEP_END},
    {.kind = KG_STEP_END},
};

static void weigh(struct kg_arena *arena, struct kg_asm_kernel *kernel, double outer, double inner)
{
    static const struct kg_mix one = {.count = {[KG_WORK_INTEGER] = 1}};
    static struct kg_asm_block blocks[6];
    static struct kg_asm_loop loops[2];
    memset(loops, 0, sizeof loops);
    CHECK(kg_flow_find(steps, 6, arena, &kernel->flow));
    CHECK(kernel->flow.block_count == 6 && kernel->flow.loop_count == 2);
    for (int b = 0; b < 6; b++) {
        blocks[b] = (struct kg_asm_block){.issue_cycles = 1, .stall_cycles = 2};
        CHECK(kg_asm_block_fill(&blocks[b], &one, arena));
    }
    loops[0] = (struct kg_asm_loop){.kind = KG_TRIPS_CONSTANT, .trips = outer, .spill_loads = 1};
    loops[1] = (struct kg_asm_loop){.kind = KG_TRIPS_CONSTANT, .trips = inner, .spill_loads = 2};
    if (inner == 0)
        loops[1].kind = KG_TRIPS_UNKNOWN;
    kernel->blocks = blocks;
    kernel->loops = loops;
    kg_asm_weigh(kernel);
}

static void test_weights(void)
{
    struct kg_arena arena = {0};
    struct kg_asm_kernel kernel = {0};
    weigh(&arena, &kernel, 10, 5);
    CHECK(kernel.mix.count[KG_WORK_INTEGER] == 6);
    CHECK(kernel.weighted.count[KG_WORK_INTEGER] == 1 + 10 * (1 + 5 + 1) + 1);
    CHECK(kernel.loops[1].mix.count[KG_WORK_INTEGER] == 1);
    CHECK(kernel.loops[0].mix.count[KG_WORK_INTEGER] == 7);
    CHECK(kernel.loops[0].issue_cycles == 7 && kernel.loops[0].stall_cycles == 14);
    CHECK(kernel.loops[0].spill_loads == 3 && kernel.loops[1].spill_loads == 2);
    CHECK(kernel.blocks[2].trips == 50 && kernel.blocks[3].trips == 10);
    CHECK(kernel.blocks[4].trips == 1 && kernel.blocks[5].trips == 0);
    weigh(&arena, &kernel, 10, 0);
    CHECK(kernel.weighted.count[KG_WORK_INTEGER] == 1 + 10 * 3 + 1);
    kg_arena_free(&arena);
}

// Trip counts that multiply beyond all numbers stay finite.
static void test_absurd(void)
{
    struct kg_arena arena = {0};
    struct kg_asm_kernel kernel = {0};
    weigh(&arena, &kernel, 1e200, 1e200);
    CHECK(kernel.weighted.count[KG_WORK_INTEGER] == KG_MIX_MAX);
    CHECK(kernel.weighted.count[KG_WORK_FMA] == 0 && kernel.weighted.flops == 0);
    kg_arena_free(&arena);
}

TEST_MAIN(test_names, test_mix, test_find, test_weights, test_absurd)
