// Expected times of the host's families: see host_times.h. Each function follows the loops that its
// family emits: how often a body is evaluated, along which axis in vectors, what surrounds it, and
// in which order memory is read. host_costs.c knows what that costs.

#include "gen/host/host_times.h"

#include "gen/families.h"
#include "gen/host/direct.h"
#include "gen/host/host_costs.h"
#include "gen/host/pointwise.h"
#include "gen/host/reduce.h"
#include "gen/host/rowwise.h"
#include "gen/host/scan.h"
#include "gen/shared/contract_operands.h"

#include <math.h>

// A call of a kernel, and what waking the other cores adds.
#define CALL_SECONDS 0.15e-6
#define WAKE_SECONDS 1.5e-6
// Work that is not worth another core.
#define GRAIN_CYCLES 2e4
// What is done beside a wait hides this part of the shorter of the two.
#define OVERLAP 0.6

// Work of a kernel, summed over all cores.
struct work {
    const struct kg_group *group;
    const struct kg_device_facts *facts;
    double cycles; // computing and loading from the first cache
    double waits;  // for caches and memory
    double items;  // that cores share
};

static double clock_of(const struct kg_device_facts *facts)
{
    return facts->clock > 0 ? facts->clock : 3e9;
}

static double seconds_of(const struct work *work)
{
    double longer = fmax(work->cycles, work->waits), shorter = fmin(work->cycles, work->waits);
    double cycles = longer + (1 - OVERLAP) * shorter, cores = 1, seconds = CALL_SECONDS;
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

static struct kg_host_loop loop_of(const struct work *work, const struct kg_nest *nest, int vector)
{
    return (struct kg_host_loop){
        .group = work->group, .facts = work->facts, .nest = nest, .vector = vector};
}

// direct

#define CHAIN_STEP 3.0    // from sum to sum in f64, one after the other
#define COMPARE_STEP 2.2  // extremes, likewise
#define ARGUMENT_STEP 2.5 // with the place
#define LANE_STEP 0.3     // of an element of the sums side by side, which lie in memory
#define LANE_LOOP 10.0    // around them
#define ELEMENT_LOOP 6.0  // around a reduction
#define BLOCK_LOOP 15.0   // around a block

// Evaluations of a reduction's body when every element is computed anew.
static double count_steps(const struct kg_nest *nest)
{
    double all = kg_axes_count(nest, 0, nest->axis_count - 1);
    if (!kg_direct_has_relation(nest))
        return all;
    return kg_direct_scanned_axis(nest) >= 0 ? nest->iterations
                                             : fmin(all, fmax(nest->iterations, all / 2));
}

static double chain_step(const struct kg_nest *nest)
{
    if (kg_reduces[nest->reduce].is_argument)
        return ARGUMENT_STEP;
    bool adds = nest->reduce == KG_REDUCE_SUM || nest->reduce == KG_REDUCE_MEAN ||
                nest->reduce == KG_REDUCE_PROD;
    return adds ? CHAIN_STEP : COMPARE_STEP;
}

static void add_direct_reduce(struct work *work, const struct kg_nest *nest, double lanes)
{
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_order order = {0};
    double outputs = kg_axes_count(nest, 0, inner), steps = count_steps(nest);
    if (lanes > 1) {
        struct kg_host_loop loop = loop_of(work, nest, inner);
        double length = extent_of(nest, inner);
        double each = kg_host_body_cycles(&loop) + LANE_STEP;
        if (kg_reduces[nest->reduce].is_argument)
            each = kg_host_body_cycles(&loop) + ARGUMENT_STEP;
        work->cycles += steps / length * run_cycles(each, length, lanes, LANE_LOOP);
        add_axes(&order, nest, 0, inner - 1);
        add_blocks(&order, nest, inner, lanes);
        add_axes(&order, nest, inner + 1, last);
        kg_host_order_add(&order, inner, fmin(lanes, length), 1);
        work->waits += kg_host_wait_cycles(&loop, &order);
    } else {
        int scanned = kg_direct_scanned_axis(nest);
        struct kg_host_loop loop = loop_of(work, nest, last);
        loop.scalar = true;
        double each = fmax(kg_host_body_cycles(&loop), chain_step(nest));
        if (scanned >= 0)
            each += 1;
        work->cycles += steps * each + outputs * (scanned >= 0 ? 3 : ELEMENT_LOOP);
        add_axes(&order, nest, 0, last);
        work->waits += kg_host_wait_cycles(&loop, &order);
    }
}

static double expect_direct(const struct kg_group *group, const struct kg_device_facts *facts,
                            const struct kg_config *config)
{
    const struct kg_nest *nest = kg_group_nest(group, 0);
    struct work work = {group, facts, 0, 0, 0};
    int inner = nest->output_axes - 1;
    double outputs = kg_axes_count(nest, 0, inner), length = extent_of(nest, inner);
    double block = (double)config->value[0];
    work.items = outputs / length * ceil(length / block);
    if (kg_direct_is_packed(nest->output))
        work.items = 1;
    if (nest->has_reduce) {
        add_direct_reduce(&work, nest, (double)config->value[1]);
    } else {
        struct kg_host_loop loop = loop_of(&work, nest, inner);
        struct kg_host_order order = {0};
        double each = kg_host_body_cycles(&loop) + kg_host_store_cycles(&loop);
        work.cycles = outputs / length * run_cycles(each, length, block, BLOCK_LOOP);
        add_axes(&order, nest, 0, inner);
        work.waits = kg_host_wait_cycles(&loop, &order);
    }
    return seconds_of(&work);
}

// pointwise

static double expect_pointwise(const struct kg_group *group, const struct kg_device_facts *facts,
                               const struct kg_config *config)
{
    struct work work = {group, facts, 0, 0, 0};
    const struct kg_nest *shape = kg_group_nest(group, 0);
    int inner = shape->output_axes - 1, from = inner;
    while (from > 0 && kg_pointwise_can_merge(group, from - 1))
        from--;
    double tile = (double)config->value[2], block = tile > 0 ? tile : (double)config->value[0];
    double all = kg_axes_count(shape, 0, inner), length = kg_axes_count(shape, from, inner);
    work.items = all / length * ceil(length / block);
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        struct kg_host_loop loop = loop_of(&work, nest, inner);
        struct kg_host_order order = {0};
        loop.narrow_run = tile == 0;
        double each = kg_host_body_cycles(&loop);
        if (!kg_group_is_private(group, nest->output))
            each += kg_host_store_cycles(&loop);
        work.cycles += all * each;
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
    work.cycles += all / length * ceil(length / block) * BLOCK_LOOP;
    return seconds_of(&work);
}

// reduce

#define FOLD_LOOP 45.0  // lanes of a row into one, and what starts it
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
static void add_followers(struct work *work, int first, int vector)
{
    for (int i = first; i < work->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(work->group, i);
        struct kg_host_loop loop = loop_of(work, nest, vector);
        struct kg_host_order order = {0};
        loop.scalar = vector < 0;
        double each = kg_host_body_cycles(&loop);
        if (!kg_group_is_private(work->group, nest->output))
            each += kg_host_store_cycles(&loop);
        work->cycles += kg_axes_count(nest, 0, nest->output_axes - 1) * each;
        add_axes(&order, nest, 0, nest->output_axes - 1);
        work->waits += kg_host_wait_cycles(&loop, &order);
    }
}

static void add_column_reduce(struct work *work, const struct kg_nest *nest, double tile,
                              double unroll)
{
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_loop loop = loop_of(work, nest, inner);
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

static void add_row_reduce(struct work *work, const struct kg_nest *nest, double lanes)
{
    int inner = nest->output_axes - 1, last = nest->axis_count - 1;
    struct kg_host_loop loop = loop_of(work, nest, last);
    struct kg_host_order order = {0};
    loop.inlines = true;
    double length = extent_of(nest, last), all = kg_axes_count(nest, 0, last);
    double outputs = kg_axes_count(nest, 0, inner);
    double each = kg_host_body_cycles(&loop) + fold_step(&loop);
    // What is left of a run after whole steps goes in shorter ones.
    double rest = fmod(length, lanes) / length;
    work->cycles += all * each * (1 + rest) + outputs * FOLD_LOOP * fmax(0.5, lanes / 64) +
                    all / length * TILE_LOOP;
    add_axes(&order, nest, 0, last);
    work->waits += kg_host_wait_cycles(&loop, &order);
}

static double expect_reduce(const struct kg_group *group, const struct kg_device_facts *facts,
                            const struct kg_config *config)
{
    enum { COLUMN, WIDTH, UNROLL, CHUNK };
    struct kg_text ignored = {0};
    struct work work = {group, facts, 0, 0, 0};
    int k = kg_reduce_position(group, &ignored);
    kg_text_free(&ignored);
    if (k < 0)
        return 0;
    const struct kg_nest *nest = kg_group_nest(group, k);
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
    return seconds_of(&work);
}

// rowwise

#define ROW_LOOP 40.0 // around a pass over a row

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

static void add_row_nest(struct work *work, const struct kg_rowwise_plan *plan, int position,
                         bool keep, double lanes)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, position);
    bool scalar = plan->role[position] == KG_ROWWISE_SCALAR;
    int last = scalar ? plan->rows - 1 : plan->last;
    struct kg_host_loop loop = loop_of(work, nest, scalar ? -1 : last);
    struct kg_host_order order = {0};
    double all = kg_axes_count(nest, 0, last), length = extent_of(nest, plan->last);
    loop.scalar = scalar;
    double each = kg_host_body_cycles(&loop);
    bool private = kg_group_is_private(plan->group, nest->output);
    if (plan->role[position] == KG_ROWWISE_REDUCE)
        each += fold_step(&loop);
    else if (!private)
        each += kg_host_store_cycles(&loop);
    else if (!scalar && keep && plan->kept[position])
        each += 2 * REDUCE_STEP / kg_host_lanes(work->facts, KG_TYPE_F32);
    else if (!scalar)
        each *= count_uses(plan, position);
    work->cycles += all * each;
    if (!scalar) // of runs that are no whole number of steps
        work->cycles += all * each * fmod(length, lanes) / length * 0.5;
    if (plan->role[position] == KG_ROWWISE_REDUCE)
        work->cycles += kg_axes_count(nest, 0, plan->rows - 1) * FOLD_LOOP;
    add_axes(&order, nest, 0, last);
    work->waits += kg_host_wait_cycles(&loop, &order) / fmax(1, plan->passes > 1 ? 2 : 1);
}

