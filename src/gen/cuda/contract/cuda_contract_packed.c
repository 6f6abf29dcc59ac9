// Products of few rows with packed 4-bit weights, kernels/cuda/contract_packed.cuh: bound by
// reading the weights. Each warp has a ring of panels in shared memory, which it multiplies by
// mma.sync, on Ampere and later.

#include "gen/cuda/contract/cuda_contract_tall.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/bound.h"

#include <math.h>

enum { WARP = 32, STEP = 16, LINES = 8 };      // of an instruction: K indices, rows
enum { PANEL_STEPS = 64, PANEL_COLUMNS = 16 }; // K indices and columns of a panel
enum { PANEL_BYTES = PANEL_STEPS * PANEL_COLUMNS / 2 };
enum { MAX_BLOCKS = 1 << 30 };

// ---- The shape of a block ----

static int warp_columns(const struct kg_cuda_contract_plan *plan)
{
    return PANEL_COLUMNS * plan->config.words;
}

static int warps_across(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_n / warp_columns(plan);
}

static int warps_of(const struct kg_cuda_contract_plan *plan)
{
    return warps_across(plan) * plan->config.warps;
}

// Runs of a panel that have scales of their own.
static int runs_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    return group % PANEL_STEPS == 0 ? 1 : group % (2 * STEP) == 0 ? 2 : 4;
}

// Bytes of a warp's stage.
static int stage_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { LINE = PANEL_STEPS * 2, SCALES = 32, ZEROS = 16 };
    int factors = kg_cuda_scaled_operand(plan)->group > 0 ? runs_of(plan) * (SCALES + ZEROS) : 0;
    return plan->config.words * (PANEL_BYTES + factors) + plan->config.tile_m * LINE;
}

// The stages of all warps, whose place sums take later, and their barriers.
static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { GAP = 4, SUM = 4, BARRIER = 8 };
    const struct kg_cuda_contract_config *config = &plan->config;
    int64_t stages = (int64_t)warps_of(plan) * config->stages * stage_bytes(plan);
    int64_t sums = (int64_t)config->warps * config->tile_m * (config->tile_n + GAP) * SUM;
    return (stages > sums ? stages : sums) + (int64_t)warps_of(plan) * config->stages * BARRIER;
}

// Accumulators, of a run and of all; words, zero points and the rows of two steps; addresses.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    enum { OTHERS = 40, OF_SUM = 4, OF_ROWS = 4, OF_STRIP = 6 };
    bool rounds = kg_cuda_scaled_rounds(plan);
    int strips = plan->config.words, rows = (int)kg_ceil_div(plan->config.tile_m, LINES);
    int sums = strips * rows * OF_SUM;
    bool adds_runs = kg_cuda_scaled_operand(plan)->group > 0 && !rounds;
    return sums * (adds_runs ? 2 : 1) + strips * (rounds ? OF_STRIP + 2 : OF_STRIP) +
           rows * OF_ROWS + (kg_cuda_scaled_sums_rows(plan) ? rows * OF_SUM + 2 : 0) + OTHERS;
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
           (kg_cuda_scaled_is_packed(plan) ||
            kg_cuda_contract_refuse(reason, "the weights are not packed"));
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_cuda_contract_config *config = &plan->config;
    if (config->swap != !kg_cuda_scaled_weights(plan))
        return kg_cuda_contract_refuse(reason, "this form has one order of operands");
    if (plan->k > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "the sum is longer than 2^30");
    if (plan->m > INT32_MAX / 2 || plan->n > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "the output has a side longer than 2^30");
    if (kg_cuda_contract_tiles(plan) > MAX_BLOCKS / config->split_k)
        return kg_cuda_contract_refuse(reason, "more tiles than 2^30");
    if (config->tile_m > 1 && config->tile_m / 2 >= kg_cuda_scaled_rows(plan))
        return kg_cuda_contract_refuse(reason, "half the tile covers the output");
    if (config->tile_n >= kg_cuda_scaled_columns(plan) + PANEL_COLUMNS)
        return kg_cuda_contract_refuse(reason, "a smaller tile covers the output");
    if (config->tile_n % warp_columns(plan) != 0)
        return kg_cuda_contract_refuse(reason, "warps would have parts of strips");
    if (config->warps > 1 &&
        (int64_t)PANEL_STEPS * config->warps * config->split_k >= 2 * (plan->k + PANEL_STEPS))
        return kg_cuda_contract_refuse(reason, "more warps than panels");
    const struct kg_cuda_scaled_block block = {
        .warps = warps_of(plan),
        .across = warps_across(plan),
        .registers = registers_of(plan),
        .shared_bytes = shared_bytes(plan),
    };
    return kg_cuda_scaled_valid_block(plan, &block, reason);
}

