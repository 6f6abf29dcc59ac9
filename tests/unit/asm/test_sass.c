// Single instructions, as nvdisasm reads them. The words are from compiled code.

#include "asm/sass.h"
#include "test.h"

struct expected {
    uint64_t low, high;
    int sm;
    const char *name;
    enum kg_work work;
    double bytes, tensor_flops;
};

static const struct expected instructions[] = {
    // LDC.64 R4, c[0x0][0x220]; LDG.E.64; LDG.E.128.CONSTANT; LDS.U.U8; STL.U16; LDSM.16.M88.4
    {0x00008800ff047b82, 0x000e300000000a00, 90, "LDC", KG_WORK_LOAD_CONSTANT, 8, 0},
    {0x0000000804087981, 0x001ea8000c1e1b00, 90, "LDG", KG_WORK_LOAD_GLOBAL, 8, 0},
    {0x000020061a107981, 0x000f22000c1e9d00, 80, "LDG", KG_WORK_LOAD_GLOBAL, 16, 0},
    {0x0001100000027984, 0x001e240000001000, 75, "LDS", KG_WORK_LOAD_SHARED, 1, 0},
    {0x0000000401007387, 0x0003e60000100400, 86, "STL", KG_WORK_STORE_LOCAL, 2, 0},
    {0x000000000004783b, 0x000e280000000200, 80, "LDSM", KG_WORK_LOAD_SHARED, 16, 0},
    {0xfe0000040408797e, 0x002ea80008121904, 100, "LDG", KG_WORK_LOAD_GLOBAL, 32, 0},
    // HMMA.16816.F32.BF16, .1684.F32.TF32, .SP.16832; IMMA.16864.S4.S4; BMMA.168256; DMMA.16x8x16
    {0x0000001c0804723c, 0x020fe60000041804, 80, "HMMA", KG_WORK_TENSOR, 0, 4096},
    {0x000000101404723c, 0x020fe60000085004, 80, "HMMA", KG_WORK_TENSOR, 0, 1024},
    {0x0000000c0804723c, 0x020fe60000005a04, 80, "HMMA", KG_WORK_TENSOR, 0, 4096},
    {0x0000001c08047237, 0x020fe60000785404, 80, "IMMA", KG_WORK_TENSOR, 0, 16384},
    {0x0000001c0804723d, 0x020fe60000011404, 80, "BMMA", KG_WORK_TENSOR, 0, 65536},
    {0x000000081020723f, 0x0262aa0000003020, 90, "DMMA", KG_WORK_TENSOR, 0, 4096},
    // HGMMA.64x256x16.F32: a quarter of the warpgroup's; QGMMA.64x64x32; QMMA.SP.16864
    {0x03e00000081879f0, 0x000fd80008000818, 90, "HGMMA", KG_WORK_TENSOR, 0, 131072},
    {0x00e00000081879f3, 0x000fe60008002818, 90, "QGMMA", KG_WORK_TENSOR, 0, 65536},
    {0x000000080c04727a, 0x020fe60000013404, 120, "QMMA", KG_WORK_TENSOR, 0, 8192},
    // numbers with several meanings
    {0x00000004ff067435, 0x000fe200000001ff, 90, "HFMA2", KG_WORK_MOVE, 0, 0},
    {0x00000008030b7235, 0x000fc60000000003, 80, "HFMA2", KG_WORK_HALF, 0, 0},
    {0x00000001040c7835, 0x000fe200078e0000, 120, "IADD", KG_WORK_INTEGER, 0, 0},
    {0x000000050200798e, 0x0021d8000c10e184, 80, "RED", KG_WORK_ATOMIC, 4, 0},
    {0x000000150200798e, 0x0005e8000c10e188, 90, "REDG", KG_WORK_ATOMIC, 4, 0},
    {0xc00a04120e0075ea, 0x0001f40008000009, 100, "UTCOMMA", KG_WORK_TENSOR, 0, 0},
    {0x00ff04100c0075ea, 0x0001d80008000309, 100, "UTCQMMA", KG_WORK_TENSOR, 0, 0},
    {0x00ff04100c0075ea, 0x0001d80008000009, 100, "UTCHMMA", KG_WORK_TENSOR, 0, 0},
    // HMMA.884.F32.F32.STEP1 and .F16.F16.STEP1: a quarter and a half of four 8x8x4; VIADD since
    {0x00000008060e7236, 0x000f64000000d4ff, 75, "HMMA", KG_WORK_TENSOR, 0, 512},
    {0x00000006040a7236, 0x000b6400000084ff, 75, "HMMA", KG_WORK_TENSOR, 0, 1024},
    {0x0000000104047836, 0x000fc80000000000, 90, "VIADD", KG_WORK_INTEGER, 0, 0},
    {0x0000000000007221, 0x000fe40003820000, 100, "FHADD", KG_WORK_FMA, 0, 0},
    {0x0000000000007221, 0x000fe40003800000, 100, "FADD", KG_WORK_FMA, 0, 0},
    {0x000000000000789c, 0x000fe40000000000, 75, "UPLOP3", KG_WORK_SELECT, 0, 0},
    // IMAD.MOV.U32 R4, RZ, RZ, 0x4 moves; IMAD.X with zeros adds a carry; an unknown number
    {0x00000004ff047424, 0x000fc800078e00ff, 80, "IMAD", KG_WORK_MOVE, 0, 0},
    {0x00005900ff0b7624, 0x000fc800018e06ff, 80, "IMAD", KG_WORK_INTEGER, 0, 0},
    {0x00000000000071ff, 0x000fc80000000000, 80, "?", KG_WORK_UNKNOWN, 0, 0},
};