static double expect_rowwise(const struct kg_group *group, const struct kg_device_facts *facts,
                             const struct kg_config *config)
{
    struct kg_rowwise_plan plan;
    struct kg_text ignored = {0};
    struct work work = {group, facts, 0, 0, 0};
    bool fits = kg_rowwise_plan_make(group, &plan, &ignored);
    kg_text_free(&ignored);
    if (!fits)
        return 0;
    double rows = kg_axes_count(plan.shape, 0, plan.rows - 1);
    double runs = kg_axes_count(plan.shape, plan.rows, plan.run - 1);
    work.items = rows;
    for (int i = 0; i < group->count; i++)
        add_row_nest(&work, &plan, i, config->value[1] != 0, (double)config->value[0]);
    work.cycles += rows * runs * plan.passes * ROW_LOOP;
    return seconds_of(&work);
}

// scan

#define RUNNING_STEP 2.0 // along the last axis: value, total, output

static double expect_scan(const struct kg_group *group, const struct kg_device_facts *facts,
                          const struct kg_config *config)
{
    struct kg_scan_plan plan;
    struct kg_text ignored = {0};
    struct work work = {group, facts, 0, 0, 0};
    bool fits = kg_scan_plan_make(group, &plan, &ignored);
    kg_text_free(&ignored);
    if (!fits)
        return 0;
    const struct kg_nest *nest = plan.nest;
    int inner = nest->output_axes - 1;
    struct kg_host_loop loop = loop_of(&work, nest, plan.column ? inner : plan.bound);
    struct kg_host_order order = {0};
    double all = kg_axes_count(nest, 0, inner), length = extent_of(nest, inner);
    double tile = (double)config->value[0], chunk = (double)config->value[1];
    loop.inlines = true;
    double each = kg_host_body_cycles(&loop);
    each += plan.column ? 4 * fold_step(&loop) : RUNNING_STEP;
    work.cycles = all / length * run_cycles(each, length, tile, TILE_LOOP);
    work.items = all / length;
    if (!plan.column && chunk > 0) {
        work.items = ceil(all / chunk);
        work.cycles += all * each / 2;
    } else if (plan.column) {
        work.items = all / extent_of(nest, plan.axis) / fmin(length, tile);
    }
    add_axes(&order, nest, 0, inner);
    work.waits = kg_host_wait_cycles(&loop, &order);
    add_followers(&work, plan.k + 1, inner);
    if (!kg_group_is_private(group, nest->output))
        work.cycles += all * kg_host_store_cycles(&loop);
    return seconds_of(&work);
}

