// Expected times of the host's families: see host_times.h. Each function follows the loops that its
// family emits: how often a body is evaluated, along which axis in vectors, what surrounds it, and
// in which order memory is read. host_costs.c knows what that costs. Products have a file of their
// own, host_contract_time.c.

#include "gen/host/host_times.h"

#include "gen/families.h"
#include "gen/host/direct.h"
#include "gen/host/host_work.h"
#include "gen/host/pointwise.h"
#include "gen/host/reduce.h"
#include "gen/host/rowwise.h"
#include "gen/host/scan.h"

#include <math.h>

// What waking the other cores adds to a call.
#define WAKE_SECONDS 1.5e-6
// Work that is not worth another core.
#define GRAIN_CYCLES 2e4
// What is done beside a wait hides this part of the shorter of the two.
#define OVERLAP 0.6

static double clock_of(const struct kg_device_facts *facts)
{
    return facts->clock > 0 ? facts->clock : 3e9;
}

double kg_host_work_seconds(const struct kg_host_work *work)
{
    double longer = fmax(work->cycles, work->waits), shorter = fmin(work->cycles, work->waits);
    double cycles = longer + (1 - OVERLAP) * shorter, cores = 1, seconds = KG_HOST_CALL_SECONDS;
    if (cycles > GRAIN_CYCLES && work->facts->units > 1 && work->items > 1) {
        double rounds = ceil(work->items / work->facts->units);
        cores = fmin(work->items / rounds, work->facts->units);
        seconds += WAKE_SECONDS;
    }
    return seconds + cycles / cores / clock_of(work->facts);
}

// Runs of at most `width` neighbours, each with what comes before the first and after the last.
static double run_cycles(double each, double length, double width, double around)
{
    return length * each + ceil(length / fmax(width, 1)) * around;
}

static void add_axes(struct kg_host_order *order, const struct kg_nest *nest, int first, int last)
{
    for (int axis = first; axis <= last; axis++)
        kg_host_order_add(order, axis, (double)nest->extent[axis], 1);
}

// An axis in blocks of `width`, outer loops.
static void add_blocks(struct kg_host_order *order, const struct kg_nest *nest, int axis,
                       double width)
{
    kg_host_order_add(order, axis, ceil((double)nest->extent[axis] / width), width);
}

static double extent_of(const struct kg_nest *nest, int axis)
{
    return axis >= 0 && axis < nest->axis_count ? (double)nest->extent[axis] : 1;
}

struct kg_host_loop kg_host_work_loop(const struct kg_host_work *work, const struct kg_nest *nest,
                                      int vector)
{
    return (struct kg_host_loop){.group = work->group,
                                 .facts = work->facts,
                                 .nest = nest,
                                 .vector = vector,
                                 .scalar = kg_host_divides(nest)};
}

// direct

#define CHAIN_STEP 1.8    // from sum to sum in f64, one after the other
#define COMPARE_STEP 1.9  // extremes, likewise
#define ARGUMENT_STEP 8.0 // with the place
#define LANE_PLACE 1.5    // the same of neighbours side by side
// Chains of fewer steps than these overlap with those of the next elements: of 8 steps, max_pool3d
// took two AVX2 cores 0.47 ms, and 0.77 ms were expected of whole chains.
#define SHORT_CHAIN 16.0
#define SHORT_CHAIN_SHARE 0.5
#define COUNT_STEP 0.1   // sums of integers, which any order does
#define LANE_STEP 0.3    // of an element of the sums side by side, which lie in memory
#define LANE_LOOP 10.0   // around them
#define ELEMENT_LOOP 6.0 // around a reduction
#define EXTREME_GAIN 1.0 // of a running extreme, which is stored as it is
#define BLOCK_LOOP 20.0  // around a block

// Evaluations of a reduction's body when every element is computed anew.
static double count_steps(const struct kg_nest *nest)
{
    double all = kg_axes_count(nest, 0, nest->axis_count - 1);
    if (!kg_direct_has_relation(nest))
        return all;
    return kg_direct_scanned_axis(nest) >= 0 ? nest->iterations
                                             : fmin(all, fmax(nest->iterations, all / 2));
}