static void test_instructions(void)
{
    for (size_t i = 0; i < sizeof instructions / sizeof instructions[0]; i++) {
        const struct expected *expected = &instructions[i];
        struct kg_sass sass;
        kg_sass_decode((struct kg_sass_word){expected->low, expected->high}, expected->sm, &sass);
        CHECK_TEXT(sass.opcode->name, expected->name);
        CHECK(sass.work == expected->work);
        CHECK(sass.bytes == expected->bytes);
        CHECK(sass.tensor_flops == expected->tensor_flops);
    }
}

static void test_control_bits(void)
{
    // @!P0 BRA with a stall of 5; LDG sets scoreboard 2 and waits for scoreboard 0
    struct kg_sass sass;
    kg_sass_decode((struct kg_sass_word){0x00000004004c8947, 0x000fea0003800000}, 90, &sass);
    CHECK(sass.guarded && sass.stall == 5 && !sass.wait_mask && sass.write_barrier == 7);
    kg_sass_decode((struct kg_sass_word){0x0000000804087981, 0x001ea8000c1e1b00}, 90, &sass);
    CHECK(!sass.guarded && sass.stall == 4 && sass.write_barrier == 2 && sass.read_barrier == 7);
    CHECK(sass.wait_mask == 1 && !sass.yield);
    kg_sass_decode((struct kg_sass_word){0x00000004ff047424, 0x000fc800078e00ff}, 80, &sass);
    CHECK(sass.yield);
    CHECK(kg_sass_bits((struct kg_sass_word){1ull << 63, 1}, 63, 2) == 3);
    CHECK(kg_sass_bits((struct kg_sass_word){~0ull, 0}, 0, 64) == ~0ull);
    CHECK(kg_sass_bits((struct kg_sass_word){5, 0}, 0, 0) == 0);
}

// One instruction in the middle of a code of 4096.
static struct kg_step step_of(uint64_t low, uint64_t high, int sm)
{
    static uint8_t bytes[4096 * KG_SASS_SIZE];
    struct kg_sass_code code = {bytes, 4096, sm};
    for (int i = 0; i < 8; i++) {
        bytes[2048 * KG_SASS_SIZE + i] = (uint8_t)(low >> 8 * i);
        bytes[2048 * KG_SASS_SIZE + 8 + i] = (uint8_t)(high >> 8 * i);
    }
    static const int32_t targets[] = {7, 9};
    static const struct kg_sass_table table = {2048, targets, 2};
    return kg_sass_step(&code, 2048, &table, 1);
}

