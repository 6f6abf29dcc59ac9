// Products of few rows, kernels/cuda/contract_thin.cuh: bound by reading side B, which is side A of
// the product where `swap` says so.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/emit.h"

enum { ACCESS = 16, WARP = 32, REGISTER_FILE = 65536, MOST_REGISTERS = 255, MOST_BLOCKS = 1 << 30 };
enum { MOST_ROWS = 8, MOST_SHARED = 48 << 10, ALONG_THREADS = 256, SHORTEST = 4 };

// How the threads of a block stand: a line of them reads neighbours in memory.
struct shape {
    bool along;  // neighbours in memory are neighbours along the sum
    int vector;  // elements of an access
    int line;    // threads of a line
    int threads; // of a block
    int mine;    // columns of a thread where `along`, else 1
    int groups;  // of threads that have some of the same sums, as they meet in shared memory
};

static int big_side(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.swap ? 0 : 1;
}

static struct shape shape_of(const struct kg_cuda_contract_plan *plan)
{
    int side = big_side(plan), bits = kg_dtypes[kg_cuda_contract_dtype(plan, side)].bits;
    struct shape shape = {.along = plan->along[side], .vector = ACCESS / (bits / 8)};
    shape.line = (shape.along ? plan->set.depth : plan->set.columns) / shape.vector;
    shape.threads = shape.along ? ALONG_THREADS : shape.line * plan->set.depth;
    shape.mine = shape.along ? plan->set.columns * shape.line / ALONG_THREADS : 1;
    shape.groups = (shape.along ? shape.line : shape.threads) / WARP;
    shape.groups = shape.groups > 1 ? shape.groups : 1;
    return shape;
}

static int value_bytes(const struct kg_cuda_contract_plan *plan)
{
    return plan->contract.type == KG_TYPE_F32 ? 4 : 8;
}

static bool check_shape(const struct kg_cuda_contract_plan *plan, const struct shape *shape,
                        struct kg_text *reason)
{
    if (shape->along && (shape->line < SHORTEST || shape->line > ALONG_THREADS || shape->mine < 1))
        return kg_cuda_contract_refuse(reason,
                                       "such tiles cannot be dealt to the threads of a block");
    if (!shape->along && (shape->line < 2 || shape->line > WARP || shape->threads < 4 * WARP ||
                          shape->threads > 1024))
        return kg_cuda_contract_refuse(reason, "such tiles take too few threads, or too many");
    if (shape->mine > 8 || shape->mine * plan->set.stages > 16)
        return kg_cuda_contract_refuse(reason, "a thread would read more at once than it can hold");
    return true;
}

// Sums, what is under way, a row of side A, addresses.
static int registers_of(const struct kg_cuda_contract_plan *plan, const struct shape *shape)
{
    int words = value_bytes(plan) / 4, columns = shape->along ? shape->mine : shape->vector;
    return plan->set.rows * columns * words + 4 * shape->mine * plan->set.stages +
           (shape->along ? shape->vector : 1) * words + 2 * shape->mine + 24;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    struct shape shape = shape_of(plan);
    if (plan->set.order != 0)
        return kg_cuda_contract_refuse(reason, "the order of tiles of few rows is always the same");
    if (kg_cuda_contract_m_after_swap(plan) > 2 * plan->set.rows)
        return kg_cuda_contract_refuse(reason, "the big side would be read more than twice");
    if (plan->set.rows > 1 && plan->set.rows / 2 >= kg_cuda_contract_m_after_swap(plan))
        return kg_cuda_contract_refuse(reason, "half of the rows would do");
    if (!check_shape(plan, &shape, reason))
        return false;
    int most = plan->set.registers > 0 ? plan->set.registers : REGISTER_FILE / shape.threads;
    if (shape.groups * plan->set.rows * plan->set.columns * value_bytes(plan) > MOST_SHARED)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (registers_of(plan, &shape) > (most < MOST_REGISTERS ? most : MOST_REGISTERS))
        return kg_cuda_contract_refuse(reason, "holds more than a thread has registers");
    if (plan->set.registers * shape.threads > REGISTER_FILE)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    return true;
}

