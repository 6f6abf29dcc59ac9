// The time that is expected of products of contract/scaled_wgmma, and the config by rule.

#include "gen/cuda/contract/cuda_contract_tall.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/bound.h"

// Rows of a tile of 256 columns, at most. With 144, registers still last, but large products take 5
// to 10 % longer. Tiles of 128 columns, or of 64, have the same registers for twice as many.
enum { MAX_ROWS = 128, NARROW = 64 };

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// ---- Expected time ----

// Fitted on an H200 with cold caches, 2026-11-30, to 612 configs of 59 problems, most of them with
// weights in panels and more than 32 rows: 8 % root mean square error of those near the fastest.
// What few rows depend on (launch, bandwidth, overlap) is from an H100, 578 configs of 44 problems;
// `last` and `askew` are from an H200, 658 configs of 66 problems. When the loop and the exchange
// of slices had become faster, `unit`, `stage`, `row`, `least`, `turn`, `piece`, `slice`, `meeting`
// and `cache` were fitted again, 2026-12-01, to 190 configs of 23 problems: 6 %.
//
// Seconds for 128 K indices of a tile of 256 columns, and what comes beside.
static const struct {
    double launch;       // fixed, from the launch to the end
    double bandwidth;    // share of the device's that is reached
    double unit, feed;   // of a unit and of a row of it, however many columns
    double stage, row;   // fixed, and of a row, without runs
    double run, run_row; // added for each run
    double offset_row;   // added for a row of each run, where there are offsets; not fitted
    double least;        // of a unit: a warp's conversion of its weights
    double rounded_run;  // instead of `run` and `run_row` where weights are rounded
    double scattered;    // factor where stream-K's blocks read from all places at once
    double least_scattered;
    double store;          // bytes a second of an SM, when all store their tiles
    double fill, last;     // the same into a buffer in shared memory, and from there at the end
    double turn;           // from one tile to the next
    double piece, partial; // of partial tiles: fixed, and bytes a second
    double slice, meeting; // the same of slices: the bytes a second are of all SMs together
    double overlap;        // share of the shorter of work and memory that adds to the longer
    double pack, packed;   // of packing: fixed, and share of the bandwidth
    double words, copying; // factors of memory and of work where words of weights are copied
    double clock;          // at which this was measured
    double cache, askew;   // bytes a second of the L2; factor of rows that are not aligned to it
    double scarce;         // factor of a unit where there are no more stages than consumers hold
} measured = {4.6e-6,  0.59,     0.150e-6, 0.154e-9, 0.206e-6, 6.6e-9, 0.058e-6, 0.94e-9,
              2.5e-9,  0.348e-6, 0.035e-6, 1.11,     0.52e-6,  27.9e9, 120e9,    63e9,
              1.49e-6, 2.56e-6,  85.8e9,   2.7e-6,   4.14e12,  0.05,   3e-6,     0.6,
              1.3,     1.14,     1.98e9,   7.44e12,  1.25,     1.25};

// The same of tiles of 64 columns, where one wave of them covers the output: 76 configs of 33
// problems, H200, 2026-12-01, 6 %. Their rows are most of what is loaded; the L2 gives the more,
// the more tiles ask for the same rows.
static const struct {
    double unit, row;           // of a unit: fixed, and of a row
    double conversion;          // of a unit's weights
    double turn;                // from one tile to the next
    double alone, shared, most; // what the L2 gives, over `cache`: fixed, for each tile, at most
    double askew;               // at most, of rows that are not aligned
    double caution;             // factor: other tiles take less than is expected of them, at times
} narrow = {0.138e-6, 1.047e-9, 0.065e-6, 0.73e-6, 0.88, 0.034, 1.9, 0.9, 1.08};

enum { UNIT = 128 }; // K indices

static bool is_narrow(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_n == NARROW;
}

