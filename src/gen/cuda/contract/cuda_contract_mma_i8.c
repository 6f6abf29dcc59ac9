// Products of 8-bit integers on tensor cores by mma.sync, exactly, Ampere and later:
// kernels/cuda/contract_mma_i8.cuh. Functions 0 and 2 read operands by vectors, 0 where 32-bit
// accumulators cannot overflow; function 1 takes any alignment and any K.

#include "gen/cuda/contract/cuda_contract.h"

#include "asm/gpu.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"

enum { INSTRUCTION = 16, MAX_BLOCKS = 1 << 30 };
enum { SHORT_WHOLE, ANY, LONG_WHOLE, FOLD };
// As in the skeleton: products that a 32-bit accumulator holds; bytes of padding of a line.
enum { SAFE_STEPS = 1 << 15, GAP = 16 };

static bool is_byte(enum kg_dtype dtype)
{
    return dtype == KG_I8 || dtype == KG_U8;
}

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    if (!plan->plain[0] || !plan->plain[1] || plan->contract.type != KG_TYPE_I64 ||
        !is_byte(kg_cuda_contract_dtype(plan, 0)) || !is_byte(kg_cuda_contract_dtype(plan, 1)))
        return kg_cuda_contract_refuse(reason, "both operands have to be arrays of i8 or u8");
    return (sm && sm->sm >= 80 && sm->matrix[KG_MATRIX_8] > 0) ||
           kg_cuda_contract_refuse(reason, "the device has no tensor cores for this type");
}

// ---- The shape of a block ----

static int warps_of(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_m * plan->config.tile_n >= 128 * 128 ? 8 : 4;
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    enum { WARP = 32 };
    return WARP * warps_of(plan);
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    return (int64_t)2 * (plan->config.tile_m + plan->config.tile_n) * (plan->config.tile_k + GAP);
}

static bool is_short(const struct kg_cuda_contract_plan *plan)
{
    int64_t tiles = kg_ceil_div(plan->k, plan->config.tile_k);
    return kg_ceil_div(tiles, plan->config.split_k) * plan->config.tile_k <= SAFE_STEPS;
}

// Accumulators, with upper halves where K is long; elements on their way to shared memory;
// fragments and addresses.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 48, WORD = 4 };
    int threads = threads_of(plan), sums = plan->config.tile_m * plan->config.tile_n / threads;
    int staged = (plan->config.tile_m + plan->config.tile_n) * plan->config.tile_k / WORD / threads;
    return (is_short(plan) ? 1 : 2) * sums + staged + OTHERS;
}

static bool is_tile(int size)
{
    return size == 16 || size == 32 || size == 64 || size == 128;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int threads = threads_of(plan);
    int down = plan->config.tile_m >= 2 * INSTRUCTION ? 2 : 1, across = warps_of(plan) / down;
    if (plan->k > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "K is larger than 2^30");
    if (!is_tile(plan->config.tile_m) || plan->config.tile_n % (INSTRUCTION * across) != 0)
        return kg_cuda_contract_refuse(reason, "each warp has 16 rows and 16 columns at least");
    if (plan->config.tile_k != 64 && plan->config.tile_k != 128)
        return kg_cuda_contract_refuse(reason, "a tile of this form is 64 or 128 bytes deep");
    int limit = plan->config.maxnreg > 0 ? plan->config.maxnreg : unit->thread_registers;
    if (registers_of(plan) > limit)
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
    if (plan->config.maxnreg * threads > unit->registers)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    return shared_bytes(plan) <= plan->facts->shared_bytes ||
           kg_cuda_contract_refuse(reason, "a block would need more shared memory than there is");
}

// ---- Time, and the config by rule ----

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[KG_I8];
}

static bool is_whole(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_contract_is_whole(plan, 0) && kg_cuda_contract_is_whole(plan, 1);
}

// Not measured yet: the share of the peak is that of mma.sync on 16-bit operands, reduced because
// one stage hides less latency; the factor for single bytes is that of contract/mma.
static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    const double share = 0.35, bytes = 12.5;
    return (struct kg_cuda_contract_cost_terms){
        .blocks_per_sm = kg_cuda_contract_blocks_per_sm(plan, threads_of(plan), registers_of(plan),
                                                        shared_bytes(plan)),
        .multiply_seconds = kg_cuda_contract_stage_seconds(plan, rate(plan), share),
        .copy_factor = is_whole(plan) ? 1 : bytes,
    };
}

