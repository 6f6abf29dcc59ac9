// Products of few rows with quantised weights, kernels/cuda/contract_scaled.cuh: bound by reading
// the weights. They are converted in registers and multiplied by mma.sync, on Ampere and later.

#include "gen/cuda/contract/cuda_contract_scaled.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/bound.h"

#include <math.h>

enum { WARP = 32, STEP = 16, LINES = 8 }; // rows of an instruction, and lanes side by side
enum { OF_LANE = 4 };                     // K indices of a step that a lane has
enum { MAX_BLOCKS = 1 << 30 };

// ---- The shape of a block ----

// Columns of a lane, and of a warp.
static int lane_columns(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_of_word(plan) * plan->config.words;
}

static int warp_columns(const struct kg_cuda_contract_plan *plan)
{
    return LINES * lane_columns(plan);
}

static int warps_across(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_n / warp_columns(plan);
}

static int warps_of(const struct kg_cuda_contract_plan *plan)
{
    return warps_across(plan) * plan->config.warps;
}

static int steps_ahead(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_k / STEP;
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { GAP = 8, SUM = 4 };
    return (int64_t)plan->config.warps * plan->config.tile_m * (plan->config.tile_n + GAP) * SUM;
}

// Accumulators, of a run and of all; scales and zero points; the steps ahead; addresses.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 44 };
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    int words = plan->config.words, rows = plan->config.tile_m / LINES;
    int columns = lane_columns(plan), sums = columns / 2 * rows * 4;
    int offsets = scaled->offset ? columns + 4 * rows : 0;
    bool adds_runs = scaled->group > 0 && !kg_cuda_scaled_rounds(plan);
    return sums * (adds_runs ? 2 : 1) + columns * (scaled->zero_count > 0 ? 2 : 1) + offsets +
           steps_ahead(plan) * (4 * words + 2 * rows) + OTHERS;
}

static int blocks_per_sm(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_contract_blocks_per_sm(plan, WARP * warps_of(plan), registers_of(plan),
                                          shared_bytes(plan));
}

// ---- Validity ----

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    return kg_cuda_scaled_takes(plan, reason) &&
           (!kg_cuda_scaled_is_lines(plan) ||
            kg_cuda_contract_refuse(reason, "weights that are adjacent along the sum")) &&
           (!kg_cuda_scaled_is_packed(plan) || kg_cuda_contract_refuse(reason, "packed weights"));
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    if (plan->config.swap != !kg_cuda_scaled_weights(plan) || plan->config.raster != 0)
        return kg_cuda_contract_refuse(reason, "this form has one order of operands and of tiles");
    if (plan->k > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "the sum is longer than 2^30");
    if (group % plan->config.tile_k != 0)
        return kg_cuda_contract_refuse(reason, "scales change while a tile is multiplied");
    if (plan->config.tile_m > LINES && plan->config.tile_m / 2 >= kg_cuda_scaled_rows(plan))
        return kg_cuda_contract_refuse(reason, "half the tile covers the output");
    if (plan->config.tile_n > warp_columns(plan) &&
        plan->config.tile_n / 2 >= kg_cuda_scaled_columns(plan))
        return kg_cuda_contract_refuse(reason, "half the tile covers the output");
    if (plan->config.warps > 1 &&
        (int64_t)plan->config.tile_k * plan->config.warps * plan->config.split_k >=
            2 * (plan->k + plan->config.tile_k))
        return kg_cuda_contract_refuse(reason, "more warps than K tiles");
    const struct kg_cuda_scaled_block block = {
        .warps = warps_of(plan),
        .across = warps_across(plan),
        .registers = registers_of(plan),
        .shared_bytes = shared_bytes(plan),
    };
    return kg_cuda_scaled_valid_block(plan, &block, reason);
}

// ---- Expected time ----

