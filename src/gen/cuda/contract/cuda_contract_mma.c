// Products on tensor cores by mma.sync, kernels/cuda/contract_mma*.cuh: operands that are arrays of
// f16, bf16 or f32, on Turing and later. Up to 8 K slices of a tile are added up in a cluster where
// the device has clusters.

#include "gen/cuda/contract/cuda_contract.h"

#include "asm/gpu.h"
#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

enum { WARP = 32, INSTRUCTION = 16, LINE = 64 };
enum { MAX_BLOCKS = 1 << 30, MAX_WARPS = 8, MAX_CLUSTER = 8 };

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

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

// ---- The warps of a block ----

struct warps {
    int down, across;  // of the tile
    int rows, columns; // of a warp
    int count;
};

// Warp tiles as large as possible, so that fragments from shared memory are used often; but at
// least four warps, one for each scheduler of an SM, unless warp tiles would be smaller than an
// instruction. f32 has smaller ones: its split operands need registers.
static struct warps warps_of(const struct kg_cuda_contract_plan *plan)
{
    enum { LARGE = 64, SCHEDULERS = 4 };
    struct warps warps;
    warps.rows = at_most(plan->config.tile_m, LARGE);
    warps.columns = at_most(plan->config.tile_n, size_of(plan) == 4 ? LARGE / 2 : LARGE);
    for (;;) {
        warps.down = plan->config.tile_m / warps.rows;
        warps.across = plan->config.tile_n / warps.columns;
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

// Accumulators, the fragments of two K steps (of f32: of one, split), addresses; and the elements
// on their way to shared memory on devices without cp.async.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 40, CHUNK = 8 };
    struct warps warps = warps_of(plan);
    int sums = warps.rows * warps.columns / WARP, words = (warps.rows + warps.columns) / 4;
    int staged =
        has_copies(plan)
            ? 0
            : CHUNK * (1 + 2 * (plan->config.tile_m + plan->config.tile_n) / threads_of(plan));
    return sums + (size_of(plan) == 4 ? 4 : 2) * words + staged + OTHERS;
}

// ---- Split-K in a cluster, shared memory ----

static bool is_cluster(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    return plan->config.split_k > 1 && plan->config.split_k <= MAX_CLUSTER && sm && sm->cluster > 1;
}

// Rows of accumulators are padded by 8 floats against bank conflicts.
static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { GAP = 8, SUM = 4 };
    struct warps warps = warps_of(plan);
    int64_t stages = (int64_t)plan->config.stages * (plan->config.tile_m + plan->config.tile_n) *
                     plan->config.tile_k * size_of(plan);
    int64_t sums = is_cluster(plan)
                       ? (int64_t)plan->config.tile_m * (plan->config.tile_n + GAP) * SUM
                       : (int64_t)warps.count * INSTRUCTION * (warps.columns + GAP) * SUM;
    return stages > sums ? stages : sums;
}

// ---- How operands are addressed ----

// The dimension whose subscript is this axis alone, if no other subscript depends on it; else -1.
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

// Whether the axes of a role, as one linear index, have a single stride in the operand's tensor:
// there is only one axis, or they are adjacent dimensions of a contiguous tensor.
static bool has_stride(const struct kg_cuda_contract_plan *plan, int operand,
                       enum kg_contract_role part)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_access *access = plan->plain[operand];
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

static bool has_strides(const struct kg_cuda_contract_plan *plan, int operand)
{
    return has_stride(plan, operand, KG_CONTRACT_K) &&
           has_stride(plan, operand, operand ? KG_CONTRACT_N : KG_CONTRACT_M);
}

static bool may_be_whole(const struct kg_cuda_contract_plan *plan)
{
    return has_strides(plan, 0) && has_strides(plan, 1);
}

// ---- Validity ----

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    enum kg_dtype dtype = dtype_of(plan);
    if (!plan->plain[0] || !plan->plain[1] || plan->contract.type != KG_TYPE_F32 ||
        dtype != kg_cuda_contract_dtype(plan, 1) || (!kg_dtype_is_half(dtype) && dtype != KG_F32))
        return kg_cuda_contract_refuse(reason,
                                       "both operands have to be arrays of f16, of bf16 or of f32");
    if (!sm || sm->matrix[dtype == KG_F32 ? KG_MATRIX_TF32 : KG_MATRIX_16] == 0 ||
        (dtype != KG_F16 && !has_copies(plan)))
        return kg_cuda_contract_refuse(reason, "the device has no tensor cores for this type");
    return true;
}