static bool is_extreme(const struct kg_nest *nest)
{
    return nest->reduce == KG_REDUCE_MAX || nest->reduce == KG_REDUCE_MIN;
}

static double chain_step(const struct kg_nest *nest)
{
    if (kg_reduces[nest->reduce].is_argument)
        return ARGUMENT_STEP;
    bool real = nest->body->type == KG_TYPE_F32 || nest->body->type == KG_TYPE_F64;
    if (nest->reduce == KG_REDUCE_SUM && !real)
        return COUNT_STEP;
    bool adds = nest->reduce == KG_REDUCE_SUM || nest->reduce == KG_REDUCE_MEAN ||
                nest->reduce == KG_REDUCE_PROD;
    return adds ? CHAIN_STEP : COMPARE_STEP;
}

static void add_direct_reduce(struct kg_host_work *work, const struct kg_nest *nest, double lanes)
{
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_order order = {0};
    double outputs = kg_axes_count(nest, 0, inner), steps = count_steps(nest);
    if (lanes > 1) {
        struct kg_host_loop loop = kg_host_work_loop(work, nest, inner);
        double length = extent_of(nest, inner);
        double each = kg_host_body_cycles(&loop) + LANE_STEP;
        if (kg_reduces[nest->reduce].is_argument)
            each = kg_host_body_cycles(&loop) + LANE_PLACE;
        work->cycles += steps / length * run_cycles(each, length, lanes, LANE_LOOP);
        add_axes(&order, nest, 0, inner - 1);
        add_blocks(&order, nest, inner, lanes);
        add_axes(&order, nest, inner + 1, last);
        kg_host_order_add(&order, inner, fmin(lanes, length), 1);
        work->waits += kg_host_wait_cycles(&loop, &order);
    } else {
        int scanned = kg_direct_scanned_axis(nest);
        struct kg_host_loop loop = kg_host_work_loop(work, nest, last);
        double chain = chain_step(nest);
        loop.scalar = loop.scalar || chain > COUNT_STEP;
        if (work->facts->vector_bytes == 32 && scanned < 0 && steps < SHORT_CHAIN * outputs)
            chain *= SHORT_CHAIN_SHARE;
        double body = kg_host_body_cycles(&loop);
        double each = fmax(body, chain) + 0.3 * fmin(body, chain);
        if (scanned >= 0)
            each += kg_host_store_cycles(&loop) - (is_extreme(nest) ? EXTREME_GAIN : 0);
        work->cycles += steps * each + outputs * (scanned < 0 ? ELEMENT_LOOP : 0);
        for (int axis = 0; axis <= last; axis++)
            if (axis != scanned)
                add_axes(&order, nest, axis, axis);
        work->waits += kg_host_wait_cycles(&loop, &order);
    }
}

double kg_host_expect_direct(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_nest *nest = kg_group_nest(group, 0);
    struct kg_host_work work = {group, facts, 0, 0, 0};
    int inner = nest->output_axes - 1;
    double outputs = kg_axes_count(nest, 0, inner), length = extent_of(nest, inner);
    double block = (double)config->value[0];
    work.items = outputs / length * ceil(length / block);
    if (kg_direct_is_packed(nest->output))
        work.items = 1;
    if (nest->has_reduce) {
        add_direct_reduce(&work, nest, (double)config->value[1]);
    } else {
        struct kg_host_loop loop = kg_host_work_loop(&work, nest, inner);
        struct kg_host_order order = {0};
        loop.length = length;
        loop.scalar = loop.scalar || (inner >= 0 && kg_host_gathers_narrow(&loop));
        double each = kg_host_body_cycles(&loop) + kg_host_store_cycles(&loop);
        work.cycles = outputs / length * run_cycles(each, length, block, BLOCK_LOOP);
        add_axes(&order, nest, 0, inner);
        work.waits = kg_host_wait_cycles(&loop, &order);
    }
    return kg_host_work_seconds(&work);
}

// window

#define WINDOW_ROW 30.0     // around a row that is copied
#define WINDOW_ELEMENT 0.25 // of its elements, and again of those in parts
#define WINDOW_NARROW 0.6 // of those in parts with vectors of 32 bytes: measured on two AVX2 cores
#define WINDOW_READ 0.1   // of an output, for each read

