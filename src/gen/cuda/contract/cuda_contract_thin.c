// Products of few rows, kernels/cuda/contract_thin.cuh: bound by reading the larger operand, B;
// with `swap` that is A of the product.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/emit.h"

enum { ACCESS = 16, WARP = 32, MAX_BLOCKS = 1 << 30 };
enum { MAX_ROWS = 8, ALONG_THREADS = 256, SHORTEST = 4 };

// The threads of a block: a line of them reads adjacent elements.
struct shape {
    bool k_major; // of the larger operand
    int vector;   // elements of an access
    int line;     // threads of a line
    int threads;  // of a block
    int mine;     // columns of a thread if K-major, else 1
    int groups;   // thread groups whose partial sums are added in shared memory
};

static int large_operand(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.swap ? 0 : 1;
}

static struct shape shape_of(const struct kg_cuda_contract_plan *plan)
{
    int operand = large_operand(plan), bits = kg_dtypes[kg_cuda_contract_dtype(plan, operand)].bits;
    struct shape shape = {.k_major = plan->k_major[operand], .vector = ACCESS / (bits / 8)};
    shape.line = (shape.k_major ? plan->config.tile_k : plan->config.tile_n) / shape.vector;
    shape.threads = shape.k_major ? ALONG_THREADS : shape.line * plan->config.tile_k;
    shape.mine = shape.k_major ? plan->config.tile_n * shape.line / ALONG_THREADS : 1;
    shape.groups = (shape.k_major ? shape.line : shape.threads) / WARP;
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
    if (shape->k_major &&
        (shape->line < SHORTEST || shape->line > ALONG_THREADS || shape->mine < 1))
        return kg_cuda_contract_refuse(reason, "the threads of a block cannot divide such a tile");
    if (!shape->k_major && (shape->line < 2 || shape->line > WARP || shape->threads < 4 * WARP ||
                            shape->threads > 1024))
        return kg_cuda_contract_refuse(reason, "such a tile takes too few threads, or too many");
    if (shape->mine > 8 || shape->mine * plan->config.stages > 16)
        return kg_cuda_contract_refuse(reason, "a thread would have too many loads in flight");
    return true;
}

// Accumulators, loads in flight, a row of A, addresses.
static int registers_of(const struct kg_cuda_contract_plan *plan, const struct shape *shape)
{
    int words = value_bytes(plan) / 4, columns = shape->k_major ? shape->mine : shape->vector;
    return plan->config.tile_m * columns * words + 4 * shape->mine * plan->config.stages +
           (shape->k_major ? shape->vector : 1) * words + 2 * shape->mine + 24;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    struct shape shape = shape_of(plan);
    if (plan->config.raster != 0)
        return kg_cuda_contract_refuse(reason, "this form has one raster order");
    if (kg_cuda_contract_m_after_swap(plan) > 2 * plan->config.tile_m)
        return kg_cuda_contract_refuse(reason, "the larger operand would be read more than twice");
    if (plan->config.tile_m > 1 && plan->config.tile_m / 2 >= kg_cuda_contract_m_after_swap(plan))
        return kg_cuda_contract_refuse(reason, "half of the rows cover the output");
    if (!check_shape(plan, &shape, reason))
        return false;
    int limit = plan->config.maxnreg > 0 ? plan->config.maxnreg : unit->registers / shape.threads;
    if (shape.groups * plan->config.tile_m * plan->config.tile_n * value_bytes(plan) >
        unit->static_shared)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (registers_of(plan, &shape) >
        (limit < unit->thread_registers ? limit : unit->thread_registers))
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
    if (plan->config.maxnreg * shape.threads > unit->registers)
        return kg_cuda_contract_refuse(reason, "a block would need more registers than there are");
    return true;
}

// K-major: lines of threads as long as a block, or as K. N-major: as long as leaves every SM a
// block. Then enough stages for 128 bytes in flight per thread, and split-K while SMs are idle.
static void guess_shape(struct kg_cuda_contract_plan *plan)
{
    enum { IN_FLIGHT = 8, COMPUTED = 16 };
    // A computed operand is read element by element, by adjacent threads.
    int shortest = plan->plain[large_operand(plan)] ? SHORTEST : COMPUTED;
    int threads = plan->config.tile_m > 2 ? 256 : 512; // accumulators take registers
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    struct shape shape = shape_of(plan);
    int line = shape.k_major ? ALONG_THREADS : WARP, mine = shape.k_major ? 4 : 1;
    for (;; line /= 2) {
        plan->config.tile_k = shape.k_major ? line * shape.vector : threads / line;
        plan->config.tile_n = shape.k_major ? mine * ALONG_THREADS / line : line * shape.vector;
        bool last = shape.k_major ? line == shortest || line / 2 * shape.vector < plan->k
                                  : line == shortest || kg_cuda_contract_tiles(plan) >= units;
        if (last)
            break;
    }
    for (; mine > 1 && kg_cuda_contract_tiles(plan) < 2 * units; mine /= 2)
        plan->config.tile_n /= 2;
    plan->config.stages = IN_FLIGHT / mine;
    while (plan->config.stages > 1 && plan->config.stages / 2 * plan->config.tile_k >= plan->k)
        plan->config.stages /= 2;
    int64_t tiles = kg_cuda_contract_tiles(plan);
    while (tiles > 0 && plan->config.split_k < 64 && plan->config.split_k * tiles < units &&
           2 * plan->config.split_k * plan->config.tile_k <= plan->k)
        plan->config.split_k *= 2;
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    plan->config.swap = plan->m > MAX_ROWS;
    if (kg_cuda_contract_m_after_swap(plan) > MAX_ROWS)
        return false;
    plan->config.tile_m = (int)kg_power_of_two(kg_cuda_contract_m_after_swap(plan));
    guess_shape(plan);
    while (plan->config.stages > 1 && !kg_cuda_contract_check(plan, NULL))
        plan->config.stages /= 2;
    while (plan->config.tile_n > 1 && !kg_cuda_contract_check(plan, NULL)) {
        plan->config.tile_n /= 2;
    }
    return kg_cuda_contract_check(plan, NULL);
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->flops[plan->contract.type];
}

