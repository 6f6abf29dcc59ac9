// Products with packed 4-bit weights: what is recognised, what is launched, what the rule chooses
// and, if there is NVRTC, the compiled code: few registers, and a lean main loop.

#include "wgmma_code.h"

#include "asm/gpu.h"
#include "lang/lang.h"

#define TYPES "where T in f16 bf16\n"
#define PLACE(k, n)                                                                                \
    n "%16/2*128 + " k "%8/2*32 + " k "%64/16*8 + " k "%2*4 + " k "%16/8*2 + " n "%2"
#define PANELS(place)                                                                              \
    "(x: T[M, K], w: u4[ceil(K/64), ceil(N/16), 1024], s: T[ceil(K/128), N]) -> (y: T[M, "         \
    "N]) " TYPES "{ y[m, n] = sum(k) x[m, k] * ((w[k/64, n/16, " place "] - 8) * s[k/128, n]) }\n"
#define SPELLED PANELS(PLACE("k", "n"))
// Panels in another order, and a column from elsewhere.
#define OTHER PANELS("n%8*128 + k%8/2*32 + k%64/16*8 + k%2*4 + k%16/8*2 + n%16/8")
#define SHIFTED PANELS(PLACE("k", "m"))
// Weights that are rounded once they are scaled.
#define ROUNDED(name, dtype, run, integer)                                                         \
    "op " name "(x: T[M, K], w: packed " dtype "[K, N], s: T[ceil(K/" run "), N])\n"               \
    " -> (y: T[M, N]) " TYPES "{ y[m, n] = sum(k) x[m, k] * cast(T, (" integer ") * s[k/" run      \
    ", n]) }\n"
static const char definitions[] =
    "op runs(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/128), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/128, n]) }\n"
    "op column(x: T[M, K], w: packed i4[K, N], s: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n]) }\n"
    "op zeros(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/32), N], z: u4[ceil(K/32), N])\n"
    " -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/32, n]) * s[k/32, n]) }\n"
    "op apart(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/128), N], z: u4[ceil(K/64), N])\n"
    " -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/64, n]) * s[k/128, n]) }\n"
    "op level(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/128), N], z: u4[N]) -> (y: T[M, "
    "N]) " TYPES "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[n]) * s[k/128, n]) }\n"
    "op long_runs(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/96), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/96, n]) }\n"
    "op brief(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/8), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/8, n]) }\n"
    "op left(x: T[M, K], w: packed u4[K, N], s: T[N]) -> (y: T[N, M]) " TYPES
    "{ y[n, m] = sum(k) ((w[k, n] - 8) * s[n]) * x[m, k] }\n"
    "op experts(x: T[B, M, K], e: i32[B], w: packed u4[E, K, N], s: T[E, ceil(K/128), N])\n"
    " -> (y: T[B, M, N]) " TYPES
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - 8) * s[e[b], k/128, n]) }\n"
    "op turned(x: T[M, K], w: packed u4[N, K], s: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - 8) * s[n]) }\n"
    "op heads(x: T[M, K], w: packed u4[K, N], s: T[N]) -> (y: T[M, N/64, 64]) param N = 4096 " TYPES
    "{ y[m, h, d] = sum(k) x[m, k] * ((w[k, 64*h + d] - 8) * s[64*h + d]) }\n"
    "op plain(x: T[M, K], w: u4[K, N], s: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[n]) }\n"
    "op spelled" SPELLED "op other" OTHER
    "op shifted" SHIFTED ROUNDED("middle", "u4", "128", "w[k, n] - 8")
        ROUNDED("whole", "u4", "16", "w[k, n]") ROUNDED("signs", "i4", "32", "w[k, n]")
            ROUNDED("off_middle", "u4", "64", "w[k, n] - 7");

#define LARGE "M=8 N=4096 K=4096 T=f16"
#define TILE "tile_m=8 tile_n=32 strips=2 warps=4 stages=4"

