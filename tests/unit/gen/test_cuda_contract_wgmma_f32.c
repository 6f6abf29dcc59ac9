// f32 products by wgmma, as sums of bf16 terms: what is refused, what is launched, which problems
// the rule takes and, if there is NVRTC, the compiled code: no spills, wgmma in the main loop, no
// compiler advisories.

#include "wgmma_code.h"
#include "wgmma_products.h"

#include "lang/lang.h"

#define LARGE "M=4096 N=4096 K=4096 T=f32"
#define TILE "tile_m=128 tile_n=128 stages=4"

static void take_the_family(void)
{
    family = &kg_cuda_contract_wgmma_f32;
}

static void what_is_refused(void)
{
    static const struct {
        const char *op, *values, *reason;
    } cases[] = {
        {"nn", TILE, ""},
        {"tt", "tile_m=128 tile_n=192 stages=3", ""},
        {"nt", "tile_m=64 tile_n=64 stages=8 split_k=128 raster=1", ""},
        {"scaled", TILE, ""},
        {"nn", "tile_m=256 tile_n=64 stages=3", NULL},
        {"nn", "tile_m=128 tile_n=256 stages=3", NULL},
        {"nn", "tile_m=128 tile_n=96 stages=3", NULL},
        {"nn", "tile_m=128 tile_n=128 tile_k=64 stages=3", NULL},
        {"nn", TILE " cluster_m=2 cluster_n=1", NULL},
        {"nn", TILE " swap=1", NULL},
        {"nn", TILE " pingpong=1", NULL},
        {"nn", "tile_m=128 tile_n=128 stages=2", NULL},
        {"nn", "tile_m=128 tile_n=128 stages=5",
         "a block would need more shared memory than there is"},
        {"nn", TILE " maxnreg=144", "setmaxnreg already divides the registers among the warps"},
        {"nn", "tile_m=64 tile_n=128 stages=4 maxnreg=160",
         "a thread would need more registers than it can have"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_reason_on("sm_90a", definitions, cases[i].op, LARGE, cases[i].values,
                        cases[i].reason);
    check_reason_on("sm_90", definitions, "nn", LARGE, TILE, "wgmma is an instruction of sm_90a");
    check_reason_on("sm_90a", definitions, "nt", "M=1073741824 N=64 K=64 T=f32", TILE,
                    "sizes are larger than 2^30");
    check_reason_on("sm_90a", definitions, "nn", "M=64 N=64 K=128 T=f32", TILE " split_k=8",
                    "split_k is larger than the number of K tiles");
}

// ---- Launches ----

enum { PACK, MULTIPLY, FOLD };

static struct kg_grids launches(const char *op, const char *sizes, const char *values)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_grids grids = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        const struct kg_match *match = match_all(&made);
        struct kg_config config = configure(match, values);
        CHECK(is_valid(match, &config));
        family->grids(match, &config, &grids);
    }
    unmake(&made);
    return grids;
}

static void what_is_launched(void)
{
    enum { BOX = 3 * 4096, NOTES = 2 * 1024 * 8 };
    struct kg_grids grids = launches("nn", LARGE, TILE);
    CHECK(grids.count == 2 && grids.map_count == 0 && grids.alignment == 0);
    CHECK(grids.grids[PACK].blocks[0] == 2048 && grids.grids[PACK].threads[0] == 256);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 132 && grids.grids[MULTIPLY].threads[0] == 384);
    CHECK(grids.grids[MULTIPLY].shared <= facts.shared_bytes && grids.grids[MULTIPLY].early);
    CHECK(grids.scratch == (size_t)2 * 64 * 128 * BOX + NOTES);
    // At the edges whole boxes are packed.
    grids = launches("tn", "M=77 N=131 K=203 T=f32", TILE);
    CHECK(grids.grids[PACK].blocks[0] == (2 + 3) * 7 && grids.grids[MULTIPLY].blocks[0] == 2);
    CHECK(grids.scratch == (size_t)5 * 7 * BOX + NOTES);
    // Partial sums come before packed operands.
    grids =
        launches("batches", "B=3 M=65 N=64 K=100 T=f32", "tile_m=64 tile_n=64 stages=8 split_k=4");
    CHECK(grids.count == 3 && grids.grids[FOLD].blocks[0] == (3 * 65 * 64 + 255) / 256);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 3 * 2 * 4 && grids.grids[MULTIPLY].threads[0] == 256);
    CHECK(grids.scratch == (size_t)3 * 65 * 64 * 4 * 4 + (size_t)3 * (2 + 1) * 4 * BOX + NOTES);
    // An empty product.
    grids = launches("nn", "M=0 N=64 K=64 T=f32", TILE);
    CHECK(grids.grids[PACK].blocks[0] == 0 && grids.grids[MULTIPLY].blocks[0] == 0);
    grids = launches("nn", "M=200 N=64 K=0 T=f32", TILE);
    CHECK(grids.grids[PACK].blocks[0] == 0 && grids.grids[MULTIPLY].blocks[0] == 2);
}