double kg_host_expect_window(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_window *window = match->analysis;
    const struct kg_nest *nest = window->nest;
    struct kg_host_work work = {&match->group, match->facts, 0, 0, 0};
    struct kg_host_order order = {0};
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_loop loop = kg_host_work_loop(&work, nest, inner);
    double all = kg_axes_count(nest, 0, last), outputs = kg_axes_count(nest, 0, inner);
    double length = extent_of(nest, inner), places = extent_of(nest, last);
    double lanes = (double)config->value[1], block = (double)config->value[0];
    double each = LANE_STEP + WINDOW_READ * nest->access_count;
    if (kg_reduces[nest->reduce].is_argument)
        each += LANE_PLACE;
    double rows = all / fmax(1, places * length) * ceil(length / lanes);
    double span = (double)window->stride * fmin(lanes, length) + (double)window->dilation * places;
    bool narrow = match->facts->vector_bytes == 32 && window->stride > 1;
    double element = narrow ? WINDOW_NARROW : WINDOW_ELEMENT;
    work.cycles = all / length * run_cycles(each, length, lanes, LANE_LOOP) +
                  rows * (WINDOW_ROW + span * element * (window->stride > 1 ? 2 : 1));
    work.items = outputs / length * ceil(length / block);
    add_axes(&order, nest, 0, last);
    work.waits = kg_host_wait_cycles(&loop, &order);
    return kg_host_work_seconds(&work);
}

// pointwise

#define PIECE_LOOP 30.0 // around a block
#define PIECE 64.0      // elements whose narrow floats are converted at once
#define LONE_NARROW 3.0 // cycles of an element that is left of a run after whole pieces

static bool moves_narrow(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int a = -1; a < nest->access_count; a++) {
            const struct kg_tensor *tensor = a < 0 ? nest->output : nest->accesses[a].tensor;
            enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
            if (kg_dtype_is_narrow_float(dtype))
                return true;
        }
    }
    return false;
}

// Cycles of the loop's nest for each element; `loads` and `lines` as kg_host_loop has them.
static double pointwise_element(struct kg_host_loop *loop, struct kg_host_seen *loads,
                                struct kg_host_seen *lines)
{
    loop->seen = loads;
    double each = kg_host_body_cycles(loop);
    loop->seen = lines;
    return each +
           (kg_group_is_private(loop->group, loop->nest->output) ? 0 : kg_host_store_cycles(loop));
}

static struct kg_split split_of(const struct kg_group *group, int inner)
{
    const int64_t step = inner >= 0 ? kg_split_step(group, inner) : 1;
    return (struct kg_split){inner, step > 1 ? step : 0};
}

double kg_host_pointwise_cycles(const struct kg_group *group, const struct kg_device_facts *facts)
{
    struct kg_host_work work = {group, facts, 0, 0, 0};
    struct kg_host_seen loads = {0}, lines = {0};
    double cycles = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        struct kg_host_loop loop = kg_host_work_loop(&work, nest, nest->output_axes - 1);
        loop.split = split_of(group, nest->output_axes - 1);
        loop.pieces = true;
        cycles += pointwise_element(&loop, &loads, &lines);
    }
    return cycles;
}

double kg_host_expect_pointwise(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_host_work work = {group, facts, 0, 0, 0};
    const struct kg_nest *shape = kg_group_nest(group, 0);
    int inner = shape->output_axes - 1, from = inner > 0 ? inner : 0;
    while (from > 0 && kg_pointwise_can_merge(group, from - 1))
        from--;
    double tile = (double)config->value[2], block = tile > 0 ? tile : (double)config->value[0];
    double all = kg_axes_count(shape, 0, inner), length = kg_axes_count(shape, from, inner);
    work.items = all / length * ceil(length / block);
    struct kg_host_seen loads = {0}, lines = {0};
    if (moves_narrow(group))
        work.cycles += all / length * fmod(length, PIECE) * LONE_NARROW;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        struct kg_host_loop loop = kg_host_work_loop(&work, nest, inner);
        struct kg_host_order order = {0};
        loop.length = length;
        loop.pieces = tile == 0;
        if (tile == 0 && config->value[1] == 0)
            loop.split = split_of(group, inner);
        work.cycles += all * pointwise_element(&loop, &loads, &lines);
        if (tile > 0) {
            for (int axis = 0; axis < inner; axis++)
                add_blocks(&order, nest, axis, tile);
            add_blocks(&order, nest, inner, tile);
            for (int axis = 0; axis <= inner; axis++)
                kg_host_order_add(&order, axis, fmin(tile, extent_of(nest, axis)), 1);
        } else {
            add_axes(&order, nest, 0, inner);
        }
        work.waits += kg_host_wait_cycles(&loop, &order);
    }
    work.cycles += all / length * ceil(length / block) * PIECE_LOOP;
    return kg_host_work_seconds(&work);
}

