// The model on kernels made by hand, whose times can be worked out on paper.

#include "asm/model.h"
#include "test.h"

#include <math.h>

// Five blocks of one instruction: BEFORE, a loop, a branch, what the branch skips, the end.
struct sample {
    struct kg_arena arena;
    struct kg_asm_kernel kernel;
    struct kg_mix mixes[5]; // of the blocks
    struct kg_model_launch launch;
    struct kg_model_problem problem;
    struct kg_asm_count opcode;
};

static void make(struct sample *sample)
{
    *sample = (struct sample){.launch = {.grid = 132, .threads = 128}};
    static const struct kg_step steps[] = {
        {.kind = KG_STEP_NEXT},
        {.kind = KG_STEP_BRANCH, .target = 1},
        {.kind = KG_STEP_BRANCH, .target = 4},
        {.kind = KG_STEP_NEXT}, // conditional
        {.kind = KG_STEP_END},
    };
    struct kg_asm_kernel *kernel = &sample->kernel;
    *kernel = (struct kg_asm_kernel){.name = "sample", .registers = 64, .barriers = 1};
    kg_flow_find(steps, 5, &sample->arena, &kernel->flow);
    kernel->blocks = KG_NEW_ARRAY(&sample->arena, kernel->flow.block_count, struct kg_asm_block);
    kernel->loops = KG_NEW_ARRAY(&sample->arena, kernel->flow.loop_count, struct kg_asm_loop);
    kernel->opcodes = &sample->opcode;
}

enum { BEFORE, BODY, BETWEEN, SKIPPED, LAST };

static struct kg_model model_of(struct sample *sample, enum kg_asm_format format)
{
    struct kg_model model;
    struct kg_error error = {0};
    for (int b = 0; b < sample->kernel.flow.block_count; b++)
        CHECK(kg_asm_block_fill(&sample->kernel.blocks[b], &sample->mixes[b], &sample->arena));
    CHECK_STATUS(kg_model_make(&sample->kernel, format, kg_gpu_find("h100"), &sample->launch,
                               &sample->problem, NULL, &model, &error),
                 KG_OK, &error);
    CHECK(model.estimate >= model.bound);
    for (int t = 0; t < KG_TERM_COUNT; t++) {
        CHECK(t >= KG_TERM_INTEGER ? model.term[t] == 0 : model.term[t] <= model.bound);
        CHECK(model.expected[t] >= model.term[t]);
    }
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        CHECK(isfinite(model.feature[f]) && model.feature[f] >= 0);
    return model;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_flow(void)
{
    struct sample sample;
    make(&sample);
    CHECK(sample.kernel.flow.block_count == 5 && sample.kernel.flow.loop_count == 1);
    CHECK(!sample.kernel.flow.loops[0].conditional);
    CHECK(sample.kernel.flow.blocks[SKIPPED].conditional);
    // A loop that may be stepped over is not sure, though its only block runs on every trip of it.
    static const struct kg_step guarded[] = {
        {.kind = KG_STEP_BRANCH, .target = 2},
        {.kind = KG_STEP_BRANCH, .target = 1},
        {.kind = KG_STEP_END},
    };
    struct kg_flow flow;
    kg_flow_find(guarded, 3, &sample.arena, &flow);
    CHECK(flow.loop_count == 1 && flow.loops[0].conditional && !flow.blocks[1].conditional);
    kg_arena_free(&sample.arena);
}

static void test_pipes(void)
{
    struct sample sample;
    make(&sample);
    struct kg_asm_block *body = &sample.kernel.blocks[BODY];
    sample.kernel.loops[0] = (struct kg_asm_loop){.kind = KG_TRIPS_CONSTANT, .trips = 100};
    sample.mixes[BODY].count[KG_WORK_FMA] = 10;
    sample.mixes[BODY].count[KG_WORK_SPECIAL] = 3;
    body->stall_cycles = 50;
    // One block of four warps on each SM: 100 * 3 * 4 * 32 / 16 cycles; 100 * 10 * 4 * 32 / 128.
    struct kg_model model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.term[KG_TERM_SPECIAL], 2400 / 1.98e9));
    CHECK(near(model.term[KG_TERM_FMA], 1000 / 1.98e9));
    CHECK(near(model.term[KG_TERM_ISSUE], 1300 / 1.98e9));
    CHECK(near(model.term[KG_TERM_LATENCY], 5000 / 1.98e9));
    CHECK(model.limiter == KG_TERM_LATENCY && near(model.bound, 5000 / 1.98e9));
    // One block more gives some SM two of them, side by side: twice the work, the same stalls.
    sample.launch.grid = 133;
    model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.term[KG_TERM_SPECIAL], 4800 / 1.98e9));
    CHECK(near(model.term[KG_TERM_LATENCY], 5000 / 1.98e9));
    // With room for one only, stalls follow one another.
    sample.launch.dynamic_shared = 200 << 10;
    model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.term[KG_TERM_LATENCY], 10000 / 1.98e9));
    // Of PTX nothing of this counts.
    CHECK(near(model_of(&sample, KG_ASM_PTX).bound, 1 / 1.98e9));
    kg_arena_free(&sample.arena);
}

