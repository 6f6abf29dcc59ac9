// Every allocation of the reader of PTX fails once, and once with all that follow.

#include "asm/ptx.h"
#include "faults/fail_alloc.h"
#include "test.h"

static const char good[] =
    ".version 8.0\n.target sm_90\n"
    ".func f(.param .b32 a) { ret; }\n"
    ".entry k(.param .u32 k_param_0) .maxntid 128 {\n"
    ".reg .pred p; .reg .b32 i, n, %r<9>;\n"
    "ld.param.u32 n, [k_param_0]; mov.u32 i, 0;\n"
    "A: add.s32 i, i, 1; mma .sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {i}, {n}, {n}, {i};\n"
    "{ .reg .b32 %q<4>; mov.u32 %q1, 3; } frob i, n; call f, (i);\n"
    "setp.lt.s32 p, i, n; @p bra A;\n"
    "t: .branchtargets A, B;\n@p brx.idx i, t;\nB: ret; }\n";
static const char bad[] = ".version 8.0\n.target sm_90\n.entry k() { add.s32 i, i, 1; bra X; }\n";

static void check(const char *text, enum kg_status normal)
{
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_arena arena = {0};
            struct kg_error error = {0};
            struct kg_asm_file file;
            if (all)
                fail_alloc_from(n);
            else
                fail_alloc_at(n);
            enum kg_status status = kg_ptx_read(text, strlen(text), &arena, &file, &error);
            fail_alloc_never();
            CHECK(status == normal || (status == KG_ERROR_MEMORY && fail_alloc_happened()));
            CHECK(status == KG_OK || (error.text[0] && file.kernel_count == 0));
            kg_arena_free(&arena);
        }
}

static void test_good(void)
{
    check(good, KG_OK);
}

static void test_bad(void)
{
    check(bad, KG_ERROR_CORRUPT);
}

TEST_MAIN(test_good, test_bad)
