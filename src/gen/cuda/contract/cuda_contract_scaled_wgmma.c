// Products with quantised weights on the tensor cores of sm_90a,
// kernels/cuda/contract_scaled_wgmma.cuh: the shape of a block, the validity of a config, the
// source.

#include "gen/cuda/contract/cuda_contract_tall.h"
#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/skeleton.h"

#include <string.h>

enum { GROUP = 128 }; // threads of a warp group
enum { ROWS };        // the parameter of a tile's rows

static const struct kg_cuda_contract_form form;

// ---- The shape of a block ----

bool kg_cuda_tall_has_runs(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_operand(plan)->group > 0;
}

bool kg_cuda_tall_stages_scales(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_has_runs(plan) && kg_cuda_scaled_scales_of_runs(plan);
}

bool kg_cuda_tall_stages_zeros(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_stages_scales(plan) && kg_cuda_scaled_zeros_of_runs(plan);
}

bool kg_cuda_tall_stages_offsets(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_stages_scales(plan) && kg_cuda_scaled_offsets_of_runs(plan);
}

int kg_cuda_tall_maps(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_stages_offsets(plan) ? KG_TALL_MAPS
           : plan->config.buffered           ? KG_TALL_MAP_OFFSETS
                                             : KG_TALL_MAP_OUT;
}

// K indices of a stage that share their scales wherever it begins.
static int64_t run_of_stage(const struct kg_cuda_contract_plan *plan)
{
    enum { SHORT = 16, MEDIUM = 32 };
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    return group % KG_TALL_DEPTH == 0 ? KG_TALL_DEPTH : group % MEDIUM == 0 ? MEDIUM : SHORT;
}

int64_t kg_cuda_tall_groups_of_stage(const struct kg_cuda_contract_plan *plan)
{
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    return (KG_TALL_DEPTH - 1 + group - run_of_stage(plan)) / group + 1;
}

// Runs within a stage whose sums are scaled, one if they are as long or longer.
static int64_t runs_of_stage(const struct kg_cuda_contract_plan *plan)
{
    return KG_TALL_DEPTH / run_of_stage(plan);
}

int kg_cuda_tall_teams(const struct kg_cuda_contract_plan *plan)
{
    enum { FEW = 32 * KG_TALL_COLUMNS, FEWER = FEW / 2 }; // sums, which are registers as runs' are
    bool fewer = kg_cuda_scaled_sums_rows(plan) ||
                 (kg_cuda_scaled_rounds(plan) && !kg_cuda_scaled_has_half_scales(plan));
    bool is_crowded = fewer && kg_cuda_tall_has_runs(plan) && kg_cuda_tall_consumers(plan) > 1;
    return plan->config.tile_m * plan->config.tile_n <= (is_crowded ? FEWER : FEW) ? 2 : 1;
}

int kg_cuda_tall_consumers(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_n < KG_TALL_COLUMNS / 2 ? 1 : 2;
}

static int all_consumers(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_teams(plan) * kg_cuda_tall_consumers(plan);
}

int kg_cuda_tall_stage_step(const struct kg_cuda_contract_plan *plan)
{
    int teams = kg_cuda_tall_teams(plan);
    return teams == 1 ? 1 : teams * kg_cuda_tall_unit(plan) / KG_TALL_DEPTH;
}

int kg_cuda_tall_least_stages(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_teams(plan) == 1 ? 3 : 5;
}

int kg_cuda_tall_threads(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (1 + all_consumers(plan));
}

// Registers of a thread at first; the producer then gives some to the consumers.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    return all_consumers(plan) <= 2 ? 168 : 96;
}

static int64_t stage_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { ALIGNMENT = 128 };
    int columns = plan->config.tile_n;
    int64_t bytes = (int64_t)(plan->config.tile_m * 2 + columns * kg_cuda_scaled_bits(plan) / 8) *
                    KG_TALL_DEPTH;
    if (kg_cuda_tall_stages_scales(plan))
        bytes += kg_cuda_tall_groups_of_stage(plan) * columns * 2 *
                 (kg_cuda_tall_stages_offsets(plan) ? 2 : 1);
    if (kg_cuda_tall_stages_zeros(plan))
        bytes += kg_ceil_div(kg_cuda_tall_groups_of_stage(plan) * columns *
                                 kg_cuda_scaled_zero_bits(plan) / 8,
                             ALIGNMENT) *
                 ALIGNMENT;
    return kg_ceil_div(bytes, KG_TALL_ROUND) * KG_TALL_ROUND;
}

// Whether each team of consumers finishes half of a tile, not the first one all.
static bool has_halves(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_teams(plan) > 1 && plan->config.split_k <= 1;
}