// All rows are in one tile or in two.
static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    enum { MAX_COLUMNS = 512, MAX_DEPTH = 4096, MAX_SPLIT_K = 64, MAX_STAGES = 8 };
    for (int variant = 0; variant < 4; variant++) {
        plan->config.swap = variant & 1;
        int64_t rows = kg_power_of_two(kg_cuda_contract_m_after_swap(plan)) >> (variant >> 1);
        if (rows < 1 || rows > MAX_ROWS)
            continue;
        plan->config.tile_m = (int)rows;
        for (int columns = 1; columns <= MAX_COLUMNS; columns *= 2)
            for (int depth = 8; depth <= MAX_DEPTH; depth *= 2)
                for (int stages = 1; stages <= MAX_STAGES; stages *= 2) {
                    plan->config.tile_n = columns;
                    plan->config.tile_k = depth;
                    plan->config.stages = stages;
                    kg_cuda_contract_list_splits(plan, MAX_SPLIT_K, listing);
                }
    }
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    const double usual = 0.3, quantised = 0.03; // shares of the rate: elements of 4 bits are slow
    const double computed = 1.5e-6; // to compute the places of a stage's elements and load these
    // Of an SM, for an element that is read alone: four products of one to six rows whose lines are
    // not made of whole vectors took 0.98 to 2.82 ms (H200), 1.1 to 1.8 ns of each SM for each.
    const double alone = 1.3e-9;
    const int big = large_operand(plan);
    struct shape shape = shape_of(plan);
    double multiply = kg_cuda_contract_stage_seconds(plan, rate(plan),
                                                     plan->scaled[big].element ? quantised : usual);
    if (plan->plain[big] && !kg_cuda_contract_is_whole(plan, big))
        multiply += alone * plan->config.tile_n * plan->config.tile_k;
    int64_t shared =
        (int64_t)shape.groups * plan->config.tile_m * plan->config.tile_n * value_bytes(plan);
    return (struct kg_cuda_contract_cost_terms){
        .blocks_per_sm =
            kg_cuda_contract_blocks_per_sm(plan, shape.threads, registers_of(plan, &shape), shared),
        .multiply_seconds = multiply,
        .stage_latency = plan->plain[0] && plan->plain[1] ? 0 : computed,
        .copy_factor = 1,
    };
}

// Whether A can be read in vectors too, so that there is a variant for B alone.
static bool has_vectors(const struct kg_cuda_contract_plan *plan)
{
    int small = 1 - large_operand(plan);
    return shape_of(plan).k_major && plan->plain[small] && plan->k_major[small];
}

// Function 0 reads both operands in vectors, 1 neither, 2 B alone (if that differs from 0).
static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    static const char *const cases[] = {"true, true", "false, false", "false, true"};
    struct shape shape = shape_of(plan);
    int count = has_vectors(plan) ? 3 : 2;
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE_A, bool WHOLE_B");
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "kg_contract_thin<WHOLE_A, WHOLE_B, %d, %d, %d, %d, %d, %d>(job, scratch);",
                 plan->config.tile_m, plan->config.tile_n, plan->config.tile_k, plan->config.stages,
                 shape.threads, plan->config.split_k);
    kg_code_close(code);
    for (int number = 0; number < count; number++)
        kg_cuda_function(code, plan->group, plan->entry, number, shape.threads,
                         plan->config.maxnreg, cases[number]);
    kg_cuda_contract_emit_fold(code, plan, count);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int big = large_operand(plan), count = has_vectors(plan) ? 3 : 2, whole = 0;
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    struct kg_grid grid = {.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                           .threads = {shape_of(plan).threads, 1, 1}};
    if (plan->plain[big] && !kg_cuda_contract_is_whole(plan, big))
        whole = 1;
    else if (has_vectors(plan) && !kg_cuda_contract_is_whole(plan, 1 - big))
        whole = 2;
    kg_cuda_contract_launch(plan, grid, whole, count, grids);
}

const struct kg_cuda_contract_form kg_cuda_contract_form_thin = {
    .defaults = KG_CONTRACT_DEFAULTS(0, 16),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 1, 2, 4, 8)},
            {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 64, 32, 16, 256, 8, 4, 2, 1, 512)},
            {"tile_k", KG_CONTRACT_CHOICES(tile_k, 16, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096)},
            {"stages", KG_CONTRACT_CHOICES(stages, 1, 2, 4, 8)},
            {KG_CONTRACT_SPLIT_K},
            {"swap", KG_CONTRACT_CHOICES(swap, 0, 1)},
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

KG_CONTRACT_FAMILY(kg_cuda_contract_thin, kg_cuda_contract_form_thin, "contract/thin",
                   "matrix products of few rows, bound by reading the larger operand", true, false);