// ---- Expected time ----

// Fitted to 514 kernels of 28 problems of 1 to 32 rows on an H200 with cold caches, 2026-11-30: of
// each problem the kernel with the least expected time is 5 % off, and takes 1.011 times as long as
// the fastest in the mean, 1.05 times at most; 1.015 times where its problem was left out of the
// fit.
static const struct {
    double launch;      // fixed, with the epilogue
    double fold;        // of a second launch that adds up K slices
    double sync;        // of a block, for each warp along K
    double latency;     // from a load to its use
    double of_sm;       // bytes a second that one SM receives at most
    double panel, rows; // cycles of a quarter of an SM for a panel, and more for each eight rows
    double run, of_run; // the same for each further run of a panel that has scales of its own
    double stage;       // cycles for what panels of strips share
    double own, beside; // cycles of a warp alone for a stage: fixed, and factor of its panels'
    double bandwidth;   // share of the device's that is reached
    double exposed;     // share of what is shorter that does not overlap, within an SM
    double overlap;     // the same of memory and SMs
    double pressure;    // share that each e-fold of bytes in flight beyond `flying` takes longer
    double flying;      // bytes of an SM
    double single;      // factor where rows are loaded by single elements
} measured = {5.7e-6, 3.27e-6, 0.078e-6, 0.337e-6, 86e9, 24.9, 29.8,  27,   6.8,
              31,     124,     1.28,     0.817,    0.31, 0.29, 0.082, 47e3, 8};

// Whether all panels are aligned if the tensor is, and those of adjacent columns adjacent.
static bool has_whole_panels(const struct kg_cuda_contract_plan *plan)
{
    enum { CODES = PANEL_STEPS * PANEL_COLUMNS };
    const struct kg_tensor *tensor = kg_cuda_scaled_operand(plan)->element->tensor;
    const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
    int across = tensor->rank - 2;
    return kg_cuda_is_whole(plan->group->problem, tensor, ~0u, CODES) &&
           (layout->shape[across] == 1 || layout->stride[across] == CODES);
}

// Whether eight elements of a row can be copied at once, and scales and zero points of as many
// columns, where they are arrays.
static bool is_whole(const struct kg_cuda_contract_plan *plan)
{
    enum { ELEMENTS = 8 };
    int rows = 1 - kg_cuda_scaled_weights(plan);
    return has_whole_panels(plan) && plan->k_major[rows] &&
           kg_cuda_contract_is_whole_in(plan, rows, ELEMENTS) &&
           kg_cuda_scaled_has_whole_factors(plan, ELEMENTS);
}

// Bytes of the rows that a panel is multiplied by.
static double line_bytes(const struct kg_cuda_contract_plan *plan)
{
    double rows = (double)kg_cuda_scaled_rows(plan);
    return fmin(rows, plan->config.tile_m) * PANEL_STEPS * 2;
}