static void what_is_taken(void)
{
    static const char no_weights[] =
        "one operand has to be an array of f16 or bf16, the other one of integers of 4 or 8 "
        "bits, less an integer and times scales, or of 8-bit floats";
    static const struct {
        const char *isa, *op, *sizes, *values, *reason;
    } ops[] = {
        {"sm_80", "runs", LARGE, TILE, ""},
        {"sm_80", "zeros", "M=8 N=4096 K=4096 T=bf16", TILE, ""},
        {"sm_90a", "column", LARGE, TILE, ""},
        {"sm_90a", "left", LARGE, TILE " swap=1", ""},
        {"sm_90a", "left", LARGE, TILE, "this form has one order of operands"},
        {"sm_90a", "experts", LARGE " B=3 E=9", TILE, ""},
        {"sm_90a", "spelled", LARGE, TILE, ""},
        {"sm_75", "runs", LARGE, TILE, "this form needs tensor cores of sm_80 or newer"},
        {"sm_80", "plain", LARGE, TILE, "the weights are not packed"},
        {"sm_80", "brief", LARGE, TILE, "scales and zero points change within 16 steps of the sum"},
        // Other formulas than those of panels, other axes, and columns of several axes.
        {"sm_80", "other", LARGE, TILE, no_weights},
        {"sm_80", "shifted", LARGE, TILE, no_weights},
        {"sm_80", "turned", LARGE, TILE, no_weights},
        {"sm_80", "heads", "M=8 K=4096 T=f16", TILE, no_weights},
        {"sm_80", "runs", LARGE, "tile_m=16 tile_n=32 strips=2 warps=4 stages=4",
         "half the tile covers the output"},
        {"sm_80", "runs", "M=8 N=4096 K=100 T=f16", "tile_m=8 tile_n=32 strips=2 warps=16 stages=4",
         "more warps than panels"},
        {"sm_80", "runs", LARGE, "tile_m=8 tile_n=256 strips=1 warps=2 stages=4",
         "a block has one to 16 warps"},
        {"sm_80", "runs", LARGE, "tile_m=8 tile_n=112 strips=7 warps=4 stages=4", ""},
        {"sm_80", "runs", LARGE, "tile_m=8 tile_n=64 strips=3 warps=4 stages=4",
         "warps would have parts of strips"},
        {"sm_80", "runs", "M=8 N=100 K=4096 T=f16", "tile_m=8 tile_n=112 strips=7 warps=4 stages=4",
         ""},
        {"sm_80", "runs", "M=8 N=100 K=4096 T=f16", "tile_m=8 tile_n=128 strips=2 warps=4 stages=4",
         "a smaller tile covers the output"},
        {"sm_80", "runs", LARGE, "tile_m=8 tile_n=64 strips=4 warps=16 stages=8",
         "a block would need more shared memory than there is"},
    };
    family = &kg_cuda_contract_packed;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        check_reason_on(ops[i].isa, definitions, ops[i].op, ops[i].sizes, ops[i].values,
                        ops[i].reason);
    family = &kg_cuda_contract_scaled;
    check_reason_on("sm_80", definitions, "runs", LARGE,
                    "tile_m=8 tile_n=128 tile_k=64 words=2 warps=4", "packed weights");
    family = &kg_cuda_contract_scaled_wgmma;
    check_reason_on("sm_90a", definitions, "runs", "M=64 N=4096 K=4096 T=f16",
                    "tile_m=64 tile_n=256 stages=8", "");
}

// ---- Launches ----

static struct kg_grids launches(const char *op, const char *sizes, const char *values)
{
    return launches_with(definitions, op, sizes, values);
}

