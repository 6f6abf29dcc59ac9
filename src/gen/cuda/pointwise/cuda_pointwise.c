// The family of element-wise formulas on CUDA: a chain of nests over the same output axes, none of
// them a reduction. Values pass from nest to nest in registers; each element is read and written
// once.
//
// The last axes, as far as every tensor walks them together or leaves them alone, are the columns;
// the axes before them are the rows. A thread makes a few vectors of 16 bytes (or fewer), all of
// them loaded before the first is used: one below the other, where what only depends on the column
// is loaded once, or side by side where there are no rows. Where some tensor is not aligned for
// vectors the same code goes element by element, neighbouring threads on neighbouring elements.

#include "gen/cuda/pointwise/cuda_pointwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/bound.h"

#include <string.h>

enum { THREADS, VECTOR, ROWS, STREAM, REGISTERS, TILE, LAST, FLAT };

enum {
    ACCESS = 16,
    MOST_LEVEL = 65535,   // blocks of a grid's second dimension
    MOST_ALONG = 1 << 30, // of its first; threads along either side of a narrow function
    SHORT = 8,            // loads of fewer bytes are no shorter for a unit
};

struct analysis {
    int crossing; // the axis that some read is contiguous along, other than the last; or -1
    bool rounds;  // vectors may hold whole rounds of a short last axis
    bool simple;
    bool flat;                   // it may be walked as one line
    bool merged[KG_MAX_INDICES]; // this axis and the next are walked as one
};

static const void *match_chain(const struct kg_group *group, const struct kg_device_facts *facts,
                               struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    if (!kg_cuda_fits(group, reason))
        return NULL;
    for (int i = 0; i < group->count; i++) {
        const char *why = kg_pointwise_obstacle(group, i);
        if (why) {
            kg_text_format(reason, "%s: %s", kg_group_nest(group, i)->output->name, why);
            return NULL;
        }
    }
    struct analysis *analysis = KG_NEW(arena, struct analysis);
    if (!analysis)
        return NULL;
    analysis->crossing = kg_cuda_pointwise_crossing(group);
    analysis->rounds = kg_cuda_pointwise_rounds(group);
    analysis->simple = kg_cuda_pointwise_simple(group);
    analysis->flat = kg_cuda_pointwise_can_be_flat(group);
    for (int axis = 0; axis + 1 < kg_group_nest(group, 0)->output_axes; axis++)
        analysis->merged[axis] = kg_pointwise_can_merge(group, axis);
    return analysis;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    *space = (struct kg_space){0};
    kg_space_add(space, "threads", KG_CHANGE_STAGES, 4, (int64_t[]){512, 256, 128, 1024});
    kg_space_add(space, "vector", KG_CHANGE_ACCESS, 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "rows", KG_CHANGE_BLOCK, 4, (int64_t[]){2, 4, 1, 8});
    kg_space_add(space, "stream", KG_CHANGE_ACCESS, 4, (int64_t[]){0, 1, 2, 3});
    kg_cuda_space_registers(space);
    const struct analysis *analysis = match->analysis;
    const bool crosses = analysis->crossing >= 0, rounds = analysis->rounds;
    if (crosses || rounds || analysis->flat) {
        kg_space_add_optional(space, "tile", KG_CHANGE_REUSE, crosses ? 4 : 1,
                              (int64_t[]){0, 64, 32, 128});
        kg_space_add_optional(space, "last", KG_CHANGE_BLOCK, rounds ? 5 : 1,
                              (int64_t[]){0, 1, 2, 4, 8});
        kg_space_add_optional(space, "flat", KG_CHANGE_ACCESS, analysis->flat ? 2 : 1,
                              (int64_t[]){0, 1});
    }
}

// Of what is stored, in bytes.
static int widest_element(const struct kg_group *group)
{
    int widest = 1;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        int bytes = kg_dtypes[kg_emit_tensor_dtype(output)].bits / 8;
        if (!kg_group_is_private(group, output) && bytes > widest)
            widest = bytes;
    }
    return widest;
}