// What the L2 gives all SMs, bytes a second.
static double cache_rate(const struct kg_cuda_contract_plan *plan, bool is_askew)
{
    if (!is_narrow(plan))
        return measured.cache;
    double tiles = (double)kg_ceil_div(kg_cuda_scaled_columns(plan), NARROW);
    double share = narrow.alone + narrow.shared * tiles;
    double most = is_askew ? narrow.askew : narrow.most;
    return measured.cache * (share < most ? share : most);
}

// The time in which the L2 gives an SM's share of 128 K indices, when all SMs load. A line of rows
// that does not begin with a sector touches one more than it has.
static double load_seconds(const struct kg_cuda_contract_plan *plan, const struct kg_map *rows_map)
{
    enum { ELEMENT = 2, SECTOR = 32, BYTE_BITS = 8 };
    bool is_askew = rows_map->stride[1] % SECTOR != 0;
    double rows = (double)plan->config.tile_m * UNIT * ELEMENT;
    double weights = (double)plan->config.tile_n * UNIT * kg_cuda_scaled_bits(plan) / BYTE_BITS;
    if (is_askew)
        rows *= measured.askew;
    return (rows + weights) * plan->facts->units / cache_rate(plan, is_askew);
}

// An SM's time for 128 K indices of a tile.
static double unit_seconds(const struct kg_cuda_contract_plan *plan, const struct kg_map *rows_map)
{
    enum { SHORT = 16, MEDIUM = 32 };
    int64_t group = kg_cuda_scaled_operand(plan)->group;
    double rows = plan->config.tile_m;
    int run = group % UNIT == 0            ? UNIT
              : group % KG_TALL_DEPTH == 0 ? KG_TALL_DEPTH
              : group % MEDIUM == 0        ? MEDIUM
                                           : SHORT;
    double runs = group > 0 ? (double)UNIT / run : 0;
    double share = (double)plan->config.tile_n / KG_TALL_COLUMNS;
    double conversion = kg_cuda_scaled_conversion(plan);
    double work = measured.stage + rows * measured.row, least = measured.least * conversion;
    double of_row = measured.run_row + (kg_cuda_scaled_sums_rows(plan) ? measured.offset_row : 0);
    double of_run =
        kg_cuda_scaled_rounds(plan) ? measured.rounded_run : measured.run + rows * of_row;
    work = measured.unit + rows * measured.feed + (work > least ? work : least) * share;
    if (is_narrow(plan))
        work = narrow.unit + rows * narrow.row + narrow.conversion * conversion;
    double seconds = work + runs * of_run * share;
    if (plan->config.stages == kg_cuda_tall_least_stages(plan))
        seconds *= measured.scarce;
    double load = load_seconds(plan, rows_map);
    double clock = plan->facts->clock > 0 ? plan->facts->clock : measured.clock;
    return (seconds > load ? seconds : load) * measured.clock / clock;
}

// Work and memory at once.
static double both_seconds(double busy, double memory)
{
    return busy > memory ? busy + measured.overlap * memory : memory + measured.overlap * busy;
}

// Blocks that finish a tile together.
static double slices_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = kg_cuda_tall_blocks(plan);
    return plan->config.split_k > 1 && blocks > tiles ? (double)(blocks / tiles) : 1;
}

// A tile of `work` seconds and its store, which takes place beside the next tile if it is buffered.
static double with_store(const struct kg_cuda_contract_plan *plan, double work)
{
    enum { ELEMENT = 2 };
    double bytes = (double)plan->config.tile_m * plan->config.tile_n * ELEMENT / slices_of(plan);
    work += is_narrow(plan) ? narrow.turn : measured.turn;
    if (!plan->config.buffered)
        return work + bytes / measured.store;
    work += bytes / measured.fill;
    return work > bytes / measured.store ? work : bytes / measured.store;
}

// Whole tiles, `of_tile` units each: SMs without one of the last wave read nothing meanwhile.
static double whole_seconds(const struct kg_cuda_contract_plan *plan, double busy_of_tile,
                            double memory)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = kg_cuda_tall_blocks(plan);
    double last = (double)(tiles % blocks) / (double)tiles;
    double sum = both_seconds((double)(tiles / blocks) * busy_of_tile, memory * (1 - last));
    return last > 0 ? sum + both_seconds(busy_of_tile, memory * last) : sum;
}