static void what_is_launched(void)
{
    enum { WHOLE, ANY, WORDS, FOLD };
    enum { PACK, WGMMA, OTHERS, WEIGHTS = 2, SCALES, ZEROS };
    family = &kg_cuda_contract_packed;
    struct kg_grids grids = launches("runs", LARGE, TILE);
    CHECK(grids.count == 3 && grids.grids[WHOLE].blocks[0] == 128 && grids.scratch == 0);
    CHECK(grids.grids[WHOLE].threads[0] == 128 && grids.unaligned[ANY].blocks[0] == 128);
    // Of each warp four stages: two panels with their scales and zero points, eight rows, a
    // barrier.
    CHECK(grids.grids[WHOLE].shared == 4 * 4 * (2 * (512 + 48) + 8 * 128 + 8));
    // Rows, scales or zero points that cannot be copied 16 bytes at a time.
    static const char *const odd[] = {"M=8 N=4096 K=4100 T=f16", "M=8 N=4100 K=4096 T=f16"};
    for (int i = 0; i < 2; i++) {
        grids = launches("runs", odd[i], TILE);
        CHECK(grids.grids[WHOLE].blocks[0] == 0 && grids.grids[ANY].blocks[0] == 0);
        CHECK(grids.grids[WORDS].blocks[0] == 128 + i);
    }
    // Nor scales that stay the same for several runs of zero points: a run does not move them.
    grids = launches("apart", LARGE, TILE);
    CHECK(grids.grids[WHOLE].blocks[0] == 0 && grids.grids[WORDS].blocks[0] == 128);
    grids = launches("level", LARGE, TILE);
    CHECK(grids.grids[WHOLE].blocks[0] == 128 && grids.grids[WORDS].blocks[0] == 0);
    // K slices, which the last function adds up.
    grids = launches("column", LARGE, TILE " split_k=4");
    CHECK(grids.count == 4 && grids.grids[WHOLE].blocks[0] == 128 * 4);
    CHECK(grids.grids[FOLD].blocks[0] == 128 && grids.scratch == (size_t)4 * 8 * 4096 * 4);
    // Panels of 64 K indices lie side by side.
    family = &kg_cuda_contract_scaled_wgmma;
    grids = launches("zeros", "M=200 N=4100 K=4100 T=f16", "tile_m=64 tile_n=256 stages=8");
    CHECK(grids.grids[WGMMA].blocks[0] == 0 && grids.grids[OTHERS].blocks[0] > 0); // rows
    grids = launches("zeros", "M=200 N=4128 K=4104 T=f16", "tile_m=64 tile_n=256 stages=8");
    const struct kg_map *map = &grids.maps[WEIGHTS];
    CHECK(grids.grids[WGMMA].blocks[0] == 132 && grids.grids[PACK].blocks[0] == 0);
    CHECK(map->rank == 4 && map->shape[0] == 256 && map->shape[1] == 258 && map->shape[2] == 65);
    CHECK(map->stride[1] == 512 && map->stride[2] == 258 * 512 && map->swizzle == 0);
    CHECK(map->box[0] == 256 && map->box[1] == 16 && map->box[2] == 1);
    // 64 K indices may begin in one run of 96 and end in the next one.
    grids = launches("long_runs", "M=200 N=4128 K=4104 T=f16", "tile_m=64 tile_n=256 stages=8");
    CHECK(grids.maps[SCALES].box[1] == 2);
    // A warp copies zero points whose lines TMA cannot load; nothing is packed.
    grids =
        launches("zeros", "M=200 N=4104 K=4096 T=f16", "tile_m=64 tile_n=256 stages=8 split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 68 && grids.grids[PACK].blocks[0] == 0);
    CHECK(map->rank == 4 && grids.maps[ZEROS].rank == 0 && grids.scratch == 0);
    // Half of the columns: boxes of eight panels, and of 128 scales.
    grids =
        launches("zeros", "M=200 N=4128 K=4104 T=f16", "tile_m=256 tile_n=128 stages=5 split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 33 && map->box[1] == 8 &&
          grids.maps[SCALES].box[0] == 128);
    grids = launches("experts", "B=6 M=20 N=4096 K=4096 E=9 T=f16",
                     "tile_m=24 tile_n=256 stages=8 split_k=1");
    CHECK(map->shape[3] == 9 && map->stride[3] == 4096 * 4096 / 2);
}

// ---- The rule ----

static void check_rule(const char *op, const char *sizes, const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        struct kg_choice choice;
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        CHECK(choice.count == 1 && is_valid(choice.matches[0], &choice.configs[0]));
        CHECK_TEXT(choice.matches[0]->family->name, wanted);
    }
    unmake(&made);
}

static struct kg_device_facts facts_of(const char *name)
{
    const struct kg_gpu *gpu = kg_gpu_find(name);
    struct kg_device_facts there = facts;
    there.units = gpu->sms;
    there.clock = gpu->clock;
    there.bandwidth = gpu->bandwidth;
    there.cache[2] = there.cache[3] = gpu->l2_bytes;
    return there;
}

// The rule's value of a parameter, on an H100.
static int64_t value_of_rule(const char *op, const char *sizes, const char *parameter)
{
    const struct kg_device_facts h100 = facts_of("h100");
    struct made made = make_strided(definitions, op, sizes, NULL);
    int64_t value = 0;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        struct kg_choice choice;
        struct kg_space space;
        kg_choice_guess(made.problem, &h100, &kg_target_cuda, &choice);
        choice.matches[0]->family->space(choice.matches[0], &space);
        for (int i = 0; i < space.count; i++)
            if (strcmp(space.parameters[i].name, parameter) == 0)
                value = choice.configs[0].value[i];
    }
    unmake(&made);
    return value;
}

