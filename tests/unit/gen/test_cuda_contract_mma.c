// Products on tensor cores by mma.sync: what the rule chooses and refuses, what is launched and, if
// there is NVRTC, the compiled code for every generation: no spills, tensor instructions in the
// main loop, and asynchronous copies.

#include "asm/facts.h"
#include "asm/gpu.h"
#include "device/cuda/cuda_device.h"
#include "gen/built.h"
#include "gen/families.h"
#include "lang/lang.h"
#include "support/config_text.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

static const char definitions[] =
    "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f16 bf16 f32\n"
    "{\n    c[m, n] = sum(k) a[m, k] * b[k, n]\n}\n"
    "op nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) where T in f16 bf16 f32\n"
    "{\n    c[m, n] = sum(k) a[m, k] * b[n, k]\n}\n"
    "op tn(a: T[K, M], b: T[K, N]) -> (c: T[M, N]) where T in f16 bf16 f32\n"
    "{\n    c[m, n] = sum(k) a[k, m] * b[k, n]\n}\n"
    "op tt(a: T[K, M], b: T[N, K]) -> (c: T[M, N]) where T in f16 bf16 f32\n"
    "{\n    c[m, n] = sum(k) a[k, m] * b[n, k]\n}\n"
    "op rows(x: T[B, S, K], w: T[K, N]) -> (y: T[B, S, N]) where T in f16\n"
    "{\n    y[b, s, n] = relu(sum(k) x[b, s, k] * w[k, n])\n}\n"
    "op apart(x: T[B, K, S], w: T[K, N]) -> (y: T[B, S, N]) where T in f16\n"
    "{\n    y[b, s, n] = sum(k) x[b, k, s] * w[k, n]\n}\n"
    "op scaled(a: T[M, K], b: T[K, N], s: T[K]) -> (c: T[M, N]) where T in f16\n"
    "{\n    c[m, n] = sum(k) (a[m, k] * s[k]) * b[k, n]\n}\n"
    "op mixed(a: f16[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
    "{\n    c[m, n] = sum(k) a[m, k] * b[k, n]\n}\n";

static struct kg_device_facts facts;
static struct kg_error error;

static void describe(const char *isa)
{
    CHECK(kg_sm_find(isa) != NULL);
    facts = (struct kg_device_facts){.units = 132};
    snprintf(facts.isa, sizeof facts.isa, "%s", isa);
    kg_cuda_complete_facts(&facts);
}

static const struct kg_family *const family = &kg_cuda_contract_mma;

// Why the family refuses the statement or the values, "" if it does not. NULL: it has no such
// parameter or no such value.
static void check_reason(const char *op, const char *sizes, const char *values, const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_text reason = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_group group = {made.problem, 0, 1};
    const struct kg_match *match =
        made.status == KG_OK ? kg_match_find(family, &group, &facts, &reason) : NULL;
    bool valid = false;
    if (match) {
        struct kg_space space;
        struct kg_config config;
        family->space(match, &space);
        bool read = config_with(&space, values, &config);
        CHECK(read == (wanted != NULL));
        valid = read && family->valid(match, &config, &reason);
    }
    CHECK(match || wanted);
    CHECK(valid == (wanted && !*wanted));
    CHECK_TEXT(kg_text_string(&reason), wanted ? wanted : "");
    kg_text_free(&reason);
    unmake(&made);
}

