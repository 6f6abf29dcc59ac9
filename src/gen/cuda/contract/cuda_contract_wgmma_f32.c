// Products computed in f32 on the tensor cores of sm_90a: kernels/cuda/contract_wgmma_f32.cuh.
// Function 0 packs both operands, each number as the sum of up to three bf16 terms, 1 multiplies, 2
// adds up K slices. An operand may be any expression: the packing evaluates it once per element.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/operand_values.h"

#include <math.h>
#include <string.h>

enum { PACK, MULTIPLY, FOLD, FUNCTIONS };
// As the skeleton has them.
enum { MAX_TERMS = 3, LINES = 64, STEPS = 32, BOX = 4096, PACK_BLOCKS = 1024, THREADS = 256 };
enum { GROUP = 128, ROUND = 1024, STORE_BYTES = 2560, MOVED_REGISTERS = 232 };
enum { MAX_BLOCKS = 1 << 30 };

// ---- Terms ----

// Whether f16 represents every value of both operands: then one f16 product is enough.
static bool is_f16(const struct kg_cuda_contract_plan *plan)
{
    return kg_operand_values(&plan->contract, 0) & kg_operand_values(&plan->contract, 1) &
           KG_VALUES_F16;
}

// bf16 terms of an operand's numbers: f16 has three more bits of mantissa than bf16.
static int terms_of(const struct kg_cuda_contract_plan *plan, int operand)
{
    unsigned values = kg_operand_values(&plan->contract, operand);
    if (is_f16(plan) || (values & KG_VALUES_BF16))
        return 1;
    return values & KG_VALUES_F16 ? 2 : MAX_TERMS;
}

// Products of terms whose positions add up to at most 2: the others are below f32 rounding.
static int products_of(const struct kg_cuda_contract_plan *plan)
{
    int count = 0;
    for (int left = 0; left < terms_of(plan, 0); left++)
        for (int right = 0; right < terms_of(plan, 1); right++)
            count += left + right < MAX_TERMS;
    return count;
}

static bool is_half(enum kg_dtype dtype)
{
    return dtype == KG_F16 || dtype == KG_BF16;
}

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum kg_dtype dtype = kg_cuda_contract_dtype(plan, 0);
    bool plain = plan->plain[0] && plan->plain[1];
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    if (plan->contract.type != KG_TYPE_F32)
        return kg_cuda_contract_refuse(reason, "the products are not f32");
    if (plain && dtype == kg_cuda_contract_dtype(plan, 1) && is_half(dtype))
        return kg_cuda_contract_refuse(reason, "16-bit operands are contract/wgmma's");
    // Windows overlap: packed, the elements of an image would be stored many times over.
    return plain || plan->contract.nest->class != KG_CLASS_WINDOW ||
           kg_cuda_contract_refuse(reason,
                                   "overlapping windows of a computed operand would be packed");
}

// ---- The shape of a block ----

static int consumers(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_m / LINES;
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (consumers(plan) + 1);
}

// Accumulator registers of a thread: the total, and those of one or two stages.
static int accumulators_of(const struct kg_cuda_contract_plan *plan)
{
    int sums = plan->config.tile_n / 2;
    return sums <= 64 ? 3 * sums : 2 * sums;
}

static bool moves_registers(const struct kg_cuda_contract_plan *plan)
{
    return consumers(plan) == 2 && accumulators_of(plan) > 96;
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t stage = (int64_t)(plan->config.tile_m * terms_of(plan, 0) +
                              plan->config.tile_n * terms_of(plan, 1)) /
                    LINES * BOX;
    return ROUND + plan->config.stages * (stage + 16) + consumers(plan) * 4 * STORE_BYTES + 16;
}

static int blocks_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 56 };
    return moves_registers(plan)
               ? 1
               : kg_cuda_contract_blocks_per_sm(plan, threads_of(plan),
                                                accumulators_of(plan) + OTHERS, shared_bytes(plan));
}