// An SM's time for its share of tiles that are divided, `of_tile` units each.
static double divided_seconds(const struct kg_cuda_contract_plan *plan, double unit, double of_tile)
{
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = kg_cuda_tall_blocks(plan);
    double scattered = unit * measured.scattered;
    if (plan->config.split_k > 1)
        return (double)tiles * of_tile / (double)blocks * unit;
    if (scattered < measured.least_scattered)
        scattered = measured.least_scattered;
    // As the skeleton divides them: what is left of a wave and, with many rows, a full one.
    int64_t left = tiles % blocks, divided = left;
    if (left > 0 && tiles > blocks && kg_cuda_tall_teams(plan) == 1)
        divided += blocks;
    return ((double)(tiles - divided) * unit + (double)divided * scattered) * of_tile /
           (double)blocks;
}

// Storing partial tiles and adding them up: by one block for each tile or, of slices, by all that
// have one, which store what others finish and read as much.
static double partial_seconds(const struct kg_cuda_contract_plan *plan)
{
    enum { SUM = 4 };
    double bytes = (double)plan->config.tile_m * plan->config.tile_n * SUM;
    double tiles = (double)kg_cuda_contract_tiles(plan), blocks = (double)kg_cuda_tall_blocks(plan);
    if (slices_of(plan) > 1)
        return measured.slice + 2 * (1 - 1 / slices_of(plan)) * blocks * bytes / measured.meeting;
    return measured.piece + (tiles < blocks ? blocks / tiles : 1) * bytes / measured.partial;
}

double kg_cuda_tall_seconds(const struct kg_cuda_contract_plan *plan)
{
    enum { ELEMENT = 2 };
    const struct kg_device_facts *facts = plan->facts;
    struct kg_map maps[KG_TALL_MAPS];
    bool packs;
    int64_t tiles = kg_cuda_contract_tiles(plan), blocks = kg_cuda_tall_blocks(plan);
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    if (tiles == 0 || plan->k == 0)
        return measured.launch;
    if (!kg_cuda_tall_make_maps(plan, maps, &packs))
        return 1; // right, and slow
    double of_tile = (double)(kg_cuda_tall_units(plan) * kg_cuda_tall_unit(plan)) / UNIT;
    double memory = kg_cuda_scaled_bytes(plan) / (facts->bandwidth * measured.bandwidth);
    double unit = unit_seconds(plan, &maps[KG_TALL_MAP_ROWS]), copying = 1;
    if (maps[KG_TALL_MAP_WEIGHTS].rank == 0)
        memory *= measured.words, copying = measured.copying;
    double sum = measured.launch;
    if (plan->config.buffered) // the last tile
        sum += (double)plan->config.tile_m * plan->config.tile_n * ELEMENT / measured.last;
    if (kg_cuda_tall_is_divided(plan)) {
        double of_block = tiles > blocks ? (double)tiles / (double)blocks : 1;
        double work = divided_seconds(plan, unit, of_tile) * copying / of_block;
        sum += both_seconds(with_store(plan, work) * of_block, memory);
    } else {
        double work = unit * of_tile * copying;
        sum += whole_seconds(plan, with_store(plan, work), memory);
    }
    if (packs) // reads, writes, and a launch
        sum += measured.pack +
               2 * (double)kg_cuda_tall_packed_bytes(plan) / (facts->bandwidth * measured.packed);
    if (is_narrow(plan))
        sum *= narrow.caution;
    if (!kg_cuda_tall_is_divided(plan) || tiles % blocks == 0)
        return sum;
    return sum + partial_seconds(plan);
}

// ---- Choice ----

typedef void take_plan(struct kg_cuda_contract_plan *plan, void *user);