// The time that contract/scaled_wgmma expects of a config, on an H200.
static double seconds_of(const char *op, const char *sizes, const char *values)
{
    const struct kg_device_facts h200 = facts_of("h200");
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_text reason = {0};
    double seconds = 0;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    family = &kg_cuda_contract_scaled_wgmma;
    const struct kg_match *match = made.status == KG_OK ? match_on(&made, &h200, &reason) : NULL;
    CHECK(match != NULL);
    if (match) {
        struct kg_config config = configure(match, values);
        seconds = family->expected(match, &config);
    }
    kg_text_free(&reason);
    unmake(&made);
    return seconds;
}

// On an H100 four warps take 23.1 us for these 8 rows, two 25.8. The model had them equal: three
// blocks of two warps leave two of a unit's four schedulers with one warp, where others have two.
// Tiles of 80 columns, which divide these evenly among the units, have eight warps.
static void warps_fill_schedulers(void)
{
    CHECK(value_of_rule("runs", "M=8 N=10240 K=8192 T=f16", "warps") == 8);
    CHECK(value_of_rule("runs", "M=1 N=10240 K=8192 T=f16", "warps") == 8);
}

// 132 units divide tiles of 128 columns unevenly: 224 of them, or 80. With 112 columns there are
// 256 tiles, with 80 there are 128.
static void tiles_fill_units(void)
{
    CHECK(value_of_rule("runs", "M=16 N=28672 K=4096 T=f16", "tile_n") % 112 == 0);
    CHECK(value_of_rule("runs", "M=8 N=10240 K=8192 T=f16", "tile_n") == 80);
}

// A ring of three stages is full of what consumers hold, and they wait: 1012x7032x1168 in tiles of
// 256 x 128 took 40.7 us on an H200, in tiles of 160 x 128 with six stages 32.5.
static void few_stages_take_longer(void)
{
    static const char sizes[] = "M=1012 N=7032 K=1168 T=f16";
    double few = seconds_of("whole", sizes, "tile_m=256 tile_n=128 stages=3 split_k=1 buffered=1");
    double more = seconds_of("whole", sizes, "tile_m=256 tile_n=128 stages=4 split_k=1 buffered=1");
    CHECK(more > 20e-6 && few > 1.15 * more);
}

// Tiles of 64 columns convert half of the weights for as many sums. They pay where one wave of them
// is all: 256x4096x4096 took 17.8 us on an H200 in 128 x 64, and 20.6 in 64 x 128.
static void narrow_tiles_are_one_wave(void)
{
    static const char sizes[] = "M=256 N=4096 K=4096 T=f16";
    CHECK(value_of_rule("runs", sizes, "tile_n") == 64);
    CHECK(value_of_rule("runs", sizes, "tile_m") == 128);
    CHECK(value_of_rule("runs", "M=1024 N=4096 K=4096 T=f16", "tile_n") > 64);
}

static void check_number(const char *op, const char *sizes, const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_text text = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        struct kg_choice choice;
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        CHECK(kg_choice_source(&choice, 0, "kernel", &text));
        CHECK(strstr(kg_text_string(&text), wanted));
    }
    kg_text_free(&text);
    unmake(&made);
}

// One instruction makes numbers of bf16 and scales them, where their zero point is a power of two.
static void what_numbers_are(void)
{
    static const char *const sizes[] = {"M=8 N=4096 K=4096 T=bf16", "M=256 N=4096 K=4096 T=bf16"};
    for (int i = 0; i < 2; i++) {
        check_number("middle", sizes[i], "kg_rounded_at_once<false, 8>, ");
        check_number("whole", sizes[i], "kg_rounded_at_once<false, 0>, ");
        check_number("signs", sizes[i], "kg_rounded_at_once<true, 8>, ");
        check_number("off_middle", sizes[i],
                     "kg_rounded<kg_scaled_bf16<false, true>, true, false>");
        check_number("runs", sizes[i], "kg_scaled_bf16<false, true>, ");
    }
    check_number("middle", "M=8 N=4096 K=4096 T=f16",
                 "kg_rounded<kg_scaled_f16<false, true>, true");
    // The function that takes any alignment has no panels.
    check_number("middle", sizes[1], "kg_scaled_tile<kg_rounded<kg_scaled_bf16<false, true>, true");
}