// Lines along the sum as long as a block, or as the sum; lines across it as long as leaves every
// unit a block. Then as many vectors under way as make 128 bytes a thread, and pieces of the sum
// where units would have nothing to do.
static void guess_shape(struct kg_cuda_contract_plan *plan)
{
    enum { UNDER_WAY = 8, COMPUTED = 16 };
    // What is computed is read element by element, by neighbouring threads.
    int shortest = plan->plain[big_side(plan)] ? SHORTEST : COMPUTED;
    int threads = plan->set.rows > 2 ? 256 : 512; // sums take registers
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    struct shape shape = shape_of(plan);
    int line = shape.along ? ALONG_THREADS : WARP, mine = shape.along ? 4 : 1;
    for (;; line /= 2) {
        plan->set.depth = shape.along ? line * shape.vector : threads / line;
        plan->set.columns = shape.along ? mine * ALONG_THREADS / line : line * shape.vector;
        bool last = shape.along ? line == shortest || line / 2 * shape.vector < plan->depth
                                : line == shortest || kg_cuda_contract_tiles(plan) >= units;
        if (last)
            break;
    }
    for (; mine > 1 && kg_cuda_contract_tiles(plan) < 2 * units; mine /= 2)
        plan->set.columns /= 2;
    plan->set.stages = UNDER_WAY / mine;
    while (plan->set.stages > 1 && plan->set.stages / 2 * plan->set.depth >= plan->depth)
        plan->set.stages /= 2;
    int64_t tiles = kg_cuda_contract_tiles(plan);
    while (tiles > 0 && plan->set.split < 64 && plan->set.split * tiles < units &&
           2 * plan->set.split * plan->set.depth <= plan->depth)
        plan->set.split *= 2;
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    plan->set.swap = plan->rows > MOST_ROWS;
    if (kg_cuda_contract_m_after_swap(plan) > MOST_ROWS)
        return false;
    plan->set.rows = (int)kg_power_of_two(kg_cuda_contract_m_after_swap(plan));
    guess_shape(plan);
    while (plan->set.stages > 1 && !kg_cuda_contract_check(plan, NULL))
        plan->set.stages /= 2;
    while (plan->set.columns > 1 && !kg_cuda_contract_check(plan, NULL)) {
        plan->set.columns /= 2;
    }
    return kg_cuda_contract_check(plan, NULL);
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->flops[plan->contract.type];
}

// With all rows in one tile, or in two.
static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { MOST_COLUMNS = 512, MOST_DEPTH = 4096, MOST_PIECES = 64, MOST_STAGES = 8 };
    for (int way = 0; way < 4; way++) {
        plan->set.swap = way & 1;
        int64_t rows = kg_power_of_two(kg_cuda_contract_m_after_swap(plan)) >> (way >> 1);
        if (rows < 1 || rows > MOST_ROWS)
            continue;
        plan->set.rows = (int)rows;
        for (int columns = 1; columns <= MOST_COLUMNS; columns *= 2)
            for (int depth = 8; depth <= MOST_DEPTH; depth *= 2)
                for (int stages = 1; stages <= MOST_STAGES; stages *= 2) {
                    plan->set.columns = columns;
                    plan->set.depth = depth;
                    plan->set.stages = stages;
                    kg_cuda_contract_list_pieces(plan, MOST_PIECES, listing);
                }
    }
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    struct shape shape = shape_of(plan);
    int64_t shared = (int64_t)shape.groups * plan->set.rows * plan->set.columns * value_bytes(plan);
    return (struct kg_cuda_contract_cost_terms){
        .blocks = kg_cuda_contract_blocks(plan, shape.threads, registers_of(plan, &shape), shared),
        .multiply = kg_cuda_contract_stage(plan, rate(plan), 0.3),
        .fill = 1,
    };
}

// Whether side A can be read in vectors, but need not be where side B is.
static bool has_vectors(const struct kg_cuda_contract_plan *plan)
{
    int small = 1 - big_side(plan);
    return shape_of(plan).along && plan->plain[small] && plan->along[small];
}

// Functions 0: both sides in vectors; 1: neither; 2: side B alone, where that is not as 0.
static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    static const char *const cases[] = {"true, true", "false, false", "false, true"};
    struct shape shape = shape_of(plan);
    int count = has_vectors(plan) ? 3 : 2;
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE_A, bool WHOLE_B");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "kg_contract_thin<WHOLE_A, WHOLE_B, %d, %d, %d, %d, %d, %d>(job, scratch);",
                 plan->set.rows, plan->set.columns, plan->set.depth, plan->set.stages,
                 shape.threads, plan->set.split);
    kg_code_close(code);
    for (int number = 0; number < count; number++)
        kg_cuda_function(code, plan->group, plan->entry, number, shape.threads, plan->set.registers,
                         cases[number]);
    kg_cuda_contract_emit_fold(code, plan, count);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int big = big_side(plan), count = has_vectors(plan) ? 3 : 2, whole = 0;
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->set.split;
    struct kg_grid grid = {.blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
                           .threads = {shape_of(plan).threads, 1, 1}};
    if (plan->plain[big] && !kg_cuda_contract_is_whole(plan, big))
        whole = 1;
    else if (has_vectors(plan) && !kg_cuda_contract_is_whole(plan, 1 - big))
        whole = 2;
    kg_cuda_contract_launch(plan, grid, whole, count, grids);
}

const struct kg_cuda_contract_form kg_cuda_contract_form_thin = {
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
            {"tile_m", KG_CONTRACT_TILE(rows, 1, 2, 4, 8)},
            {"tile_n", KG_CONTRACT_TILE(columns, 128, 64, 32, 16, 256, 8, 4, 2, 1, 512)},
            {"tile_k", KG_CONTRACT_TILE(depth, 16, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096)},
            {"stages", KG_CONTRACT_TILE(stages, 1, 2, 4, 8)},
            {KG_CONTRACT_SPLIT_K},
            {"swap", KG_CONTRACT_TILE(swap, 0, 1)},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/contract_thin.cuh"},
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
    return kg_cuda_contract_match(&kg_cuda_contract_form_thin, group, facts, arena, reason);
}

const struct kg_family kg_cuda_contract_thin = {
    .name = "contract/thin",
    .summary = "matrix products of few rows, bound by reading the larger operand",
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