// What may not happen is not charged, but expected.
static void test_unsure(void)
{
    struct sample sample;
    make(&sample);
    sample.mixes[SKIPPED].count[KG_WORK_SPECIAL] = 1000;
    struct kg_model model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(model.term[KG_TERM_SPECIAL] == 0 && model.term[KG_TERM_ISSUE] == 0);
    CHECK(near(model.expected[KG_TERM_SPECIAL], 4000 / 1.98e9)); // half of it
    CHECK(near(model.feature[KG_FEATURE_EXPECTED], log(4000)));

    sample.mixes[SKIPPED] = (struct kg_mix){0};
    sample.mixes[LAST].count[KG_WORK_SPECIAL] = 10;
    sample.mixes[LAST].guarded[KG_WORK_SPECIAL] = 4;
    model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.term[KG_TERM_SPECIAL], 6 * 8 / 1.98e9));
    CHECK(near(model.term[KG_TERM_ISSUE], 10 / 1.98e9)); // issued all the same
    kg_arena_free(&sample.arena);
}

// A loop of unknown length runs as often as the definition's operations and functions demand, and
// conditional code more often than half the time if even that is too little.
static void test_definition(void)
{
    struct sample sample;
    make(&sample);
    const double threads = 132 * 128;
    sample.mixes[BODY].count[KG_WORK_SPECIAL] = 2;
    sample.mixes[BODY].count[KG_WORK_FMA] = 8;
    sample.mixes[BODY].flops = 16;
    double once = model_of(&sample, KG_ASM_CUBIN).expected[KG_TERM_SPECIAL];
    sample.problem.specials = 2 * 500 * threads;
    struct kg_model model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.expected[KG_TERM_SPECIAL], 500 * once));
    sample.problem.operations = 16 * 800 * threads;
    model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.expected[KG_TERM_SPECIAL], 800 * once));
    CHECK(model.term[KG_TERM_SPECIAL] < 2 * once); // the bound knows nothing of it
    sample.mixes[BODY] = (struct kg_mix){0};
    sample.mixes[SKIPPED].count[KG_WORK_SPECIAL] = 2;
    sample.problem = (struct kg_model_problem){.specials = 2 * threads};
    model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.expected[KG_TERM_SPECIAL], once));
    kg_arena_free(&sample.arena);
}

