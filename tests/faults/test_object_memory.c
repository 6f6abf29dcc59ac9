// Every allocation of the reader of host objects, of the model and of what judges it fails once,
// and once with all that follow. Capstone's own are its own business: it is another library.

#include "asm/fit.h"
#include "asm/object.h"
#include "base/files.h"
#include "faults/fail_alloc.h"
#include "test.h"

#include <stdlib.h>

static void fail(bool all, long n)
{
    if (all)
        fail_alloc_from(n);
    else
        fail_alloc_at(n);
}

static void test_object(void)
{
    char *bytes;
    size_t length;
    struct kg_error error = {0};
    CHECK_STATUS(kg_files_read(KG_SOURCE_DIR "/tests/fuzz/corpus/object/sample-object", 1 << 20,
                               &bytes, &length, &error),
                 KG_OK, &error);
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_arena arena = {0};
            struct kg_asm_file file;
            error = (struct kg_error){0};
            fail(all, n);
            enum kg_status status = kg_object_read(bytes, length, NULL, &arena, &file, &error);
            fail_alloc_never();
            // libelf and the loader of libraries have errors of their own for it.
            CHECK(status == KG_OK || fail_alloc_happened());
            CHECK((status == KG_OK) == (file.kernel_count == 4));
            CHECK(status == KG_OK || error.text[0]);
            kg_arena_free(&arena);
        }
    free(bytes);
}

static void test_model(void)
{
    struct kg_arena arena = {0};
    struct kg_asm_kernel kernel = {.name = "one", .registers = 32};
    struct kg_asm_block block = {.stall_cycles = 4};
    const struct kg_step step = {.kind = KG_STEP_END};
    kg_flow_find(&step, 1, &arena, &kernel.flow);
    kernel.blocks = &block;
    struct kg_model_launch launch = {.grid = 1, .threads = 32};
    struct kg_model_problem problem = {.read_bytes = 1};
    struct kg_model model;
    struct kg_error error;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = kg_model_make(&kernel, KG_ASM_CUBIN, kg_gpu_find("h100"), &launch,
                                              &problem, NULL, &model, &error);
        fail_alloc_never();
        CHECK(status == (fail_alloc_happened() ? KG_ERROR_MEMORY : KG_OK));
    }
    // A refusal stays one, even without the memory to explain it.
    launch.threads = 2000;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        CHECK(kg_model_make(&kernel, KG_ASM_CUBIN, kg_gpu_find("h100"), &launch, &problem, NULL,
                            &model, &error) == KG_ERROR_UNSUPPORTED);
        fail_alloc_never();
    }
    kg_arena_free(&arena);
}

static void test_fit(void)
{
    struct kg_fit_sample samples[2] = {{.bound = 1, .measured = 2, .launches = 1},
                                       {.bound = 1, .measured = 3, .launches = 1}};
    const double scores[2] = {1, 2};
    struct kg_fit_report report;
    struct kg_error error;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = kg_fit_judge(samples, 2, scores, 0, &report, &error);
        fail_alloc_never();
        CHECK(status == (fail_alloc_happened() ? KG_ERROR_MEMORY : KG_OK));
        CHECK(report.problems == (status == KG_OK));
    }
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = kg_fit_holdout(samples, 2, &kg_model_prior, 1, 0, &report, &error);
        fail_alloc_never();
        CHECK(status == (fail_alloc_happened() ? KG_ERROR_MEMORY : KG_OK));
    }
}

TEST_MAIN(test_object, test_model, test_fit)
