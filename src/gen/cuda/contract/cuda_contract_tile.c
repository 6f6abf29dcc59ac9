// Products in tiles without tensor cores, kernels/cuda/contract_tile.cuh: takes any product.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/emit.h"

enum { ACCESS = 16, MAX_BLOCKS = 1 << 30 };
enum { MIN_ROWS = 16 };

static int value_bytes(const struct kg_cuda_contract_plan *plan)
{
    return plan->contract.type == KG_TYPE_F32 ? 4 : 8;
}

// Large tiles have more accumulators per thread, hence fewer loads for each.
static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    int area = plan->config.tile_m * plan->config.tile_n;
    return area * value_bytes(plan) >= 128 * 128 * 4 ? 256 : 128;
}

// Two stages; a line is padded by one access.
static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t lines = plan->config.tile_m + plan->config.tile_n;
    return 2 * plan->config.tile_k * (lines * value_bytes(plan) + 2 * ACCESS);
}

// Accumulators, a line of either operand, loads in flight, addresses.
static int64_t registers_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t threads = threads_of(plan), words = value_bytes(plan) / 4;
    int64_t sums = plan->config.tile_m * plan->config.tile_n / threads;
    int64_t loaded =
        (int64_t)(plan->config.tile_m + plan->config.tile_n) * plan->config.tile_k / threads;
    return (sums + 16 + loaded) * words + 32;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int64_t area = (int64_t)plan->config.tile_m * plan->config.tile_n, threads = threads_of(plan);
    int64_t sums = area / threads;
    int64_t tall = sums >= 32 ? 8 : sums >= 8 ? 4 : 2, broad = sums / tall;
    if (plan->config.tile_n < MIN_ROWS || sums < 4 || sums * value_bytes(plan) > 64 * 4 ||
        plan->config.tile_m / tall % 4 != 0 || plan->config.tile_n / broad % 8 != 0)
        return kg_cuda_contract_refuse(reason, "the threads of a block cannot divide such a tile");
    if (plan->config.tile_k < 8 || plan->config.tile_k > 32)
        return kg_cuda_contract_refuse(reason, "a tile of this form is 8 to 32 steps deep");
    if (plan->config.swap)
        return kg_cuda_contract_refuse(reason, "this form does not swap its operands");
    if (plan->config.stages != 1)
        return kg_cuda_contract_refuse(reason, "this form has one stage");
    if (shared_bytes(plan) > unit->static_shared)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    int64_t limit = plan->config.maxnreg > 0 ? plan->config.maxnreg : unit->thread_registers;
    if (registers_of(plan) > limit)
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
    if (plan->config.maxnreg * threads > unit->registers)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    return true;
}

// The tiles of the rule, best first where the output is large.
static const struct {
    int rows, columns, depth;
} tiles[] = {{128, 128, 16}, {64, 128, 16}, {64, 64, 16}, {32, 64, 16}, {32, 32, 32}};
enum { TILES = sizeof tiles / sizeof *tiles };

// The largest tile that gives every SM one, else the smallest; then split-K, in slices of at least
// SHORTEST K elements, while SMs are idle.
static bool guess(struct kg_cuda_contract_plan *plan)
{
    enum { SHORTEST = 256, MAX_SPLIT_K = 32 };
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    for (int i = 0; i < TILES; i++) {
        plan->config.tile_m = tiles[i].rows;
        plan->config.tile_n = tiles[i].columns;
        plan->config.tile_k = tiles[i].depth;
        if (kg_cuda_contract_check(plan, NULL) && kg_cuda_contract_tiles(plan) >= units)
            break;
    }
    int64_t count = kg_cuda_contract_tiles(plan);
    while (count > 0 && plan->config.split_k < MAX_SPLIT_K &&
           plan->config.split_k * count <= units &&
           plan->k / (2 * plan->config.split_k) >= SHORTEST)
        plan->config.split_k *= 2;
    return true;
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->flops[plan->contract.type];
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { MOST = 256, MAX_SPLIT_K = 128 };
    for (int rows = MIN_ROWS; rows <= MOST; rows *= 2)
        for (int columns = MIN_ROWS; columns <= MOST; columns *= 2)
            for (int depth = 8; depth <= 32; depth *= 2) {
                plan->config.tile_m = rows;
                plan->config.tile_n = columns;
                plan->config.tile_k = depth;
                kg_cuda_contract_list_splits(plan, MAX_SPLIT_K, listing);
            }
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    // Measured on an H100, for K tiles of 32: of elements whose places are computed, and of others.
    const double computed = 3.5e-6, loaded = 2.5e-6;
    bool is_plain = plan->plain[0] && plan->plain[1];
    return (struct kg_cuda_contract_cost_terms){
        .blocks_per_sm = kg_cuda_contract_blocks_per_sm(
            plan, threads_of(plan), (int)registers_of(plan), shared_bytes(plan)),
        .multiply_seconds = kg_cuda_contract_stage_seconds(plan, rate(plan), 0.6),
        .stage_latency = (is_plain ? loaded : computed) * plan->config.tile_k / 32,
        .copy_factor = 1,
    };
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "kg_contract_tile<WHOLE, %d, %d, %d, %d, %d, %d>(job, scratch);",
                 plan->config.tile_m, plan->config.tile_n, plan->config.tile_k, threads_of(plan),
                 plan->config.split_k, plan->config.raster);
    kg_code_close(code);
    for (int number = 0; number < 2; number++)
        kg_cuda_function(code, plan->group, plan->entry, number, threads_of(plan),
                         plan->config.maxnreg, number == 0 ? "true" : "false");
    kg_cuda_contract_emit_fold(code, plan, 2);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    struct kg_grid grid = {.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                           .threads = {threads_of(plan), 1, 1}};
    int whole = 0;
    for (int operand = 0; operand < 2; operand++)
        if (plan->plain[operand] && !kg_cuda_contract_is_whole(plan, operand))
            whole = 1;
    kg_cuda_contract_launch(plan, grid, whole, 2, grids);
}

static const struct kg_cuda_contract_form form = {
    .defaults = KG_CONTRACT_DEFAULTS(0, 16),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 128, 64, 32, 16, 256)},
            {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 64, 32, 16, 256)},
            {"tile_k", KG_CONTRACT_CHOICES(tile_k, 16, 8, 32)},
            {KG_CONTRACT_SPLIT_K},
            {KG_CONTRACT_RASTER},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/contract_tile.cuh"},
    .guess = guess,
    .valid = valid,
    .list = list,
    .cost_terms = cost_terms,
    .emit = emit,
    .grids = grids,
    .rate = rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_tile, form, "contract/tile",
                   "matrix products in tiles, by multiplications and additions", true, false);