static void test_trips(void)
{
    struct sample sample;
    make(&sample);
    sample.mixes[BODY].count[KG_WORK_SPECIAL] = 1;
    struct kg_asm_loop *loop = &sample.kernel.loops[0];
    CHECK(near(model_of(&sample, KG_ASM_CUBIN).term[KG_TERM_SPECIAL], 8 / 1.98e9));
    *loop = (struct kg_asm_loop){.kind = KG_TRIPS_SYMBOL, .symbol = "parameter 3"};
    CHECK(near(model_of(&sample, KG_ASM_CUBIN).term[KG_TERM_SPECIAL], 8 / 1.98e9));
    struct kg_model_trips trips[] = {{"parameter 2", 7}, {"parameter 3", 64}};
    sample.problem.trips = trips;
    sample.problem.trip_count = 2;
    CHECK(near(model_of(&sample, KG_ASM_CUBIN).term[KG_TERM_SPECIAL], 64 * 8 / 1.98e9));
    // A loop of unknown length is expected to do the problem's work, and sure of nothing.
    *loop = (struct kg_asm_loop){.kind = KG_TRIPS_UNKNOWN};
    sample.mixes[BODY].count[KG_WORK_LOAD_GLOBAL] = 1;
    sample.mixes[BODY].bytes[KG_WORK_LOAD_GLOBAL] = 16;
    sample.problem.read_bytes = 50 * 16 * 128 * 132;
    CHECK(near(model_of(&sample, KG_ASM_CUBIN).term[KG_TERM_SPECIAL], 8 / 1.98e9));
    CHECK(near(model_of(&sample, KG_ASM_CUBIN).expected[KG_TERM_SPECIAL], 50 * 8 / 1.98e9));
    sample.mixes[BODY].tensor_flops = 4096;
    sample.problem.on_matrix_units = true;
    sample.problem.factors = KG_MATRIX_16;
    sample.problem.flops = 30.0 * 4096 * 4 * 132;
    CHECK(near(model_of(&sample, KG_ASM_CUBIN).expected[KG_TERM_SPECIAL], 30 * 8 / 1.98e9));
    *loop = (struct kg_asm_loop){.kind = KG_TRIPS_CONSTANT, .trips = 1e300};
    CHECK(isfinite(model_of(&sample, KG_ASM_CUBIN).estimate));
    kg_arena_free(&sample.arena);
}

static void test_tensor(void)
{
    struct sample sample;
    make(&sample);
    sample.mixes[BEFORE].count[KG_WORK_TENSOR] = 1;
    sample.mixes[BEFORE].tensor_flops = 4096;
    // Unknown instructions might be f8; HGMMA is f16. Four warps of 4096 FLOPs each.
    CHECK(near(model_of(&sample, KG_ASM_PTX).term[KG_TERM_TENSOR], 2 / 1.98e9));
    sample.kernel.opcode_count = 1;
    sample.opcode = (struct kg_asm_count){"HGMMA", 1};
    struct kg_model model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.term[KG_TERM_TENSOR], 4 / 1.98e9));
    CHECK(model.feature[KG_FEATURE_MATRIX] == 1);
    // tf32 looks the same and takes twice as long: expected, not certain.
    sample.problem.on_matrix_units = true;
    sample.problem.factors = KG_MATRIX_TF32;
    model = model_of(&sample, KG_ASM_CUBIN);
    CHECK(near(model.term[KG_TERM_TENSOR], 4 / 1.98e9));
    CHECK(near(model.expected[KG_TERM_TENSOR], 8 / 1.98e9));
    sample.mixes[BEFORE].guarded[KG_WORK_TENSOR] = 1;
    CHECK(model_of(&sample, KG_ASM_CUBIN).term[KG_TERM_TENSOR] == 0);
    kg_arena_free(&sample.arena);
}