void kg_cuda_pointwise_plan_make(const struct kg_match *match, const struct kg_config *config,
                                 struct kg_cuda_pointwise_plan *plan)
{
    const struct analysis *analysis = match->analysis;
    *plan = (struct kg_cuda_pointwise_plan){.group = &match->group, .across = -1};
    plan->axes = kg_group_nest(&match->group, 0)->output_axes;
    plan->run = plan->axes - 1;
    plan->tile = (int)config->value[TILE];
    plan->last = (int)config->value[LAST];
    for (int axis = 0; axis + 1 < plan->axes; axis++)
        plan->merged[axis] = analysis->merged[axis];
    if (plan->last > 0)
        plan->merged[plan->axes - 2] = true;
    plan->flat = config->value[FLAT] > 0;
    while (plan->run > 0 && (plan->flat || plan->merged[plan->run - 1]))
        plan->run--;
    if (plan->tile)
        plan->across = analysis->crossing;
    plan->threads = (int)config->value[THREADS];
    plan->vector = (int)config->value[VECTOR];
    plan->rows = (int)config->value[ROWS];
    plan->stream = (enum kg_cuda_pointwise_stream)config->value[STREAM];
    plan->registers = (int)config->value[REGISTERS];
}

// For any length of the last axis.
static void make_plan_for_any(const struct kg_match *match, const struct kg_config *config,
                              struct kg_cuda_pointwise_plan *plan)
{
    struct kg_config any = *config;
    any.value[LAST] = 0;
    kg_cuda_pointwise_plan_make(match, &any, plan);
}

// Elements of a row, and rows.
static void measure(const struct kg_cuda_pointwise_plan *plan, int64_t *columns, int64_t *rows)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, 0);
    *columns = *rows = 1;
    for (int axis = 0; axis < plan->axes; axis++)
        *(axis < plan->run ? rows : columns) *= nest->extent[axis];
}

static const char *tile_obstacle(const struct kg_cuda_pointwise_plan *plan,
                                 const struct kg_device_facts *facts)
{
    struct kg_cuda_slots slots;
    int64_t bytes = 0, square = (int64_t)plan->tile * plan->tile;
    int widest = plan->vector;
    if (plan->last || plan->flat)
        return "tiles leave the last axis alone";
    if (plan->rows != 1)
        return "in tiles a thread has as many vectors as there are: rows does not count";
    kg_cuda_pointwise_find_slots(plan, &slots);
    for (int i = 0; i < slots.count; i++) {
        const struct kg_tensor *tensor = slots.items[i].access->tensor;
        int piece = kg_cuda_pointwise_piece(tensor);
        if (slots.items[i].kind != KG_CUDA_SLOT_TILE)
            continue;
        bytes += (square + plan->tile * 4) * (ACCESS / piece);
        widest = piece > widest ? piece : widest;
    }
    if (bytes > facts->unit.static_shared)
        return "the tiles need more shared memory than a block has";
    if (square < (int64_t)widest * plan->threads)
        return "a tile has fewer vectors than a block has threads";
    return square > 32 * plan->threads ? "a tile is more than the threads of a block hold" : NULL;
}

static const char *plain_obstacle(const struct kg_cuda_pointwise_plan *plan)
{
    int64_t columns, rows;
    measure(plan, &columns, &rows);
    if (plan->last && plan->flat)
        return "one line of elements has no last axis";
    if (plan->last && kg_group_nest(plan->group, 0)->extent[plan->axes - 1] != plan->last)
        return "the last axis has another length";
    if (plan->last && plan->vector % plan->last != 0)
        return "vectors are not whole rounds of the last axis";
    if (plan->rows > 1 && plan->rows > (plan->run > 0 ? rows : kg_ceil_div(columns, plan->vector)))
        return "more vectors a thread than there are";
    return NULL;
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_pointwise_plan plan;
    kg_cuda_pointwise_plan_make(match, config, &plan);
    const char *obstacle = plan.tile ? tile_obstacle(&plan, facts) : plain_obstacle(&plan);
    if (plan.vector * widest_element(group) > ACCESS)
        obstacle = "a vector is wider than a store";
    if (config->value[REGISTERS] > 0 &&
        config->value[REGISTERS] * plan.threads > facts->unit.registers)
        obstacle = "a block would need more registers than there are";
    kg_text_add(reason, obstacle ? obstacle : "");
    return !obstacle;
}

