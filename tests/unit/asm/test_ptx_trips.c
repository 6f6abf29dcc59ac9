// Trip counts of loops in PTX: forward and backward, tested at either end, and what must not be
// taken for a constant.

#include "asm/ptx.h"
#include "test.h"

static struct kg_arena arena;
static struct kg_asm_file file;

static const struct kg_asm_kernel *read_kernel(const char *statements)
{
    static char text[1 << 14];
    struct kg_error error;
    kg_arena_free(&arena);
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90a\n"
             ".entry k(.param .u64 k_param_0, .param .u32 k_param_1, .param .b8 s[16])\n{\n"
             ".reg .pred %%p<9>, p; .reg .b32 %%r<99>, i, n; .reg .b64 %%rd<99>, l;\n%s\n}\n",
             statements);
    CHECK_STATUS(kg_ptx_read(text, strlen(text), &arena, &file, &error), KG_OK, &error);
    return file.kernel_count == 1 ? &file.kernels[0] : NULL;
}

static void test_constant(void)
{
    static const struct {
        const char *text;
        double trips;
    } rows[] = {
        {"mov.u32 i,0; L: add.s32 i,i,1; setp.lt.s32 p,i,64; @p bra L;", 64},
        {"mov.u32 i,0; L: add.s32 i,i,1; setp.eq.s32 p,i,64; @!p bra L;", 64},
        {"mov.u32 i,0; L: add.s32 i,i,1; setp.ne.s32 p,i,64; @p bra L;", 64},
        {"mov.u32 i,0; L: add.s32 i,i,3; setp.lt.u32 p,i,10; @p bra L;", 4},
        {"mov.u32 i,0; L: add.s32 i,i,3; setp.le.u32 p,i,9; @p bra L;", 4},
        {"mov.u32 i,7; L: sub.s32 i,i,1; setp.gt.s32 p,i,0; @p bra L;", 7},
        {"mov.u32 i,-8; L: add.s32 i,i,2; setp.ne.s32 p,i,0; @p bra L;", 4},
        {"mov.u32 i,-8 + 3; L: add.s32 i,i,1; setp.ne.s32 p,i,0; @p bra L;", 5},
        {"mov.u32 i,4294967288; L: add.s32 i,i,2; setp.lt.s32 p,i,0; @p bra L;", 4},
        // the other way round
        {"mov.u32 i,0; L: add.s32 i,i,1; setp.gt.s32 p,5,i; @p bra L;", 5},
        {"mov.u32 i,0; L: add.s32 i,2,i; setp.lt.s32 p,i,10; @p bra L;", 5},
        {"mov.u32 %r1,2; mov.u32 i,0; L: add.s32 i,%r1,i; setp.lt.s32 p,i,10; @p bra L;", 5},
        // once at least
        {"mov.u32 i,9; L: add.s32 i,i,1; setp.lt.s32 p,i,5; @p bra L;", 1},
        // what is tested is the register before it is stepped
        {"mov.u32 i,0; L: setp.lt.s32 p,i,64; add.s32 i,i,1; @p bra L;", 65},
        // tested in the header
        {"mov.u32 i,0; L: setp.ge.s32 p,i,64; @p bra E; add.s32 i,i,1; bra L; E:", 64},
        {"mov.u32 i,70; L: setp.ge.s32 p,i,64; @p bra E; add.s32 i,i,1; bra L; E:", 0},
        // through copies, as compilers write them
        {"mov.u32 %r1,2; mov.u32 i,%r1; L: add.s32 %r5,i,2; setp.ne.s32 p,%r5,8; mov.u32 i,%r5;"
         "@p bra L;",
         3},
        {"mov.u32 n,40; shl.b32 %r9,n,1; mov.u32 i,0; L: add.s32 i,i,1; setp.lt.s32 p,i,%r9;"
         "@p bra L;",
         80},
        // in 64 bits
        {"mov.u64 l,0; L: add.s64 l,l,4096; setp.lt.u64 p,l,17179869184; @p bra L;", 4194304},
        // what else happens in the loop under a condition does not matter
        {"mov.u32 i,0; L: @%p2 bra M; add.s32 %r3,%r3,1; M: add.s32 i,i,1; setp.lt.s32 p,i,8;"
         "@p bra L;",
         8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kg_asm_kernel *kernel = read_kernel(rows[i].text);
        CHECK(kernel->flow.loop_count == 1 && kernel->loops[0].kind == KG_TRIPS_CONSTANT);
        if (kernel->loops[0].trips != rows[i].trips)
            fprintf(stderr, "%s: %g trips\n", rows[i].text, kernel->loops[0].trips);
        CHECK(kernel->loops[0].trips == rows[i].trips && kernel->loops[0].symbol == NULL);
    }
}

static void test_symbol(void)
{
    static const struct {
        const char *text, *symbol;
    } rows[] = {
        {"ld.param.u32 n,[k_param_1]; mov.u32 i,0;"
         "L: add.s32 i,i,1; setp.lt.s32 p,i,n; @p bra L;",
         "parameter 1"},
        {"ld.param.u32 n,[k_param_1]; add.s32 %r1,n,127; shr.s32 %r2,%r1,7; mov.u32 i,0;"
         "L: add.s32 i,i,1; setp.lt.s32 p,i,%r2; @p bra L;",
         "parameter 1"},
        {"ld.param.u64 %rd1,[s+8]; mov.u64 l,0;"
         "L: add.s64 l,l,1; setp.lt.s64 p,l,%rd1; @p bra L;",
         "parameter s+8"},
        // rounds down to a multiple of four, counts down
        {"ld.param.u32 n,[k_param_1]; and.b32 %r1,n,3; sub.s32 %r2,n,%r1;"
         "L: add.s32 %r2,%r2,-4; setp.ne.s32 p,%r2,0; @p bra L;",
         "parameter 1"},
        // from the thread's index, by the number of threads
        {"ld.param.u32 n,[k_param_1]; mov.u32 i,%tid.x; mov.u32 %r1,%ntid.x;"
         "L: add.s32 i,i,%r1; setp.lt.s32 p,i,n; @p bra L;",
         "parameter 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kg_asm_kernel *kernel = read_kernel(rows[i].text);
        CHECK(kernel->flow.loop_count == 1 && kernel->loops[0].kind == KG_TRIPS_SYMBOL);
        CHECK_TEXT(kernel->loops[0].symbol ? kernel->loops[0].symbol : "", rows[i].symbol);
    }
}

static void test_unknown(void)
{
    static const char *const rows[] = {
        // the bound comes from memory
        "ld.global.u32 n,[%rd1]; mov.u32 i,0; L: add.s32 i,i,1; setp.lt.s32 p,i,n; @p bra L;",
        // a second way out
        "mov.u32 i,0; L: @%p3 bra E; add.s32 i,i,1; setp.lt.s32 p,i,9; @p bra L; E:",
        "mov.u32 i,0; L: @%p3 exit; add.s32 i,i,1; setp.lt.s32 p,i,9; @p bra L;",
        // stepped under a condition
        "mov.u32 i,0; L: @%p2 add.s32 i,i,1; setp.lt.s32 p,i,9; @p bra L;",
        "mov.u32 i,0; L: @%p2 bra M; add.s32 i,i,1; M: setp.lt.s32 p,i,9; @p bra L;",
        // stepped twice
        "mov.u32 i,0; L: add.s32 i,i,1; add.s32 i,i,1; setp.lt.s32 p,i,9; @p bra L;",
        // never, or only after going all the way round
        "mov.u32 i,0; L: add.s32 i,i,-1; setp.lt.s32 p,i,9; @p bra L;",
        "mov.u32 i,0; L: add.s32 i,i,2; setp.ne.s32 p,i,9; @p bra L;",
        // two starts
        "mov.u32 i,0; @%p1 bra L; mov.u32 i,5; L: add.s32 i,i,1; setp.lt.s32 p,i,9; @p bra L;",
        // compared outside the loop, not on every trip, or behind the test
        "mov.u32 i,0; setp.lt.s32 p,i,9; L: add.s32 i,i,1; @p bra L;",
        "mov.u32 i,0; L: add.s32 i,i,1; @p bra L; setp.lt.s32 p,i,9;",
        "mov.u32 i,0; L: add.s32 i,i,1; @%p2 bra M; setp.lt.s32 p,i,9; M: @p bra L;",
        "mov.u32 i,0; L: @p bra E; add.s32 i,i,1; setp.ge.s32 p,i,64; bra L; E:",
        // a product of both conditions
        "mov.u32 i,0; L: add.s32 i,i,1; setp.lt.and.s32 p,i,9,%p4; @p bra L;",
        // the test is not made on every trip
        "mov.u32 i,0; L: add.s32 i,i,1; @%p2 bra L; setp.lt.s32 p,i,9; @p bra L;",
        // reals
        ".reg .f32 f; mov.f32 f,0f00000000; L: add.f32 f,f,0f3F800000;"
        "setp.lt.f32 p,f,0f41200000; @p bra L;",
        // the bound changes
        "mov.u32 i,0; mov.u32 n,9; L: add.s32 i,i,1; add.s32 n,n,1; setp.lt.s32 p,i,n; @p bra L;",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kg_asm_kernel *kernel = read_kernel(rows[i]);
        if (kernel->loops[0].kind != KG_TRIPS_UNKNOWN)
            fprintf(stderr, "%s: %g trips\n", rows[i], kernel->loops[0].trips);
        CHECK(kernel->flow.loop_count == 1 && kernel->loops[0].kind == KG_TRIPS_UNKNOWN);
    }
}

static void test_nested(void)
{
    const struct kg_asm_kernel *kernel =
        read_kernel("mov.u32 i,0; A: mov.u32 n,0; B: add.s32 n,n,1; setp.lt.s32 p,n,5; @p bra B;\n"
                    "add.s32 i,i,1; setp.lt.s32 %p1,i,10; @%p1 bra A;\n"
                    "mov.u32 n,8; C: sub.s32 n,n,2; setp.ne.s32 p,n,0; @p bra C; ret;");
    CHECK(kernel->flow.loop_count == 3);
    CHECK(kernel->loops[0].trips == 10 && kernel->loops[1].trips == 4);
    CHECK(kernel->loops[2].trips == 5);
    // 1 + 10 * (1 + 5 * 3 + 3) + 1 + 4 * 3 + 1
    CHECK(kg_mix_total(&kernel->weighted) == 205);
    CHECK(kg_mix_total(&kernel->loops[0].mix) == 19);
}

// A register of a scope inside the loop is another one.
static void test_scopes(void)
{
    const struct kg_asm_kernel *kernel =
        read_kernel("mov.u32 i,0; L: { .reg .b32 i; .reg .b32 %r<4>; mov.u32 i,3; mov.u32 %r1,7; }"
                    "add.s32 i,i,1; setp.lt.s32 p,i,6; @p bra L;");
    CHECK(kernel->loops[0].kind == KG_TRIPS_CONSTANT && kernel->loops[0].trips == 6);
    kg_arena_free(&arena);
}

TEST_MAIN(test_constant, test_symbol, test_unknown, test_nested, test_scopes)