// reduce

#define FOLD_LOOP 25.0  // lanes of a row into one
#define RUN_LOOP 35.0   // around a run of neighbours
#define TILE_LOOP 6.0   // around a row of a tile of columns
#define REDUCE_STEP 0.6 // of a vector of sums
#define PLACE_STEP 3.0  // and of places

static double fold_step(const struct kg_host_loop *loop)
{
    double step = kg_reduces[loop->nest->reduce].is_argument ? PLACE_STEP : REDUCE_STEP;
    enum kg_type type = loop->nest->body->type;
    return step / kg_host_lanes(loop->facts, type == KG_TYPE_BOOL ? KG_TYPE_I64 : type);
}

// What follows a reduction, once for each of its results.
static void add_followers(struct kg_host_work *work, int first, int vector)
{
    for (int i = first; i < work->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(work->group, i);
        struct kg_host_loop loop = kg_host_work_loop(work, nest, vector);
        struct kg_host_order order = {0};
        loop.scalar = loop.scalar || vector < 0;
        double each = kg_host_body_cycles(&loop);
        if (!kg_group_is_private(work->group, nest->output))
            each += kg_host_store_cycles(&loop);
        work->cycles += kg_axes_count(nest, 0, nest->output_axes - 1) * each;
        add_axes(&order, nest, 0, nest->output_axes - 1);
        work->waits += kg_host_wait_cycles(&loop, &order);
    }
}

static void add_column_reduce(struct kg_host_work *work, const struct kg_nest *nest, double tile,
                              double unroll)
{
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_loop loop = kg_host_work_loop(work, nest, inner);
    struct kg_host_order order = {0};
    loop.inlines = true;
    double length = extent_of(nest, inner), rows = kg_axes_count(nest, 0, last) / length;
    double each = kg_host_body_cycles(&loop) + fold_step(&loop) +
                  2 * REDUCE_STEP / kg_host_lanes(work->facts, nest->body->type) / unroll;
    work->cycles += rows * run_cycles(each, length, tile, TILE_LOOP);
    add_axes(&order, nest, 0, inner - 1);
    add_blocks(&order, nest, inner, tile);
    add_axes(&order, nest, inner + 1, last);
    kg_host_order_add(&order, inner, fmin(tile, length), 1);
    work->waits += kg_host_wait_cycles(&loop, &order);
}

static void add_row_reduce(struct kg_host_work *work, const struct kg_nest *nest, double lanes)
{
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_loop loop = kg_host_work_loop(work, nest, last);
    struct kg_host_order order = {0};
    loop.inlines = true;
    int from = kg_axes_run(work->group, nest, nest->output_axes, last);
    double length = kg_axes_count(nest, from, last), all = kg_axes_count(nest, 0, last);
    double outputs = kg_axes_count(nest, 0, inner);
    loop.length = length;
    double each = kg_host_body_cycles(&loop) + fold_step(&loop);
    // What is left of a run after whole steps goes one by one.
    double rest = fmin(fmod(length, lanes), 16) / length;
    work->cycles += all * each * (1 + rest) + outputs * FOLD_LOOP + all / length * RUN_LOOP;
    add_axes(&order, nest, 0, last);
    work->waits += kg_host_wait_cycles(&loop, &order);
}

