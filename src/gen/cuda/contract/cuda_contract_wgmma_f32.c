// Products of f32 on the tensor cores of sm_90a: kernels/cuda/contract_wgmma_f32.cuh. Function 0
// copies both sides, each number as three of bf16, 1 multiplies, 2 folds pieces of the sum.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"

#include <math.h>
#include <string.h>

enum { PACK, MULTIPLY, FOLD, FUNCTIONS };
// As the skeleton has them.
enum { PARTS = 3, LINES = 64, STEPS = 32, BOX = 4096, COPIERS = 1024, THREADS = 256 };
enum { GROUP = 128, ROUND = 1024, LEAVING = 2560, MOVED_REGISTERS = 232 };
enum { REGISTER_FILE = 65536, MOST_REGISTERS = 255, MOST_BLOCKS = 1 << 30 };

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    return (plan->plain[0] && plan->plain[1] && plan->contract.type == KG_TYPE_F32 &&
            kg_cuda_contract_dtype(plan, 0) == KG_F32 &&
            kg_cuda_contract_dtype(plan, 1) == KG_F32) ||
           kg_cuda_contract_refuse(reason, "both operands have to be arrays of f32");
}

// ---- The shape of a block ----

static int consumers(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.rows / LINES;
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (consumers(plan) + 1);
}

// Registers that hold a thread's sums: those it keeps, and those of one or two stages.
static int sums_of(const struct kg_cuda_contract_plan *plan)
{
    int sums = plan->set.columns / 2;
    return sums <= 64 ? 3 * sums : 2 * sums;
}

static bool moves_registers(const struct kg_cuda_contract_plan *plan)
{
    return consumers(plan) == 2 && sums_of(plan) > 96;
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t stage = (int64_t)(plan->set.rows + plan->set.columns) / LINES * PARTS * BOX;
    return ROUND + plan->set.stages * (stage + 16) + consumers(plan) * 4 * LEAVING + 16;
}

static int blocks_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 56 };
    return moves_registers(plan)
               ? 1
               : kg_cuda_contract_blocks(plan, threads_of(plan), sums_of(plan) + OTHERS,
                                         shared_bytes(plan));
}

