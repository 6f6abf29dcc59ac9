// Products with quantised weights on the tensor cores of sm_90a:
// kernels/cuda/contract_scaled_wgmma.cuh. Function 0 copies weights, if TMA cannot load them in
// place, 1 multiplies. Where TMA cannot load the other operand or scales, function 2 does all of
// it, with instructions and loads that take any alignment.

#include "gen/cuda/contract/cuda_contract_scaled.h"
#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"
#include "gen/shared/bound.h"

#include <string.h>

enum { PACK, MULTIPLY, ANY, FUNCTIONS };
enum { MAP_ROWS, MAP_LAST, MAP_WEIGHTS, MAP_SCALES, MAP_ZEROS, MAP_OFFSETS, MAPS };
// As the skeleton has them.
enum { COLUMNS = 256, DEPTH = 64, CONSUMERS = 2, GROUP = 128 };
enum { ROUND = 1024, OF_INSTRUCTION = 8, LINE = 128 }; // LINE: bytes of a line of a box
// Rows of a tile, at most. With 144, registers still last, but large products take 5 to 10 %
// longer.
enum { MAX_ROWS = 128 };
// The shape of a block of the other functions.
enum { PACK_BLOCKS = 2048, PACK_THREADS = 256 };
enum { ANY_ROWS = 16, ANY_WARPS = 4, ANY_LANES = 8 };
enum { MAX_BLOCKS = 1 << 30 };

// ---- The shape of a block ----

static bool has_runs(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_operand(plan)->group > 0;
}

// Whether scales, and zero points, come through the ring.
static bool stages_scales(const struct kg_cuda_contract_plan *plan)
{
    return has_runs(plan) && kg_cuda_scaled_scales_of_runs(plan);
}

static bool stages_zeros(const struct kg_cuda_contract_plan *plan)
{
    return stages_scales(plan) && kg_cuda_scaled_zeros_of_runs(plan);
}

static bool has_offset(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_operand(plan)->offset != NULL;
}

static bool stages_offsets(const struct kg_cuda_contract_plan *plan)
{
    return stages_scales(plan) && kg_cuda_scaled_offsets_of_runs(plan);
}

// The maps that kernels have.
static int maps_of(const struct kg_cuda_contract_plan *plan)
{
    return stages_offsets(plan) ? MAPS : MAP_OFFSETS;
}

// The groups of K indices with the same scales that a stage touches.
static int64_t groups_of_stage(const struct kg_cuda_contract_plan *plan)
{
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    return group % DEPTH == 0 ? 1 : DEPTH / group + (DEPTH % group != 0);
}

// Runs within a stage whose sums are scaled, one if they are as long or longer.
static int runs_of_stage(const struct kg_cuda_contract_plan *plan)
{
    enum { SHORT = 16, MEDIUM = 32 };
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    return group % DEPTH == 0 ? 1 : DEPTH / (group % MEDIUM == 0 ? MEDIUM : SHORT);
}

// Pairs of consumers that take K steps by turns: two where accumulators leave the registers.
static int pairs_of(const struct kg_cuda_contract_plan *plan)
{
    enum { FEW_ROWS = 32, FEW_OF_OFFSETS = 16 }; // accumulators and what runs need are registers
    int few = has_offset(plan) && has_runs(plan) ? FEW_OF_OFFSETS : FEW_ROWS;
    return plan->config.tile_m <= few ? 2 : 1;
}

// What consumers may hold before a stage that one of them waits for; see the skeleton.
static int least_stages(const struct kg_cuda_contract_plan *plan)
{
    return pairs_of(plan) == 1 ? 3 : 5;
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (1 + CONSUMERS * pairs_of(plan));
}

// Registers of a thread at first; the producer then gives some to the consumers.
static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    return pairs_of(plan) == 1 ? 168 : 96;
}

