#include "asm/points.h"
#include "test.h"

static struct kg_asm_count opcodes[] = {
    {"mma.sync", 16}, {"cp.async.cg", 8}, {"cp.async.wait_group", 1}, {"bar.sync", 2},
    {"bra", 3},       {"ret", 1},         {"ld.global", 40},          {"mmap", 5},
};
static const struct kg_asm_kernel kernel = {.opcodes = opcodes, .opcode_count = 8};

static void test_baseline(void)
{
    CHECK(kg_points_of(&kernel, &kg_points_baseline) == 160 + 18 - 60 - 20);
    struct kg_asm_count sass[] = {{"HGMMA", 4}, {"BAR", 1}, {"BRA", 2}, {"FFMA", 9}};
    struct kg_asm_kernel other = {.opcodes = sass, .opcode_count = 4};
    CHECK(kg_points_of(&other, &kg_points_baseline) == 40 - 30 - 10);
    struct kg_asm_kernel empty = {0};
    CHECK(kg_points_of(&empty, &kg_points_baseline) == 0);
}

static void test_own_rules(void)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_points points;
    // The longest name that fits counts.
    CHECK_STATUS(
        kg_points_parse("cp=1,cp.async.wait_group=-2.5,ld.global=-1", &arena, &points, &error),
        KG_OK, &error);
    CHECK(kg_points_of(&kernel, &points) == 8 - 2.5 - 40);
    CHECK_STATUS(kg_points_parse("", &arena, &points, &error), KG_OK, &error);
    CHECK(kg_points_of(&kernel, &points) == 0);
    static const char *const wrong[] = {"mma",        "mma=",        "=3",
                                        "mma=x",      "mma=1;bra=2", "mma=nan",
                                        "mma=1,,b=2", "mma=1,mma=2", "mma=inf"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_STATUS(kg_points_parse(wrong[i], &arena, &points, &error), KG_ERROR_ARGUMENT, &error);
    kg_arena_free(&arena);
}

TEST_MAIN(test_baseline, test_own_rules)