// Sums of a tile that are exchanged, between blocks or teams: in halves of whole instructions.
static int64_t exchanged_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { SUM = 4 };
    int64_t whole = KG_TALL_ROWS_OF_INSTRUCTION * (has_halves(plan) ? 2 : 1);
    return kg_ceil_div(plan->config.tile_m, whole) * whole * plan->config.tile_n * SUM;
}

int64_t kg_cuda_tall_shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { BARRIERS = 16, SUM = 4, ELEMENT = 2 };
    int64_t exchange = kg_cuda_tall_teams(plan) > 1 ? exchanged_bytes(plan) : 0;
    if (plan->config.buffered)
        exchange += (int64_t)plan->config.tile_m * plan->config.tile_n * ELEMENT;
    if (kg_cuda_scaled_sums_rows(plan)) // sums of rows, of the runs of two stages
        exchange += all_consumers(plan) * 2 * plan->config.tile_m * runs_of_stage(plan) * SUM;
    return KG_TALL_ROUND + plan->config.stages * (stage_bytes(plan) + BARRIERS) + exchange;
}

int kg_cuda_tall_unit(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_has_runs(plan) &&
                   kg_cuda_scaled_operand(plan)->group % (2 * KG_TALL_DEPTH) == 0
               ? 2 * KG_TALL_DEPTH
               : KG_TALL_DEPTH;
}

int64_t kg_cuda_tall_units(const struct kg_cuda_contract_plan *plan)
{
    return kg_ceil_div(plan->k, kg_cuda_tall_unit(plan));
}

bool kg_cuda_tall_is_divided(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.split_k != 1;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t kg_cuda_tall_blocks(const struct kg_cuda_contract_plan *plan)
{
    int64_t limit = plan->facts->units > 0 ? plan->facts->units : 1;
    int64_t tiles = kg_cuda_contract_tiles(plan), units = kg_cuda_tall_units(plan);
    if (plan->config.split_k == 0)
        return least_of(limit, tiles * units);
    // As many slices as there are SMs and units of work for: sizes may be others than those chosen
    // for.
    int64_t slices = least_of(plan->config.split_k, units);
    if (tiles > 0)
        slices = least_of(slices, limit / tiles);
    return slices > 1 ? tiles * slices : least_of(limit, tiles);
}

int64_t kg_cuda_tall_partial_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { FLAG = 8 };
    int readers = plan->config.split_k > 1 ? plan->config.split_k : 1; // of a block's partial tile
    int64_t of_block = exchanged_bytes(plan) +
                       kg_cuda_tall_consumers(plan) * (has_halves(plan) ? 2 : 1) * FLAG * readers;
    int64_t bytes = kg_cuda_tall_is_divided(plan) ? plan->facts->units * of_block : 0;
    return kg_ceil_div(bytes, KG_TALL_ROUND) * KG_TALL_ROUND;
}

bool kg_cuda_tall_sizes_fit(const struct kg_cuda_contract_plan *plan)
{
    enum { MOST = INT32_MAX / 2 };
    return plan->m <= MOST && plan->n <= MOST && plan->k <= MOST && plan->batches <= MOST &&
           kg_cuda_contract_tiles(plan) <= MOST / (kg_cuda_tall_units(plan) + 1);
}

// Rows of a tile whose accumulators leave room in the registers for zero points that are loaded a
// run ahead or, with one instruction, for scaled sums of f16.
static int most_rows(const struct kg_cuda_contract_plan *plan)
{
    enum { MOST = 144, BESIDE_ZEROS = 120, OF_INSTRUCTION = 256, SCALED = 192 };
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    bool varies = scaled->zero_count > 0 && scaled->least_zero < scaled->greatest_zero;
    bool has_runs = kg_cuda_tall_has_runs(plan);
    bool beside_zeros = has_runs && varies && !kg_cuda_tall_stages_scales(plan);
    if (plan->config.tile_n == KG_TALL_COLUMNS)
        return beside_zeros ? BESIDE_ZEROS : MOST;
    bool scales_sums =
        has_runs && !kg_cuda_scaled_rounds(plan) && kg_cuda_scaled_dtype(plan) == KG_F16;
    return beside_zeros || scales_sums ? SCALED : OF_INSTRUCTION;
}

// Rows of the next smaller tile of the space; 0: there is none.
static int64_t next_smaller(int rows)
{
    int64_t next = 0;
    for (int i = 0; i < form.parameters[ROWS].count; i++) {
        int64_t other = form.parameters[ROWS].choices[i];
        next = other < rows && other > next ? other : next;
    }
    return next;
}

// ---- Validity ----