// Measured on one H100 SXM with PyTorch 2.11: no bound may lie above any of them, and the bounds of
// large problems must come near.
static void test_measured(void)
{
    static const struct {
        double m, n, k, cold, warm; // microseconds
    } products[] = {
        {256, 256, 256, 6.0, 2.6},           {512, 512, 512, 7.1, 3.3},
        {1024, 1024, 1024, 9.2, 5.8},        {2048, 2048, 2048, 28.6, 24.8},
        {4096, 4096, 4096, 180.9, 179.9},    {8192, 8192, 8192, 1504.5, 1700.8},
        {1, 6144, 4096, 29.2, 20.5},         {16, 6144, 4096, 28.9, 20.7},
        {64, 6144, 4096, 28.9, 21.1},        {512, 6144, 4096, 42.8, 37.1},
        {2048, 6144, 4096, 142.9, 136.7},    {1, 4096, 4096, 21.1, 9.1},
        {64, 4096, 4096, 21.5, 8.8},         {512, 4096, 4096, 31.6, 25.1},
        {1, 28672, 4096, 91.0, 80.8},        {128, 28672, 4096, 94.4, 86.1},
        {2048, 28672, 4096, 660.8, 702.5},   {1, 4096, 14336, 56.6, 43.7},
        {512, 4096, 14336, 87.9, 81.0},      {2048, 4096, 14336, 305.0, 305.1},
        {4096, 57344, 8192, 5434.1, 5847.9}, {4096, 8192, 28672, 2745.9, 2766.1},
    };
    struct sample sample;
    make(&sample);
    double tightest = 0;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        double m = products[i].m, n = products[i].n, k = products[i].k;
        sample.problem = (struct kg_model_problem){
            .read_bytes = 2 * (m * k + k * n),
            .write_bytes = 2 * m * n,
            .flops = 2 * m * n * k,
            .on_matrix_units = true,
            .factors = KG_MATRIX_16,
        };
        double cold = model_of(&sample, KG_ASM_CUBIN).bound * 1e6;
        sample.problem.warm = true;
        double warm = model_of(&sample, KG_ASM_CUBIN).bound * 1e6;
        CHECK(cold <= products[i].cold);
        CHECK(warm <= products[i].warm);
        tightest = fmax(tightest, fmax(cold / products[i].cold, warm / products[i].warm));
        if (m * n * k >= 4096.0 * 4096 * 4096)
            CHECK(cold > 0.6 * products[i].cold);
    }
    printf("largest bound: %.2f of the measured time\n", tightest);
    // x fp16[65536, 4096], read and written: the best of the measured rates, 3.01 TB/s.
    double bytes = 2 * 65536.0 * 4096;
    sample.problem = (struct kg_model_problem){.read_bytes = bytes, .write_bytes = bytes};
    double bound = model_of(&sample, KG_ASM_CUBIN).bound;
    CHECK(bound <= 2 * bytes / 3.01e12 && bound > 0.8 * 2 * bytes / 3.01e12);
    kg_arena_free(&sample.arena);
}

// bench/model/pipes.cu on one H100 SXM: loops of 1000 trips whose instructions are known, the best
// of 40 runs. The rates in the table must neither exceed these times nor be far below them.
static void test_measured_pipes(void)
{
    static const struct {
        enum kg_work work;
        double count, others, tensor_flops; // a trip
        double measured;                    // microseconds
        enum kg_term limiter;
        double least; // share of the measured time that the bound reaches
    } rows[] = {
        {KG_WORK_FMA, 8, 3, 0, 186.6, KG_TERM_ISSUE, 0.95},
        {KG_WORK_HALF, 8, 3, 0, 200.2, KG_TERM_ISSUE, 0.88},
        {KG_WORK_DOUBLE, 4, 3, 0, 151.6, KG_TERM_REAL64, 0.85},
        {KG_WORK_INTEGER, 17, 2, 0, 364.2, KG_TERM_ISSUE, 0.84},
        {KG_WORK_SPECIAL, 8, 3, 0, 1044.2, KG_TERM_SPECIAL, 0.99},
        {KG_WORK_CONVERT, 4, 11, 0, 282.4, KG_TERM_ISSUE, 0.85},
        {KG_WORK_LOAD_SHARED, 16, 19, 0, 1046.8, KG_TERM_ACCESS, 0.98},
        // mma.sync: only wgmma reaches the peak.
        {KG_WORK_TENSOR, 8, 4, 32768, 897.5, KG_TERM_TENSOR, 0.57},
    };
    struct sample sample;
    make(&sample);
    sample.launch.grid = 4096;
    sample.kernel.loops[0] = (struct kg_asm_loop){.kind = KG_TRIPS_CONSTANT, .trips = 1000};
    sample.kernel.opcode_count = 1;
    sample.opcode = (struct kg_asm_count){"HMMA", 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kg_mix *mix = &sample.mixes[BODY];
        *mix = (struct kg_mix){.tensor_flops = rows[i].tensor_flops};
        mix->count[rows[i].work] = rows[i].count;
        mix->count[KG_WORK_MOVE] = rows[i].others;
        struct kg_model model = model_of(&sample, KG_ASM_CUBIN);
        CHECK(model.limiter == rows[i].limiter);
        CHECK(model.bound * 1e6 <= rows[i].measured);
        CHECK(model.bound * 1e6 >= rows[i].least * rows[i].measured);
    }
    kg_arena_free(&sample.arena);
}