// Fitted to 155 kernels on an H200, cold caches: 9% off on average. One of the best is chosen even
// where all are off alike.
static const struct {
    double launch;    // fixed, with the epilogue
    double fold;      // of a second launch that adds up K slices
    double latency;   // from a load to its use, at full load
    double bandwidth; // share of the device's that is reached
    double of_sm;     // bytes a second that one SM receives at most
    double issued;    // instructions for each weight of a lane: loads, conversion
    double by_matrix; // cycles of an instruction of the tensor core, of a quarter of an SM
    double reread;    // share of the time to read everything that each further row of tiles takes
    double exposed;   // share of what is shorter that does not overlap
    double single;    // factor where elements are loaded one by one
    double each;      // from such an element to the next one of its lane
} measured = {6.2e-6, 4.7e-6, 0.6e-6, 0.53, 33e9, 1.75, 16, 0.34, 0.17, 20, 85e-9};

// The time of an SM to convert and multiply everything it has, if its warps are never idle.
static double busy_seconds(const struct kg_cuda_contract_plan *plan, int64_t of_unit, double steps)
{
    enum { QUARTERS = 4 };
    double clock = plan->facts->clock > 0 ? plan->facts->clock : 1e9;
    int rows = plan->config.tile_m / LINES, columns = lane_columns(plan);
    double issued = OF_LANE * columns * measured.issued * kg_cuda_scaled_conversion(plan) +
                    rows * 8 + columns / 2.0 * rows;
    double multiplied = columns / 2.0 * rows * measured.by_matrix;
    double one = issued > multiplied ? issued : multiplied;
    return (double)of_unit * steps * warps_across(plan) * one / (QUARTERS * clock);
}

// Whether lanes load whole words of weights, and four rows' elements at once.
static bool is_whole(const struct kg_cuda_contract_plan *plan)
{
    int rows = 1 - kg_cuda_scaled_weights(plan);
    return kg_cuda_scaled_is_whole(plan, plan->config.words) && plan->k_major[rows] &&
           kg_cuda_contract_is_whole_in(plan, rows, OF_LANE);
}

static double seconds(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_device_facts *facts = plan->facts;
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    if (blocks == 0)
        return measured.launch;
    int64_t of_unit = kg_ceil_div(blocks, facts->units), resident = blocks_per_sm(plan);
    resident = of_unit < resident ? of_unit : resident;
    double steps = (double)kg_ceil_div(kg_ceil_div(plan->k, STEP), plan->config.split_k);
    double flying =
        (double)resident * warps_of(plan) * WARP * steps_ahead(plan) * plan->config.words * STEP;
    double of_sm = flying / measured.latency;
    of_sm = of_sm < measured.of_sm ? of_sm : measured.of_sm;
    // What the busiest SM reads, and what the memory delivers to all.
    double bytes = kg_cuda_scaled_bytes(plan),
           tiles = (double)kg_ceil_div(kg_cuda_scaled_rows(plan), plan->config.tile_m);
    double weights = (double)plan->config.tile_n * (double)plan->k * kg_cuda_scaled_bits(plan) / 8 /
                     plan->config.split_k;
    double rows = (double)plan->config.tile_m * (double)plan->k * 2 / plan->config.split_k;
    double unit = (double)of_unit * (weights + rows) / of_sm;
    double memory =
        bytes / (facts->bandwidth * measured.bandwidth) * (1 + measured.reread * (tiles - 1));
    double busy = busy_seconds(plan, of_unit, steps);
    if (!is_whole(plan)) {
        double turns = ceil((double)of_unit / (double)resident) * ceil(steps / plan->config.warps);
        unit *= measured.single;
        busy = fmax(busy * measured.single, turns * OF_LANE * lane_columns(plan) * measured.each);
    }
    double longest = unit > memory ? unit : memory;
    longest = busy > longest ? busy : longest;
    double sum = measured.launch + longest + measured.exposed * (unit + memory + busy - longest);
    if (plan->config.split_k == 1)
        return sum;
    double outputs = (double)plan->batches * (double)plan->m * (double)plan->n;
    return sum + measured.fold + 8 * plan->config.split_k * outputs / facts->bandwidth;
}

// ---- Choice ----

typedef void take_plan(struct kg_cuda_contract_plan *plan, void *user);