static void test_steps(void)
{
    struct kg_step step = step_of(0x0000060000009947, 0x000fea0003800000, 86); // @P1 BRA
    CHECK(step.kind == KG_STEP_BRANCH && step.target == 2049 + 0x600 / 16);
    step = step_of(0xfffffffc00f08947, 0x000fea000383ffff, 90); // @!P0 BRA, three back
    CHECK(step.kind == KG_STEP_BRANCH && step.target == 2046 - 1);
    step = step_of(0xfffffff000007947, 0x000fc0000383ffff, 80); // BRA to itself
    CHECK(step.kind == KG_STEP_END);
    step = step_of(0x0000095000007947, 0x000fea0003800000, 75); // BRA
    CHECK(step.kind == KG_STEP_JUMP && step.target == 2049 + 0x950 / 16);
    step = step_of(0x0000095000007947, 0x000fea0001000000, 75); // BRA P2
    CHECK(step.kind == KG_STEP_BRANCH);
    step = step_of(0x000009f200007947, 0x000fea0003800000, 80); // BRA.DIV
    CHECK(step.kind == KG_STEP_BRANCH && step.target == 2049 + 0x9f0 / 16);
    step = step_of(0x0000000108287547, 0x000fea000b800000, 100); // BRA.U !UP0
    CHECK(step.kind == KG_STEP_BRANCH && step.target == 2049 + 0xa0 / 16);
    step = step_of(0xfffffd800c007949, 0x000fea000383ffff, 90); // BRX, by its table
    CHECK(step.kind == KG_STEP_MANY && step.target_count == 2 && step.targets[1] == 9);
    CHECK(step_of(0x000000000000794d, 0x000fea0003800000, 80).kind == KG_STEP_END);
    CHECK(step_of(0x000000000000094d, 0x000fea0000800000, 89).kind == KG_STEP_MAYBE_END);
    CHECK(step_of(0x000000000000094d, 0x000fea0003800000, 89).kind == KG_STEP_MAYBE_END);
    CHECK(step_of(0x7ffffffc00007947, 0x000fea000381ffff, 80).kind == KG_STEP_END);  // far outside
    CHECK(step_of(0x0000000000007941, 0x000fea0003800000, 80).kind == KG_STEP_NEXT); // BSYNC
}

// What stands beside a loop's counter in the registers does not hide how it counts; what may
// overwrite it does.
static void test_trips(void)
{
    uint64_t words[][2] = {
        {0x00000000ff0d7435, 0x000fe200000001ff}, // HFMA2.MMA R13, -RZ, RZ, 0, 0
        {0x000000010d0d7810, 0x000fe20007ffe0ff}, // IADD3 R13, R13, 0x1, RZ
        {0x000003e80d00780c, 0x000fca0003f05270}, // ISETP.NE.AND P0, PT, R13, 0x3e8, PT
        {0x0000000c000c7308, 0x000e300000000800}, // MUFU.EX2 R12, R12
        {0xfffffffc00f00947, 0x01efea000383ffff}, // @P0 BRA, to the second
        {0x000000000000794d, 0x000fea0003800000}, // EXIT
    };
    for (int changed = 0; changed < 2; changed++) {
        if (changed)
            words[3][0] = 0x000000080c0c7825; // IMAD.WIDE R12, R12, 0x8: R13 too
        uint8_t bytes[sizeof words];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(words[i / 16][i / 8 % 2] >> 8 * (i % 8));
        const struct kg_sass_code code = {bytes, sizeof words / sizeof words[0], 90};
        struct kg_arena arena = {0};
        struct kg_asm_kernel kernel = {0};
        CHECK(kg_sass_read(&code, NULL, 0, NULL, 0, &arena, &kernel));
        CHECK(kernel.flow.loop_count == 1 && kernel.loops[0].trips == (changed ? 0 : 1000));
        kg_arena_free(&arena);
    }
}

TEST_MAIN(test_trips, test_instructions, test_control_bits, test_steps)