// The time of an SM for blocks that it runs at once.
static double round_seconds(const struct kg_cuda_contract_plan *plan, double blocks)
{
    enum { QUARTERS = 4 };
    const struct kg_cuda_contract_config *config = &plan->config;
    double clock = plan->facts->clock > 0 ? plan->facts->clock : 1e9;
    double panels = (double)kg_ceil_div(kg_ceil_div(plan->k, PANEL_STEPS), config->split_k);
    double along = ceil(panels / config->warps), warps = warps_of(plan);
    double tiles = (double)kg_ceil_div(config->tile_m, LINES); // of rows
    double runs = kg_cuda_scaled_operand(plan)->group > 0 ? runs_of(plan) - 1 : 0;
    double of_run = kg_cuda_scaled_rounds(plan) ? 0 : measured.of_run;
    double of_panel = measured.panel * kg_cuda_scaled_conversion(plan) + measured.rows * tiles +
                      runs * (measured.run + of_run * tiles);
    double alone = (measured.own + measured.beside * config->words * of_panel) / clock;
    double waited = along * fmax(measured.latency / (config->stages - 1), alone);
    // Of the quarter that has most of the warps.
    double issued = ceil(blocks * warps / QUARTERS) * along *
                    (config->words * of_panel + measured.stage) / clock;
    double bytes = panels * (config->tile_n / (double)PANEL_COLUMNS * PANEL_BYTES +
                             warps_across(plan) * line_bytes(plan));
    double received = blocks * bytes / measured.of_sm;
    if (!is_whole(plan))
        issued *= measured.single;
    double longest = fmax(fmax(waited, issued), received);
    return measured.sync * config->warps + longest +
           measured.exposed * (waited + issued + received - longest);
}

static double seconds(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_device_facts *facts = plan->facts;
    const struct kg_cuda_contract_config *config = &plan->config;
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    int64_t blocks = kg_cuda_contract_tiles(plan) * config->split_k;
    if (blocks == 0)
        return measured.launch;
    int64_t of_unit = kg_ceil_div(blocks, facts->units), resident = blocks_per_sm(plan);
    int64_t at_once = of_unit < resident ? of_unit : resident, rest = of_unit % at_once;
    double units = (double)(of_unit / at_once) * round_seconds(plan, (double)at_once);
    if (rest > 0)
        units += round_seconds(plan, (double)rest);
    enum { OF_FACTORS = 48 };
    double flying = (double)at_once * warps_of(plan) * (config->stages - 1) *
                    (config->words * (PANEL_BYTES + OF_FACTORS) + line_bytes(plan));
    double pressure = 1 + measured.pressure * fmax(0, log(flying / measured.flying));
    double memory = kg_cuda_scaled_bytes(plan) / (facts->bandwidth * measured.bandwidth) * pressure;
    double sum = measured.launch + fmax(units, memory) + measured.overlap * fmin(units, memory);
    if (config->split_k == 1)
        return sum;
    double outputs = (double)plan->batches * (double)plan->m * (double)plan->n;
    return sum + measured.fold + 8 * config->split_k * outputs / facts->bandwidth;
}

// ---- Choice ----

typedef void take_plan(struct kg_cuda_contract_plan *plan, void *user);

static void each_config(struct kg_cuda_contract_plan *plan, take_plan *take, void *user)
{
    enum { MAX_ROWS = 32, MAX_STRIPS = 8, MAX_COLUMNS = 256, MAX_STAGES = 8, MAX_SPLIT_K = 16 };
    plan->config.swap = !kg_cuda_scaled_weights(plan);
    for (int rows = 1; rows <= MAX_ROWS; rows *= 2)
        for (int strips = 1; strips <= MAX_STRIPS; strips++)
            for (int columns = PANEL_COLUMNS * strips; columns <= MAX_COLUMNS; columns *= 2)
                for (int stages = 3; stages <= MAX_STAGES; stages += stages < 4 ? 1 : 2)
                    for (int warps = 1; warps <= KG_SCALED_WARPS; warps *= 2)
                        for (int splits = 1; splits <= MAX_SPLIT_K;
                             splits += splits < 4 ? 1 : splits) {
                            plan->config.tile_m = rows;
                            plan->config.words = strips;
                            plan->config.tile_n = columns;
                            plan->config.stages = stages;
                            plan->config.warps = warps;
                            plan->config.split_k = splits;
                            take(plan, user);
                        }
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    each_config(plan, kg_cuda_scaled_take_listed, listing);
}