static int64_t stage_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t bytes =
        (int64_t)(plan->config.tile_m * 2 + COLUMNS * kg_cuda_scaled_bits(plan) / 8) * DEPTH;
    if (stages_scales(plan))
        bytes += groups_of_stage(plan) * COLUMNS * 2 * (stages_offsets(plan) ? 2 : 1);
    if (stages_zeros(plan))
        bytes += groups_of_stage(plan) * COLUMNS * kg_cuda_scaled_zero_bits(plan) / 8;
    return kg_ceil_div(bytes, ROUND) * ROUND;
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { BARRIERS = 16, SUM = 4 };
    int64_t exchange = (pairs_of(plan) - 1) * plan->config.tile_m * COLUMNS * SUM;
    if (has_offset(plan)) // sums of rows, of the runs of two stages
        exchange += pairs_of(plan) * 2 * plan->config.tile_m * runs_of_stage(plan) * SUM;
    return ROUND + plan->config.stages * (stage_bytes(plan) + BARRIERS) + exchange;
}

// K indices of a unit of work: whole stages, and whole runs whose sums are scaled together.
static int unit_of(const struct kg_cuda_contract_plan *plan)
{
    return has_runs(plan) && kg_cuda_scaled_operand(plan)->group % (2 * DEPTH) == 0 ? 2 * DEPTH
                                                                                    : DEPTH;
}

static int64_t units_of(const struct kg_cuda_contract_plan *plan)
{
    return kg_ceil_div(plan->k, unit_of(plan));
}

// Whether several blocks may have shares of a tile.
static bool is_divided(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.split_k != 1;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Blocks are persistent, one on an SM. With stream-K they divide all work; with K slices there are
// as many as slices, so that blocks side by side read the same lines of weights at the same time.
static int64_t blocks_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t limit = plan->facts->units > 0 ? plan->facts->units : 1;
    int64_t tiles = kg_cuda_contract_tiles(plan), all = tiles * units_of(plan);
    int slices = plan->config.split_k;
    return least_of(limit, slices == 0 ? all : least_of(all, tiles * slices));
}

// Bytes of scratch: partial tiles and their flags of as many blocks as there can be; then lines of
// weights and of zero points that TMA cannot load in place.
static int64_t partial_bytes(const struct kg_cuda_contract_plan *plan)
{
    enum { FLAG = 8, SUM = 4 };
    int64_t of_block = plan->config.tile_m * COLUMNS * SUM + CONSUMERS * FLAG;
    int64_t bytes = is_divided(plan) ? plan->facts->units * of_block : 0;
    return kg_ceil_div(bytes, ROUND) * ROUND;
}

static int64_t packed_pitch(const struct kg_cuda_contract_plan *plan, int bits)
{
    return kg_ceil_div(kg_cuda_scaled_columns(plan), COLUMNS) * COLUMNS * bits / 8;
}

static int64_t zero_lines(const struct kg_cuda_contract_plan *plan)
{
    return stages_zeros(plan) ? kg_ceil_div(plan->k, kg_cuda_scaled_operand(plan)->group) : 0;
}

static int64_t packed_weight_bytes(const struct kg_cuda_contract_plan *plan)
{
    return plan->batches * plan->k * packed_pitch(plan, kg_cuda_scaled_bits(plan));
}

static int64_t packed_bytes(const struct kg_cuda_contract_plan *plan)
{
    return packed_weight_bytes(plan) +
           plan->batches * zero_lines(plan) * packed_pitch(plan, kg_cuda_scaled_zero_bits(plan));
}

// ---- Validity ----

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    return kg_cuda_scaled_takes(plan, reason) &&
           (plan->k_major[1 - kg_cuda_scaled_weights(plan)] ||
            kg_cuda_contract_refuse(reason, "rows are not adjacent along the sum"));
}