static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    int most = REGISTER_FILE / (threads_of(plan) * blocks_of(plan)) / 8 * 8;
    most = most < MOST_REGISTERS ? most : MOST_REGISTERS;
    bool less = plan->set.registers > 0 && plan->set.registers < most;
    return less ? plan->set.registers : most;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { OTHERS = 40 };
    if (plan->rows > INT32_MAX / 2 || plan->columns > INT32_MAX / 2 ||
        plan->depth > INT32_MAX / 2 || plan->batches > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "this form counts to 2^30");
    if (plan->set.rows != LINES && plan->set.rows != 2 * LINES)
        return kg_cuda_contract_refuse(reason, "tiles of f32 have 64 or 128 rows");
    if (plan->set.columns % LINES != 0 || plan->set.columns > 3 * LINES)
        return kg_cuda_contract_refuse(reason, "tiles of f32 have 64, 128 or 192 columns");
    if (plan->set.depth != STEPS)
        return kg_cuda_contract_refuse(reason, "tiles of f32 are 32 steps deep");
    if (plan->set.swap)
        return kg_cuda_contract_refuse(reason, "this form takes sides as they are");
    if (plan->set.stages < 3)
        return kg_cuda_contract_refuse(reason, "two tiles are multiplied while one is copied");
    if (shared_bytes(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (moves_registers(plan) && plan->set.registers > 0)
        return kg_cuda_contract_refuse(reason, "registers move between warps as it is");
    if ((moves_registers(plan) ? MOVED_REGISTERS : registers_of(plan)) < sums_of(plan) + OTHERS)
        return kg_cuda_contract_refuse(reason, "holds more than a thread may have registers");
    return true;
}

// ---- Source ----

static void open_function(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                          int number, int threads, int registers)
{
    kg_cuda_open_function(code, plan->group, plan->entry, number, threads, registers);
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "kg_start_next();");
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan multiply = *plan, other = *plan;
    int split = plan->set.split;
    other.waits = true;
    // Places that are waited for are held in registers. A job that is not pointed reads nothing
    // before it has sums.
    multiply.waits = kg_cuda_contract_epilogue_uses_position(plan);
    kg_cuda_wgmma_emit_instruction(code, plan);
    open_function(code, &other, PACK, THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_contract_parts_pack<%d>(job, kg_after(scratch));", split);
    kg_code_close(code);
    open_function(code, &multiply, MULTIPLY, threads_of(plan), registers_of(plan));
    kg_code_line(code, "using block = kg_parts_block<%d, %d, %d, %d, %d, %s, %s, %s_instruction>;",
                 plan->set.rows, plan->set.columns, plan->set.stages, split, plan->set.order,
                 plan->along[0] ? "true" : "false", plan->along[1] ? "true" : "false", plan->entry);
    kg_code_line(code, "kg_contract_parts<block>(job, scratch);");
    kg_code_close(code);
    if (split == 1)
        return;
    open_function(code, &other, FOLD, THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_contract_fold<%d>(job, kg_after(scratch));", split);
    kg_code_close(code);
}

// ---- Launches ----

// Boxes of 64 x 32 numbers in the copy of a side.
static int64_t boxes_of(const struct kg_cuda_contract_plan *plan, int side)
{
    return plan->batches * kg_ceil_div(side ? plan->columns : plan->rows, LINES) *
           kg_ceil_div(plan->depth, STEPS);
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

static struct kg_grid grid_of(int64_t blocks, int threads)
{
    return (struct kg_grid){.blocks = {at_most(blocks, MOST_BLOCKS), 1, 1},
                            .threads = {threads, 1, 1}};
}

// What comes after another of these functions waits for it by itself; of small problems, the first
// one too. Blocks that multiply stay and take one tile after the other.
static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t outputs = plan->batches * plan->rows * plan->columns, boxes[2], copiers = 0;
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    int64_t tasks = kg_cuda_contract_tiles(plan) * plan->set.split;
    *grids = (struct kg_grids){.count = plan->set.split > 1 ? FUNCTIONS : FOLD};
    for (int i = 0; i < grids->count; i++)
        grids->grids[i] = grid_of(0, 1);
    if (outputs == 0)
        return;
    for (int side = 0; side < 2; side++) {
        boxes[side] = boxes_of(plan, side);
        copiers += at_most(boxes[side], COPIERS);
    }
    grids->grids[PACK] = grid_of(copiers, THREADS);
    grids->grids[MULTIPLY] = grid_of(at_most(tasks, units * blocks_of(plan)), threads_of(plan));
    grids->grids[MULTIPLY].shared = (int)shared_bytes(plan);
    grids->grids[MULTIPLY].early = copiers > 0;
    if (plan->set.split > 1) {
        grids->grids[FOLD] = grid_of(kg_ceil_div(outputs, THREADS), THREADS);
        grids->grids[FOLD].early = true;
        grids->scratch = (size_t)kg_ceil_div(outputs * plan->set.split * 4, 256) * 256;
    }
    grids->scratch += (size_t)(boxes[0] + boxes[1]) * PARTS * BOX + 2 * COPIERS * 8;
    kg_cuda_start_early(plan->group, plan->facts, grids);
}

// ---- Time, and the config by rule ----

// Six products of bf16 for one of f32.
enum { PRODUCTS = 6 };

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[KG_BF16] / PRODUCTS;
}

// How much longer a stage takes whose sums are added to others, with two consumers and alone, as
// cubes of 2048 and 4096 do. Copies are half as large again as what is read for them.
static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    const double adding = plan->set.rows > LINES ? 1.03 : 1.1, larger = 1.5;
    double elements =
        (double)plan->batches * (double)plan->depth * ((double)plan->rows + (double)plan->columns);
    return (struct kg_cuda_contract_cost_terms){
        .blocks = blocks_of(plan),
        .multiply = kg_cuda_wgmma_stage(plan, rate(plan), PRODUCTS) * adding,
        .fill = larger,
        .copied = elements * 4 * (1 + larger) / 2,
    };
}