static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int limit = unit->registers / (threads_of(plan) * blocks_of(plan)) / 8 * 8;
    limit = limit < unit->thread_registers ? limit : unit->thread_registers;
    bool less = plan->config.maxnreg > 0 && plan->config.maxnreg < limit;
    return less ? plan->config.maxnreg : limit;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { OTHERS = 40 };
    if (plan->m > INT32_MAX / 2 || plan->n > INT32_MAX / 2 || plan->k > INT32_MAX / 2 ||
        plan->batches > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "sizes are larger than 2^30");
    if (plan->config.tile_m != LINES && plan->config.tile_m != 2 * LINES)
        return kg_cuda_contract_refuse(reason, "tiles of f32 have 64 or 128 rows");
    if (plan->config.tile_n % LINES != 0 || plan->config.tile_n > 3 * LINES)
        return kg_cuda_contract_refuse(reason, "tiles of f32 have 64, 128 or 192 columns");
    if (plan->config.tile_k != STEPS)
        return kg_cuda_contract_refuse(reason, "tiles of f32 are 32 steps deep");
    if (plan->config.swap)
        return kg_cuda_contract_refuse(reason, "this form does not swap its operands");
    if (plan->config.stages < 3)
        return kg_cuda_contract_refuse(reason, "this form has at least three stages");
    if (shared_bytes(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (moves_registers(plan) && plan->config.maxnreg > 0)
        return kg_cuda_contract_refuse(reason,
                                       "setmaxnreg already divides the registers among the warps");
    if ((moves_registers(plan) ? MOVED_REGISTERS : registers_of(plan)) <
        accumulators_of(plan) + OTHERS)
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
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
    int split = plan->config.split_k;
    other.waits = true;
    // Pointers that are hidden until the wait take registers. Without the position, the epilogue
    // reads nothing before the main loop.
    multiply.waits = kg_cuda_contract_epilogue_uses_position(plan);
    kg_cuda_wgmma_emit_instruction(
        code, plan,
        &(struct kg_wgmma_instruction){.columns = plan->config.tile_n,
                                       .dtype = is_f16(plan) ? KG_F16 : KG_BF16});
    kg_code_line(code, "using %s_counts = kg_terms_counts<%d, %d, %s>;\n", plan->entry,
                 terms_of(plan, 0), terms_of(plan, 1), is_f16(plan) ? "true" : "false");
    open_function(code, &other, PACK, THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_contract_terms_pack<%d, %s_counts>(job, kg_after(scratch));", split,
                 plan->entry);
    kg_code_close(code);
    open_function(code, &multiply, MULTIPLY, threads_of(plan), registers_of(plan));
    kg_code_line(code,
                 "using block = kg_terms_block<%d, %d, %d, %d, %d, %s, %s, %s_counts, "
                 "%s_instruction>;",
                 plan->config.tile_m, plan->config.tile_n, plan->config.stages, split,
                 plan->config.raster, plan->k_major[0] ? "true" : "false",
                 plan->k_major[1] ? "true" : "false", plan->entry, plan->entry);
    kg_code_line(code, "kg_contract_terms<block>(job, scratch);");
    kg_code_close(code);
    if (split == 1)
        return;
    open_function(code, &other, FOLD, THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_contract_fold<%d>(job, kg_after(scratch));", split);
    kg_code_close(code);
}

// ---- Launches ----

// Boxes of 64 x 32 numbers in a packed operand.
static int64_t boxes_of(const struct kg_cuda_contract_plan *plan, int operand)
{
    return plan->batches * kg_ceil_div(operand ? plan->n : plan->m, LINES) *
           kg_ceil_div(plan->k, STEPS);
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static struct kg_grid grid_of(int64_t blocks, int threads)
{
    return (struct kg_grid){.blocks = {at_most(blocks, MAX_BLOCKS), 1, 1},
                            .threads = {threads, 1, 1}};
}

// Each function waits by itself for the one before it; in small problems the first one too, for the
// previous kernel. The blocks that multiply are persistent.
static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t outputs = plan->batches * plan->m * plan->n, packed = 0, pack_blocks = 0;
    int64_t units = plan->facts->units > 0 ? plan->facts->units : 1;
    int64_t tasks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    *grids = (struct kg_grids){.count = plan->config.split_k > 1 ? FUNCTIONS : FOLD};
    for (int i = 0; i < grids->count; i++)
        grids->grids[i] = grid_of(0, 1);
    if (outputs == 0)
        return;
    for (int operand = 0; operand < 2; operand++) {
        int64_t boxes = boxes_of(plan, operand);
        packed += boxes * terms_of(plan, operand) * BOX;
        pack_blocks += at_most(boxes, PACK_BLOCKS);
    }
    grids->grids[PACK] = grid_of(pack_blocks, THREADS);
    grids->grids[MULTIPLY] = grid_of(at_most(tasks, units * blocks_of(plan)), threads_of(plan));
    grids->grids[MULTIPLY].shared = (int)shared_bytes(plan);
    grids->grids[MULTIPLY].early = pack_blocks > 0;
    if (plan->config.split_k > 1) {
        grids->grids[FOLD] = grid_of(kg_ceil_div(outputs, THREADS), THREADS);
        grids->grids[FOLD].early = true;
        grids->scratch = (size_t)kg_ceil_div(outputs * plan->config.split_k * 4, 256) * 256;
    }
    grids->scratch += (size_t)packed + 2 * PACK_BLOCKS * 8;
    kg_cuda_start_early(plan->group, plan->facts, grids);
}

// ---- Time, and the config by rule ----

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[is_f16(plan) ? KG_F16 : KG_BF16] / products_of(plan);
}

static double read_bytes(const struct kg_cuda_contract_plan *plan, int operand)
{
    return kg_dtypes[kg_cuda_contract_dtype(plan, operand)].bits / 8;
}

// Bytes of one row (or column) per K element, in terms.
static double term_bytes(const struct kg_cuda_contract_plan *plan, int operand)
{
    enum { TERM = 2 };
    return TERM * terms_of(plan, operand);
}

// `adding` is the extra time of a stage to add its accumulators to the total, for two consumers and
// for one, measured on f32 cubes of 2048 and 4096; fewer products hide less of it. Shared memory
// is filled with terms, which the pre-pass writes.
static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    const double all_products = 6, adding = plan->config.tile_m > LINES ? 0.03 : 0.1;
    double lines[2] = {plan->config.tile_m, plan->config.tile_n}, issued = 0, read = 0, copied = 0;
    int products = products_of(plan);
    for (int operand = 0; operand < 2; operand++) {
        double across = (double)(operand ? plan->n : plan->m);
        double elements = (double)plan->batches * (double)plan->k * across;
        issued += lines[operand] * term_bytes(plan, operand);
        read += lines[operand] * read_bytes(plan, operand);
        copied += elements * (read_bytes(plan, operand) + term_bytes(plan, operand)) / 2;
    }
    return (struct kg_cuda_contract_cost_terms){
        .blocks_per_sm = blocks_of(plan),
        .multiply_seconds = kg_cuda_wgmma_stage_seconds(plan, rate(plan), products) *
                            (1 + adding * (all_products / products)),
        .copy_factor = issued / read,
        .packed_bytes = copied,
    };
}

