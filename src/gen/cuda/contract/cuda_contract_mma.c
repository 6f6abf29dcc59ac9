// Products on tensor cores by mma.sync, kernels/cuda/contract_mma*.cuh: plain sides of f16, bf16 or
// f32, Turing and later. Clusters, where there are any, fold few pieces of a sum themselves.

#include "gen/cuda/contract/cuda_contract.h"

#include "asm/gpu.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

enum { WARP = 32, INSTRUCTION = 16, LINE = 64, REGISTER_FILE = 65536, MOST_REGISTERS = 255 };
enum { MOST_BLOCKS = 1 << 30, MOST_WARPS = 8, MOST_CLUSTER = 8 };

static enum kg_dtype dtype_of(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_contract_dtype(plan, 0);
}

static int size_of(const struct kg_cuda_contract_plan *plan)
{
    return kg_dtypes[dtype_of(plan)].bits / 8;
}

static bool is_power_of_two(int value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

// ---- The warps of a block ----

struct warps {
    int down, across;  // of the tile
    int rows, columns; // of a warp
    int count;
};

// Large parts of the tile for each, so that what is read from shared memory is used often; but four
// warps at least, one for each of a unit's schedulers, where parts of an instruction allow it. The
// halves of f32 take registers from sums.
static struct warps warps_of(const struct kg_cuda_contract_plan *plan)
{
    enum { LARGE = 64, SCHEDULERS = 4 };
    struct warps warps;
    warps.rows = at_most(plan->set.rows, LARGE);
    warps.columns = at_most(plan->set.columns, size_of(plan) == 4 ? LARGE / 2 : LARGE);
    for (;;) {
        warps.down = plan->set.rows / warps.rows;
        warps.across = plan->set.columns / warps.columns;
        warps.count = warps.down * warps.across;
        int *larger = warps.columns >= warps.rows ? &warps.columns : &warps.rows;
        if (warps.count >= SCHEDULERS || *larger == INSTRUCTION)
            return warps;
        *larger /= 2;
    }
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    return WARP * warps_of(plan).count;
}

static bool has_copies(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    return sm && sm->sm >= 80;
}

// Sums, the words of two steps, or of one of f32 and their halves, and addresses; what is on its
// way to shared memory where nothing copies it.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 40, CHUNK = 8 };
    struct warps warps = warps_of(plan);
    int sums = warps.rows * warps.columns / WARP, words = (warps.rows + warps.columns) / 4;
    int held = has_copies(plan)
                   ? 0
                   : CHUNK * (1 + 2 * (plan->set.rows + plan->set.columns) / threads_of(plan));
    return sums + (size_of(plan) == 4 ? 4 : 2) * words + held + OTHERS;
}

// ---- Pieces of a sum ----

static bool is_cluster(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    return plan->set.split > 1 && plan->set.split <= MOST_CLUSTER && sm && sm->cluster > 1;
}

// Lines of sums are longer by 8, so that their beginnings lie in different banks.
static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { GAP = 8, SUM = 4 };
    struct warps warps = warps_of(plan);
    int64_t stages = (int64_t)plan->set.stages * (plan->set.rows + plan->set.columns) *
                     plan->set.depth * size_of(plan);
    int64_t sums = is_cluster(plan)
                       ? (int64_t)plan->set.rows * (plan->set.columns + GAP) * SUM
                       : (int64_t)warps.count * INSTRUCTION * (warps.columns + GAP) * SUM;
    return stages > sums ? stages : sums;
}

// ---- How sides are addressed ----

// Whether the axis is a subscript of its own, the only one that depends on it; which.
static int subscript_of(const struct kg_nest *nest, const struct kg_access *access, int axis)
{
    int found = -1;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        if (access->map[dim].coefficient[axis] == 0)
            continue;
        if (found >= 0 || subscript->kind != KG_EXPR_INDEX || subscript->index->id != axis ||
            !kg_axes_from_zero(nest->axes[axis]))
            return -1;
        found = dim;
    }
    return found;
}

