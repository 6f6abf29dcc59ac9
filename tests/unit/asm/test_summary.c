// Which loop is the main one, what it moves and computes, and which device runs which code.

#include "asm/appraisal.h"
#include "base/files.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static struct kg_arena arena;
static struct kg_error error;
static const struct kg_fitted_list unfitted;

static void read_text(const char *text, struct kg_asm_file *file)
{
    CHECK_STATUS(kg_asm_read(text, strlen(text), &arena, file, &error), KG_OK, &error);
}

static void read_sample(const char *path, struct kg_asm_file *file)
{
    char *bytes;
    size_t length;
    CHECK_STATUS(kg_files_read(path, 1 << 24, &bytes, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_asm_read(bytes, length, &arena, file, &error), KG_OK, &error);
    free(bytes);
}

#define SAMPLE(name) KG_SOURCE_DIR "/tests/data/asm/" name

// A barrier polled inside, and a longer loop before it that computes nothing for matrix units.
static void test_main_loop(void)
{
    struct kg_asm_file file;
    struct kg_asm_summary summary;
    read_sample(SAMPLE("hopper.ptx"), &file);
    const struct kg_asm_kernel *maps = kg_asm_find(&file, "tensor_maps");
    CHECK(maps && kg_asm_summarise(maps, KG_ASM_PTX, &summary));
    CHECK(summary.main_loop >= 0 && maps->loops[summary.main_loop].first == 393);
    CHECK(summary.hidden_bytes && !summary.tensor);
    const struct kg_asm_kernel *product = kg_asm_find(&file, "wgmma_f16_n8");
    CHECK(product && kg_asm_summarise(product, KG_ASM_PTX, &summary));
    CHECK(summary.tensor && summary.hidden_bytes && summary.loop_spill_loads == -1);
    read_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n"
              ".reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<3>;\n"
              "mov.u32 %r1, 0;\n"
              "A: add.f32 %f1, %f2, %f3; add.f32 %f2, %f1, %f3; add.f32 %f3, %f1, %f2;\n"
              "add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra A;\n"
              "mov.u32 %r2, 0;\n"
              "B: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r3,%r4},"
              " {%r5}, {%f1,%f2,%f3,%f4};\n"
              "add.s32 %r2, %r2, %r6; setp.lt.s32 %p2, %r2, %r7; @%p2 bra B;\n"
              "ret; }\n",
              &file);
    CHECK(kg_asm_summarise(&file.kernels[0], KG_ASM_PTX, &summary));
    CHECK(file.kernels[0].flow.loop_count == 2 && summary.main_loop == 1);
    CHECK(summary.tensor && summary.flops == 2048 && !summary.hidden_bytes);
}

static void test_spills(void)
{
    struct kg_asm_file file;
    struct kg_asm_summary summary;
    read_sample(SAMPLE("small.sm_90a.cubin"), &file);
    const struct kg_asm_kernel *spilling = kg_asm_find(&file, "spilling");
    CHECK(kg_asm_summarise(spilling, KG_ASM_CUBIN, &summary));
    CHECK(summary.loop_spill_loads == 27 && summary.loop_spill_stores == 26);
    CHECK(summary.loop_spill_bytes == 212);
    CHECK(summary.other_spill_bytes == 256 + 260 - 212);
    CHECK(summary.flops == 40 * 2 * 32 && summary.global_bytes == 4 * 32);
    const struct kg_asm_kernel *none = kg_asm_find(&file, "table");
    CHECK(kg_asm_summarise(none, KG_ASM_CUBIN, &summary) && summary.main_loop == -1);
    CHECK(summary.other_spill_bytes == 0 && kg_mix_total(&summary.mix) == 96);
}

// tcgen05: the size of a product stands in a descriptor.
static void test_untold(void)
{
    struct kg_asm_kernel kernel = {.name = "k", .arch = "sm_100a", .sm = 100};
    struct kg_asm_summary summary;
    kernel.mix.count[KG_WORK_TENSOR] = 4;
    kernel.mix.flops = 10;
    CHECK(kg_asm_summarise(&kernel, KG_ASM_CUBIN, &summary));
    CHECK(summary.tensor && isnan(summary.flops));
}

static void test_devices(void)
{
    static const struct {
        const char *arch;
        int sm;
        enum kg_asm_format format;
        const char *device;
        bool runs;
    } cases[] = {
        {"sm_80", 80, KG_ASM_CUBIN, "a100", true},
        {"sm_80", 80, KG_ASM_CUBIN, "l4", true},
        {"sm_80", 80, KG_ASM_CUBIN, "h100", false},
        {"sm_89", 89, KG_ASM_CUBIN, "a100", false},
        {"sm_80", 80, KG_ASM_PTX, "h100", true},
        {"sm_90", 90, KG_ASM_PTX, "a100", false},
        {"sm_90a", 90, KG_ASM_PTX, "h200", true},
        {"sm_90a", 90, KG_ASM_PTX, "b200", false},
        {"sm_100f", 100, KG_ASM_PTX, "b200", true},
        {"sm_100f", 100, KG_ASM_PTX, "rtx5090", false},
        {"sm_120a", 120, KG_ASM_CUBIN, "b200", false},
        {"sm_75", 75, KG_ASM_CUBIN, "t4", true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct kg_asm_kernel kernel = {.name = "k", .arch = cases[c].arch, .sm = cases[c].sm};
        struct kg_assembly_launch launch = {.device = cases[c].device};
        struct kg_appraisal appraisal;
        enum kg_status status =
            kg_asm_appraise(&kernel, cases[c].format, &launch, &unfitted, &appraisal, &error);
        CHECK((status == KG_OK) == cases[c].runs);
        CHECK(status == KG_OK || status == KG_ERROR_ARGUMENT);
    }
}

// What is not said: a device, a block; and architectures that no table has.
static void test_assumptions(void)
{
    struct kg_asm_kernel kernel = {.name = "k", .arch = "sm_86", .sm = 86, .registers = 32};
    struct kg_assembly_launch launch = {.grid = {10}};
    struct kg_appraisal appraisal;
    CHECK(kg_asm_appraise(&kernel, KG_ASM_CUBIN, &launch, &unfitted, &appraisal, &error) == KG_OK);
    CHECK(appraisal.sm && !appraisal.gpu && !appraisal.has_model && appraisal.missing[0]);
    CHECK(appraisal.threads == 128 && appraisal.threads_from == KG_THREADS_ASSUMED);
    kernel.max_threads[0] = 256;
    kernel.max_threads[1] = 2;
    CHECK(kg_asm_appraise(&kernel, KG_ASM_CUBIN, &launch, &unfitted, &appraisal, &error) == KG_OK);
    CHECK(appraisal.threads == 512 && appraisal.threads_from == KG_THREADS_BOUNDED);
    kernel.arch = "sm_52";
    kernel.sm = 52;
    CHECK(kg_asm_appraise(&kernel, KG_ASM_PTX, &launch, &unfitted, &appraisal, &error) == KG_OK);
    CHECK(!appraisal.sm && appraisal.missing[0] && !appraisal.has_model);
    kernel.arch = "x86-64";
    CHECK(kg_asm_appraise(&kernel, KG_ASM_OBJECT, &launch, &unfitted, &appraisal, &error) ==
          KG_ERROR_ARGUMENT);
    launch.grid[0] = 0;
    CHECK(kg_asm_appraise(&kernel, KG_ASM_OBJECT, &launch, &unfitted, &appraisal, &error) == KG_OK);
}

static void end(void)
{
    kg_arena_free(&arena);
}

TEST_MAIN(test_main_loop, test_spills, test_untold, test_devices, test_assumptions, end)