static void test_reasons(void)
{
    static const char large[] = "M=4096 N=4096 K=4096 T=f16";
    static const char usual[] = "tile_m=128 tile_n=128 tile_k=32 stages=4";
    describe("sm_90a");
    check_reason("nn", large, usual, "");
    check_reason("nn", large, "tile_m=128 tile_n=128 tile_k=16 stages=4",
                 "a tile of this form is 64 to 256 bytes deep");
    check_reason("nn", large, "tile_m=8 tile_n=128 tile_k=32 stages=4", NULL);
    check_reason("nn", large, "tile_m=128 tile_n=128 tile_k=32 stages=2", NULL);
    check_reason("nn", large, "tile_m=256 tile_n=256 tile_k=32 stages=3",
                 "a thread would need more registers than it can have");
    check_reason("nn", large, "tile_m=256 tile_n=128 tile_k=128 stages=3",
                 "a block would need more shared memory than there is");
    check_reason("nn", large, "tile_m=128 tile_n=128 tile_k=32 stages=4 cluster_m=2", NULL);
    check_reason("nn", large, "tile_m=128 tile_n=128 tile_k=32 stages=4 split_k=1 swap=1", NULL);
    check_reason("nn", large, "tile_m=128 tile_n=128 tile_k=32 stages=3 split_k=0", NULL);
    check_reason("nn", "M=40 N=4096 K=4096 T=f16", usual, "half the tile covers the output");
    check_reason("nn", "M=4096 N=4096 K=96 T=f16", usual, "more stages than K tiles");
    check_reason("mixed", "M=4096 N=4096 K=4096", usual,
                 "both operands have to be arrays of f16, of bf16 or of f32");
    check_reason("scaled", "M=4096 N=4096 K=4096 T=f16", usual,
                 "both operands have to be arrays of f16, of bf16 or of f32");
    check_reason("nn", "M=4096 N=4096 K=4096 T=f32", usual, "");
    describe("sm_75");
    check_reason("nn", large, "tile_m=64 tile_n=64 tile_k=32 stages=3", "");
    check_reason("nn", "M=4096 N=4096 K=4096 T=bf16", usual,
                 "the device has no tensor cores for this type");
}

// The grids of a config.
static struct kg_grids launches(const char *op, const char *sizes, const char *values)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_grids grids = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_group group = {made.problem, 0, 1};
    const struct kg_match *match =
        made.status == KG_OK ? kg_match_find(family, &group, &facts, NULL) : NULL;
    CHECK(match != NULL);
    if (match) {
        struct kg_space space;
        struct kg_config config;
        family->space(match, &space);
        CHECK(config_with(&space, values, &config));
        family->grids(match, &config, &grids);
    }
    unmake(&made);
    return grids;
}

static void test_launches(void)
{
    describe("sm_90a");
    struct kg_grids grids =
        launches("nn", "M=4096 N=4000 K=4096 T=f16", "tile_m=128 tile_n=128 tile_k=32 stages=4");
    CHECK(grids.count == 2 && grids.grids[0].blocks[0] == 32 * 32);
    CHECK(grids.grids[0].threads[0] == 128 && grids.grids[0].shared == 4 * 256 * 32 * 2);
    CHECK(grids.grids[1].blocks[0] == 0 && grids.unaligned[1].blocks[0] == 32 * 32);
    // Lines that are not aligned to 16 bytes.
    grids =
        launches("nn", "M=4097 N=4100 K=4095 T=f16", "tile_m=128 tile_n=128 tile_k=32 stages=4");
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 33 * 33);
    // Split-K: a cluster for few slices, scratch for more or without clusters.
    static const char pieces[] = "tile_m=16 tile_n=64 tile_k=64 stages=8 split_k=4";
    grids = launches("nn", "M=16 N=4096 K=4096 T=f16", pieces);
    CHECK(grids.count == 2 && grids.grids[0].cluster == 4 && grids.scratch == 0);
    CHECK(grids.grids[0].blocks[0] == 64 * 4);
    describe("sm_89");
    grids = launches("nn", "M=16 N=4096 K=4096 T=f16", pieces);
    CHECK(grids.count == 3 && grids.grids[0].cluster <= 1 && grids.scratch == 4 * 16 * 4096 * 4);
    // Rows of two axes have one stride if they are adjacent in memory.
    grids = launches("rows", "B=4 S=512 N=4096 K=4096 T=f16", pieces);
    CHECK(grids.grids[0].blocks[0] > 0);
    grids = launches("apart", "B=4 S=512 N=4096 K=4096 T=f16", pieces);
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] > 0);
}