// Whether the axes of a part, counted as one, move by a stride in the side's tensor: there is one,
// or nothing lies between what they are in memory.
static bool has_stride(const struct kg_cuda_contract_plan *plan, int side,
                       enum kg_contract_part part)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_access *access = plan->plain[side];
    int count = contract->axis_count[part];
    const int *axes = contract->axes[part];
    if (count > 1 && !plan->group->problem->contiguous)
        return false;
    for (int i = 1; i < count; i++) {
        int before = subscript_of(contract->nest, access, axes[i - 1]);
        int dim = subscript_of(contract->nest, access, axes[i]);
        if (before < 0 || dim != before + 1 ||
            !kg_size_same(contract->nest->axes[axes[i]]->end, access->tensor->dims[dim]))
            return false;
    }
    return true;
}

static bool side_has_strides(const struct kg_cuda_contract_plan *plan, int side)
{
    return has_stride(plan, side, KG_CONTRACT_K) &&
           has_stride(plan, side, side ? KG_CONTRACT_N : KG_CONTRACT_M);
}

static bool may_be_whole(const struct kg_cuda_contract_plan *plan)
{
    return side_has_strides(plan, 0) && side_has_strides(plan, 1);
}

// ---- The anatomy ----

static bool valid_sides(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    enum kg_dtype dtype = dtype_of(plan);
    if (!plan->plain[0] || !plan->plain[1] || plan->contract.type != KG_TYPE_F32 ||
        dtype != kg_cuda_contract_dtype(plan, 1) || (!kg_dtype_is_half(dtype) && dtype != KG_F32))
        return kg_cuda_contract_refuse(
            reason, "tensor cores take sides that are arrays of f16, of bf16 or of f32");
    if (!sm || sm->matrix[dtype == KG_F32 ? KG_MATRIX_TF32 : KG_MATRIX_16] == 0 ||
        (dtype != KG_F16 && !has_copies(plan)))
        return kg_cuda_contract_refuse(reason, "the device has no tensor cores for this type");
    return true;
}

static bool valid_tile(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { DEEPEST = 4 * LINE, LEAST_STAGES = 3 };
    int bytes = plan->set.depth * size_of(plan);
    if (!is_power_of_two(plan->set.rows) || plan->set.rows < INSTRUCTION ||
        !is_power_of_two(plan->set.columns) || plan->set.columns < INSTRUCTION)
        return kg_cuda_contract_refuse(reason, "a tile of this form has 16, 32, 64, ... rows and "
                                               "columns");
    if (!is_power_of_two(bytes) || bytes < LINE || bytes > DEEPEST)
        return kg_cuda_contract_refuse(reason, "a tile of this form is 64 to 256 bytes deep");
    if (plan->set.stages < LEAST_STAGES)
        return kg_cuda_contract_refuse(reason, "this form has three tiles under way at least");
    if (plan->set.swap)
        return kg_cuda_contract_refuse(reason, "few rows are enough for this form");
    return true;
}