// ---- The rule ----

static void check_rule(const char *op, const char *sizes, bool wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        const struct kg_match *match = match_all(&made);
        struct kg_text reason = {0};
        struct kg_choice choice;
        CHECK((match && kg_match_is_advised(match, &reason)) == wanted);
        kg_text_free(&reason);
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        CHECK(choice.count == 1 && is_valid(choice.matches[0], &choice.configs[0]));
        bool chosen = choice.matches[0]->family == family;
        CHECK(chosen == wanted);
        if (chosen != wanted)
            fprintf(stderr, "%s %s: %s\n", op, sizes, choice.matches[0]->family->name);
    }
    unmake(&made);
}

// Measured 1.07 times as fast as tiles of 64 rows.
static void two_consumers_for_cubes(void)
{
    static const char *const sizes[] = {"M=2048 N=2048 K=2048 T=f32", "M=4096 N=4096 K=4096 T=f32"};
    for (int i = 0; i < 2; i++) {
        struct made made = make_strided(definitions, "nt", sizes[i], NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        struct kg_config config;
        family->guess(match_all(&made), &config);
        CHECK(config.value[0] == 128 && config.value[1] == 128); // tile_m, tile_n
        unmake(&made);
    }
}

static void what_the_rule_takes(void)
{
    static const char *const ops[] = {"nn", "nt", "tn", "tt"};
    for (int i = 0; i < 4; i++) {
        check_rule(ops[i], "M=2048 N=2048 K=2048 T=f32", true);
        check_rule(ops[i], "M=8192 N=8192 K=8192 T=f32", true);
        check_rule(ops[i], "M=4097 N=4095 K=4100 T=f32", true);
        check_rule(ops[i], "M=4096 N=4096 K=4096 T=f64", false);
        check_rule(ops[i], "M=256 N=256 K=256 T=f32", true);
        check_rule(ops[i], "M=256 N=256 K=64 T=f32", false);
        check_rule(ops[i], "M=16 N=8192 K=8192 T=f32", false);
        check_rule(ops[i], "M=8192 N=1 K=8192 T=f32", false);
    }
    check_rule("linear", "B=4 M=1024 N=4096 K=4096 T=f32", true);
    check_rule("batches", "B=64 M=512 N=512 K=512 T=f32", true);
    check_rule("scaled", LARGE, true);
}

// ---- Compiled code ----

static const struct {
    const char *op, *sizes, *values;
    int functions, products; // products of terms
} ways[] = {
    {"nn", LARGE, TILE, 2, 6},
    {"nt", LARGE, "tile_m=128 tile_n=192 stages=3 raster=1", 2, 6},
    {"tt", LARGE, "tile_m=64 tile_n=128 stages=5", 2, 6},
    {"tn", "M=64 N=64 K=65536 T=f32", "tile_m=64 tile_n=64 stages=8 split_k=128", 3, 6},
    {"tn", "M=1024 N=1024 K=1024 T=f32", "tile_m=64 tile_n=64 stages=4 maxnreg=144", 2, 6},
    {"narrow", LARGE, "tile_m=64 tile_n=192 stages=4", 2, 6},
    {"linear", "B=4 M=1024 N=4096 K=4096 T=f32", TILE, 2, 6},
    {"batches", "B=4 M=1024 N=1024 K=1024 T=f32", "tile_m=128 tile_n=64 stages=5", 2, 6},
    {"scaled", LARGE, TILE, 2, 6},
    {"scaled", "M=4096 N=4096 K=4096 T=f16", TILE, 2, 5},
    {"scaled", "M=4096 N=4096 K=4096 T=bf16", "tile_m=64 tile_n=192 stages=4", 2, 3},
    {"mixed", LARGE, TILE, 2, 2},
};

static bool way_compiles(struct kg_device *device, size_t which)
{
    enum { STEPS = 2, MOST = 120 }; // of a stage
    // The accumulators of a stage are added once, whatever the number of products.
    const int products = ways[which].products;
    const double each = (double)MOST / products;
    const struct contents contents = {ways[which].functions, "kernel_1", "UBLKCP", products * STEPS,
                                      each};
    struct kg_binary binary = {0};
    enum kg_status status = compile(device, definitions, ways[which].op, ways[which].sizes,
                                    ways[which].values, &binary);
    if (status == KG_OK)
        check_contents(&binary, ways[which].values, &contents);
    kg_binary_free(&binary);
    return status != KG_ERROR_MISSING;
}

static void all_variants_compile(void)
{
    compile_cases(sizeof ways / sizeof *ways, way_compiles);
}

TEST_MAIN(take_the_family, what_is_refused, what_is_launched, what_the_rule_takes,
          two_consumers_for_cubes, all_variants_compile)
