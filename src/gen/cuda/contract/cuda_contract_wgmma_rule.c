// The expected time of products by wgmma, the config by rule, and the configs for searches.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/bound.h"

#include <math.h>

// The cost of an epilogue, from its instruction counts; `both` is from races of six products with a
// bias and GELU.
static const struct {
    double issue;   // seconds per instruction of a warp
    double each;    // instructions for every accumulator
    double special; // instructions that one of the special function unit is worth
    double read;    // instructions that a read by position is worth
    double both;    // factor where two consumers run their epilogues at the same time
} work = {0.59e-9, 2, 4, 16, 1.4};

// The time of the epilogue before results are stored.
static double epilogue_seconds(const struct kg_cuda_contract_plan *plan)
{
    bool together = plan->config.tile_m > KG_WGMMA_ATOM && !plan->config.pingpong;
    double outputs = (double)plan->batches * (double)plan->m * (double)plan->n, each = 0;
    if (!kg_cuda_contract_has_epilogue(plan) || outputs == 0)
        return 0;
    if (kg_cuda_contract_epilogue_uses_position(plan))
        each += work.read;
    for (int i = 1; i < plan->group->count; i++) {
        const struct kg_nest *nest = plan->group->problem->nests[plan->group->first + i];
        each += (nest->operations + work.special * nest->transcendentals) / outputs;
    }
    return work.issue * (work.each + each) * kg_cuda_wgmma_accumulators(plan) *
           (together ? work.both : 1);
}

double kg_cuda_wgmma_rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[kg_cuda_contract_dtype(plan, 0)];
}

// The time of a block to store a partial tile and to load one.
static double stream_k_seconds(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    return fit->stream_k_flag +
           fit->stream_k_tile * plan->config.tile_m * plan->config.tile_n / (128.0 * 128.0);
}

double kg_cuda_wgmma_stage_seconds(const struct kg_cuda_contract_plan *plan, double rate,
                                   int products)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    int rows = plan->config.tile_m, columns = plan->config.tile_n;
    int readers = rows > KG_WGMMA_ATOM && !plan->config.pingpong ? 2 : 1;
    double wider = columns < fit->full_columns ? fit->full_columns / columns : 1;
    double read = (double)KG_WGMMA_ELEMENT * plan->config.tile_k * (rows + readers * columns);
    return kg_cuda_contract_stage_seconds(plan, rate, fit->matrix_share) * wider +
           fit->operand_read * products * read;
}

// The share of the whole time that a cluster adds.
static double pair_share(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    return plan->config.cluster_m > 1   ? fit->pair_m
           : plan->config.cluster_n > 1 ? fit->pair_n * plan->config.tile_n / 128
                                        : 0;
}

// Whether an operand is loaded with evict_first; the kernel decides it in the same way, in
// kg_wgmma_is_streamed.
static bool is_streamed(const struct kg_cuda_contract_plan *plan, int which)
{
    const int64_t tall = kg_cuda_contract_m_after_swap(plan),
                  wide = kg_cuda_contract_n_after_swap(plan);
    bool left = which == KG_WGMMA_LEFT;
    bool k_major = plan->k_major[kg_cuda_wgmma_operand(plan, which)];
    bool alone = left ? plan->config.cluster_n == 1 && wide <= plan->config.tile_n
                      : plan->config.cluster_m == 1 && tall <= plan->config.tile_m;
    int together = k_major ? plan->config.tile_k : left ? plan->config.tile_m : plan->config.tile_n;
    int64_t steps = kg_ceil_div(plan->k, plan->config.tile_k) * plan->config.tile_k;
    double bytes =
        (double)plan->batches * (double)(left ? tall : wide) * (double)steps * KG_WGMMA_ELEMENT;
    return alone && together >= 2 * KG_WGMMA_ATOM && bytes > KG_WGMMA_MIN_STREAMED_BYTES &&
           bytes <= KG_WGMMA_MAX_STREAMED_BYTES;
}

// The share of a warp's lanes that store a line by sector: the others store other lines.
static double lanes_of_line(int columns)
{
    return columns > 128 ? 1 : columns > 64 ? 0.5 : 0.25;
}