// Whether the skeleton can count in int32.
static bool sizes_fit(const struct kg_cuda_contract_plan *plan)
{
    enum { MOST = INT32_MAX / 2 };
    return plan->m <= MOST && plan->n <= MOST && plan->k <= MOST && plan->batches <= MOST &&
           kg_cuda_contract_tiles(plan) <= MOST / (units_of(plan) + 1);
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (plan->config.swap != !kg_cuda_scaled_weights(plan) || plan->config.raster != 0)
        return kg_cuda_contract_refuse(reason, "this form has one order of operands and of tiles");
    if (!sizes_fit(plan))
        return kg_cuda_contract_refuse(reason, "sizes are too large for this form");
    if (plan->config.split_k > 1 &&
        (plan->config.split_k > units_of(plan) ||
         kg_cuda_contract_tiles(plan) * plan->config.split_k > plan->facts->units))
        return kg_cuda_contract_refuse(reason, "more K slices than units of work or SMs");
    if (plan->config.stages < least_stages(plan))
        return kg_cuda_contract_refuse(reason, "fewer stages than consumers hold");
    if (plan->config.tile_m > OF_INSTRUCTION &&
        plan->config.tile_m - OF_INSTRUCTION >= kg_cuda_scaled_rows(plan))
        return kg_cuda_contract_refuse(reason, "a smaller tile covers the output");
    return shared_bytes(plan) <= plan->facts->shared_bytes ||
           kg_cuda_contract_refuse(reason, "a block would need more shared memory than there is");
}

// ---- Source ----

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan multiply = *plan;
    struct kg_text *text = code->text;
    long long group = (long long)kg_cuda_scaled_operand(plan)->group;
    multiply.waits = true;
    kg_cuda_scaled_emit_weights(code, plan);
    kg_cuda_wgmma_emit_instruction(
        code, plan,
        &(struct kg_wgmma_instruction){.columns = plan->config.tile_m,
                                       .dtype = kg_cuda_scaled_dtype(plan),
                                       .left_in_registers = true});
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, PACK, PACK_THREADS, 0,
                                    maps_of(plan));
    kg_cuda_scaled_declare(code, &multiply);
    kg_code_line(code, "kg_start_next();");
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_tall_pack_all<%d, %lld, %s>(job, weights, kg_after(scratch) + %lld);",
                 kg_cuda_scaled_bits(plan), group, truth(stages_zeros(plan)),
                 (long long)partial_bytes(plan));
    kg_code_close(code);
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, MULTIPLY, threads_of(plan),
                                    registers_of(plan), maps_of(plan));
    kg_cuda_scaled_declare(code, &multiply);
    kg_code_line(code, "kg_start_next();");
    kg_code_begin(code);
    kg_text_add(text, "using block = kg_tall_block<");
    kg_cuda_scaled_number(text, plan);
    kg_text_format(text, ", %d, %d, %d, %lld, %s, %s, %d, %s, %s_instruction>;",
                   plan->config.tile_m, plan->config.stages, pairs_of(plan), group,
                   truth(is_divided(plan)), truth(stages_scales(plan)),
                   stages_zeros(plan) ? kg_cuda_scaled_zero_bits(plan) : 0,
                   truth(stages_offsets(plan)), plan->entry);
    kg_code_end(code);
    kg_code_line(code,
                 "kg_contract_scaled_wgmma<block>(job, weights, {&map_%d, &map_%d, &map_%d, "
                 "&map_%d, &map_%d, %s}, scratch);",
                 MAP_ROWS, MAP_LAST, MAP_WEIGHTS, MAP_SCALES, MAP_ZEROS,
                 stages_offsets(plan) ? "&map_5" : "nullptr");
    kg_code_close(code);
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, ANY, ANY_WARPS * 32, 0,
                                    maps_of(plan));
    kg_cuda_scaled_declare(code, &multiply);
    kg_code_line(code, "kg_start_next();");
    kg_code_line(code, "kg_wait_before();");
    kg_code_begin(code);
    kg_text_add(text, "kg_contract_scaled<kg_scaled_tile<");
    kg_cuda_scaled_number(text, plan);
    kg_text_format(text, ", %d, 1, 1, %d, 1, %lld>, 1, false, false>(job, weights, scratch);",
                   ANY_ROWS, ANY_WARPS, group);
    kg_code_end(code);
    kg_code_close(code);
}

// ---- Launches ----

enum { UNIT_BYTES = 2 }; // of an element of a map