double kg_host_expect_reduce(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    enum { COLUMN, WIDTH, UNROLL, CHUNK };
    struct kg_host_work work = {group, facts, 0, 0, 0};
    const struct kg_reduce_analysis *analysis = match->analysis;
    const struct kg_nest *nest = analysis->nest;
    const int k = analysis->position;
    double all = kg_axes_count(nest, 0, nest->axis_count - 1);
    work.items = ceil(all / (double)config->value[CHUNK]);
    if (config->value[COLUMN]) {
        add_column_reduce(&work, nest, (double)config->value[WIDTH], (double)config->value[UNROLL]);
        work.items = fmax(work.items, kg_axes_count(nest, 0, nest->output_axes - 2));
    } else {
        add_row_reduce(&work, nest, (double)config->value[WIDTH]);
        work.items = fmax(work.items, kg_axes_count(nest, 0, nest->output_axes - 1));
    }
    add_followers(&work, k + 1, config->value[COLUMN] ? nest->output_axes - 1 : -1);
    return kg_host_work_seconds(&work);
}

// rowwise

#define ROW_LOOP 40.0     // around a pass over a row
#define ROW_SELECT 2.0    // for a bool that is read
#define ROW_NARROW 0.6    // for a narrow float that is written, on top of its conversion
#define BEHIND_SHARE 0.65 // of the cycles, where the last pass works beside the one before it
#define COSTLY_SHARE 1.25 // the same of passes with transcendental functions, one after the other

// In how many passes the private column `position` is computed.
static int count_uses(const struct kg_rowwise_plan *plan, int position)
{
    bool used[KG_MAX_NESTS] = {false};
    const struct kg_tensor *output = kg_group_nest(plan->group, position)->output;
    int count = 0;
    for (int i = position + 1; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a < nest->access_count; a++)
            if (nest->accesses[a].tensor == output && !used[plan->pass[i]]) {
                used[plan->pass[i]] = true;
                count++;
            }
    }
    return count > 0 ? count : 1;
}

static bool reads_bool(const struct kg_nest *nest)
{
    for (int i = 0; i < nest->access_count; i++)
        if (kg_dtype_is_truth(kg_emit_tensor_dtype(nest->accesses[i].tensor)))
            return true;
    return false;
}

// Cycles for an element of a column, or of the row's values.
static double row_element(const struct kg_host_loop *loop, const struct kg_rowwise_plan *plan,
                          int position, bool keep)
{
    const struct kg_nest *nest = loop->nest;
    enum kg_dtype dtype = kg_emit_tensor_dtype(nest->output);
    double each = kg_host_body_cycles(loop);
    bool private = kg_group_is_private(plan->group, nest->output);
    bool column = plan->role[position] == KG_ROWWISE_COLUMN;
    if (reads_bool(nest))
        each += ROW_SELECT;
    if (plan->role[position] == KG_ROWWISE_REDUCE)
        return each + fold_step(loop);
    if (!private)
        return each + kg_host_store_cycles(loop) +
               (column && kg_dtype_is_narrow_float(dtype) ? ROW_NARROW : 0);
    if (column && keep && plan->kept[position])
        return each + 2 * REDUCE_STEP / kg_host_lanes(loop->facts, KG_TYPE_F32);
    return column ? each * count_uses(plan, position) : each;
}

static void add_row_nest(struct kg_host_work *work, const struct kg_rowwise_plan *plan,
                         int position, bool keep, double lanes, struct kg_host_seen *loads,
                         struct kg_host_seen *lines)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, position);
    bool scalar = plan->role[position] == KG_ROWWISE_SCALAR;
    int last = scalar ? plan->rows - 1 : plan->last;
    struct kg_host_loop loop = kg_host_work_loop(work, nest, scalar ? -1 : last);
    struct kg_host_order order = {0};
    double all = kg_axes_count(nest, 0, last), rows = kg_axes_count(nest, 0, plan->rows - 1);
    double length = kg_axes_count(plan->shape, plan->run, plan->last);
    loop.scalar = loop.scalar || scalar;
    loop.seen = scalar ? NULL : loads;
    double cycles = all * row_element(&loop, plan, position, keep);
    if (!scalar) // what is left of a run after whole steps
        cycles *= 1 + fmin(fmod(length, lanes), 16) / length;
    if (plan->role[position] == KG_ROWWISE_REDUCE)
        cycles += rows * FOLD_LOOP;
    add_axes(&order, nest, 0, last);
    loop.seen = lines;
    work->cycles += cycles;
    work->waits += kg_host_wait_cycles(&loop, &order);
}

