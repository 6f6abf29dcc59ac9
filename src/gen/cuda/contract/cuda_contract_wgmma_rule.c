// How long products by wgmma take, the config by rule, and those that searches choose from.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/bound.h"

#include <math.h>

// What is done with sums on their way out, as the instructions say; `both` as races of six products
// with a bias and GELU had it.
static const struct {
    double issue;   // of an instruction of a warp, seconds
    double each;    // instructions for any sum, and
    double special; // the time of so many more for each of the special unit, or
    double read;    // for reading what is where the sum is
    double both;    // two consumers at once take so many times as long
} work = {0.59e-9, 2, 4, 16, 1.4};

// Seconds that consumers work on their sums before they are stored.
static double values_seconds(const struct kg_cuda_contract_plan *plan)
{
    bool together = plan->set.rows > KG_WGMMA_ATOM && !plan->set.pingpong;
    double outputs = (double)plan->batches * (double)plan->rows * (double)plan->columns, each = 0;
    if (!kg_cuda_contract_has_epilogue(plan) || outputs == 0)
        return 0;
    if (kg_cuda_contract_epilogue_uses_position(plan))
        each += work.read;
    for (int i = 1; i < plan->group->count; i++) {
        const struct kg_nest *nest = plan->group->problem->nests[plan->group->first + i];
        each += (nest->operations + work.special * nest->transcendentals) / outputs;
    }
    return work.issue * (work.each + each) * kg_cuda_wgmma_sums(plan) * (together ? work.both : 1);
}

double kg_cuda_wgmma_rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[kg_cuda_contract_dtype(plan, 0)];
}

// Of a block that leaves a part and takes one.
static double parts_seconds(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    return fit->flag + fit->part * plan->set.rows * plan->set.columns / (128.0 * 128.0);
}

double kg_cuda_wgmma_stage(const struct kg_cuda_contract_plan *plan, double rate, int products)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    int rows = plan->set.rows, columns = plan->set.columns;
    int readers = rows > KG_WGMMA_ATOM && !plan->set.pingpong ? 2 : 1;
    double wider = columns < fit->columns ? fit->columns / columns : 1;
    double read = (double)KG_WGMMA_ELEMENT * plan->set.depth * (rows + readers * columns);
    return kg_cuda_contract_stage(plan, rate, fit->matrix) * wider +
           fit->operands * products * read;
}

// Of the time, what pairs cost.
static double pair_share(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    return plan->set.down > 1     ? fit->down
           : plan->set.across > 1 ? fit->across * plan->set.columns / 128
                                  : 0;
}

// Whether a side passes through the L2, as kernels decide it: kg_wgmma_passes.
static bool side_passes(const struct kg_cuda_contract_plan *plan, int which)
{
    const int64_t tall = kg_cuda_contract_m_after_swap(plan),
                  wide = kg_cuda_contract_n_after_swap(plan);
    bool left = which == KG_WGMMA_LEFT;
    bool along = plan->along[kg_cuda_wgmma_side(plan, which)];
    bool alone = left ? plan->set.across == 1 && wide <= plan->set.columns
                      : plan->set.down == 1 && tall <= plan->set.rows;
    int together = along ? plan->set.depth : left ? plan->set.rows : plan->set.columns;
    int64_t steps = kg_ceil_div(plan->depth, plan->set.depth) * plan->set.depth;
    double bytes =
        (double)plan->batches * (double)(left ? tall : wide) * (double)steps * KG_WGMMA_ELEMENT;
    return alone && together >= 2 * KG_WGMMA_ATOM && bytes > KG_WGMMA_LEAST_PASSING &&
           bytes <= KG_WGMMA_MOST_PASSING;
}

struct kg_cuda_contract_cost_terms kg_cuda_wgmma_pace(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    struct kg_cuda_contract_cost_terms cost_terms = {
        .blocks = kg_cuda_wgmma_blocks(plan),
        .multiply = kg_cuda_wgmma_stage(plan, kg_cuda_wgmma_rate(plan), 1),
        .fill = kg_cuda_wgmma_is_uneven(plan) ? fit->uneven : 1,
        .again = kg_cuda_wgmma_is_uneven(plan) ? fit->misses : 1,
        .values = values_seconds(plan),
        .folds_in_cluster = kg_cuda_wgmma_folds(plan),
        .copied = kg_cuda_wgmma_copied(plan),
        .share = pair_share(plan),
        .parts = kg_cuda_wgmma_shares(plan) ? parts_seconds(plan) : 0,
        .passes = side_passes(plan, KG_WGMMA_LEFT) || side_passes(plan, KG_WGMMA_RIGHT),
    };
    return cost_terms;
}