// Maps lines of packed elements of `bits` in scratch, in boxes of `width` bytes.
static void map_packed(const struct kg_cuda_contract_plan *plan, int64_t offset, int64_t lines,
                       int bits, int width, int height, struct kg_map *map)
{
    int64_t pitch = packed_pitch(plan, bits);
    *map = (struct kg_map){
        .tensor = KG_MAP_SCRATCH,
        .offset = (size_t)offset,
        .element = UNIT_BYTES,
        .rank = 3,
        .shape = {pitch / UNIT_BYTES, lines, plan->batches},
        .stride = {UNIT_BYTES, pitch, pitch * lines},
        .box = {width / UNIT_BYTES, height, 1},
    };
}

// Maps weights and zero points in place. Returns false if TMA cannot load them like that.
static bool map_in_place(const struct kg_cuda_contract_plan *plan, struct kg_map *maps)
{
    enum { ACCESS = 16 };
    enum kg_contract_role role = kg_cuda_scaled_weights(plan) ? KG_CONTRACT_N : KG_CONTRACT_M;
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    return kg_cuda_scaled_columns(plan) * kg_cuda_scaled_bits(plan) % (8 * ACCESS) == 0 &&
           kg_cuda_wgmma_map_lines(plan, element, element->tensor, role, KG_CONTRACT_K,
                                   LINE / UNIT_BYTES, DEPTH, &maps[MAP_WEIGHTS]) &&
           (!stages_zeros(plan) ||
            kg_cuda_scaled_map_runs(plan, kg_cuda_scaled_zeros_of_runs(plan), COLUMNS,
                                    groups_of_stage(plan), &maps[MAP_ZEROS]));
}

// Sets the maps, and whether weights are packed first. Returns false if TMA cannot load the rows or
// the scales.
static bool make_maps(const struct kg_cuda_contract_plan *plan, struct kg_map *maps, bool *packs)
{
    enum { ATOM = 64 };
    int rows = 1 - kg_cuda_scaled_weights(plan);
    int last = (int)(kg_cuda_scaled_rows(plan) % plan->config.tile_m);
    memset(maps, 0, MAPS * sizeof *maps);
    if (!kg_cuda_wgmma_map_lines(plan, plan->plain[rows], plan->plain[rows]->tensor, KG_CONTRACT_K,
                                 rows ? KG_CONTRACT_N : KG_CONTRACT_M, ATOM, plan->config.tile_m,
                                 &maps[MAP_ROWS]))
        return false;
    maps[MAP_LAST] = maps[MAP_ROWS];
    if (last > 0)
        maps[MAP_LAST].box[1] = last;
    if (stages_scales(plan) &&
        !kg_cuda_scaled_map_runs(plan, kg_cuda_scaled_scales_of_runs(plan), COLUMNS,
                                 groups_of_stage(plan), &maps[MAP_SCALES]))
        return false;
    if (stages_offsets(plan) &&
        !kg_cuda_scaled_map_runs(plan, kg_cuda_scaled_offsets_of_runs(plan), COLUMNS,
                                 groups_of_stage(plan), &maps[MAP_OFFSETS]))
        return false;
    *packs = false;
    if (map_in_place(plan, maps))
        return true;
    maps[MAP_WEIGHTS] = maps[MAP_ZEROS] = (struct kg_map){0};
    *packs = !kg_cuda_scaled_is_whole(plan, 1); // else their words are copied
    if (*packs) {
        int64_t offset = partial_bytes(plan);
        int zero_bits = kg_cuda_scaled_zero_bits(plan);
        map_packed(plan, offset, plan->k, kg_cuda_scaled_bits(plan), LINE, DEPTH,
                   &maps[MAP_WEIGHTS]);
        maps[MAP_WEIGHTS].swizzle = LINE;
        if (stages_zeros(plan))
            map_packed(plan, offset + packed_weight_bytes(plan), zero_lines(plan), zero_bits,
                       COLUMNS * zero_bits / 8, (int)groups_of_stage(plan), &maps[MAP_ZEROS]);
    }
    return true;
}