static bool has_costly(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (nest->transcendentals * 2 > kg_axes_count(nest, 0, nest->axis_count - 1))
            return true;
    }
    return false;
}

double kg_host_expect_rowwise(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    enum { LANES, KEEP, STREAM, PREFETCH, BEHIND };
    const struct kg_rowwise_plan *plan = match->analysis;
    struct kg_host_work work = {group, facts, 0, 0, 0};
    struct kg_host_seen loads[KG_MAX_NESTS + 1] = {0}, lines = {0};
    double rows = kg_axes_count(plan->shape, 0, plan->rows - 1);
    double runs = kg_axes_count(plan->shape, plan->rows, plan->run - 1);
    work.items = rows;
    for (int i = 0; i < group->count; i++)
        add_row_nest(&work, plan, i, config->value[KEEP] != 0, (double)config->value[LANES],
                     &loads[plan->pass[i]], &lines);
    work.cycles += rows * runs * plan->passes * ROW_LOOP;
    if (config->value[BEHIND])
        work.cycles *= BEHIND_SHARE;
    else if (plan->passes > 1 && has_costly(group))
        work.cycles *= COSTLY_SHARE;
    return kg_host_work_seconds(&work);
}

// scan

#define RUNNING_SUM 0.9     // along the last axis: value, total, output
#define RUNNING_EXTREME 1.5 // the same of a maximum of f32
#define RUNNING_CHAIN 2.6   // of other maxima, and of products
// With vectors of 32 bytes, measured on two AVX2 cores: of 64 bits, in segments; places of these;
// and what is added where rows are no whole lines, so that vectors cross them.
#define RUNNING_WIDE 6.0
#define RUNNING_WIDE_PLACE 10.0
#define RUNNING_UNEVEN 0.5

// Cycles of an element that is carried along the last axis.
static double running_step(const struct kg_nest *nest, const struct kg_device_facts *facts)
{
    const double line = 64, bytes = kg_dtypes[kg_emit_tensor_dtype(nest->output)].bits / 8.0;
    if (facts->vector_bytes == 32) {
        if (nest->body->type != KG_TYPE_F32)
            return kg_reduces[nest->reduce].is_argument ? RUNNING_WIDE_PLACE : RUNNING_WIDE;
        if (is_extreme(nest) && fmod((double)nest->extent[nest->output_axes - 1] * bytes, line) > 0)
            return RUNNING_EXTREME + RUNNING_UNEVEN;
    }
    if (is_extreme(nest) && nest->body->type == KG_TYPE_F32)
        return RUNNING_EXTREME;
    return is_extreme(nest) || nest->reduce == KG_REDUCE_PROD ? RUNNING_CHAIN : RUNNING_SUM;
}

double kg_host_expect_scan(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_scan_plan *plan = match->analysis;
    struct kg_host_work work = {group, facts, 0, 0, 0};
    const struct kg_nest *nest = plan->nest;
    int inner = nest->output_axes - 1;
    struct kg_host_loop loop = kg_host_work_loop(&work, nest, plan->column ? inner : plan->bound);
    struct kg_host_order order = {0};
    double all = kg_axes_count(nest, 0, inner), length = extent_of(nest, inner);
    double tile = (double)config->value[0], chunk = (double)config->value[1];
    loop.inlines = true;
    double each = kg_host_body_cycles(&loop);
    each += plan->column ? 4 * fold_step(&loop) : running_step(nest, facts);
    work.cycles = all / length * run_cycles(each, length, tile, TILE_LOOP);
    work.items = all / length;
    if (!plan->column && chunk > 0) {
        work.items = ceil(all / chunk);
        work.cycles += all * each / 2;
    } else if (plan->column) {
        work.items = all / extent_of(nest, plan->axis) / fmin(length, tile);
    }
    for (int axis = 0; axis <= inner; axis++)
        kg_host_order_add(&order, axis == plan->axis ? plan->bound : axis, extent_of(nest, axis),
                          1);
    work.waits = kg_host_wait_cycles(&loop, &order);
    add_followers(&work, plan->k + 1, inner);
    if (!kg_group_is_private(group, nest->output))
        work.cycles += all * kg_host_store_cycles(&loop);
    return kg_host_work_seconds(&work);
}