static const int stages[] = {8, 7, 6, 5, 4, 3};

// The most stages that there is room for.
static bool set_tile(struct kg_cuda_contract_plan *plan, int rows, int columns, int split)
{
    plan->set.rows = rows;
    plan->set.columns = columns;
    plan->set.depth = STEPS;
    plan->set.split = split;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        plan->set.stages = stages[i];
        if (kg_cuda_contract_check(plan, NULL))
            return true;
    }
    return false;
}

static const struct {
    int rows, columns;
} tiles[] = {{128, 128}, {128, 192}, {128, 64}, {64, 128}, {64, 64}};
enum { TILES = sizeof tiles / sizeof *tiles, MOST_PIECES = 128 };

// What is expected of the form that would be chosen otherwise; 0: it is made for this.
static double others_seconds(const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan other = *plan;
    other.form = &kg_cuda_contract_form_thin;
    other.set = other.form->usual;
    if (other.form->guess(&other))
        return 0;
    other = *plan;
    other.form = &kg_cuda_contract_form_mma;
    other.set = other.form->usual;
    if (!other.form->guess(&other))
        return INFINITY;
    const struct kg_cuda_contract_cost_terms its = other.form->cost_terms(&other);
    return kg_cuda_contract_seconds(&other, &its);
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan tried = *plan;
    if (rate(plan) == 0 || plan->facts->units == 0 || plan->facts->bandwidth == 0)
        return false;
    double least = others_seconds(plan);
    bool found = false;
    for (int i = 0; i < TILES; i++)
        for (int pieces = 1; pieces <= MOST_PIECES; pieces *= 2) {
            if (!set_tile(&tried, tiles[i].rows, tiles[i].columns, pieces))
                break;
            const struct kg_cuda_contract_cost_terms its = cost_terms(&tried);
            double seconds = kg_cuda_contract_seconds(&tried, &its);
            if (seconds < least) {
                least = seconds;
                plan->set = tried.set;
                found = true;
            }
        }
    return found;
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { FEWER = 2 };
    for (int i = 0; i < TILES; i++) {
        if (!set_tile(plan, tiles[i].rows, tiles[i].columns, 1))
            continue;
        int most = plan->set.stages;
        for (; plan->set.stages >= 3 && plan->set.stages > most - FEWER; plan->set.stages--)
            kg_cuda_contract_list_pieces(plan, MOST_PIECES, listing);
    }
}

static const struct kg_cuda_contract_form form = {
    .usual = {.mma = LINES,
              .rows = 128,
              .columns = 128,
              .depth = STEPS,
              .stages = 1,
              .down = 1,
              .across = 1,
              .split = 1},
    .parameters =
        {
            {"tile_m", KG_CONTRACT_TILE(rows, 128, 64)},
            {"tile_n", KG_CONTRACT_TILE(columns, 128, 64, 192)},
            {"stages", KG_CONTRACT_TILE(stages, 8, 3, 4, 5, 6, 7)},
            {KG_CONTRACT_SPLIT_K},
            {KG_CONTRACT_RASTER},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/wgmma.cuh",
                  "cuda/contract_eight.cuh", "cuda/contract_wgmma_f32.cuh"},
    .takes = takes,
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

const struct kg_family kg_cuda_contract_wgmma_f32 = {
    .name = "contract/wgmma_f32",
    .summary = "matrix products of f32 on the tensor cores of sm_90a, in parts of bf16",
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