struct kg_cuda_contract_cost_terms
kg_cuda_wgmma_cost_terms(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    int rows = plan->config.tile_m, columns = plan->config.tile_n;
    bool stores_alone = kg_cuda_wgmma_stores_alone(plan), by_sector = plan->config.overlap > 0;
    // Tiles that overlap begin anywhere in the lines of an N-major operand.
    bool is_unaligned = kg_cuda_wgmma_is_unaligned(plan) ||
                        (by_sector && !plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_RIGHT)]);
    double slower = fit->fitted_bandwidth / plan->facts->bandwidth;
    // Of multicast clusters no more are launched than there are SMs for a block each.
    bool is_alone = kg_cuda_contract_is_clustered(plan);
    struct kg_cuda_contract_cost_terms cost_terms = {
        .blocks_per_sm = is_alone ? 1 : kg_cuda_wgmma_blocks_per_sm(plan),
        .multiply_seconds = kg_cuda_wgmma_stage_seconds(plan, kg_cuda_wgmma_rate(plan), 1),
        .copy_factor = is_unaligned ? fit->unaligned_copy : 1,
        .reread_factor = is_unaligned ? fit->unaligned_reread * slower : 1,
        .epilogue_seconds = epilogue_seconds(plan),
        .folds_in_cluster = kg_cuda_wgmma_folds_in_cluster(plan),
        .packed_bytes = kg_cuda_wgmma_packed_bytes(plan),
        .store_factor = stores_alone ? fit->unaligned_store : 1,
        .store_seconds = stores_alone ? fit->element_store * rows * columns
                         : by_sector  ? fit->sector_line * rows * lanes_of_line(columns)
                                      : 0,
        .extra_share = pair_share(plan),
        .stream_k_seconds = kg_cuda_wgmma_is_stream_k(plan) ? stream_k_seconds(plan) : 0,
        .is_streamed = is_streamed(plan, KG_WGMMA_LEFT) || is_streamed(plan, KG_WGMMA_RIGHT),
    };
    return cost_terms;
}

// ---- The config by rule ----

// Lines that TMA cannot store are stored by sector, if a tile can be.
static void set_overlap(struct kg_cuda_contract_plan *plan)
{
    plan->config.overlap = KG_WGMMA_OVERLAP;
    if (!kg_cuda_wgmma_may_overlap(plan, NULL))
        plan->config.overlap = 0;
}

static const int stages[] = {16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2};
enum { STAGES = sizeof stages / sizeof *stages };

// The position of the largest number of stages that lets `blocks` blocks run on an SM; STAGES: none
// does.
static int find_stages(struct kg_cuda_contract_plan *plan, int blocks)
{
    for (int i = 0; i < STAGES; i++) {
        plan->config.stages = stages[i];
        int64_t bytes = kg_cuda_wgmma_shared_bytes(plan);
        if (bytes <= plan->facts->shared_bytes &&
            (bytes + plan->facts->unit.block_reserve) * blocks <= plan->facts->unit.shared)
            return i;
    }
    return STAGES;
}

// A tile, with blocks per SM and the largest split-K.
struct tile {
    int rows, columns, depth, pingpong, swap, blocks, split_k;
};

// Those that were measured.
static const struct tile tiles[] = {
    {128, 256, 64, 0, 1, 1, 1}, {128, 256, 64, 0, 0, 1, 1}, {256, 128, 64, 0, 0, 1, 1},
    {256, 192, 64, 0, 0, 1, 1}, {128, 192, 64, 1, 0, 1, 1}, {128, 192, 64, 0, 0, 1, 1},
    {128, 176, 64, 1, 0, 1, 1}, {128, 176, 64, 0, 0, 1, 1}, {128, 224, 64, 0, 0, 1, 1},
    {128, 208, 64, 0, 0, 1, 1}, {128, 160, 64, 0, 0, 1, 1}, {128, 144, 64, 0, 0, 1, 1},
    {128, 128, 64, 1, 0, 1, 1}, {128, 128, 64, 0, 0, 1, 1}, {128, 128, 64, 0, 1, 1, 1},
    {64, 256, 64, 1, 0, 1, 1},  {64, 224, 64, 0, 0, 1, 1},  {128, 96, 64, 0, 0, 1, 1},
    {64, 128, 64, 0, 0, 1, 1},  {128, 80, 64, 0, 0, 1, 1},  {64, 128, 128, 0, 0, 1, 1},
    {64, 128, 128, 0, 1, 1, 2}, {64, 128, 64, 0, 0, 2, 2},  {128, 64, 128, 0, 0, 1, 2},
    {128, 64, 64, 0, 0, 2, 2},  {64, 96, 64, 0, 0, 2, 1},   {64, 64, 128, 0, 0, 1, 2},
    {64, 64, 128, 0, 0, 2, 2},  {128, 64, 128, 0, 1, 1, 2}, {128, 64, 64, 0, 1, 2, 2},
    {64, 64, 128, 0, 1, 1, 2},  {64, 32, 128, 0, 0, 1, 1},  {64, 64, 64, 0, 1, 3, 2},
    {64, 64, 64, 0, 1, 2, 64},  {64, 48, 128, 0, 1, 1, 1},  {64, 48, 128, 0, 0, 1, 1},
    {64, 80, 128, 0, 0, 1, 1},  {64, 32, 128, 0, 0, 2, 1},  {64, 32, 64, 0, 0, 3, 1},
    {64, 32, 128, 0, 1, 1, 2},  {64, 32, 64, 0, 1, 3, 2},   {128, 32, 128, 0, 1, 1, 2},
    {128, 32, 64, 0, 1, 2, 2},  {64, 24, 128, 0, 1, 1, 1},  {64, 16, 128, 0, 1, 1, 2},
    {64, 16, 64, 0, 0, 3, 1},   {64, 16, 64, 0, 1, 3, 2},   {128, 16, 128, 0, 1, 1, 2},
    {128, 16, 64, 0, 1, 2, 2},
};