// contract

#define MULTIPLY_SHARE 0.85 // of the peak that the register tile reaches
#define INTEGER_SHARE 0.12  // the same of integers, which multiply in halves
#define PAIR_SHARE 0.4      // and of pairs of narrow floats
#define PACK_STEP 0.3       // cycles to pack an element that lies as it is
#define TILE_CALL 25.0      // around a register tile, for a block of k
#define ITEM_CYCLES 2500.0  // around a product: what is worked out before the first tile
#define PANEL_ELEMENTS 6.0  // of operands that come from a far cache in a cycle
#define ITEM_ROWS 1024.0    // of an item at most: KG_ITEM_ROWS of kernels/host/contract_entry.h

static double count_part(const struct kg_contract *contract, enum kg_contract_part part)
{
    double count = 1;
    for (int i = 0; i < contract->axis_count[part]; i++)
        count *= (double)contract->nest->extent[contract->axes[part][i]];
    return count;
}

static double pack_cycles(const struct work *work, const struct kg_contract *contract, int side)
{
    const struct kg_contract_side *operand = &contract->sides[side];
    int part = side ? KG_CONTRACT_N : KG_CONTRACT_M;
    int count = contract->axis_count[operand->along_k ? KG_CONTRACT_K : part];
    int along = operand->along_k ? KG_CONTRACT_K : part;
    int vector = count > 0 ? contract->axes[along][count - 1] : -1;
    struct kg_host_loop loop = loop_of(work, contract->nest, vector);
    double cycles = PACK_STEP;
    loop.inlines = true;
    for (int i = 0; i < operand->count && !operand->plain; i++)
        cycles += kg_host_expr_cycles(&loop, operand->factors[i].expr);
    return cycles;
}