// Where both sides fill at least half of the least tile: the whole tile that fits.
static bool guess_tile(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    enum { LEAST = 16 };
    struct kg_cuda_pointwise_plan plan;
    struct kg_config tiled = {{256, config->value[VECTOR], 1, 0, 0, 64, 0}};
    if (((const struct analysis *)match->analysis)->crossing < 0)
        return false;
    for (; tiled.value[TILE] >= 32; tiled.value[TILE] /= 2) {
        kg_cuda_pointwise_plan_make(match, &tiled, &plan);
        if (kg_cuda_pointwise_extent(&plan, plan.axes - 1) < LEAST ||
            kg_cuda_pointwise_extent(&plan, plan.across) < LEAST)
            return false;
        while (tiled.value[THREADS] > 128 && tile_obstacle(&plan, facts)) {
            tiled.value[THREADS] /= 2;
            kg_cuda_pointwise_plan_make(match, &tiled, &plan);
        }
        if (!tile_obstacle(&plan, facts)) {
            *config = tiled;
            return true;
        }
    }
    return false;
}

// Rounds of the last axis, where a vector holds several.
static void guess_last(const struct kg_match *match, struct kg_config *config)
{
    struct kg_cuda_pointwise_plan plan;
    int64_t columns, rows, last;
    if (!((const struct analysis *)match->analysis)->rounds)
        return;
    kg_cuda_pointwise_plan_make(match, config, &plan);
    last = kg_group_nest(&match->group, 0)->extent[plan.axes - 1];
    if (last < 1 || last >= plan.vector || plan.vector % last != 0)
        return;
    plan.last = (int)last;
    struct kg_config rounds = *config;
    rounds.value[LAST] = last;
    kg_cuda_pointwise_plan_make(match, &rounds, &plan);
    measure(&plan, &columns, &rows);
    if (columns % plan.vector == 0)
        *config = rounds;
}