static struct kg_grid any_grid(const struct kg_cuda_contract_plan *plan)
{
    enum { GAP = 8, SUM = 4 };
    int columns = ANY_LANES * kg_cuda_scaled_of_word(plan);
    int64_t blocks = plan->batches * kg_ceil_div(kg_cuda_scaled_rows(plan), ANY_ROWS) *
                     kg_ceil_div(kg_cuda_scaled_columns(plan), columns);
    return (struct kg_grid){.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                            .threads = {ANY_WARPS * 32, 1, 1},
                            .shared = ANY_WARPS * ANY_ROWS * (columns + GAP) * SUM};
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    const struct kg_grid none = {.blocks = {0, 1, 1}, .threads = {1, 1, 1}};
    bool packs = false;
    *grids = (struct kg_grids){
        .count = FUNCTIONS, .alignment = KG_WGMMA_ACCESS, .map_count = maps_of(plan)};
    for (int i = 0; i < FUNCTIONS; i++)
        grids->grids[i] = grids->unaligned[i] = none;
    if (plan->batches * plan->m * plan->n == 0)
        return;
    grids->unaligned[ANY] = any_grid(plan);
    if (plan->k == 0 || !sizes_fit(plan) || !make_maps(plan, grids->maps, &packs)) {
        memset(grids->maps, 0, sizeof grids->maps);
        grids->grids[ANY] = grids->unaligned[ANY];
    } else {
        grids->grids[MULTIPLY] = (struct kg_grid){.blocks = {blocks_of(plan), 1, 1},
                                                  .threads = {threads_of(plan), 1, 1},
                                                  .shared = (int)shared_bytes(plan)};
        grids->scratch = (size_t)(partial_bytes(plan) + (packs ? packed_bytes(plan) : 0));
        int64_t lines = plan->batches * (plan->k + zero_lines(plan));
        if (packs)
            grids->grids[PACK] =
                (struct kg_grid){.blocks = {lines < PACK_BLOCKS ? lines : PACK_BLOCKS, 1, 1},
                                 .threads = {PACK_THREADS, 1, 1}};
    }
    kg_cuda_start_early(plan->group, plan->facts, grids);
}

// ---- Expected time ----

// Fitted to 578 configs of 44 problems on an H100 with cold caches, 2026-11-25: 6 % root mean
// square error. Seconds for 128 K indices of a tile, and what comes beside.
static const struct {
    double launch;       // fixed, from the launch to the end
    double bandwidth;    // share of the device's that is reached
    double stage, row;   // of a unit: fixed, and of a row, without runs
    double run, run_row; // added for each run
    double offset_row;   // added for a row of each run, where there are offsets; not fitted
    double least;        // of a unit: a warp's conversion of its weights
    double scattered;    // factor where stream-K's blocks read from all places at once
    double least_scattered;
    double piece, partial; // of partial tiles: fixed, and bytes a second
    double overlap;        // share of the shorter of work and memory that adds to the longer
    double pack, packed;   // of packing: fixed, and share of the bandwidth
    double words, copying; // factors of memory and of work where words of weights are copied
    double clock;          // at which this was measured
} measured = {4.0e-6,  0.59,   0.40e-6, 6.9e-9, 0.091e-6, 0.92e-9, 2.5e-9, 0.56e-6, 1.04,
              0.66e-6, 4.3e-6, 78e9,    0.03,   3e-6,     0.6,     1.3,    1.14,    1.98e9};

enum { UNIT = 128 }; // K indices