// Expected seconds; INFINITY for an invalid config. With a warm L2 the config that copies less is
// faster, which decides between configs that are equally fast cold. `doubt`: a factor for stream-K.
static double judge_with(const struct kg_cuda_contract_plan *plan, double doubt)
{
    const double warm = 0.12;
    if (!kg_cuda_contract_check(plan, NULL))
        return INFINITY;
    const struct kg_cuda_contract_cost_terms its = kg_cuda_wgmma_cost_terms(plan);
    double seconds = kg_cuda_contract_seconds(plan, &its);
    if (kg_group_bytes(plan->group) < (double)plan->facts->cache[3])
        seconds += warm * kg_cuda_contract_copy_seconds(plan, &its);
    return seconds * (kg_cuda_wgmma_is_stream_k(plan) ? doubt : 1);
}

// Where lines are aligned, stream-K has to be expected to gain a tenth: in races of eight shapes it
// gained at most 0.5 %.
static double judge(const struct kg_cuda_contract_plan *plan)
{
    return judge_with(plan, 1.1);
}

// Where they are not, it took as long as expected: four shapes within 1 %.
static double judge_odd(const struct kg_cuda_contract_plan *plan)
{
    return judge_with(plan, 1.02);
}

// Shapes of multicast clusters. Those of more than two blocks are for unaligned operands, whose
// loads take long to issue.
static const struct {
    int m, n;
} clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};
enum { PAIRS = 3, CLUSTERS = sizeof clusters / sizeof *clusters };

// Returns false if some blocks of the cluster would have no tile.
static bool set_cluster(struct kg_cuda_contract_plan *plan, int which)
{
    plan->config.cluster_m = clusters[which].m;
    plan->config.cluster_n = clusters[which].n;
    return kg_cuda_contract_m_after_swap(plan) >
               (int64_t)plan->config.tile_m * (plan->config.cluster_m - 1) &&
           kg_cuda_contract_tiles_across(plan) >= plan->config.cluster_n;
}

// Whether a tile is so large that stream-K may pay: partial tiles go through memory.
static bool is_large(int rows, int columns)
{
    return rows * columns >= 128 * 128;
}

// The best config so far, and its time as `judge` expects it.
struct best {
    struct kg_cuda_contract_plan *plan;
    double (*judge)(const struct kg_cuda_contract_plan *plan);
    double seconds;
};

// Of equally good configs the first one stays: it has the larger tile, which reads less than the
// model knows.
static void compare(struct best *best, const struct kg_cuda_contract_plan *tried)
{
    const double clear = 0.9995;
    double seconds = best->judge(tried);
    if (seconds < clear * best->seconds) {
        best->seconds = seconds;
        best->plan->config = tried->config;
    }
}

// A tile with this split-K (0: stream-K) and, without one, in the first of the clusters.
static void try_tile(struct best *best, struct kg_cuda_contract_plan *tried,
                     const struct tile *tile, int split_k, int cluster_count)
{
    int count = split_k == 1 ? cluster_count : 1;
    tried->config.tile_m = tile->rows;
    tried->config.tile_n = tile->columns;
    tried->config.tile_k = tile->depth;
    tried->config.pingpong = tile->pingpong;
    tried->config.swap = tile->swap;
    tried->config.split_k = split_k;
    set_overlap(tried);
    // Wide tiles of which the output covers less than half took up to 1 % longer than small ones.
    if (tried->config.tile_n > 128 &&
        2 * kg_cuda_contract_m_after_swap(tried) < tried->config.tile_m)
        return;
    if (find_stages(tried, tile->blocks) == STAGES)
        return;
    for (int i = 0; i < count; i++)
        if (set_cluster(tried, i))
            compare(best, tried);
    set_cluster(tried, 0);
}