static const int stages[] = {8, 7, 6, 5, 4, 3};

// Sets the tile with as many stages as fit.
static bool set_tile(struct kg_cuda_contract_plan *plan, int rows, int columns, int split)
{
    plan->config.tile_m = rows;
    plan->config.tile_n = columns;
    plan->config.tile_k = STEPS;
    plan->config.split_k = split;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        plan->config.stages = stages[i];
        if (kg_cuda_contract_check(plan, NULL))
            return true;
    }
    return false;
}

static const struct {
    int rows, columns;
} tiles[] = {{128, 128}, {128, 192}, {128, 64}, {64, 128}, {64, 64}};
enum { TILES = sizeof tiles / sizeof *tiles, MAX_SPLIT_K = 128 };

// The expected time of the form that would be chosen otherwise; 0: it is contract/thin, which is
// better for few rows.
static double others_seconds(const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan other = *plan;
    other.form = &kg_cuda_contract_form_thin;
    other.config = other.form->defaults;
    if (other.form->guess(&other))
        return 0;
    other = *plan;
    other.form = &kg_cuda_contract_form_mma;
    other.config = other.form->defaults;
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
        for (int splits = 1; splits <= MAX_SPLIT_K; splits *= 2) {
            if (!set_tile(&tried, tiles[i].rows, tiles[i].columns, splits))
                break;
            const struct kg_cuda_contract_cost_terms its = cost_terms(&tried);
            double seconds = kg_cuda_contract_seconds(&tried, &its);
            if (seconds < least) {
                least = seconds;
                plan->config = tried.config;
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
        int limit = plan->config.stages;
        for (; plan->config.stages >= 3 && plan->config.stages > limit - FEWER;
             plan->config.stages--)
            kg_cuda_contract_list_splits(plan, MAX_SPLIT_K, listing);
    }
}

static const struct kg_cuda_contract_form form = {
    .defaults = KG_CONTRACT_DEFAULTS(LINES, STEPS),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 128, 64)},
            {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 64, 192)},
            {"stages", KG_CONTRACT_CHOICES(stages, 8, 3, 4, 5, 6, 7)},
            {KG_CONTRACT_SPLIT_K},
            {KG_CONTRACT_RASTER},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/wgmma.cuh",
                  "cuda/contract_row8.cuh", "cuda/contract_wgmma_f32.cuh"},
    .takes = takes,
    .guess = guess,
    .valid = valid,
    .list = list,
    .cost_terms = cost_terms,
    .emit = emit,
    .grids = grids,
    .rate = rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_wgmma_f32, form, "contract/wgmma_f32",
                   "matrix products in f32 on the tensor cores of sm_90a, as sums of bf16", true,
                   false);