bool kg_cuda_tall_takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    return kg_cuda_scaled_takes(plan, reason) &&
           (plan->k_major[1 - kg_cuda_scaled_weights(plan)] ||
            kg_cuda_contract_refuse(reason, "rows are not adjacent along the sum"));
}

double kg_cuda_tall_expected(const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan tall = *plan;
    tall.form = &form;
    tall.config = form.defaults;
    return kg_cuda_tall_takes(plan, NULL) && kg_cuda_tall_guess(&tall) ? kg_cuda_tall_seconds(&tall)
                                                                       : 0;
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (plan->config.swap != !kg_cuda_scaled_weights(plan) || plan->config.raster != 0)
        return kg_cuda_contract_refuse(reason, "this form has one order of operands and of tiles");
    if (!kg_cuda_tall_sizes_fit(plan))
        return kg_cuda_contract_refuse(reason, "sizes are too large for this form");
    if (plan->config.tile_n < KG_TALL_COLUMNS && !kg_cuda_scaled_is_packed(plan))
        return kg_cuda_contract_refuse(reason, "tiles of fewer columns need weights in panels");
    if (plan->config.split_k > 1 &&
        (plan->config.split_k > kg_cuda_tall_units(plan) ||
         kg_cuda_contract_tiles(plan) * plan->config.split_k > plan->facts->units))
        return kg_cuda_contract_refuse(reason, "more K slices than units of work or SMs");
    if (plan->config.buffered && kg_cuda_tall_teams(plan) > 1)
        return kg_cuda_contract_refuse(reason, "two teams of consumers leave no room for a tile");
    if (plan->config.buffered && plan->config.split_k > 1)
        return kg_cuda_contract_refuse(reason, "slices of K are finished from registers");
    if (plan->config.buffered && !kg_cuda_tall_can_buffer(plan))
        return kg_cuda_contract_refuse(reason, "TMA cannot store the output");
    if (plan->config.tile_m > most_rows(plan))
        return kg_cuda_contract_refuse(reason, "a thread would need more registers than it has");
    if (plan->config.stages < kg_cuda_tall_least_stages(plan))
        return kg_cuda_contract_refuse(reason, "fewer stages than consumers hold");
    if (plan->config.stages % kg_cuda_tall_stage_step(plan) != 0)
        return kg_cuda_contract_refuse(reason, "a stage would be another team's in its next turn");
    if (next_smaller(plan->config.tile_m) >= kg_cuda_scaled_rows(plan))
        return kg_cuda_contract_refuse(reason, "a smaller tile covers the output");
    return kg_cuda_tall_shared_bytes(plan) <= plan->facts->shared_bytes ||
           kg_cuda_contract_refuse(reason, "a block would need more shared memory than there is");
}