static void test_refused(void)
{
    struct sample sample;
    make(&sample);
    struct kg_model model;
    struct kg_error error = {0};
    const struct kg_gpu *gpu = kg_gpu_find("h100");
    const struct kg_model_launch none = {.grid = 0, .threads = 128};
    CHECK_STATUS(kg_model_make(&sample.kernel, KG_ASM_CUBIN, gpu, &none, &sample.problem, NULL,
                               &model, &error),
                 KG_ERROR_ARGUMENT, &error);
    sample.problem.flops = NAN;
    CHECK_STATUS(kg_model_make(&sample.kernel, KG_ASM_CUBIN, gpu, &sample.launch, &sample.problem,
                               NULL, &model, &error),
                 KG_ERROR_ARGUMENT, &error);
    sample.problem.flops = 0;
    sample.launch.threads = 1024;
    sample.kernel.registers = 128;
    CHECK_STATUS(kg_model_make(&sample.kernel, KG_ASM_CUBIN, gpu, &sample.launch, &sample.problem,
                               NULL, &model, &error),
                 KG_ERROR_UNSUPPORTED, &error);
    CHECK_TEXT(error.text, "'sample' cannot be launched on sm_90: 1 block on an SM instead of 0: "
                           "registers of a thread at most 64 (now 128)");
    CHECK(model.occupancy.limiter == KG_LIMIT_REGISTERS && model.bound == 0);
    kg_arena_free(&sample.arena);
}

// Coefficients change the estimate and nothing else, and never push it below the bound.
static void test_coefficients(void)
{
    struct sample sample;
    make(&sample);
    sample.problem.read_bytes = 1e9;
    struct kg_model model = model_of(&sample, KG_ASM_CUBIN);
    struct kg_model_coefficients low = {.beta = {[KG_FEATURE_BASE] = -1}};
    CHECK(kg_model_estimate(model.bound, model.feature, 1, false, &low) == model.bound);
    struct kg_model_coefficients twice = {.beta = {[KG_FEATURE_BASE] = log(2)}};
    CHECK(near(kg_model_estimate(model.bound, model.feature, 1, false, &twice), 2 * model.bound));
    twice.overhead_warm = 1;
    CHECK(
        near(kg_model_estimate(model.bound, model.feature, 1, true, &twice), 2 * model.bound + 1));
    CHECK(kg_model_estimate(model.bound, model.feature, 1, false, &kg_model_prior) ==
          model.estimate);
    for (int t = 0; t < KG_TERM_COUNT; t++)
        CHECK(kg_term_name((enum kg_term)t));
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        CHECK(kg_feature_name((enum kg_feature)f));
    kg_arena_free(&sample.arena);
}