// ---- The config by rule ----

static const int stages[] = {16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2};
enum { STAGES = sizeof stages / sizeof *stages };

// The position of the most stages that leave room for so many blocks in a unit; STAGES: none.
static int find_stages(struct kg_cuda_contract_plan *plan, int blocks)
{
    for (int i = 0; i < STAGES; i++) {
        plan->set.stages = stages[i];
        int64_t bytes = kg_cuda_wgmma_shared(plan);
        if (bytes <= plan->facts->shared_bytes &&
            (bytes + KG_CUDA_SYSTEM_SHARED) * blocks <= KG_CUDA_UNIT_SHARED)
            return i;
    }
    return STAGES;
}

// The tiles that were measured: with so many blocks in a unit, and up to so many pieces of the sum.
static const struct {
    int rows, columns, depth, pingpong, swap, blocks, pieces;
} tiles[] = {
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

// Seconds, INFINITY of what is not valid. Sharing tiles has to promise much: in races of eight
// shapes it gained 0.5 % at most. What is in the L2 already, as the last kernel may have left it,
// is there the sooner the less each unit copies: that decides between configs that are as good
// cold.
static double judge(const struct kg_cuda_contract_plan *plan)
{
    const double doubt = 1.1, warm = 0.12;
    if (!kg_cuda_contract_check(plan, NULL))
        return INFINITY;
    const struct kg_cuda_contract_cost_terms its = kg_cuda_wgmma_pace(plan);
    double seconds = kg_cuda_contract_seconds(plan, &its);
    if (kg_group_bytes(plan->group) < (double)plan->facts->cache[3])
        seconds += warm * kg_cuda_contract_copying(plan, &its);
    return seconds * (kg_cuda_wgmma_shares(plan) ? doubt : 1);
}

// Blocks of a cluster: one below the other, side by side. More than pairs are for lines that begin
// anywhere, which take long to ask for.
static const struct {
    int down, across;
} clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};
enum { PAIRS = 3, CLUSTERS = sizeof clusters / sizeof *clusters };

// False where some of its blocks would have no tile.
static bool set_cluster(struct kg_cuda_contract_plan *plan, int which)
{
    plan->set.down = clusters[which].down;
    plan->set.across = clusters[which].across;
    return kg_cuda_contract_m_after_swap(plan) > (int64_t)plan->set.rows * (plan->set.down - 1) &&
           kg_cuda_contract_n_after_swap(plan) >
               (int64_t)plan->set.columns * (plan->set.across - 1);
}

// Whether parts of so large a tile are worth their way through memory.
static bool is_large(int rows, int columns)
{
    return rows * columns >= 128 * 128;
}

// The best so far, and the seconds it is expected to take.
struct best {
    struct kg_cuda_contract_plan *plan;
    double seconds;
};

// The first of those that are as good: larger tiles read less than the model knows.
static void compare(struct best *best, const struct kg_cuda_contract_plan *tried)
{
    const double clear = 0.9995;
    double seconds = judge(tried);
    if (seconds < clear * best->seconds) {
        best->seconds = seconds;
        best->plan->set = tried->set;
    }
}

// A tile of the table in so many pieces; whole, in clusters too where these may pay.
static void try_tile(struct best *best, struct kg_cuda_contract_plan *tried, int tile, int pieces,
                     bool is_uneven)
{
    int count = is_uneven && pieces == 1 ? CLUSTERS : 1;
    tried->set.rows = tiles[tile].rows;
    tried->set.columns = tiles[tile].columns;
    tried->set.depth = tiles[tile].depth;
    tried->set.pingpong = tiles[tile].pingpong;
    tried->set.swap = tiles[tile].swap;
    tried->set.split = pieces;
    // Where less than half of a wide tile is there, it took up to 1 % longer than small ones.
    if (tried->set.columns > 128 && 2 * kg_cuda_contract_m_after_swap(tried) < tried->set.rows)
        return;
    if (find_stages(tried, tiles[tile].blocks) == STAGES)
        return;
    for (int i = 0; i < count; i++)
        if (set_cluster(tried, i))
            compare(best, tried);
    set_cluster(tried, 0);
}