// All splits of a tile.
static void try_splits(struct best *best, struct kg_cuda_contract_plan *tried,
                       const struct tile *tile, int cluster_count)
{
    for (int split_k = is_large(tile->rows, tile->columns) ? 0 : 1; split_k <= tile->split_k;
         split_k = split_k > 0 ? 2 * split_k : 1)
        try_tile(best, tried, tile, split_k, cluster_count);
}

static const int tile_rows[] = {64, 128, 256};
static const int tile_columns[] = {8,   16,  24,  32,  48,  64,  80,  96,  112,
                                   128, 144, 160, 176, 192, 208, 224, 240, 256};
enum {
    ROWS = sizeof tile_rows / sizeof *tile_rows,
    COLUMNS = sizeof tile_columns / sizeof *tile_columns,
    WAYS = 8, // to multiply a tile
    TILES = WAYS * ROWS * COLUMNS
};

// A tile of the whole space. Returns false if half of it would cover the output.
static bool set_tile(struct kg_cuda_contract_plan *plan, int which)
{
    plan->config.swap = which & 1;
    plan->config.pingpong = which >> 1 & 1;
    plan->config.tile_k = which & 4 ? 2 * KG_WGMMA_ATOM : KG_WGMMA_ATOM;
    plan->config.tile_m = tile_rows[which / WAYS % ROWS];
    plan->config.tile_n = tile_columns[which / WAYS / ROWS];
    return (plan->config.tile_m <= KG_WGMMA_ATOM ||
            plan->config.tile_m / 2 < kg_cuda_contract_m_after_swap(plan)) &&
           (plan->config.tile_n <= 16 ||
            plan->config.tile_n / 2 < kg_cuda_contract_n_after_swap(plan));
}

// The geometric mean of what both fits expect.
static double judge_twice(const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan other = *plan;
    double seconds = judge(plan);
    other.times = &kg_cuda_contract_times_of_best;
    return seconds < INFINITY ? sqrt(seconds * judge(&other)) : INFINITY;
}

// Whether lines of an operand or of the output are such that TMA cannot take them, or takes longer.
static bool is_odd(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_wgmma_is_unaligned(plan) || kg_cuda_wgmma_packed_bytes(plan) > 0 ||
           kg_cuda_wgmma_has_odd_lines(plan);
}

// Whether the product is like those that the table was measured with, and the fit for it.
static bool is_listed(const struct kg_cuda_contract_plan *plan)
{
    enum { LEAST_K = 1024 };
    return plan->k >= LEAST_K && !is_odd(plan);
}

// Tiles that are not in the table, if they are expected to gain more than expected times are worth.
// Clusters are tried of tiles that come near without. Races of listed and drawn shapes (H200,
// 2026-11-30) say where expected times are not to be trusted: tiles of 256 rows and 176 columns
// took 1.05 of the time instead of 0.96.
static void try_others(struct best *best, struct kg_cuda_contract_plan *tried)
{
    enum { MOST_BLOCKS = 3, MOST_SPLIT_K = 4, TALL = 256, MOST_OF_TALL = 160 };
    bool is_unaligned = kg_cuda_wgmma_is_unaligned(tried), odd = is_odd(tried);
    tried->config.split_k = 1;
    double clear = odd ? 1 : is_listed(tried) ? 0.96 : 0.98, near = is_unaligned ? 2 : 1.05;
    double (*const by)(const struct kg_cuda_contract_plan *) = odd                ? judge_odd
                                                               : is_listed(tried) ? judge_twice
                                                                                  : judge;
    int clusters_there = is_unaligned ? CLUSTERS : PAIRS;
    struct best other = {best->plan, by, clear * by(best->plan)};
    for (int i = 0; i < TILES; i++) {
        const struct kg_cuda_contract_config *config = &tried->config;
        if (!set_tile(tried, i) || (config->tile_m == TALL && config->tile_n > MOST_OF_TALL))
            continue;
        struct tile tile = {
            config->tile_m, config->tile_n, config->tile_k, config->pingpong, config->swap, 1, 1};
        bool is_small = tile.rows * tile.columns <= 128 * 64;
        for (; tile.blocks <= (is_small ? MOST_BLOCKS : 1); tile.blocks++) {
            tried->config.split_k = 1;
            set_overlap(tried);
            if (find_stages(tried, tile.blocks) == STAGES)
                break;
            bool is_near = by(tried) < near * other.seconds;
            bool is_idle = kg_cuda_contract_tiles(tried) < tried->facts->units;
            bool splits = is_idle && !tile.pingpong;
            tile.split_k = splits ? MOST_SPLIT_K : 1;
            if (is_near || tile.split_k > 1)
                try_splits(&other, tried, &tile, is_near ? clusters_there : 1);
        }
    }
}