// Stages that fit, and ways to divide the tiles.
static void each_way(struct kg_cuda_contract_plan *plan, take_plan *take, void *user)
{
    // Few rows are bound by memory, which is slower with more bytes in flight than it needs.
    enum { MAX_STAGES = 16, FEW_STAGES = 10, MAX_SLICES = 16 };
    int step = kg_cuda_tall_stage_step(plan), least = kg_cuda_tall_least_stages(plan);
    int most = kg_cuda_tall_teams(plan) == 1 ? MAX_STAGES : FEW_STAGES;
    int fits = (int)kg_ceil_div(most, step) * step;
    for (plan->config.stages = fits; fits >= least; plan->config.stages = fits -= step)
        if (kg_cuda_tall_shared_bytes(plan) <= plan->facts->shared_bytes)
            break;
    for (int stages = fits; stages >= least && stages > fits - 2 * step; stages -= step)
        for (int way = 0; way < 3; way++) { // stream-K, whole tiles, slices for all SMs
            if (is_narrow(plan) && (way != 1 || kg_cuda_contract_tiles(plan) > plan->facts->units))
                continue; // slower than other tiles
            plan->config.stages = stages;
            plan->config.split_k = way;
            int64_t tiles = kg_cuda_contract_tiles(plan);
            int64_t slices =
                tiles > 0 ? least_of(plan->facts->units / tiles, kg_cuda_tall_units(plan)) : 0;
            if (way == 2 && slices < 2)
                break;
            if (way == 2)
                plan->config.split_k = (int)least_of(slices, MAX_SLICES);
            take(plan, user);
        }
}

// Of the tiles in the space: eight apart, then 32.
static int next_rows(int rows)
{
    enum { LAST_FINE = 144, COARSE = 32 };
    int next = rows < LAST_FINE ? rows + KG_TALL_ROWS_OF_INSTRUCTION : rows + COARSE;
    return rows < LAST_FINE ? next : next / COARSE * COARSE;
}

// Tiles of `columns` whose rows are needed to have so few of them, buffered where TMA can store
// them.
static void each_config_of(struct kg_cuda_contract_plan *plan, int columns, take_plan *take,
                           void *user)
{
    int64_t all = kg_cuda_scaled_rows(plan);
    plan->config.swap = !kg_cuda_scaled_weights(plan);
    plan->config.tile_n = columns;
    plan->config.tile_k = KG_TALL_DEPTH;
    for (int rows = KG_TALL_ROWS_OF_INSTRUCTION, smaller = 0;
         rows * columns <= MAX_ROWS * KG_TALL_COLUMNS && rows <= 2 * MAX_ROWS;
         smaller = rows, rows = next_rows(rows)) {
        plan->config.tile_m = rows;
        if (smaller > 0 && kg_ceil_div(all, smaller) == kg_ceil_div(all, rows))
            continue; // as many tiles, with fewer rows that are not there
        plan->config.buffered = 0;
        each_way(plan, take, user);
        plan->config.buffered = kg_cuda_tall_teams(plan) == 1 && kg_cuda_tall_can_buffer(plan);
        if (plan->config.buffered)
            each_way(plan, take, user);
    }
}

static void each_config(struct kg_cuda_contract_plan *plan, take_plan *take, void *user)
{
    each_config_of(plan, KG_TALL_COLUMNS, take, user);
    if (!kg_cuda_scaled_is_packed(plan))
        return;
    each_config_of(plan, KG_TALL_COLUMNS / 2, take, user);
    each_config_of(plan, NARROW, take, user);
}

static void take_listed(struct kg_cuda_contract_plan *plan, void *user)
{
    kg_cuda_contract_take(user, plan);
}

void kg_cuda_tall_list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    each_config(plan, take_listed, listing);
}

bool kg_cuda_tall_guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_best best = {.seconds = kg_cuda_tall_seconds, .least = -1};
    struct kg_map maps[KG_TALL_MAPS];
    bool packs;
    each_config(plan, kg_cuda_contract_take_best, &best);
    if (best.least < 0)
        return false;
    plan->config = best.config;
    return plan->k > 0 && kg_cuda_tall_make_maps(plan, maps, &packs);
}
