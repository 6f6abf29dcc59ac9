// Products of 8-bit integers on tensor cores by mma.sync, exactly, Ampere and later:
// kernels/cuda/contract_mma_i8.cuh. Function 0 reads by vectors sums that 32 bits hold, 2 by
// vectors longer ones, 1 takes any.

#include "gen/cuda/contract/cuda_contract.h"

#include "asm/gpu.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"

enum { INSTRUCTION = 16, REGISTER_FILE = 65536, MOST_REGISTERS = 255, MOST_BLOCKS = 1 << 30 };
enum { SHORT_WHOLE, ANY, LONG_WHOLE, FOLD };
// As the skeleton has them: steps that a sum of 32 bits holds, and what a line is longer by.
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
    return plan->set.rows * plan->set.columns >= 128 * 128 ? 8 : 4;
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    enum { WARP = 32 };
    return WARP * warps_of(plan);
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    return (int64_t)2 * (plan->set.rows + plan->set.columns) * (plan->set.depth + GAP);
}

static bool is_short(const struct kg_cuda_contract_plan *plan)
{
    int64_t tiles = kg_ceil_div(plan->depth, plan->set.depth);
    return kg_ceil_div(tiles, plan->set.split) * plan->set.depth <= SAFE_STEPS;
}

// Sums, and their upper halves where they are long; what is on its way to shared memory, what the
// instruction is given, and addresses.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 48, WORD = 4 };
    int threads = threads_of(plan), sums = plan->set.rows * plan->set.columns / threads;
    int held = (plan->set.rows + plan->set.columns) * plan->set.depth / WORD / threads;
    return (is_short(plan) ? 1 : 2) * sums + held + OTHERS;
}

static bool is_tile(int size)
{
    return size == 16 || size == 32 || size == 64 || size == 128;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int threads = threads_of(plan);
    int down = plan->set.rows >= 2 * INSTRUCTION ? 2 : 1, across = warps_of(plan) / down;
    if (plan->depth > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "this form counts to 2^30");
    if (!is_tile(plan->set.rows) || plan->set.columns % (INSTRUCTION * across) != 0)
        return kg_cuda_contract_refuse(reason, "each warp has 16 rows and 16 columns at least");
    if (plan->set.depth != 64 && plan->set.depth != 128)
        return kg_cuda_contract_refuse(reason, "a tile of this form is 64 or 128 bytes deep");
    int most = plan->set.registers > 0 ? plan->set.registers : MOST_REGISTERS;
    if (registers_of(plan) > most)
        return kg_cuda_contract_refuse(reason, "holds more than a thread has registers");
    if (plan->set.registers * threads > REGISTER_FILE)
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

// Not measured yet: the share of the peak that mma.sync of 16-bit operands reaches, less what
// loads that nothing hides take; bytes one by one as contract/mma copies them.
static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    const double share = 0.35, bytes = 12.5;
    return (struct kg_cuda_contract_cost_terms){
        .blocks =
            kg_cuda_contract_blocks(plan, threads_of(plan), registers_of(plan), shared_bytes(plan)),
        .multiply = kg_cuda_contract_stage(plan, rate(plan), share),
        .fill = is_whole(plan) ? 1 : bytes,
    };
}

static const struct {
    int rows, columns, depth;
} tiles[] = {{128, 128, 64}, {128, 64, 64}, {64, 64, 128}, {32, 64, 128}, {16, 64, 128}};
enum { TILES = sizeof tiles / sizeof *tiles, MOST_PIECES = 32 };

static void set_tile(struct kg_cuda_contract_plan *plan, int tile)
{
    plan->set.rows = tiles[tile].rows;
    plan->set.columns = tiles[tile].columns;
    plan->set.depth = tiles[tile].depth;
}

// Where no times are known: the largest tile of which there is one for each unit, else the
// smallest.
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

// What is expected to take least, of these tiles, in one piece or several, with as many registers
// as there are or with those that leave room for a second block.
static bool guess(struct kg_cuda_contract_plan *plan)
{
    enum { HALF_THE_REGISTERS = 128 };
    struct kg_cuda_contract_plan tried = *plan;
    double least = 0;
    for (int i = 0; i < TILES * 2; i++) {
        set_tile(&tried, i / 2);
        tried.set.registers = i % 2 ? HALF_THE_REGISTERS : 0;
        for (tried.set.split = 1; tried.set.split <= MOST_PIECES; tried.set.split *= 2) {
            double seconds =
                kg_cuda_contract_check(&tried, NULL) ? kg_cuda_contract_expect(&tried) : 0;
            if (seconds <= 0 || (least > 0 && seconds >= least))
                continue;
            least = seconds;
            plan->set = tried.set;
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
                plan->set.rows = rows;
                plan->set.columns = columns;
                plan->set.depth = depth;
                kg_cuda_contract_list_pieces(plan, MOST_PIECES, listing);
            }
}

// ---- Source and launches ----

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    static const char *const values[] = {
        [SHORT_WHOLE] = "true, false", [ANY] = "false, true", [LONG_WHOLE] = "true, true"};
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE, bool LONG");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(
        code, "kg_contract_mma_i8<WHOLE, LONG, kg_i8_tile<%d, %d, %d>, %d, %d>(job, scratch);",
        plan->set.rows, plan->set.columns, plan->set.depth, plan->set.split, plan->set.order);
    kg_code_close(code);
    for (int number = SHORT_WHOLE; number < FOLD; number++)
        kg_cuda_function(code, plan->group, plan->entry, number, threads_of(plan),
                         plan->set.registers, values[number]);
    kg_cuda_contract_emit_fold(code, plan, FOLD);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->set.split;
    struct kg_grid grid = {.blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
                           .threads = {threads_of(plan), 1, 1},
                           .shared = (int)shared_bytes(plan)};
    int whole = is_short(plan) ? SHORT_WHOLE : LONG_WHOLE;
    kg_cuda_contract_launch(plan, grid, is_whole(plan) ? whole : ANY, FOLD, grids);
}

static const struct kg_cuda_contract_form form = {
    .usual = {.mma = INSTRUCTION,
              .rows = 128,
              .columns = 128,
              .depth = 64,
              .stages = 1,
              .down = 1,
              .across = 1,
              .split = 1},
    .parameters =
        {
            {"tile_m", KG_CONTRACT_TILE(rows, 128, 64, 32, 16)},
            {"tile_n", KG_CONTRACT_TILE(columns, 128, 64, 32)},
            {"tile_k", KG_CONTRACT_TILE(depth, 64, 128)},
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

static const void *match(const struct kg_group *group, const struct kg_device_facts *facts,
                         struct kg_arena *arena, struct kg_text *reason)
{
    return kg_cuda_contract_match(&form, group, facts, arena, reason);
}

const struct kg_family kg_cuda_contract_mma_i8 = {
    .name = "contract/mma_i8",
    .summary = "matrix products of 8-bit integers on tensor cores, exactly",
    .match = match,
    .advised = kg_cuda_contract_advised,
    .space = kg_cuda_contract_space,
    .valid = kg_cuda_contract_valid,
    .guess = kg_cuda_contract_guess,
    .bound = kg_cuda_contract_bound,
    .expected = kg_cuda_contract_expected,
    .list = kg_cuda_contract_list,
    .emit = kg_cuda_contract_emit,
    .grids = kg_cuda_contract_grids,
};