bool kg_cuda_wgmma_guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan tried = *plan;
    struct best best = {plan, is_odd(plan) ? judge_odd : judge, INFINITY};
    if (kg_cuda_wgmma_rate(plan) == 0 || plan->facts->units == 0 || plan->facts->bandwidth == 0)
        return false;
    tried.times = is_listed(plan) ? &kg_cuda_contract_times_of_best : plan->times;
    tried.config.raster = tried.config.maxnreg = 0;
    set_cluster(&tried, 0);
    int clusters_there = kg_cuda_wgmma_is_unaligned(&tried) ? CLUSTERS : 1;
    for (int i = 0; i < (int)(sizeof tiles / sizeof *tiles); i++)
        try_splits(&best, &tried, &tiles[i], clusters_there);
    if (best.seconds == INFINITY)
        return false;
    tried.times = plan->times;
    try_others(&best, &tried);
    return true;
}

// ---- Configs for searches ----

static void list_clusters(struct kg_cuda_contract_plan *plan,
                          struct kg_cuda_contract_listing *listing)
{
    int count = kg_cuda_wgmma_is_unaligned(plan) ? CLUSTERS : PAIRS;
    for (int i = 1; i < count; i++)
        if (set_cluster(plan, i))
            kg_cuda_contract_take(listing, plan);
    set_cluster(plan, 0);
}

// Takes the largest numbers of stages that let one, two or three blocks run on an SM, and the next
// smaller ones. Clusters, and the other raster order if there are many tiles, are tried with the
// largest number only.
static void list_stages(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    bool many = plan->config.split_k == 1 && kg_cuda_contract_tiles(plan) > plan->facts->units;
    int largest = find_stages(plan, 1), next = largest;
    for (int blocks = 1; blocks <= 3; blocks++)
        for (int at = find_stages(plan, blocks), last = at + 1; at <= last && at < STAGES; at++) {
            if (at < next)
                continue;
            next = at + 1;
            plan->config.stages = stages[at];
            kg_cuda_contract_take(listing, plan);
        }
    if (largest == STAGES)
        return;
    plan->config.stages = stages[largest];
    if (plan->config.split_k == 1)
        list_clusters(plan, listing);
    plan->config.raster = many;
    if (many)
        kg_cuda_contract_take(listing, plan);
    plan->config.raster = 0;
}

// Takes stream-K if there is more than one wave and the last one would leave SMs idle.
static void list_stream_k(struct kg_cuda_contract_plan *plan,
                          struct kg_cuda_contract_listing *listing)
{
    const double ragged = 1.05;
    plan->config.split_k = 0;
    set_overlap(plan);
    int64_t whole = kg_cuda_contract_tiles(plan), units = plan->facts->units;
    double full = (double)(kg_ceil_div(whole, units) * units);
    if (is_large(plan->config.tile_m, plan->config.tile_n) && whole > units &&
        full > ragged * (double)whole && find_stages(plan, 1) < STAGES)
        kg_cuda_contract_take(listing, plan);
}

// Takes split-K while SMs are idle, then stream-K.
static void list_splits(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    enum { MAX_SPLIT_K = 128 };
    plan->config.overlap = 0;
    int64_t whole = kg_cuda_contract_tiles(plan);
    for (int split_k = 1; split_k <= MAX_SPLIT_K; split_k *= 2) {
        plan->config.split_k = split_k;
        set_overlap(plan);
        if (split_k == 1 || (!plan->config.pingpong && whole * split_k <= 4 * plan->facts->units))
            list_stages(plan, listing);
    }
    list_stream_k(plan, listing);
}

void kg_cuda_wgmma_list(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    for (int i = 0; i < TILES; i++)
        if (set_tile(plan, i))
            list_splits(plan, listing);
}