static bool valid_tile(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { DEEPEST = 4 * LINE, MIN_STAGES = 3 };
    int bytes = plan->config.tile_k * size_of(plan);
    if (!is_power_of_two(plan->config.tile_m) || plan->config.tile_m < INSTRUCTION ||
        !is_power_of_two(plan->config.tile_n) || plan->config.tile_n < INSTRUCTION)
        return kg_cuda_contract_refuse(reason, "a tile of this form has 16, 32, 64, ... rows and "
                                               "columns");
    if (!is_power_of_two(bytes) || bytes < LINE || bytes > DEEPEST)
        return kg_cuda_contract_refuse(reason, "a tile of this form is 64 to 256 bytes deep");
    if (plan->config.stages < MIN_STAGES)
        return kg_cuda_contract_refuse(reason, "this form has at least three stages");
    if (plan->config.swap)
        return kg_cuda_contract_refuse(reason, "this form does not swap its operands");
    return true;
}

static bool valid_limits(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int threads = threads_of(plan), limit = unit->registers / threads;
    limit =
        at_most(limit, plan->config.maxnreg > 0 ? plan->config.maxnreg : unit->thread_registers);
    if (warps_of(plan).count > MAX_WARPS || registers_of(plan) > limit)
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
    if (plan->config.maxnreg * threads > unit->registers)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    if (shared_bytes(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    return true;
}

// Refuses tiles and stages that would stay half empty.
static bool valid_use(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { MIN_STAGES = 3 };
    int64_t tiles = kg_ceil_div(kg_ceil_div(plan->k, plan->config.tile_k), plan->config.split_k);
    if ((plan->config.tile_m > INSTRUCTION && plan->config.tile_m / 2 >= plan->m) ||
        (plan->config.tile_n > INSTRUCTION && plan->config.tile_n / 2 >= plan->n))
        return kg_cuda_contract_refuse(reason, "half the tile covers the output");
    if (plan->config.stages > MIN_STAGES && plan->config.stages > tiles)
        return kg_cuda_contract_refuse(reason, "more stages than K tiles");
    return true;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    return takes(plan, reason) && valid_tile(plan, reason) && valid_limits(plan, reason) &&
           valid_use(plan, reason);
}

// The tiles of the rule, best first where the output is large. The depth is in bytes: f16 and f32
// have the same.
static const struct {
    int rows, columns, bytes, stages;
} tiles[] = {
    {256, 128, 64, 4}, {128, 128, 64, 4}, {128, 64, 64, 4}, {64, 128, 64, 4},
    {64, 64, 128, 4},  {32, 64, 128, 6},  {16, 64, 128, 8},
};
enum { TILES = sizeof tiles / sizeof *tiles };

static bool has_tile(struct kg_cuda_contract_plan *plan, int tile)
{
    plan->config.tile_m = tiles[tile].rows;
    plan->config.tile_n = tiles[tile].columns;
    plan->config.tile_k = tiles[tile].bytes / size_of(plan);
    plan->config.stages = tiles[tile].stages;
    while (plan->config.stages > 3 && !kg_cuda_contract_check(plan, NULL))
        plan->config.stages--;
    while (plan->config.tile_n > INSTRUCTION && !kg_cuda_contract_check(plan, NULL))
        plan->config.tile_n /= 2;
    return kg_cuda_contract_check(plan, NULL);
}

enum { SHORTEST = 256 }; // slice of K

// The largest tile that gives every SM one, else the smallest that is not larger than the output
// needs; then split-K, in slices of at least SHORTEST K elements, while SMs are idle.
static bool guess_plainly(struct kg_cuda_contract_plan *plan)
{
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    int last = -1;
    if (!takes(plan, NULL))
        return false;
    for (int i = 0; i < TILES; i++) {
        if (!has_tile(plan, i))
            continue;
        if (last >= 0 && tiles[i].rows < 64 && tiles[i].rows < plan->m)
            break;
        last = i;
        if (kg_cuda_contract_tiles(plan) >= units)
            break;
    }
    if (last < 0 || !has_tile(plan, last))
        return false;
    int64_t count = kg_cuda_contract_tiles(plan);
    while (count > 0 && plan->config.split_k < MAX_CLUSTER &&
           plan->config.split_k * count < units && plan->k / (2 * plan->config.split_k) >= SHORTEST)
        plan->config.split_k *= 2;
    while (plan->config.stages > 3 && !kg_cuda_contract_check(plan, NULL))
        plan->config.stages--;
    while (plan->config.split_k > 1 && !kg_cuda_contract_check(plan, NULL))
        plan->config.split_k /= 2;
    return kg_cuda_contract_check(plan, NULL);
}

static const int list_stages[] = {3, 4, 6, 8};
enum { LIST_STAGES = sizeof list_stages / sizeof *list_stages };

// Takes the config that is expected to be fastest if that promises a gain. Not of f32, whose
// expected times are not fitted.
static void choose_by_time(struct kg_cuda_contract_plan *plan)
{
    enum { LEAST = INSTRUCTION, MOST = 256, MOST_SPLIT_K = 32 };
    const double clear = 0.98;
    struct kg_cuda_contract_best best = {kg_cuda_contract_expect, .least = -1};
    struct kg_cuda_contract_plan tried = *plan;
    double plain = kg_cuda_contract_expect(plan);
    for (int rows = LEAST; rows <= MOST; rows *= 2)
        for (int columns = LEAST; columns <= MOST; columns *= 2)
            for (int bytes = LINE; bytes <= 4 * LINE; bytes *= 2)
                for (int i = 0; i < LIST_STAGES; i++)
                    for (int split_k = 1; split_k <= MOST_SPLIT_K; split_k *= 2) {
                        tried.config.tile_m = rows;
                        tried.config.tile_n = columns;
                        tried.config.tile_k = bytes / size_of(plan);
                        tried.config.stages = list_stages[i];
                        tried.config.split_k = split_k;
                        if (split_k == 1 || plan->k / split_k >= SHORTEST)
                            kg_cuda_contract_take_best(&tried, &best);
                    }
    if (plain > 0 && best.least > 0 && best.least < clear * plain)
        plan->config = best.config;
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    if (!guess_plainly(plan))
        return false;
    if (dtype_of(plan) != KG_F32)
        choose_by_time(plan);
    return true;
}

// An f32 product takes three of tf32.
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
    enum { LEAST = INSTRUCTION, MOST = 256, MAX_SPLIT_K = 32 };
    for (int rows = LEAST; rows <= MOST && takes(plan, NULL); rows *= 2)
        for (int columns = LEAST; columns <= MOST; columns *= 2)
            for (int bytes = LINE; bytes <= 4 * LINE; bytes *= 2)
                for (int i = 0; i < LIST_STAGES; i++) {
                    plan->config.tile_m = rows;
                    plan->config.tile_n = columns;
                    plan->config.tile_k = bytes / size_of(plan);
                    plan->config.stages = list_stages[i];
                    kg_cuda_contract_list_splits(plan, MAX_SPLIT_K, listing);
                }
}

// Measured on an H100; cuda_contract_times.h has what is fitted.
static const struct {
    double f32;       // share of the peak rate that tiles of f32 reach
    double f32_step;  // latency of a K step: its loads, splits and products wait in turn
    double each_step; // and where elements are read one by one, at places that are computed
} measured = {0.32, 0.28e-6, 0.5e-6};

// What a thread waits in a K step for copies that are shorter than a vector, which it issues one
// after the other, and for vectors that go through its registers.
static double piece_seconds(const struct kg_cuda_contract_plan *plan)
{
    enum { CHUNK = 16, WORD = 4 };
    double seconds = 0;
    for (int operand = 0; operand < 2; operand++) {
        int64_t length = plan->k_major[operand] ? plan->k : operand ? plan->n : plan->m;
        int64_t bytes = length * size_of(plan), width = bytes & -bytes;
        double share = (double)(operand ? plan->config.tile_n : plan->config.tile_m) *
                       plan->config.tile_k * size_of(plan) / threads_of(plan);
        if (width < WORD)
            seconds += plan->times->mma_vector * share / CHUNK;
        else if (width < CHUNK)
            seconds += plan->times->mma_copy * share / (double)width;
    }
    return seconds;
}

// The factor on copies that the alignment of lines costs. Lines that begin anywhere cut sectors of
// memory: short pieces of them, of 64 bytes, three for two. (Longer ones are cut less, but 256
// bytes took longer than 128.)
static double copy_factor(const struct kg_cuda_contract_plan *plan)
{
    enum { CHUNK = 16, WORD = 4, SHORT = 64 };
    int64_t bits = 0;
    for (int operand = 0; operand < 2; operand++) {
        int64_t across = operand ? plan->n : plan->m;
        bits |= size_of(plan) * (plan->k_major[operand] ? plan->k : across);
    }
    int64_t width = bits & -bits;
    double cut = plan->config.tile_k * size_of(plan) <= SHORT ? 1.2 : 1;
    return width < WORD       ? plan->times->mma_registers * cut
           : width < CHUNK    ? plan->times->mma_narrow * cut * WORD / (double)width
           : width % 128 != 0 ? plan->times->mma_unaligned
                              : 1;
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    double share = dtype_of(plan) == KG_F32 ? measured.f32 : plan->times->mma_share;
    struct warps warps = warps_of(plan);
    double read = (double)warps.count * (warps.rows + warps.columns) * plan->config.tile_k *
                  size_of(plan) / plan->times->mma_fragments;
    double multiply = kg_cuda_contract_stage_seconds(plan, rate(plan), share);
    double step = dtype_of(plan) == KG_F32 ? measured.f32_step : 0;
    if (!has_strides(plan, 0) || !has_strides(plan, 1))
        step += measured.each_step;
    return (struct kg_cuda_contract_cost_terms){
        .blocks_per_sm = kg_cuda_contract_blocks_per_sm(plan, threads_of(plan), registers_of(plan),
                                                        shared_bytes(plan)),
        .multiply_seconds = multiply > 0 && multiply < read ? read : multiply,
        .stage_latency = step * plan->config.tile_k * size_of(plan) / 32 + piece_seconds(plan),
        .copy_factor = copy_factor(plan),
        .copies_all_lines = true,
        .store_factor = plan->n * size_of(plan) % 16 != 0 ? plan->times->mma_unaligned_store : 1,
        .store_seconds = plan->times->mma_store * plan->config.tile_m * plan->config.tile_n,
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
                   kg_dtypes[dtype_of(plan)].name, plan->config.tile_m, plan->config.tile_n,
                   plan->config.tile_k, plan->config.stages, warps.down, warps.across);
    kg_text_format(code->text, "%d, %s, %d", plan->config.split_k,
                   is_cluster(plan) ? "true" : "false", plan->config.raster);
    for (int operand = 0; operand < 2; operand++)
        kg_text_format(code->text, ", %s%s", whole ? "WHOLE ? KG_MMA_WHOLE : " : "",
                       has_strides(plan, operand) ? "KG_MMA_STRIDES" : "KG_MMA_EACH");
    kg_text_add(code->text, ">(job, scratch);");
    kg_code_end(code);
    kg_code_close(code);
    if (whole)
        kg_cuda_function(code, plan->group, plan->entry, 0, threads_of(plan), plan->config.maxnreg,
                         "true");
    else
        kg_cuda_nothing(code, plan->group, plan->entry);
    kg_cuda_function(code, plan->group, plan->entry, 1, threads_of(plan), plan->config.maxnreg,
                     "false");
    if (!is_cluster(plan))
        kg_cuda_contract_emit_fold(code, plan, 2);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    struct kg_cuda_contract_plan launched = *plan;
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    struct kg_grid grid = {.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                           .threads = {threads_of(plan), 1, 1},
                           .shared = (int)shared_bytes(plan)};
    if (is_cluster(plan)) {
        grid.cluster = plan->config.split_k;
        launched.config.split_k = 1;
    }
    bool whole = may_be_whole(plan) && kg_cuda_contract_is_whole(plan, 0) &&
                 kg_cuda_contract_is_whole(plan, 1);
    kg_cuda_contract_launch(&launched, grid, whole ? 0 : 1, 2, grids);
}

const struct kg_cuda_contract_form kg_cuda_contract_form_mma = {
    .defaults = KG_CONTRACT_DEFAULTS(INSTRUCTION, 16),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 128, 64, 32, 16, 256)},
            {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 64, 32, 16, 256)},
            {"tile_k", KG_CONTRACT_CHOICES(tile_k, 16, 32, 64, 128)},
            {"stages", KG_CONTRACT_CHOICES(stages, 4, 3, 5, 6, 7, 8, 10, 12, 9, 14, 16)},
            {KG_CONTRACT_SPLIT_K},
            {KG_CONTRACT_RASTER},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/lanes.cuh", "cuda/shifted.cuh", "cuda/tensor.cuh",
                  "cuda/contract_mma_tile.cuh", "cuda/contract_mma_feed.cuh",
                  "cuda/contract_mma_sum.cuh", "cuda/contract_row8.cuh", "cuda/contract_mma.cuh"},
    .takes = takes,
    .guess = guess,
    .valid = valid,
    .list = list,
    .cost_terms = cost_terms,
    .emit = emit,
    .grids = grids,
    .rate = rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_mma, kg_cuda_contract_form_mma, "contract/mma",
                   "matrix products on tensor cores by mma.sync", true, true);