static bool valid_limits(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int threads = threads_of(plan), most = REGISTER_FILE / threads;
    most = at_most(most, plan->set.registers > 0 ? plan->set.registers : MOST_REGISTERS);
    if (warps_of(plan).count > MOST_WARPS || registers_of(plan) > most)
        return kg_cuda_contract_refuse(reason, "holds more than a thread has registers");
    if (plan->set.registers * threads > REGISTER_FILE)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    if (shared_bytes(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    return true;
}

// What has no use for what it has.
static bool valid_use(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { LEAST_STAGES = 3 };
    int64_t tiles = kg_ceil_div(kg_ceil_div(plan->depth, plan->set.depth), plan->set.split);
    if ((plan->set.rows > INSTRUCTION && plan->set.rows / 2 >= plan->rows) ||
        (plan->set.columns > INSTRUCTION && plan->set.columns / 2 >= plan->columns))
        return kg_cuda_contract_refuse(reason, "half the tile would be enough");
    if (plan->set.stages > LEAST_STAGES && plan->set.stages > tiles)
        return kg_cuda_contract_refuse(reason, "more tiles under way than there are");
    return true;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    return valid_sides(plan, reason) && valid_tile(plan, reason) && valid_limits(plan, reason) &&
           valid_use(plan, reason);
}

// By rule: best first where there are enough of them. Bytes deep, as f16 and f32 take the same.
static const struct {
    int rows, columns, bytes, stages;
} tiles[] = {
    {256, 128, 64, 4}, {128, 128, 64, 4}, {128, 64, 64, 4}, {64, 128, 64, 4},
    {64, 64, 128, 4},  {32, 64, 128, 6},  {16, 64, 128, 8},
};
enum { TILES = sizeof tiles / sizeof *tiles };

static bool has_tile(struct kg_cuda_contract_plan *plan, int tile)
{
    plan->set.rows = tiles[tile].rows;
    plan->set.columns = tiles[tile].columns;
    plan->set.depth = tiles[tile].bytes / size_of(plan);
    plan->set.stages = tiles[tile].stages;
    while (plan->set.stages > 3 && !kg_cuda_contract_check(plan, NULL))
        plan->set.stages--;
    while (plan->set.columns > INSTRUCTION && !kg_cuda_contract_check(plan, NULL))
        plan->set.columns /= 2;
    return kg_cuda_contract_check(plan, NULL);
}

// The largest tile of which there is one for each unit, else the smallest that no smaller one is
// enough for; and pieces of no less than SHORTEST steps while units are without.
static bool guess(struct kg_cuda_contract_plan *plan)
{
    enum { SHORTEST = 256 };
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    int last = -1;
    if (!valid_sides(plan, NULL))
        return false;
    for (int i = 0; i < TILES; i++) {
        if (!has_tile(plan, i))
            continue;
        if (last >= 0 && tiles[i].rows < 64 && tiles[i].rows < plan->rows)
            break;
        last = i;
        if (kg_cuda_contract_tiles(plan) >= units)
            break;
    }
    if (last < 0 || !has_tile(plan, last))
        return false;
    int64_t count = kg_cuda_contract_tiles(plan);
    while (count > 0 && plan->set.split < MOST_CLUSTER && plan->set.split * count < units &&
           plan->depth / (2 * plan->set.split) >= SHORTEST)
        plan->set.split *= 2;
    while (plan->set.stages > 3 && !kg_cuda_contract_check(plan, NULL))
        plan->set.stages--;
    while (plan->set.split > 1 && !kg_cuda_contract_check(plan, NULL))
        plan->set.split /= 2;
    return kg_cuda_contract_check(plan, NULL);
}

// Three products for one of f32.
static double rate(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    enum kg_dtype dtype = dtype_of(plan);
    if (dtype != KG_F32)
        return plan->facts->matrix_flops[dtype];
    double units = (double)plan->facts->units * plan->facts->clock;
    return sm ? kg_sm_matrix(sm, KG_MATRIX_TF32) * units / 3 : 0;
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { LEAST = INSTRUCTION, MOST = 256, MOST_PIECES = 32 };
    static const int stages[] = {3, 4, 6, 8};
    for (int rows = LEAST; rows <= MOST && valid_sides(plan, NULL); rows *= 2)
        for (int columns = LEAST; columns <= MOST; columns *= 2)
            for (int bytes = LINE; bytes <= 4 * LINE; bytes *= 2)
                for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
                    plan->set.rows = rows;
                    plan->set.columns = columns;
                    plan->set.depth = bytes / size_of(plan);
                    plan->set.stages = stages[i];
                    kg_cuda_contract_list_pieces(plan, MOST_PIECES, listing);
                }
}

// By an H100, of configs of this form on 14 shapes; f16, but for what is said of f32. What is
// common to all forms: cuda_contract_time.c.
static const struct {
    double matrix; // of the peak that tiles reach
    double f32;    // with halves of f32
    double shared; // what all warps get of shared memory, bytes a second
    double uneven; // copies take so many times as long where lines do not begin at multiples of 128
    double narrow; // bytes, nor of 16,
    double through; // nor of 4: then they are none
} measured = {0.55, 0.32, 119e9, 2.26, 3.61, 12.5};

// How many times as long copies take.
static double filling(const struct kg_cuda_contract_plan *plan)
{
    enum { CHUNK = 16, WORD = 4 };
    int64_t bits = 0;
    for (int side = 0; side < 2; side++) {
        int64_t across = side ? plan->columns : plan->rows;
        bits |= size_of(plan) * (plan->along[side] ? plan->depth : across);
    }
    return bits % WORD != 0    ? measured.through
           : bits % CHUNK != 0 ? measured.narrow
           : bits % 128 != 0   ? measured.uneven
                               : 1;
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    double share = dtype_of(plan) == KG_F32 ? measured.f32 : measured.matrix;
    struct warps warps = warps_of(plan);
    double read = (double)warps.count * (warps.rows + warps.columns) * plan->set.depth *
                  size_of(plan) / measured.shared;
    double multiply = kg_cuda_contract_stage(plan, rate(plan), share);
    return (struct kg_cuda_contract_cost_terms){
        .blocks =
            kg_cuda_contract_blocks(plan, threads_of(plan), registers_of(plan), shared_bytes(plan)),
        .multiply = multiply > 0 && multiply < read ? read : multiply,
        .fill = filling(plan),
        .folds_in_cluster = is_cluster(plan),
    };
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct warps warps = warps_of(plan);
    bool whole = may_be_whole(plan);
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_begin(code);
    kg_text_format(code->text,
                   "kg_contract_mma<kg_mma_tile<kg_tensor_%s, %d, %d, %d, %d, %d, %d>, ",
                   kg_dtypes[dtype_of(plan)].name, plan->set.rows, plan->set.columns,
                   plan->set.depth, plan->set.stages, warps.down, warps.across);
    kg_text_format(code->text, "%d, %s, %d", plan->set.split, is_cluster(plan) ? "true" : "false",
                   plan->set.order);
    for (int side = 0; side < 2; side++)
        kg_text_format(code->text, ", %s%s", whole ? "WHOLE ? KG_MMA_WHOLE : " : "",
                       side_has_strides(plan, side) ? "KG_MMA_STRIDES" : "KG_MMA_EACH");
    kg_text_add(code->text, ">(job, scratch);");
    kg_code_end(code);
    kg_code_close(code);
    if (whole)
        kg_cuda_function(code, plan->group, plan->entry, 0, threads_of(plan), plan->set.registers,
                         "true");
    else
        kg_cuda_nothing(code, plan->group, plan->entry);
    kg_cuda_function(code, plan->group, plan->entry, 1, threads_of(plan), plan->set.registers,
                     "false");
    if (!is_cluster(plan))
        kg_cuda_contract_emit_fold(code, plan, 2);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    struct kg_cuda_contract_plan launched = *plan;
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->set.split;
    struct kg_grid grid = {.blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
                           .threads = {threads_of(plan), 1, 1},
                           .shared = (int)shared_bytes(plan)};
    if (is_cluster(plan)) {
        grid.cluster = plan->set.split;
        launched.set.split = 1;
    }
    bool whole = may_be_whole(plan) && kg_cuda_contract_is_whole(plan, 0) &&
                 kg_cuda_contract_is_whole(plan, 1);
    kg_cuda_contract_launch(&launched, grid, whole ? 0 : 1, 2, grids);
}

const struct kg_cuda_contract_form kg_cuda_contract_form_mma = {
    .usual = {.mma = INSTRUCTION,
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
            {"tile_k", KG_CONTRACT_TILE(depth, 16, 32, 64, 128)},
            {"stages", KG_CONTRACT_TILE(stages, 4, 3, 5, 6, 7, 8, 10, 12, 9, 14, 16)},
            {KG_CONTRACT_SPLIT_K},
            {KG_CONTRACT_RASTER},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor.cuh", "cuda/contract_mma_tile.cuh",
                  "cuda/contract_mma_feed.cuh", "cuda/contract_mma_sum.cuh",
                  "cuda/contract_eight.cuh", "cuda/contract_mma.cuh"},
    .takes = valid_sides,
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
    return kg_cuda_contract_match(&kg_cuda_contract_form_mma, group, facts, arena, reason);
}

const struct kg_family kg_cuda_contract_mma = {
    .name = "contract/mma",
    .summary = "matrix products on tensor cores by mma.sync",
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