static void what_the_rule_takes(void)
{
    check_rule("runs", "M=1 N=4096 K=4096 T=f16", "contract/packed");
    check_rule("runs", "M=8 N=57344 K=8192 T=bf16", "contract/packed");
    check_rule("zeros", "M=16 N=4104 K=4096 T=f16", "contract/packed");
    check_rule("spelled", "M=1 N=4096 K=4096 T=f16", "contract/packed");
    check_rule("experts", "B=8 M=1 N=4096 K=4096 E=8 T=f16", "contract/packed");
    check_rule("runs", "M=128 N=4096 K=4096 T=f16", "contract/scaled_wgmma");
    check_rule("runs", "M=89 N=5248 K=1312 T=f16", "contract/scaled_wgmma"); // by little
    check_rule("column", "M=4096 N=4096 K=4096 T=bf16", "contract/scaled_wgmma");
    check_rule("left", "M=512 N=4096 K=4096 T=bf16", "contract/scaled_wgmma");
    check_rule("experts", "B=8 M=128 N=4096 K=4096 E=8 T=f16", "contract/scaled_wgmma");
}

// ---- Compiled code ----

static const struct {
    const char *op, *sizes, *values;
    int registers;
    double most; // instructions for a product, conversion and all that a stage needs included
} loops[] = {
    {"runs", "M=1 N=4096 K=4096 T=f16", "tile_m=1 tile_n=32 strips=2 warps=4 stages=4", 72, 21},
    {"runs", "M=1 N=4096 K=4096 T=bf16", "tile_m=1 tile_n=32 strips=2 warps=4 stages=4", 72, 24},
    {"zeros", "M=8 N=4096 K=4096 T=f16", "tile_m=8 tile_n=32 strips=2 warps=4 stages=4", 80, 35},
    {"column", "M=16 N=4096 K=4096 T=bf16", "tile_m=16 tile_n=64 strips=4 warps=4 stages=4", 96,
     10.5},
    {"runs", "M=16 N=28672 K=4096 T=f16", "tile_m=16 tile_n=112 strips=7 warps=4 stages=3", 168,
     9.2},
    {"experts", "B=8 M=4 N=4096 K=4096 E=8 T=f16", "tile_m=4 tile_n=64 strips=4 warps=4 stages=4",
     96, 18},
    {"middle", "M=16 N=28672 K=4096 T=bf16", "tile_m=16 tile_n=112 strips=7 warps=4 stages=3", 168,
     8.6},
};

static bool loop_compiles(struct kg_device *device, size_t which)
{
    struct kg_binary binary = {0};
    family = &kg_cuda_contract_packed;
    enum kg_status status = compile(device, definitions, loops[which].op, loops[which].sizes,
                                    loops[which].values, &binary);
    if (status != KG_OK)
        return status != KG_ERROR_MISSING;
    struct kg_arena arena = {0};
    struct kg_asm_file code = {0};
    CHECK_STATUS(kg_asm_read(binary.bytes, binary.length, &arena, &code, &error), KG_OK, &error);
    CHECK(code.kernel_count == 3);
    const struct kg_asm_kernel *kernel = kg_asm_find(&code, "kernel_0");
    CHECK(kernel && count_of(kernel, "HMMA") > 0 && count_of(kernel, "LDGSTS") > 0);
    bool has_bulks = strstr(loops[which].values, "tile_m=16");
    CHECK(kernel && (count_of(kernel, "UBLKCP") > 0) == has_bulks);
    if (kernel) {
        double all, products = products_of(kernel, &all);
        bool lean = all <= loops[which].most * products &&
                    kernel->registers <= loops[which].registers && is_clean(kernel);
        CHECK(lean || !is_current);
        if (!lean)
            fprintf(stderr, "%s %s: %.0f products in %.0f instructions, %d registers\n",
                    loops[which].op, loops[which].values, products, all, kernel->registers);
    }
    kg_arena_free(&arena);
    kg_binary_free(&binary);
    return true;
}

static void loops_compile(void)
{
    compile_cases(sizeof loops / sizeof *loops, loop_compiles);
}

TEST_MAIN(what_is_taken, what_is_launched, what_the_rule_takes, warps_fill_schedulers,
          tiles_fill_units, few_stages_take_longer, narrow_tiles_are_one_wave, what_numbers_are,
          loops_compile)