// An SM's time for 128 K indices of a tile, from shared memory.
static double unit_seconds(const struct kg_cuda_contract_plan *plan)
{
    enum { SHORT = 16, MEDIUM = 32 };
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    double rows = plan->config.tile_m;
    int run = group % UNIT == 0     ? UNIT
              : group % DEPTH == 0  ? DEPTH
              : group % MEDIUM == 0 ? MEDIUM
                                    : SHORT;
    double runs = group > 0 ? (double)UNIT / run : 0;
    double seconds = measured.stage + rows * measured.row;
    double least = measured.least * kg_cuda_scaled_conversion(plan);
    double of_row = measured.run_row + (has_offset(plan) ? measured.offset_row : 0);
    seconds = (seconds > least ? seconds : least) + runs * (measured.run + rows * of_row);
    double clock = plan->facts->clock > 0 ? plan->facts->clock : measured.clock;
    return seconds * measured.clock / clock;
}

// Work and memory at once.
static double both_seconds(double busy, double memory)
{
    return busy > memory ? busy + measured.overlap * memory : memory + measured.overlap * busy;
}

// Whole tiles, `of_tile` units each: SMs without one of the last wave read nothing meanwhile.
static double whole_seconds(const struct kg_cuda_contract_plan *plan, double busy_of_tile,
                            double memory)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = blocks_of(plan);
    double last = (double)(tiles % blocks) / (double)tiles;
    double sum = both_seconds((double)(tiles / blocks) * busy_of_tile, memory * (1 - last));
    return last > 0 ? sum + both_seconds(busy_of_tile, memory * last) : sum;
}

// An SM's time for its share of tiles that are divided, `of_tile` units each.
static double divided_seconds(const struct kg_cuda_contract_plan *plan, double of_tile)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = blocks_of(plan);
    double unit = unit_seconds(plan), scattered = unit * measured.scattered;
    if (plan->config.split_k > 1)
        return (double)tiles * of_tile / (double)blocks * unit;
    if (scattered < measured.least_scattered)
        scattered = measured.least_scattered;
    // As the skeleton divides them: what is left of a wave and, with many rows, a full one.
    int64_t left = tiles % blocks, divided = left;
    if (left > 0 && tiles > blocks && pairs_of(plan) == 1)
        divided += blocks;
    return ((double)(tiles - divided) * unit + (double)divided * scattered) * of_tile /
           (double)blocks;
}

static double seconds(const struct kg_cuda_contract_plan *plan)
{
    enum { SUM = 4 };
    const struct kg_device_facts *facts = plan->facts;
    struct kg_map maps[MAPS];
    bool packs;
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = blocks_of(plan);
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    if (tiles == 0 || plan->k == 0)
        return measured.launch;
    if (!make_maps(plan, maps, &packs))
        return 1; // right, and slow
    double of_tile = (double)(units_of(plan) * unit_of(plan)) / UNIT;
    double memory = kg_group_bytes(plan->group) / (facts->bandwidth * measured.bandwidth);
    double copying = 1;
    if (maps[MAP_WEIGHTS].rank == 0)
        memory *= measured.words, copying = measured.copying;
    double sum = measured.launch;
    if (is_divided(plan))
        sum += both_seconds(divided_seconds(plan, of_tile) * copying, memory);
    else
        sum += whole_seconds(plan, unit_seconds(plan) * of_tile * copying, memory);
    if (packs) // reads, writes, and a launch
        sum +=
            measured.pack + 2 * (double)packed_bytes(plan) / (facts->bandwidth * measured.packed);
    if (!is_divided(plan) || tiles % blocks == 0)
        return sum;
    double pieces = tiles < blocks ? (double)blocks / (double)tiles : 1;
    return sum + measured.piece + pieces * plan->config.tile_m * COLUMNS * SUM / measured.partial;
}

// ---- Choice ----

typedef void take_plan(struct kg_cuda_contract_plan *plan, void *user);

