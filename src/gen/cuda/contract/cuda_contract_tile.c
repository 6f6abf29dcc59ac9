// Products in tiles without matrix units, kernels/cuda/contract_tile.cuh: takes any product.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/emit.h"

enum { ACCESS = 16, REGISTER_FILE = 65536, MOST_REGISTERS = 255, MOST_BLOCKS = 1 << 30 };
enum { LEAST_ROWS = 16, MOST_SHARED = 48 << 10 };

static int value_bytes(const struct kg_cuda_contract_plan *plan)
{
    return plan->contract.type == KG_TYPE_F32 ? 4 : 8;
}

// The larger the tile, the more sums a thread can have, and the less it reads for each.
static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    int area = plan->set.rows * plan->set.columns;
    return area * value_bytes(plan) >= 128 * 128 * 4 ? 256 : 128;
}

// Bytes of both halves; a line is longer by an access.
static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t lines = plan->set.rows + plan->set.columns;
    return 2 * plan->set.depth * (lines * value_bytes(plan) + 2 * ACCESS);
}

// Sums, a line of either side, what is under way, and addresses.
static int64_t registers_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t threads = threads_of(plan), words = value_bytes(plan) / 4;
    int64_t sums = plan->set.rows * plan->set.columns / threads;
    int64_t loaded = (int64_t)(plan->set.rows + plan->set.columns) * plan->set.depth / threads;
    return (sums + 16 + loaded) * words + 32;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int64_t area = (int64_t)plan->set.rows * plan->set.columns, threads = threads_of(plan);
    int64_t sums = area / threads;
    int64_t tall = sums >= 32 ? 8 : sums >= 8 ? 4 : 2, broad = sums / tall;
    if (plan->set.columns < LEAST_ROWS || sums < 4 || sums * value_bytes(plan) > 64 * 4 ||
        plan->set.rows / tall % 4 != 0 || plan->set.columns / broad % 8 != 0)
        return kg_cuda_contract_refuse(reason,
                                       "the tile cannot be dealt to the threads of a block");
    if (plan->set.depth < 8 || plan->set.depth > 32)
        return kg_cuda_contract_refuse(reason, "a tile of this form is 8 to 32 steps deep");
    if (plan->set.swap)
        return kg_cuda_contract_refuse(reason, "this form takes sides as they are");
    if (plan->set.stages != 1)
        return kg_cuda_contract_refuse(reason, "this form has one tile under way");
    if (shared_bytes(plan) > MOST_SHARED)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    int64_t most = plan->set.registers > 0 ? plan->set.registers : MOST_REGISTERS;
    if (registers_of(plan) > most)
        return kg_cuda_contract_refuse(reason, "holds more than a thread has registers");
    if (plan->set.registers * threads > REGISTER_FILE)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    return true;
}

// By rule: best first where there are enough of them.
static const struct {
    int rows, columns, depth;
} tiles[] = {{128, 128, 16}, {64, 128, 16}, {64, 64, 16}, {32, 64, 16}, {32, 32, 32}};
enum { TILES = sizeof tiles / sizeof *tiles };

// The largest tile of which there is one for each unit, else the smallest; where that leaves units
// without, pieces of the sum of no less than SHORTEST steps.
static bool guess(struct kg_cuda_contract_plan *plan)
{
    enum { SHORTEST = 256, MOST_PIECES = 32 };
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    for (int i = 0; i < TILES; i++) {
        plan->set.rows = tiles[i].rows;
        plan->set.columns = tiles[i].columns;
        plan->set.depth = tiles[i].depth;
        if (kg_cuda_contract_check(plan, NULL) && kg_cuda_contract_tiles(plan) >= units)
            break;
    }
    int64_t count = kg_cuda_contract_tiles(plan);
    while (count > 0 && plan->set.split < MOST_PIECES && plan->set.split * count <= units &&
           plan->depth / (2 * plan->set.split) >= SHORTEST)
        plan->set.split *= 2;
    return true;
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->flops[plan->contract.type];
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { MOST = 256, MOST_PIECES = 128 };
    for (int rows = LEAST_ROWS; rows <= MOST; rows *= 2)
        for (int columns = LEAST_ROWS; columns <= MOST; columns *= 2)
            for (int depth = 8; depth <= 32; depth *= 2) {
                plan->set.rows = rows;
                plan->set.columns = columns;
                plan->set.depth = depth;
                kg_cuda_contract_list_pieces(plan, MOST_PIECES, listing);
            }
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    return (struct kg_cuda_contract_cost_terms){
        .blocks = kg_cuda_contract_blocks(plan, threads_of(plan), (int)registers_of(plan),
                                          shared_bytes(plan)),
        .multiply = kg_cuda_contract_stage(plan, rate(plan), 0.6),
        .fill = 1,
    };
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "kg_contract_tile<WHOLE, %d, %d, %d, %d, %d, %d>(job, scratch);",
                 plan->set.rows, plan->set.columns, plan->set.depth, threads_of(plan),
                 plan->set.split, plan->set.order);
    kg_code_close(code);
    for (int number = 0; number < 2; number++)
        kg_cuda_function(code, plan->group, plan->entry, number, threads_of(plan),
                         plan->set.registers, number == 0 ? "true" : "false");
    kg_cuda_contract_emit_fold(code, plan, 2);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->set.split;
    struct kg_grid grid = {.blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
                           .threads = {threads_of(plan), 1, 1}};
    int whole = 0;
    for (int side = 0; side < 2; side++)
        if (plan->plain[side] && !kg_cuda_contract_is_whole(plan, side))
            whole = 1;
    kg_cuda_contract_launch(plan, grid, whole, 2, grids);
}

static const struct kg_cuda_contract_form form = {
    .usual = {.mma = 0,
              .rows = 128,
              .columns = 128,
              .depth = 16,
              .stages = 1,
              .down = 1,
              .across = 1,
              .split = 1},
    .parameters =
        {
            {"tile_m", KG_CONTRACT_TILE(rows, 128, 64, 32, 16, 256)},
            {"tile_n", KG_CONTRACT_TILE(columns, 128, 64, 32, 16, 256)},
            {"tile_k", KG_CONTRACT_TILE(depth, 16, 8, 32)},
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

static const void *match(const struct kg_group *group, const struct kg_device_facts *facts,
                         struct kg_arena *arena, struct kg_text *reason)
{
    return kg_cuda_contract_match(&form, group, facts, arena, reason);
}

const struct kg_family kg_cuda_contract_tile = {
    .name = "contract/tile",
    .summary = "matrix products in tiles, by multiplications and additions",
    .match = match,
    .advised = kg_cuda_contract_advised,
    .space = kg_cuda_contract_space,
    .valid = kg_cuda_contract_valid,
    .guess = kg_cuda_contract_guess,
    .bound = kg_cuda_contract_bound,
    .expected = kg_cuda_contract_expected,
    .orders_configs = true,
    .list = kg_cuda_contract_list,
    .emit = kg_cuda_contract_emit,
    .grids = kg_cuda_contract_grids,
};