// Of those 28 problems, of up to 32 rows, this form was the faster in 24, scaled_wgmma in 4; by
// expected times alone 5 of the 24 would be left to scaled_wgmma, and what is chosen would take
// 1.015 times as long as the faster one in the mean, instead of 1.006 times. With more rows
// scaled_wgmma takes about what is expected.
static bool guess(struct kg_cuda_contract_plan *plan)
{
    enum { FEW_ROWS = 32 };
    struct kg_cuda_contract_best best = {.seconds = seconds, .least = -1};
    each_config(plan, kg_cuda_contract_take_best, &best);
    if (best.least < 0)
        return false;
    plan->config = best.config;
    double other = kg_cuda_tall_expected(plan);
    double slightly = kg_cuda_contract_m_after_swap(plan) <= FEW_ROWS ? 1.1 : 1;
    return other == 0 || best.least <= slightly * other;
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    return (struct kg_cuda_contract_cost_terms){.blocks_per_sm = blocks_per_sm(plan)};
}

// ---- Source ----

// Function 0 copies 16 bytes of weights, of rows and of what belongs to columns at once, 1 neither
// of them, 2 weights only.
static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    int threads = WARP * warps_of(plan);
    kg_cuda_scaled_emit_weights(code, plan);
    kg_cuda_open_body(code, plan->group, plan->entry, "bool ALIGNED, bool WHOLE");
    kg_cuda_scaled_declare(code, plan);
    kg_code_begin(code);
    kg_text_add(code->text, "kg_contract_packed<kg_packed_tile<");
    kg_cuda_scaled_panel_number(code->text, plan);
    kg_text_format(
        code->text, ", %d, %d, %d, %d, %d, %lld>, %d, ALIGNED, WHOLE>(job, weights, scratch);",
        plan->config.tile_m, plan->config.words, warps_across(plan), plan->config.warps,
        plan->config.stages, (long long)kg_cuda_scaled_operand(plan)->group, plan->config.split_k);
    kg_code_end(code);
    kg_code_close(code);
    kg_cuda_function(code, plan->group, plan->entry, 0, threads, plan->config.maxnreg,
                     "true, true");
    kg_cuda_function(code, plan->group, plan->entry, 1, threads, plan->config.maxnreg,
                     "false, false");
    kg_cuda_function(code, plan->group, plan->entry, 2, threads, plan->config.maxnreg,
                     "true, false");
    kg_cuda_contract_emit_fold(code, plan, 3);
}

// ---- Launches ----

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t blocks = kg_cuda_contract_tiles(plan) * plan->config.split_k;
    struct kg_grid grid = {.blocks = {blocks, 1, 1},
                           .threads = {WARP * warps_of(plan), 1, 1},
                           .shared = (int)shared_bytes(plan)};
    int whole = !has_whole_panels(plan) ? 1 : is_whole(plan) ? 0 : 2;
    kg_cuda_contract_launch(plan, grid, whole, 3, grids);
}

static const struct kg_cuda_contract_form form = {
    .defaults = KG_CONTRACT_DEFAULTS(STEP, PANEL_STEPS),
    .parameters =
        {
            {"tile_m", KG_CONTRACT_CHOICES(tile_m, 8, 1, 2, 4, 16, 32)},
            {"tile_n",
             KG_CONTRACT_CHOICES(tile_n, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)},
            {"strips", KG_CONTRACT_CHOICES(words, 1, 2, 3, 4, 5, 6, 7, 8)},
            {"warps", KG_CONTRACT_CHOICES(warps, 8, 1, 2, 4, 16)},
            {"stages", KG_CONTRACT_CHOICES(stages, 4, 2, 3, 6, 8)},
            {KG_CONTRACT_SPLIT_K},
            {"swap", KG_CONTRACT_CHOICES(swap, 0, 1)},
            {KG_CONTRACT_MAXNREG},
        },
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/tensor.cuh", "cuda/wgmma.cuh",
                  "cuda/contract_mma_tile.cuh", "cuda/contract_row8.cuh", "cuda/scaled_number.cuh",
                  "cuda/scaled_bytes.cuh", "cuda/scaled_rounded.cuh", "cuda/contract_scaled.cuh",
                  "cuda/contract_packed_feed.cuh", "cuda/contract_packed.cuh"},
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

KG_CONTRACT_FAMILY(kg_cuda_contract_packed, form, "contract/packed",
                   "products of few rows with packed 4-bit weights", true, false);