// Of equal launches the features are theirs; of unequal ones the longer counts for more, and what
// is expected adds up.
static void test_joined(void)
{
    double one[KG_FEATURE_COUNT] = {[KG_FEATURE_EXPECTED] = log(3), [KG_FEATURE_TAIL] = 0.8};
    double other[KG_FEATURE_COUNT] = {[KG_FEATURE_EXPECTED] = 0, [KG_FEATURE_TAIL] = 0.2};
    struct kg_model_joined joined = {0};
    kg_model_join(&joined, 2e-5, one);
    CHECK(joined.launches == 1 && near(joined.bound, 2e-5));
    CHECK(near(joined.feature[KG_FEATURE_EXPECTED], log(3)));
    kg_model_join(&joined, 2e-5, one);
    CHECK(joined.launches == 2 && near(joined.bound, 4e-5));
    CHECK(near(joined.feature[KG_FEATURE_EXPECTED], log(3)));
    CHECK(near(joined.feature[KG_FEATURE_TAIL], 0.8));
    kg_model_join(&joined, 4e-5, other); // 12e-5 and 4e-5 are expected
    CHECK(near(joined.feature[KG_FEATURE_EXPECTED], log(2)));
    CHECK(near(joined.feature[KG_FEATURE_TAIL], 0.75 * 0.8 + 0.25 * 0.2));
    struct kg_model_coefficients coefficients = {
        .beta = {[KG_FEATURE_EXPECTED] = 1}, .overhead_cold = 5, .overhead_warm = 2};
    CHECK(near(kg_model_estimate(joined.bound, joined.feature, 3, false, &coefficients),
               16e-5 + 5 + 2 + 2));
}

// 335.2 MB in 100 us on an H100, in two rounds of full SMs: what is derived, worked out on paper.
static void test_derived(void)
{
    const struct kg_gpu *gpu = kg_gpu_find("h100");
    const struct kg_model_launch launch = {.grid = 2112, .threads = 256, .cluster = 4};
    double bound = 1e-4, bytes = bound * gpu->bandwidth;
    double feature[KG_FEATURE_COUNT] = {[KG_FEATURE_BASE] = 1, [KG_FEATURE_NARROW] = 0.5};
    kg_model_derive(bound, &launch, gpu, feature);
    double accesses = bytes / (132 * 32 * 8); // of an SM
    CHECK(near(feature[KG_FEATURE_STARTS], log1p(2 * 8 * 50e-9 / bound)));
    CHECK(near(feature[KG_FEATURE_CLUSTERS], 0.75));
    CHECK(near(feature[KG_FEATURE_ACCESSES], log1p(accesses * 8 / gpu->clock / bound)));
    CHECK(near(feature[KG_FEATURE_FOOTPRINT], bytes / 2 / (bytes / 2 + (double)gpu->l2_bytes)));
    // 32 registers each: a quarter of them take four accesses of 8 bytes.
    CHECK(near(feature[KG_FEATURE_WAITS], log1p(accesses / 64 / 4 * 600e-9 / bound)));
    CHECK(feature[KG_FEATURE_BASE] == 1 && feature[KG_FEATURE_NARROW] == 0.5);
    // With half the warps each has room for eight: as much is on its way. Rounds double.
    feature[KG_FEATURE_IDLE] = 0.5;
    kg_model_derive(bound, &launch, gpu, feature);
    CHECK(near(feature[KG_FEATURE_WAITS], log1p(accesses / 64 / 4 * 600e-9 / bound)));
    CHECK(near(feature[KG_FEATURE_STARTS], log1p(4 * 8 * 50e-9 / bound)));
    // Of what is not known nothing follows.
    kg_model_derive(bound, &launch, NULL, feature);
    for (int f = KG_FEATURE_DERIVED; f < KG_FEATURE_COUNT; f++)
        CHECK(feature[f] == 0);
    kg_model_derive(bound, &(struct kg_model_launch){.grid = 0}, gpu, feature);
    CHECK(feature[KG_FEATURE_WAITS] == 0);
}

static void test_priors(void)
{
    const struct kg_model_coefficients *memory = kg_model_prior_of("pointwise");
    CHECK(memory != &kg_model_prior && memory->beta[KG_FEATURE_ACCESSES] > 0);
    CHECK(kg_model_prior_of("rowwise*3: threads=256") == memory);
    static const char *const others[] = {NULL,     "",    "contract",
                                         "reduce", "row", "rowwise: a=1; scan: b=2"};
    for (size_t o = 0; o < sizeof others / sizeof others[0]; o++)
        CHECK(kg_model_prior_of(others[o]) == &kg_model_prior);
}

TEST_MAIN(test_derived, test_priors, test_joined, test_flow, test_pipes, test_unsure,
          test_definition, test_trips, test_tensor, test_measured, test_measured_pipes,
          test_refused, test_coefficients)