bool kg_cuda_wgmma_guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan tried = *plan;
    struct best best = {plan, INFINITY};
    if (kg_cuda_wgmma_rate(plan) == 0 || plan->facts->units == 0 || plan->facts->bandwidth == 0)
        return false;
    tried.times = &kg_cuda_contract_times_of_best;
    tried.set.order = tried.set.registers = 0;
    set_cluster(&tried, 0);
    bool is_uneven = kg_cuda_wgmma_is_uneven(&tried);
    for (int i = 0; i < (int)(sizeof tiles / sizeof *tiles); i++)
        for (int pieces = is_large(tiles[i].rows, tiles[i].columns) ? 0 : 1;
             pieces <= tiles[i].pieces; pieces = pieces > 0 ? 2 * pieces : 1)
            try_tile(&best, &tried, i, pieces, is_uneven);
    return best.seconds < INFINITY;
}

// ---- Configs for searches ----

static void list_clusters(struct kg_cuda_contract_plan *plan,
                          struct kg_cuda_contract_listing *listing)
{
    int count = kg_cuda_wgmma_is_uneven(plan) ? CLUSTERS : PAIRS;
    for (int i = 1; i < count; i++)
        if (set_cluster(plan, i))
            kg_cuda_contract_take(listing, plan);
    set_cluster(plan, 0);
}

// With as many stages as leave room for one, two or three blocks in a unit, or the next fewer.
// Clusters and the other order are with the most stages, that order for many tiles.
static void list_stages(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    bool many = plan->set.split == 1 && kg_cuda_contract_tiles(plan) > plan->facts->units;
    int most = find_stages(plan, 1), next = most;
    for (int blocks = 1; blocks <= 3; blocks++)
        for (int at = find_stages(plan, blocks), last = at + 1; at <= last && at < STAGES; at++) {
            if (at < next)
                continue;
            next = at + 1;
            plan->set.stages = stages[at];
            kg_cuda_contract_take(listing, plan);
        }
    if (most == STAGES)
        return;
    plan->set.stages = stages[most];
    if (plan->set.split == 1)
        list_clusters(plan, listing);
    plan->set.order = many;
    if (many)
        kg_cuda_contract_take(listing, plan);
    plan->set.order = 0;
}

// Where the last wave leaves much without work, and is not the first one.
static void list_shared(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    const double ragged = 1.05;
    int64_t whole = kg_cuda_contract_tiles(plan), units = plan->facts->units;
    double full = (double)(kg_ceil_div(whole, units) * units);
    plan->set.split = 0;
    if (is_large(plan->set.rows, plan->set.columns) && whole > units &&
        full > ragged * (double)whole && find_stages(plan, 1) < STAGES)
        kg_cuda_contract_take(listing, plan);
}

// In pieces as long as units are without work.
static void list_pieces(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    enum { MOST_PIECES = 128 };
    int64_t whole = kg_cuda_contract_tiles(plan);
    for (int pieces = 1; pieces <= MOST_PIECES; pieces *= 2) {
        plan->set.split = pieces;
        if (pieces == 1 || (!plan->set.pingpong && whole * pieces <= 4 * plan->facts->units))
            list_stages(plan, listing);
    }
    list_shared(plan, listing);
}

void kg_cuda_wgmma_list(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    static const int rows[] = {64, 128, 256};
    static const int columns[] = {8,   16,  24,  32,  48,  64,  80,  96,  112,
                                  128, 144, 160, 176, 192, 208, 224, 240, 256};
    enum { ROWS = sizeof rows / sizeof *rows, COLUMNS = sizeof columns / sizeof *columns };
    enum { WAYS = 8 };
    for (int i = 0; i < WAYS * ROWS * COLUMNS; i++) {
        plan->set.swap = i & 1;
        plan->set.pingpong = i >> 1 & 1;
        plan->set.depth = i & 4 ? 2 * KG_WGMMA_ATOM : KG_WGMMA_ATOM;
        plan->set.rows = rows[i / WAYS % ROWS];
        plan->set.columns = columns[i / WAYS / ROWS];
        bool halves = (plan->set.rows > KG_WGMMA_ATOM &&
                       plan->set.rows / 2 >= kg_cuda_contract_m_after_swap(plan)) ||
                      (plan->set.columns > 16 &&
                       plan->set.columns / 2 >= kg_cuda_contract_n_after_swap(plan));
        if (!halves) // half the tile would be enough
            list_pieces(plan, listing);
    }
}