// ---- Compiled code ----

static bool is_checked(const struct kg_asm_kernel *kernel, bool copies)
{
    double tensor = 0, async = 0;
    for (int32_t i = 0; i < kernel->flow.loop_count; i++)
        if (kernel->loops[i].mix.count[KG_WORK_TENSOR] > tensor) {
            tensor = kernel->loops[i].mix.count[KG_WORK_TENSOR];
            async = kernel->loops[i].mix.count[KG_WORK_ASYNC_COPY];
        }
    return tensor > 0 && (async > 0) == copies && kernel->spill_store_bytes <= 0 &&
           kernel->spill_load_bytes <= 0 && kernel->stack_bytes <= 0;
}

static void check_kernels(const struct kg_binary *binary, const char *op, const char *words)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file = {0};
    CHECK_STATUS(kg_asm_read(binary->bytes, binary->length, &arena, &file, &error), KG_OK, &error);
    const bool copies = kg_sm_find(facts.isa)->sm >= 80;
    for (int i = 0; i < file.kernel_count; i++) {
        const struct kg_asm_kernel *kernel = &file.kernels[i];
        bool fine = strcmp(kernel->name, "kernel_2") == 0 || is_checked(kernel, copies);
        CHECK(fine);
        if (!fine)
            fprintf(stderr, "%s %s %s %s: %d registers, %lld bytes spilled\n", facts.isa, op, words,
                    kernel->name, kernel->registers, (long long)kernel->spill_store_bytes);
    }
    kg_arena_free(&arena);
}

// Returns false if there is no compiler.
static bool compile(struct kg_device *device, const char *op, const char *sizes)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_choice choice;
    struct kg_text source = {0}, words = {0};
    struct kg_binary binary = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    kg_choice_print(&choice, &words);
    CHECK(choice.matches[0]->family == family);
    CHECK(kg_choice_source(&choice, 0, "kernel", &source));
    struct kg_source unit = {.text = kg_text_string(&source), .entry = "kernel", .options = ""};
    enum kg_status status = device->backend->compile(device, &unit, 60, &binary, &error);
    if (status != KG_ERROR_MISSING) {
        CHECK_STATUS(status, KG_OK, &error);
        if (status == KG_OK)
            check_kernels(&binary, op, kg_text_string(&words));
    }
    kg_binary_free(&binary);
    kg_text_free(&source);
    kg_text_free(&words);
    unmake(&made);
    return status != KG_ERROR_MISSING;
}

static void test_compiled(void)
{
    static const struct {
        const char *isa, *op, *sizes;
    } cases[] = {
        {"sm_75", "nt", "M=512 N=512 K=512 T=f16"},  {"sm_80", "nn", "M=2048 N=2048 K=512 T=f16"},
        {"sm_89", "tn", "M=512 N=512 K=512 T=bf16"}, {"sm_90a", "tt", "M=16 N=4096 K=4096 T=f16"},
        {"sm_90a", "nt", "M=512 N=512 K=512 T=f32"}, {"sm_120", "nn", "M=64 N=4096 K=4096 T=f32"},
    };
    char home[] = "/tmp/kernelgen-mma-XXXXXX";
    CHECK(folder_make(home));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kg_device *device = NULL;
        describe(cases[i].isa);
        CHECK_STATUS(kg_device_open(cases[i].isa, home, 1, &device, &error), KG_OK, &error);
        bool compiled = device && compile(device, cases[i].op, cases[i].sizes);
        kg_device_close(device);
        if (!compiled) {
            printf("NVRTC is not installed: nothing was compiled\n");
            break;
        }
    }
    folder_remove(home);
}

TEST_MAIN(test_reasons, test_launches, test_compiled)