static double expect_contract(const struct kg_group *group, const struct kg_device_facts *facts,
                              const struct kg_config *config)
{
    struct kg_contract contract;
    struct work work = {group, facts, 0, 0, 0};
    if (!kg_contract_read(group, &contract, NULL))
        return 0;
    double batch = count_part(&contract, KG_CONTRACT_BATCH),
           m = count_part(&contract, KG_CONTRACT_M);
    double n = count_part(&contract, KG_CONTRACT_N), k = count_part(&contract, KG_CONTRACT_K);
    double lanes = kg_host_lanes(facts, contract.type),
           rows = (double)config->value[KG_CONTRACT_ROWS];
    double columns = (double)config->value[KG_CONTRACT_VECTORS] * lanes;
    bool real = contract.type == KG_TYPE_F32 || contract.type == KG_TYPE_F64;
    double peak = 2 * lanes * (real ? MULTIPLY_SHARE : INTEGER_SHARE);
    double few = fmin(m, n);
    if (few * batch <= 0 || k <= 0)
        return CALL_SECONDS;
    bool dots = few <= columns / 2 && k >= 4 * lanes;
    double tall = ceil(m / rows) * rows, wide = ceil(n / columns) * columns;
    double depth = (double)config->value[KG_CONTRACT_DEPTH];
    if (dots) {
        work.cycles = batch * fmax(m, n) * few * (k / peak * 2 + 4);
    } else {
        work.cycles = batch * tall * wide * k / peak;
        work.cycles += batch * tall / rows * wide / columns * ceil(k / depth) * TILE_CALL;
        work.cycles += batch * m * k * pack_cycles(&work, &contract, 0) *
                       ceil(n / (double)config->value[KG_CONTRACT_COLUMNS]);
    }
    work.cycles += batch * n * k * pack_cycles(&work, &contract, 1) * ceil(m / ITEM_ROWS);
    work.cycles += ITEM_CYCLES + batch * 200;
    work.waits = batch * (m * k + n * k + m * n) / PANEL_ELEMENTS;
    work.items = batch * ceil(m / ITEM_ROWS) * ceil(n / 128);
    work.items = fmax(work.items, fmin(batch * m * n / 16384, 4.0 * facts->units));
    add_followers(&work, 1, contract.nest->output_axes - 1);
    if (group->count == 1)
        work.cycles +=
            batch * m * n *
            kg_host_store_cycles(&(struct kg_host_loop){.group = group,
                                                        .facts = facts,
                                                        .nest = contract.nest,
                                                        .vector = contract.nest->output_axes - 1,
                                                        .narrow_run = true});
    return seconds_of(&work);
}

double kg_host_expected(const struct kg_family *family, const struct kg_group *group,
                        const struct kg_device_facts *facts, const struct kg_config *config)
{
    if (family == &kg_family_contract)
        return expect_contract(group, facts, config);
    if (family == &kg_family_rowwise)
        return expect_rowwise(group, facts, config);
    if (family == &kg_family_reduce)
        return expect_reduce(group, facts, config);
    if (family == &kg_family_scan)
        return expect_scan(group, facts, config);
    if (family == &kg_family_pointwise)
        return expect_pointwise(group, facts, config);
    if (family == &kg_family_direct)
        return expect_direct(group, facts, config);
    return 0;
}
