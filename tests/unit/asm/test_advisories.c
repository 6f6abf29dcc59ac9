#include "asm/advisories.h"
#include "test.h"

static const char compiler_log[] =
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
    "serialized due to insufficient register resources in function 'main'\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'main' for 'sm_90a'\n"
    "ptxas info    : Function properties for helper\n"
    "    96 bytes stack frame, 9 bytes spill stores, 9 bytes spill loads\n"
    "ptxas info    : Function properties for main\n"
    "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 2 barriers, 104 bytes cumulative stack size, "
    "49152 bytes smem\n"
    "ptxas info    : (C7519) warpgroup.arrive is injected in around line 26 by compiler to allow "
    "use of registers in GMMA in function 'main'\n"
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n"
    "ptxas info    : (C7999) Something new in function 'main'\n"
    "ptxas info    : Compiling entry function 'bare' for 'sm_75'\n"
    "ptxas info    : Used 8 registers, 352 bytes cmem[0]"; // no last newline

static void test_log(void)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    CHECK(kg_asm_log_read(compiler_log, sizeof compiler_log - 1, &arena, &file, NULL) == KG_OK);
    CHECK(file.kernel_count == 2);
    const struct kg_asm_kernel *kernel = kg_asm_find(&file, "main");
    CHECK(kernel && kernel->registers == 168 && kernel->barriers == 2);
    CHECK(kernel->shared_bytes == 49152 && kernel->stack_bytes == 104);
    CHECK(kernel->spill_store_bytes == 12 && kernel->spill_load_bytes == 16);
    CHECK(kernel->advice_count == 3); // the serialisation once
    CHECK_TEXT(kernel->advice[0].code, "wgmma-serialised");
    CHECK_TEXT(kernel->advice[1].code, "setmaxnreg-ignored");
    CHECK_TEXT(kernel->advice[1].text,
               "ptxas (C7508): Potential Performance Loss: 'setmaxnreg' ignored");
    CHECK_TEXT(kernel->advice[2].code, "ptxas-C7999");
    const struct kg_asm_kernel *bare = kg_asm_find(&file, "bare");
    CHECK(bare && bare->sm == 75 && bare->registers == 8 && bare->barriers == 0);
    CHECK(bare->spill_load_bytes == -1 && bare->advice_count == 0);
    kg_arena_free(&arena);
}

// Any beginning of the log, and a text that is none.
static void test_pieces(void)
{
    for (size_t length = 0; length < sizeof compiler_log; length++) {
        struct kg_arena arena = {0};
        struct kg_asm_file file;
        CHECK(kg_asm_log_read(compiler_log + sizeof compiler_log - 1 - length, length, &arena,
                              &file, NULL) == KG_OK);
        CHECK(kg_asm_log_read(compiler_log, length, &arena, &file, NULL) == KG_OK);
        kg_arena_free(&arena);
    }
}

TEST_MAIN(test_log, test_pieces)