static const struct {
    int rows, columns, depth;
} tiles[] = {{128, 128, 64}, {128, 64, 64}, {64, 64, 128}, {32, 64, 128}, {16, 64, 128}};
enum { TILES = sizeof tiles / sizeof *tiles, MAX_SPLIT_K = 32 };

static void set_tile(struct kg_cuda_contract_plan *plan, int tile)
{
    plan->config.tile_m = tiles[tile].rows;
    plan->config.tile_n = tiles[tile].columns;
    plan->config.tile_k = tiles[tile].depth;
}

// Where no times are known: the largest tile that gives every SM one, else the smallest.
static bool guess_by_size(struct kg_cuda_contract_plan *plan)
{
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    for (int i = 0; i < TILES; i++) {
        set_tile(plan, i);
        if (kg_cuda_contract_check(plan, NULL) && kg_cuda_contract_tiles(plan) >= units)
            break;
    }
    return kg_cuda_contract_check(plan, NULL);
}

// The config with the shortest expected time, among these tiles, powers of two of split-K, and no
// register limit or the one that leaves room for a second block.
static bool guess(struct kg_cuda_contract_plan *plan)
{
    enum { HALF_THE_REGISTERS = 128 };
    struct kg_cuda_contract_plan tried = *plan;
    double least = 0;
    for (int i = 0; i < TILES * 2; i++) {
        set_tile(&tried, i / 2);
        tried.config.maxnreg = i % 2 ? HALF_THE_REGISTERS : 0;
        for (tried.config.split_k = 1; tried.config.split_k <= MAX_SPLIT_K;
             tried.config.split_k *= 2) {
            double seconds =
                kg_cuda_contract_check(&tried, NULL) ? kg_cuda_contract_expect(&tried) : 0;
            if (seconds <= 0 || (least > 0 && seconds >= least))
                continue;
            least = seconds;
            plan->config = tried.config;
        }
    }
    return least > 0 || guess_by_size(plan);
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { LEAST = INSTRUCTION, MOST = 128 };
    for (int rows = LEAST; rows <= MOST; rows *= 2)
        for (int columns = 2 * LEAST; columns <= MOST; columns *= 2)
            for (int depth = 64; depth <= 128; depth *= 2) {
                plan->config.tile_m = rows;
                plan->config.tile_n = columns;
                plan->config.tile_k = depth;
                kg_cuda_contract_list_splits(plan, MAX_SPLIT_K, listing);
            }
}

// ---- Source and launches ----

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    static const char *const values[] = {
        [SHORT_WHOLE] = "true, false", [ANY] = "false, true", [LONG_WHOLE] = "true, true"};
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE, bool LONG");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code,
                 "kg_contract_mma_i8<WHOLE, LONG, kg_i8_tile<%d, %d, %d>, %d, %d>(job, scratch);",
                 plan->config.tile_m, plan->config.tile_n, plan->config.tile_k,
                 plan->config.split_k, plan->config.raster);
    kg_code_close(code);
    for (int number = SHORT_WHOLE; number < FOLD; number++)
        kg_cuda_function(code, plan->group, plan->entry, number, threads_of(plan),
                         plan->config.maxnreg, values[number]);
    kg_cuda_contract_emit_fold(code, plan, FOLD);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    struct kg_grid grid = {.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                           .threads = {threads_of(plan), 1, 1},
                           .shared = (int)shared_bytes(plan)};
    int whole = is_short(plan) ? SHORT_WHOLE : LONG_WHOLE;
    kg_cuda_contract_launch(plan, grid, is_whole(plan) ? whole : ANY, FOLD, grids);
}

static const struct kg_cuda_contract_form form = {
    .defaults = KG_CONTRACT_DEFAULTS(INSTRUCTION, 64),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 128, 64, 32, 16)},
            {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 64, 32)},
            {"tile_k", KG_CONTRACT_CHOICES(tile_k, 64, 128)},
            {KG_CONTRACT_SPLIT_K},
            {KG_CONTRACT_RASTER},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/tensor.cuh", "cuda/contract_mma_i8.cuh"},
    .takes = takes,
    .guess = guess,
    .valid = valid,
    .list = list,
    .cost_terms = cost_terms,
    .emit = emit,
    .grids = grids,
    .rate = rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_mma_i8, form, "contract/mma_i8",
                   "matrix products of 8-bit integers on tensor cores, exactly", false, false);
