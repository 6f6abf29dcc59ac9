// What a line says of a file's code.

#include "asm/gist.h"
#include "base/files.h"
#include "test.h"

#include <stdlib.h>

static struct kg_arena arena;
static struct kg_error error;

static void read_sample(const char *path, struct kg_asm_file *file)
{
    char *bytes;
    size_t length;
    CHECK_STATUS(kg_files_read(path, 1 << 24, &bytes, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_asm_read(bytes, length, &arena, file, &error), KG_OK, &error);
    free(bytes);
}

static void check_line(const struct kg_asm_gist *gist, const char *expected)
{
    struct kg_text text = {0};
    kg_asm_gist_print(gist, &text);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

static void check_difference(const struct kg_asm_gist *gist, const struct kg_asm_gist *other,
                             const char *expected)
{
    struct kg_text text = {0};
    kg_asm_gist_compare(gist, other, &text);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

// Only the kernels that are named count: here the one that spills, and one that does not.
static void kernels_that_are_named_count(void)
{
    struct kg_asm_file file;
    const char *const spilling[] = {"spilling"}, *const table[] = {"table"}, *const none[] = {"no"};
    struct kg_asm_gist one = {0}, other = {0}, both = {0}, nothing = {0};
    read_sample(KG_SOURCE_DIR "/tests/data/asm/small.sm_90a.cubin", &file);
    CHECK(kg_asm_gist_add(&one, &file, spilling, 1));
    CHECK(one.known && one.spill_bytes == 256 + 260 && one.loop_spill_bytes == 212);
    CHECK(one.load_bytes == 4);
    CHECK(kg_asm_gist_add(&other, &file, table, 1));
    CHECK(other.known && other.spill_bytes == 0);
    CHECK(kg_asm_gist_add(&both, &file, NULL, 0));
    CHECK(both.spill_bytes == 256 + 260 && both.registers >= one.registers);
    CHECK(kg_asm_gist_add(&nothing, &file, none, 1) && !nothing.known);
    check_line(&nothing, "");
    check_difference(&one, &nothing, "");
    check_difference(&one, &one, "");
}

// The loop over vectors counts, not the one over what is left; on the host, instructions of
// arithmetic have operations.
static void the_widest_loop_counts(void)
{
    struct kg_asm_loop loops[] = {
        {.mix = {.count = {[KG_WORK_LOAD_GLOBAL] = 3, [KG_WORK_FMA] = 9},
                 .bytes = {[KG_WORK_LOAD_GLOBAL] = 12},
                 .flops = 18}},
        {.mix = {.count = {[KG_WORK_LOAD_GLOBAL] = 2, [KG_WORK_FMA] = 4, [KG_WORK_MOVE] = 7},
                 .bytes = {[KG_WORK_LOAD_GLOBAL] = 128},
                 .flops = 128}},
        {.mix = {.count = {[KG_WORK_INTEGER] = 2}}},
    };
    struct kg_asm_block block = {.trips = 1};
    struct kg_flow_loop places[3] = {{.parent = -1}, {.parent = -1}, {.parent = -1}};
    struct kg_asm_kernel kernel = {.name = "f",
                                   .instructions = 4,
                                   .loops = loops,
                                   .blocks = &block,
                                   .flow = {.loops = places, .loop_count = 3}};
    struct kg_asm_file file = {.format = KG_ASM_OBJECT, .kernels = &kernel, .kernel_count = 1};
    struct kg_asm_gist host = {0}, gpu = {0};
    CHECK(kg_asm_gist_add(&host, &file, NULL, 0));
    CHECK(host.load_bytes == 0 && host.step_flops == 32);
    file.format = KG_ASM_CUBIN;
    CHECK(kg_asm_gist_add(&gpu, &file, NULL, 0));
    CHECK(gpu.load_bytes == 64 && gpu.step_flops == 0);
    check_line(&host, "32 FLOP an instruction, no spills");
    check_line(&gpu, "loads of 64 B, no spills");
    struct kg_asm_gist scalar = {.known = true, .step_flops = 2};
    check_difference(&host, &scalar, "32 FLOP an instruction, not 2");
}

// PTX tells neither registers nor spills.
static void what_is_not_known_is_not_said(void)
{
    struct kg_asm_file file;
    const char *const product[] = {"wgmma_f16_n8"};
    struct kg_asm_gist gist = {0};
    read_sample(KG_SOURCE_DIR "/tests/data/asm/hopper.ptx", &file);
    CHECK(kg_asm_gist_add(&gist, &file, product, 1));
    CHECK(gist.known && gist.tensor && gist.registers == 0 && gist.spill_bytes == -1);
    check_line(&gist, "matrix instructions");
}

static void differences_are_said_once(void)
{
    const struct kg_asm_gist fast = {
        .known = true, .registers = 40, .load_bytes = 16, .tensor = true};
    const struct kg_asm_gist slow = {
        .known = true, .registers = 255, .load_bytes = 4, .spill_bytes = 96, .loop_spill_bytes = 8};
    check_line(&fast, "40 registers, loads of 16 B, no spills, matrix instructions");
    check_line(&slow, "255 registers, loads of 4 B, 96 B of spills, in loops");
    check_difference(&fast, &slow,
                     "matrix instructions; loads of 16 B, not 4; no spills, not 96 B of spills, in "
                     "loops; 40 registers, not 255");
}

TEST_MAIN(kernels_that_are_named_count, the_widest_loop_counts, what_is_not_known_is_not_said,
          differences_are_said_once)