static void each_config(struct kg_cuda_contract_plan *plan, take_plan *take, void *user)
{
    enum { MAX_ROWS = 32, MAX_WORDS = 4, MAX_COLUMNS = 512, MAX_DEPTH = 128, MAX_SPLIT_K = 16 };
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    plan->config.swap = !kg_cuda_scaled_weights(plan);
    int of_word = LINES * kg_cuda_scaled_of_word(plan);
    for (int rows = LINES; rows <= MAX_ROWS; rows *= 2)
        for (int words = 1; words <= MAX_WORDS; words *= 2)
            for (int columns = of_word * words; columns <= MAX_COLUMNS; columns *= 2)
                for (int depth = STEP; depth <= MAX_DEPTH; depth += STEP)
                    for (int warps = 1; warps <= KG_SCALED_WARPS; warps *= 2)
                        for (int splits = 1; splits <= MAX_SPLIT_K; splits *= 2) {
                            if (group % depth != 0 || (depth & (depth - 1) && group == 0))
                                continue;
                            plan->config.tile_m = rows;
                            plan->config.words = words;
                            plan->config.tile_n = columns;
                            plan->config.tile_k = depth;
                            plan->config.warps = warps;
                            plan->config.split_k = splits;
                            take(plan, user);
                        }
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    each_config(plan, kg_cuda_scaled_take_listed, listing);
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_best best = {.seconds = seconds, .least = -1};
    each_config(plan, kg_cuda_contract_take_best, &best);
    if (best.least < 0)
        return false;
    plan->config = best.config;
    return true;
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    return (struct kg_cuda_contract_cost_terms){.blocks_per_sm = blocks_per_sm(plan)};
}

// ---- Source ----

// Function 0 reads whole words of weights and four elements of rows at once, 1 neither.
static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    int threads = WARP * warps_of(plan);
    kg_cuda_scaled_emit_weights(code, plan);
    kg_cuda_open_body(code, plan->group, plan->entry, "bool WHOLE");
    kg_cuda_scaled_declare(code, plan);
    kg_code_begin(code);
    kg_text_add(code->text, "kg_contract_scaled<kg_scaled_tile<");
    kg_cuda_scaled_number(code->text, plan);
    kg_text_format(
        code->text, ", %d, %d, %d, %d, %d, %lld>, %d, WHOLE, WHOLE>(job, weights, scratch);",
        plan->config.tile_m, plan->config.words, warps_across(plan), plan->config.warps,
        steps_ahead(plan), (long long)kg_cuda_scaled_operand(plan)->group, plan->config.split_k);
    kg_code_end(code);
    kg_code_close(code);
    kg_cuda_function(code, plan->group, plan->entry, 0, threads, plan->config.maxnreg, "true");
    kg_cuda_function(code, plan->group, plan->entry, 1, threads, plan->config.maxnreg, "false");
    kg_cuda_contract_emit_fold(code, plan, 2);
}

// ---- Launches ----

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    struct kg_grid grid = {.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                           .threads = {WARP * warps_of(plan), 1, 1},
                           .shared = (int)shared_bytes(plan)};
    kg_cuda_contract_launch(plan, grid, is_whole(plan) ? 0 : 1, 2, grids);
}

static const struct kg_cuda_contract_form form = {
    .defaults = KG_CONTRACT_DEFAULTS(STEP, STEP),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 8, 16, 32)},
            {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 32, 64, 256, 512)},
            {"tile_k", KG_CONTRACT_CHOICES(tile_k, 64, 32, 16, 128, 48, 80, 96, 112)},
            {"words", KG_CONTRACT_CHOICES(words, 2, 1, 4)},
            {"warps", KG_CONTRACT_CHOICES(warps, 4, 1, 2, 8, 16)},
            {KG_CONTRACT_SPLIT_K},
            {"swap", KG_CONTRACT_CHOICES(swap, 0, 1)},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor.cuh", "cuda/contract_mma_tile.cuh",
                  "cuda/contract_row8.cuh", "cuda/scaled_number.cuh", "cuda/scaled_bytes.cuh",
                  "cuda/scaled_rounded.cuh", "cuda/contract_scaled.cuh"},
    .takes = takes,
    .guess = guess,
    .valid = valid,
    .list = list,
    .cost_terms = cost_terms,
    .seconds = seconds,
    .emit = emit,
    .grids = grids,
    .rate = kg_cuda_scaled_rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_scaled, form, "contract/scaled",
                   "products of few rows with quantised weights, converted in registers", true,
                   false);