// ---- Source ----

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static const char *layout_of(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_is_packed(plan)  ? "KG_TALL_PANELS"
           : kg_cuda_scaled_is_lines(plan) ? "KG_TALL_LINES"
                                           : "KG_TALL_WORDS";
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan multiply = *plan;
    struct kg_text *text = code->text;
    long long group = (long long)kg_cuda_scaled_operand(plan)->group;
    bool gathers = kg_cuda_scaled_is_gathered(plan);
    multiply.waits = true;
    kg_cuda_scaled_emit_weights(code, plan);
    if (gathers) {
        kg_text_add(text, kg_skeleton_find("cuda/contract_scaled_wgmma_gathered.cuh"));
        kg_text_add(text, "\n");
        kg_cuda_scaled_emit_boxes(code, plan);
    }
    kg_cuda_wgmma_emit_instruction(
        code, plan,
        &(struct kg_wgmma_instruction){.columns = plan->config.tile_m,
                                       .dtype = kg_cuda_scaled_dtype(plan),
                                       .left_in_registers = true});
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, KG_TALL_PACK,
                                    KG_TALL_PACK_THREADS, 0, kg_cuda_tall_maps(plan));
    kg_cuda_scaled_declare(code, &multiply);
    kg_code_line(code, "kg_start_next();");
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code,
                 "kg_tall_pack_all<%d, %lld, %s, %s>(job, weights, kg_after(scratch) + %lld);",
                 kg_cuda_scaled_bits(plan), group, truth(kg_cuda_tall_stages_zeros(plan)),
                 layout_of(plan), (long long)kg_cuda_tall_partial_bytes(plan));
    kg_code_close(code);
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, KG_TALL_MULTIPLY,
                                    kg_cuda_tall_threads(plan), registers_of(plan),
                                    kg_cuda_tall_maps(plan));
    kg_cuda_scaled_declare(code, &multiply);
    kg_code_line(code, "kg_start_next();");
    kg_code_begin(code);
    kg_text_add(text, "using block = kg_tall_block<");
    kg_cuda_scaled_panel_number(text, plan);
    kg_text_format(text, ", %d, %d, %d, %d, %lld, %d, %s, %d, %s, %s, %s, %s_instruction>;",
                   plan->config.tile_m, plan->config.tile_n, plan->config.stages,
                   kg_cuda_tall_teams(plan), group, plan->config.split_k,
                   truth(kg_cuda_tall_stages_scales(plan)),
                   kg_cuda_tall_stages_zeros(plan) ? kg_cuda_scaled_zero_bits(plan) : 0,
                   truth(kg_cuda_tall_stages_offsets(plan)), truth(plan->config.buffered),
                   layout_of(plan), plan->entry);
    kg_code_end(code);
    if (gathers)
        kg_code_line(code, "const kg_gathered<%s_boxes> gathered = {{job}};", plan->entry);
    kg_code_line(code,
                 "kg_contract_scaled_wgmma<block>(%s, weights, {&map_%d, &map_%d, &map_%d, "
                 "&map_%d, &map_%d, %s, %s}, scratch);",
                 gathers ? "gathered" : "job", KG_TALL_MAP_ROWS, KG_TALL_MAP_LAST,
                 KG_TALL_MAP_WEIGHTS, KG_TALL_MAP_SCALES, KG_TALL_MAP_ZEROS,
                 plan->config.buffered ? "&map_5" : "nullptr",
                 kg_cuda_tall_stages_offsets(plan) ? "&map_6" : "nullptr");
    kg_code_close(code);
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, KG_TALL_ANY,
                                    KG_TALL_ANY_WARPS * 32, 0, kg_cuda_tall_maps(plan));
    kg_cuda_scaled_declare(code, &multiply);
    kg_code_line(code, "kg_start_next();");
    kg_code_line(code, "kg_wait_before();");
    kg_code_begin(code);
    kg_text_add(text, "kg_contract_scaled<kg_scaled_tile<");
    kg_cuda_scaled_number(text, plan);
    kg_text_format(text, ", %d, 1, 1, %d, 1, %lld>, 1, false, false>(job, weights, scratch);",
                   KG_TALL_ANY_ROWS, KG_TALL_ANY_WARPS, group);
    kg_code_end(code);
    kg_code_close(code);
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    (void)plan;
    return (struct kg_cuda_contract_cost_terms){.blocks_per_sm = 1};
}

static const struct kg_cuda_contract_form form =
    {
        .defaults = KG_CONTRACT_DEFAULTS(GROUP / 2, KG_TALL_DEPTH),
        .parameters =
            {
                {"tile_m",
                 KG_CONTRACT_CHOICES(tile_m, 64, 8, 16, 24, 32, 40, 48, 56, 72, 80, 88, 96, 104,
                                     112, 120, 128, 136, 144, 160, 192, 224, 256)},
                {"tile_n", KG_CONTRACT_CHOICES(tile_n, KG_TALL_COLUMNS, KG_TALL_COLUMNS / 2,
                                               KG_TALL_COLUMNS / 4)},
                {"stages",
                 KG_CONTRACT_CHOICES(stages, 8, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16)},
                {"split_k", KG_CONTRACT_CHOICES(split_k, 0, 1, 2, 3,
                                                4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)},
                {"swap", KG_CONTRACT_CHOICES(swap, 0, 1)},
                {"buffered", KG_CONTRACT_CHOICES(buffered, 0, 1)},
            },
        .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/tensor.cuh", "cuda/wgmma.cuh",
                      "cuda/contract_mma_tile.cuh", "cuda/contract_row8.cuh",
                      "cuda/contract_stream_k.cuh", "cuda/contract_partial.cuh",
                      "cuda/scaled_number.cuh", "cuda/scaled_bytes.cuh", "cuda/scaled_rounded.cuh",
                      "cuda/contract_scaled.cuh", "cuda/contract_scaled_wgmma_feed.cuh",
                      "cuda/contract_scaled_wgmma_lane.cuh", "cuda/contract_scaled_wgmma_words.cuh",
                      "cuda/contract_scaled_wgmma_loop.cuh", "cuda/contract_scaled_wgmma_end.cuh",
                      "cuda/contract_scaled_wgmma.cuh"},
        .takes = kg_cuda_tall_takes,
        .guess = kg_cuda_tall_guess,
        .valid = valid,
        .list = kg_cuda_tall_list,
        .cost_terms = cost_terms,
        .seconds = kg_cuda_tall_seconds,
        .emit = emit,
        .grids = kg_cuda_tall_grids,
        .rate = kg_cuda_scaled_rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_scaled_wgmma, form, "contract/scaled_wgmma",
                   "products with quantised weights on the tensor cores of sm_90a", true, false);