// Small problems are spread over all units first: in smaller blocks, then in shorter vectors.
static void guess_small(int64_t elements, int units, int widest, struct kg_config *config)
{
    enum { LEAST_THREADS = 128, LEAST_BYTES = 4 };
    int64_t *threads = &config->value[THREADS], *vector = &config->value[VECTOR];
    int64_t *rows = &config->value[ROWS], vectors = elements / *vector;
    while (*rows > 1 && vectors / *rows < (int64_t)1024 * units)
        *rows /= 2;
    while (*threads > LEAST_THREADS && vectors < 2 * *threads * units)
        *threads /= 2;
    for (; *vector * widest > LEAST_BYTES && *vector > 1 && *vector > config->value[LAST] &&
           vectors * 2 <= LEAST_THREADS * units;
         vectors *= 2)
        *vector /= 2;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The vectors that a thread loads for each one that it stores.
struct loads {
    int64_t bytes, shortest;
};

static struct loads loads_of(const struct kg_match *match, const struct kg_config *config)
{
    struct kg_cuda_pointwise_plan plan;
    struct kg_cuda_slots slots;
    struct loads loads = {.shortest = ACCESS};
    kg_cuda_pointwise_plan_make(match, config, &plan);
    kg_cuda_pointwise_find_slots(&plan, &slots);
    for (int i = 0; i < slots.count; i++) {
        const struct kg_cuda_slot *slot = &slots.items[i];
        int bits = kg_dtypes[kg_emit_tensor_dtype(slot->access->tensor)].bits;
        if (!slot->moves || slot->kind != KG_CUDA_SLOT_VECTOR)
            continue;
        loads.bytes += plan.vector * bits / 8;
        loads.shortest = least(loads.shortest, plan.vector * bits / 8);
    }
    return loads;
}

// Whether nothing but main memory can hold the launch up: few operations for each element.
static bool is_light(const struct kg_group *group, double elements)
{
    enum { MOST_OPERATIONS = 16 };
    double operations = 0, transcendentals = 0;
    for (int i = 0; i < group->count; i++) {
        operations += kg_group_nest(group, i)->operations;
        transcendentals += kg_group_nest(group, i)->transcendentals;
    }
    return transcendentals == 0 && operations <= MOST_OPERATIONS * elements;
}

// Accesses of 8 bytes: four of each of 128 threads took 0.5 to 1 % less time than two of 16 bytes,
// on an H200. Long launches of light formulas do better when threads load no more than 16 bytes at
// once: more does not get main memory to deliver more, but makes it jump between more places. On an
// H100, 38 of 41 drawn cases of 4-byte elements or several tensors gained, 1.8 % at most, and three
// lost, 1.2 % at most; one tensor of narrower elements, or more to compute, leaves threads with too
// little to do each. In `rows` of several axes a thread finds the place of each vector: one whole
// vector a thread took 6 % less than two halves over 40 drawn cases on an H100, and in none 0.3 %
// more; by blocks of 128 threads instead of 256 it took 1 % less where what is read lies in short
// runs, and up to 0.6 % less elsewhere (12 cases on an H200). Beside bytes, as masks are, halves of
// vectors are too short.
static void guess_accesses(const struct kg_match *match, double elements, bool rows,
                           struct kg_config *config)
{
    enum { LEAST_WAVES = 32, ROW_THREADS = 128, LIGHT_THREADS = 256, WIDE = 4 };
    const struct kg_device_facts *facts = match->facts;
    int element = widest_element(&match->group);
    struct kg_config light = *config, whole = *config;
    int64_t *vectors = &light.value[ROWS];
    config->value[VECTOR] /= 2;
    config->value[ROWS] = light.value[ROWS] = 4;
    if (loads_of(match, config).shortest < SHORT)
        *config = whole;
    light.value[VECTOR] = rows ? light.value[VECTOR] : config->value[VECTOR];
    light.value[THREADS] = rows ? ROW_THREADS : LIGHT_THREADS;
    const int64_t bytes = loads_of(match, &light).bytes;
    bool several = bytes > light.value[VECTOR] * element;
    if (!is_light(&match->group, elements) || element < 2 || (element < WIDE && !several && !rows))
        return;
    while (*vectors > 1 && *vectors / 2 * bytes >= ACCESS)
        *vectors /= 2;
    double threads = elements / (double)(light.value[VECTOR] * *vectors);
    if (threads >= LEAST_WAVES * (double)facts->units * facts->unit.threads)
        *config = light;
}

// Rows that are no whole numbers of vectors are walked as one line of elements: 48 drawn cases of 8
// to 250 us on an H100 took 0.73 of the time of rows in shorter vectors, cold, and 0.98 at worst.
// Where each unit has but a few hundred vectors, dividing places out took up to a tenth longer.
// Formulas of indices then count every element's: 0.70 of the time in 9 cases, but up to 1.5 times
// as long where rows are one axis, whose index need not be divided, and have vectors of two or more
// elements. Beyond the L2 these gain too: 0.83 to 1.00 of the time in 9 cases, cold, and 0.81 to
// 1.03 in graphs, where 3 that fit into it took 1.13 to 1.31 times as long.
static bool is_better_flat(const struct kg_match *match, const struct kg_cuda_pointwise_plan *plan,
                           int64_t columns, int64_t rows)
{
    enum { LEAST_THREADS = 256 };
    const int64_t units = match->facts->units > 0 ? match->facts->units : 1;
    const struct analysis *analysis = match->analysis;
    const bool is_near = kg_group_bytes(&match->group) <= (double)match->facts->cache[2];
    int row_axes = 0;
    for (int axis = 0; axis < plan->run; axis++)
        row_axes += !plan->merged[axis];
    if (!analysis->simple && row_axes == 1 && columns % 2 == 0 && is_near)
        return false;
    return analysis->flat && analysis->crossing < 0 && columns % plan->vector != 0 &&
           columns * rows >= LEAST_THREADS * units * plan->vector;
}

// Where rates are not known.
static void guess_plainly(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_pointwise_plan plan;
    int64_t columns, rows;
    int widest = widest_element(group);
    *config = (struct kg_config){{128, ACCESS / widest, 2}};
    if (guess_tile(match, config))
        return;
    guess_last(match, config);
    kg_cuda_pointwise_plan_make(match, config, &plan);
    measure(&plan, &columns, &rows);
    // Whole vectors in one line, or those that rows are whole numbers of.
    if (is_better_flat(match, &plan, columns, rows))
        config->value[FLAT] = 1;
    kg_cuda_pointwise_plan_make(match, config, &plan);
    measure(&plan, &columns, &rows);
    while (plan.run > 0 && config->value[VECTOR] > 1 && columns % config->value[VECTOR] != 0)
        config->value[VECTOR] /= 2;
    guess_small(columns * rows, facts->units > 0 ? facts->units : 1, widest, config);
    // Not where finding the places is most of the work.
    if (config->value[LAST] == 0 && config->value[FLAT] == 0 && config->value[ROWS] > 1 &&
        config->value[VECTOR] * widest == ACCESS && kg_cuda_pointwise_simple(group))
        guess_accesses(match, (double)columns * (double)rows, plan.run > 0, config);
    struct kg_text reason = {0};
    while (config->value[ROWS] > 1 && !valid(match, config, &reason))
        config->value[ROWS] /= 2;
    kg_text_free(&reason);
}

// The function of the kernel that a config launches; -1: none.
static int function_of(const struct kg_match *match, const struct kg_config *config)
{
    struct kg_grids launch;
    match->family->grids(match, config, &launch);
    for (int i = 0; i < launch.count; i++)
        if (launch.grids[i].blocks[0] > 0)
            return i;
    return -1;
}

// What is read and written together, as so many times what the L2 holds, from which on loads that
// the L2 evicts last are faster: 39 cases on an H200 took 0.98 to 1.00 of the time beyond it, and
// up to 1.16 where it is less than 100 MB.
enum { EVICT_LAST = 8, EVICT_TILES_LAST = 6 };

// Blocks of all sizes, with as many vectors of a thread as there may be, or with other tiles.
static void guess(const struct kg_match *match, struct kg_config *config)
{
    enum { LEAST_TILE = 32, MOST_TILE = 128, LEAST_BLOCK = 128, MOST_ROWS = 8, LAUNCHES = 4 };
    struct kg_cuda_rule rule = {.match = match};
    guess_plainly(match, config);
    kg_cuda_rule_try(&rule, config);
    // One that counts in 64 bits would take longer than is expected.
    const int function = function_of(match, config);
    struct kg_config tried = *config;
    bool tiled = config->value[TILE] > 0;
    struct kg_cuda_pointwise_plan plan;
    kg_cuda_pointwise_plan_make(match, config, &plan);
    // Elements that are moved one by one take longer in larger tiles: a quarter, on an H200. What
    // takes little longer than a launch is too short for what is expected to tell configs apart.
    if ((tiled && kg_cuda_pointwise_alignment(&plan) == 0) ||
        rule.seconds < LAUNCHES * kg_cuda_pointwise_times.launch)
        return;
    int64_t *value = tried.value, *more = tiled ? &value[TILE] : &value[ROWS];
    int64_t least_more = tiled ? LEAST_TILE : 1, most_more = tiled ? MOST_TILE : MOST_ROWS;
    // Where a thread finds a place for each vector, fewer and wider ones may be worth it.
    const int64_t vector = value[VECTOR], whole = ACCESS / widest_element(&match->group);
    if (plan.run > 0 && !tiled && vector * 2 == whole && value[LAST] == 0)
        value[VECTOR] = whole;
    for (; value[VECTOR] * 2 >= vector && value[VECTOR] > 0 &&
           (value[VECTOR] >= vector || loads_of(match, &tried).shortest >= SHORT);
         value[VECTOR] /= 2)
        for (value[THREADS] = LEAST_BLOCK; value[THREADS] <= match->facts->unit.block_threads;
             value[THREADS] *= 2)
            for (*more = least_more; *more <= most_more; *more *= 2)
                if (function_of(match, &tried) == function)
                    kg_cuda_rule_try(&rule, &tried);
    if (!tiled && kg_cuda_pointwise_alignment(&plan) != 0)
        kg_cuda_rule_try_evicting(&rule, STREAM, KG_CUDA_POINTWISE_FIRST,
                                  kg_cuda_pointwise_streamed(&plan));
    if (kg_cuda_pointwise_alignment(&plan) != 0)
        kg_cuda_rule_evict_last(&rule, STREAM, KG_CUDA_POINTWISE_LAST,
                                tiled ? EVICT_TILES_LAST : EVICT_LAST);
    if (rule.seconds > 0)
        *config = rule.best;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_space values;
    struct kg_cuda_pointwise_plan plan, any;
    struct kg_code code = {source, 0};
    bool stored = false;
    for (int i = 0; i < group->count; i++)
        stored |= !kg_group_is_private(group, kg_group_nest(group, i)->output);
    space(match, &values);
    kg_cuda_opening(source, group, "pointwise", config, &values);
    if (!stored) { // nobody reads what it makes
        kg_cuda_nothing(&code, group, entry);
        return !source->failed;
    }
    kg_cuda_pointwise_plan_make(match, config, &plan);
    make_plan_for_any(match, config, &any);
    plan.entry = any.entry = entry;
    kg_cuda_pointwise_emit(source, &plan, &any);
    return !source->failed;
}

// Tiles by number, or vectors side by side: in one dimension.
static struct kg_grid line_of(int64_t blocks, int threads)
{
    return (struct kg_grid){.blocks = {least(blocks, MOST_ALONG), 1, 1},
                            .threads = {threads, 1, 1}};
}

static int64_t count_tiles(const struct kg_cuda_pointwise_plan *plan)
{
    int64_t count = 1;
    for (int axis = 0; axis < plan->axes; axis++) {
        bool sided = axis == plan->across || axis == plan->axes - 1;
        if (!plan->merged[axis])
            count *= kg_ceil_div(kg_cuda_pointwise_extent(plan, axis), sided ? plan->tile : 1);
    }
    return count;
}

// `all`: the grid covers everything at once, and 32 bits count its threads.
static struct kg_grid grid_of(const struct kg_cuda_pointwise_plan *plan, bool *all)
{
    int64_t columns, rows;
    measure(plan, &columns, &rows);
    *all = columns < MOST_ALONG && rows < MOST_ALONG;
    if (plan->tile) {
        *all &= count_tiles(plan) <= MOST_ALONG;
        return line_of(count_tiles(plan), plan->threads);
    }
    int64_t vectors = kg_ceil_div(columns, plan->vector), wide = plan->threads;
    if (plan->run <= 0)
        return line_of(kg_ceil_div(vectors, (int64_t)plan->threads * plan->rows), plan->threads);
    if (vectors < wide)
        wide = kg_power_of_two(vectors);
    int64_t high = least(plan->threads / wide, kg_power_of_two(kg_ceil_div(rows, plan->rows)));
    int64_t along = kg_ceil_div(rows, high * plan->rows), across = kg_ceil_div(vectors, wide);
    struct kg_grid grid = line_of(along, (int)wide);
    if (across != 1) {
        along = least(along, MOST_ALONG);
        grid.blocks[0] = least(across, MOST_ALONG);
        if (along > MOST_LEVEL)
            grid.blocks[2] = kg_ceil_div(along, MOST_LEVEL);
        grid.blocks[1] = kg_ceil_div(along, grid.blocks[2]);
    }
    grid.threads[1] = (int)high;
    return grid;
}

static void grids(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_pointwise_plan plan, any;
    const struct kg_grid none = {.threads = {1, 1, 1}};
    bool all, simple = ((const struct analysis *)match->analysis)->simple;
    kg_cuda_pointwise_plan_make(match, config, &plan);
    make_plan_for_any(match, config, &any);
    struct kg_grid grid = grid_of(&plan, &all), slow = grid_of(&any, &(bool){false});
    int alignment = kg_cuda_pointwise_alignment(&plan);
    int chosen = !alignment ? 1 : simple && all && kg_cuda_fits_int(group) ? 2 : 0;
    *grids = (struct kg_grids){.count = simple ? 3 : 2, .alignment = alignment};
    for (int i = 0; i < grids->count; i++) {
        grids->grids[i] = i != chosen ? none : i == 1 ? slow : grid;
        grids->unaligned[i] = i == 1 ? slow : none;
    }
    kg_cuda_start_early(group, facts, grids);
}

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    return kg_cuda_memory_expected(kg_cuda_pointwise_work, &kg_cuda_pointwise_times, match, config);
}

const struct kg_family kg_cuda_pointwise = {
    .name = "pointwise",
    .summary = "element-wise formulas and gathers, chained in registers",
    .match = match_chain,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = expected,
    .orders_configs = true,
    .emit = emit,
    .grids = grids,
};