// Tiles whose rows are needed to have so many of them; stages that fit.
static void each_config(struct kg_cuda_contract_plan *plan, take_plan *take, void *user)
{
    // Few rows are bound by memory, which is slower with more bytes in flight than it needs.
    enum { MAX_STAGES = 16, FEW_STAGES = 10, MAX_SLICES = 16 };
    int64_t all = kg_cuda_scaled_rows(plan);
    plan->config.swap = !kg_cuda_scaled_weights(plan);
    plan->config.tile_n = COLUMNS;
    plan->config.tile_k = DEPTH;
    for (int rows = OF_INSTRUCTION; rows <= MAX_ROWS; rows += OF_INSTRUCTION) {
        plan->config.tile_m = rows;
        if (rows > 2 * OF_INSTRUCTION && rows % 16 != 0 && all > 96)
            continue;
        int fits = pairs_of(plan) == 1 ? MAX_STAGES : FEW_STAGES, least = least_stages(plan);
        for (plan->config.stages = fits; fits >= least; plan->config.stages = --fits)
            if (shared_bytes(plan) <= plan->facts->shared_bytes)
                break;
        for (int stages = fits; stages >= least && stages > fits - 2; stages--)
            for (int way = 0; way < 3; way++) { // stream-K, whole tiles, slices for all SMs
                plan->config.stages = stages;
                plan->config.split_k = way;
                int64_t tiles = kg_cuda_contract_tiles(plan);
                int64_t slices =
                    tiles > 0 ? least_of(plan->facts->units / tiles, units_of(plan)) : 0;
                if (way == 2 && slices < 2)
                    break;
                if (way == 2)
                    plan->config.split_k = (int)least_of(slices, MAX_SLICES);
                take(plan, user);
            }
    }
}

static void take_listed(struct kg_cuda_contract_plan *plan, void *user)
{
    kg_cuda_contract_take(user, plan);
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    each_config(plan, take_listed, listing);
}

struct best {
    struct kg_cuda_contract_config config;
    double seconds;
};

static void take_best(struct kg_cuda_contract_plan *plan, void *user)
{
    struct best *best = user;
    if (!kg_cuda_contract_check(plan, NULL))
        return;
    double expected = seconds(plan);
    if (best->seconds >= 0 && expected >= best->seconds)
        return;
    best->seconds = expected;
    best->config = plan->config;
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    struct best best = {.seconds = -1};
    struct kg_map maps[MAPS];
    bool packs;
    each_config(plan, take_best, &best);
    if (best.seconds < 0)
        return false;
    plan->config = best.config;
    return plan->k > 0 && make_maps(plan, maps, &packs);
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[kg_cuda_scaled_dtype(plan)];
}

static struct kg_cuda_contract_cost_terms cost_terms(const struct kg_cuda_contract_plan *plan)
{
    (void)plan;
    return (struct kg_cuda_contract_cost_terms){.blocks_per_sm = 1};
}

static const struct kg_cuda_contract_form form =
    {
        .defaults = KG_CONTRACT_DEFAULTS(GROUP / 2, DEPTH),
        .parameters =
            {
                {"tile_m", KG_CONTRACT_CHOICES(tile_m, 64, 8, 16, 24, 32, 40, 48, 56, 72, 80, 88,
                                               96, 104, 112, 120, 128, 136, 144)},
                {"tile_n", KG_CONTRACT_CHOICES(tile_n, COLUMNS)},
                {"stages",
                 KG_CONTRACT_CHOICES(stages, 8, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16)},
                {"split_k", KG_CONTRACT_CHOICES(split_k, 0, 1, 2, 3,
                                                4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)},
                {"swap", KG_CONTRACT_CHOICES(swap, 0, 1)},
            },
        .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/tensor.cuh", "cuda/wgmma.cuh",
                      "cuda/contract_mma_tile.cuh", "cuda/contract_row8.cuh",
                      "cuda/contract_stream_k.cuh", "cuda/contract_partial.cuh",
                      "cuda/scaled_number.cuh", "cuda/scaled_bytes.cuh", "cuda/contract_scaled.cuh",
                      "cuda/contract_scaled_wgmma_feed.cuh", "cuda/contract_scaled_wgmma.cuh"},
        .takes = takes,
        .guess = guess,
        .valid = valid,
        .list = list,
        .cost_terms = cost_terms,
        .seconds = seconds,
        .emit = emit,
        .grids = grids,
        .rate = rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_scaled_wgmma, form, "contract/scaled_wgmma",
                   "products with quantised weights on the tensor cores of sm_90a", true);
