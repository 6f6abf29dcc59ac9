// The family that takes any nest as it stands, on CUDA: a thread for each output element, with the
// reduction inside. It does what no other family does, and what the others are measured against.
//
// Where outputs are packed, a thread makes the two elements of a byte. A scan whose body does not
// depend on the scanned axis is carried along by one thread a row.
//
// Where places are sums of axes times strides, a second function counts in 32 bits, and the items
// of a thread may lie in one row, a block's width apart: the place of the row is found once for
// all.

#include "gen/shared/direct_nest.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"
#include "gen/skeleton.h"

#include <math.h>

enum { THREADS, REGISTERS, ITEMS };

static const void *match_nest(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts, (void)arena;
    if (!kg_cuda_fits(group, reason))
        return NULL;
    if (group->count == 1)
        return kg_group_nest(group, 0);
    kg_text_add(reason, "it takes one nest at a time");
    return NULL;
}

// Neighbours in a byte are made by one thread, which knows nothing of rows.
static int scanned_axis(const struct kg_nest *nest)
{
    return kg_direct_is_packed(nest->output) ? -1 : kg_direct_scanned_axis(nest);
}

// What a thread makes at once: one element, two that share a byte, or a row of a scan.
static int64_t items_of(const struct kg_nest *nest)
{
    int64_t items = 1;
    int scanned = scanned_axis(nest);
    for (int axis = 0; axis < nest->output_axes; axis++)
        if (axis != scanned)
            items *= nest->extent[axis];
    return kg_direct_is_packed(nest->output) ? kg_ceil_div(items, 2) : items;
}

// Whether all index arithmetic is sums of axes times numbers, so that where elements lie is all
// that has to fit an integer.
static bool has_simple_places(const struct kg_nest *nest)
{
    if (scanned_axis(nest) >= 0 || kg_direct_is_packed(nest->output) || nest->output_axes == 0 ||
        kg_direct_has_relation(nest))
        return false;
    for (int axis = 0; axis < nest->axis_count; axis++)
        if (kg_expr_uses(nest->body, axis, false) || !kg_axes_from_zero(nest->axes[axis]))
            return false;
    for (int i = 0; i < nest->access_count; i++)
        for (int dim = 0; dim < nest->accesses[i].tensor->rank; dim++)
            if (!nest->accesses[i].map[dim].is_affine || nest->accesses[i].map[dim].base ||
                kg_direct_is_packed(nest->accesses[i].tensor))
                return false;
    return true;
}

// Whether threads may have several items of a row.
static bool has_rows(const struct kg_nest *nest)
{
    return has_simple_places(nest) && nest->has_reduce;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    *space = (struct kg_space){0};
    kg_space_add(space, "threads", KG_CHANGE_STAGES, 4, (int64_t[]){256, 128, 64, 512});
    kg_cuda_space_registers(space);
    if (has_rows(match->analysis))
        kg_space_add_optional(space, "items", KG_CHANGE_BLOCK, 4, (int64_t[]){0, 2, 4, 8});
}

static int64_t last_extent(const struct kg_nest *nest)
{
    return nest->extent[nest->output_axes - 1];
}

// Blocks that a row is divided among, if threads have several items of one.
static int64_t tiles_of(const struct kg_nest *nest, const struct kg_config *config)
{
    return kg_ceil_div(last_extent(nest), config->value[THREADS] * config->value[ITEMS]);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    (void)match;
    (void)config, (void)reason;
    return true;
}

// Items of a row, where a fifth of them at most is past its end, and blocks are enough for all
// units.
static void guess(const struct kg_match *match, struct kg_config *config)
{
    enum { LEAST_BLOCKS = 8, MOST_ITEMS = 8 };
    const struct kg_nest *nest = match->analysis;
    const struct kg_config flat = {{256, 0, 0}};
    *config = flat;
    if (!has_rows(nest) || items_of(nest) == 0)
        return;
    const int64_t length = last_extent(nest), rows = items_of(nest) / length;
    config->value[THREADS] = 128;
    for (int64_t items = MOST_ITEMS; items > 1; items /= 2) {
        config->value[ITEMS] = items;
        const int64_t tiles = tiles_of(nest, config);
        if (tiles * 128 * items * 4 <= length * 5 &&
            tiles * rows >= (int64_t)LEAST_BLOCKS * match->facts->units)
            return;
    }
    *config = flat;
}

static void print_items(struct kg_text *text, const struct kg_nest *nest, int scanned)
{
    const char *times = "";
    for (int axis = 0; axis < nest->output_axes; axis++) {
        if (axis == scanned)
            continue;
        kg_text_add(text, times);
        kg_axes_extent(text, nest->axes[axis]);
        times = " * ";
    }
    kg_text_add(text, *times ? "" : "1");
}

// Declares the output axes before `end`, but the scanned one, from the counter `rest`.
static void emit_outer_axes(struct kg_code *code, const struct kg_nest *nest, int end, int scanned,
                            const char *integer)
{
    int left = end - (scanned >= 0);
    for (int axis = end - 1; axis >= 0; axis--) {
        if (axis == scanned)
            continue;
        kg_code_begin(code);
        if (--left == 0) {
            kg_text_format(code->text, "const %s i%d = rest;", integer, axis);
        } else {
            kg_text_format(code->text, "const %s i%d = kg_take(&rest, ", integer, axis);
            kg_axes_extent(code->text, nest->axes[axis]);
            kg_text_add(code->text, ");");
        }
        kg_code_end(code);
    }
}

// Whether 32 bits count items, elements, and places that reads outside of tensors would have.
static bool fits_int(const struct kg_group *group)
{
    enum { MOST = 1 << 30 };
    const struct kg_nest *nest = kg_group_nest(group, 0);
    const int64_t items = items_of(nest);
    if (!has_simple_places(nest) || !kg_cuda_fits_int(group) || items >= MOST ||
        nest->iterations >= (double)MOST * (double)items)
        return false;
    for (int i = 0; i < nest->access_count; i++)
        for (int dim = 0; dim < nest->accesses[i].tensor->rank; dim++) {
            const struct kg_affine *map = &nest->accesses[i].map[dim];
            double reach = fabs((double)map->offset);
            for (int axis = 0; axis < nest->axis_count; axis++)
                reach += fabs((double)map->coefficient[axis]) * (double)nest->extent[axis];
            if (reach >= MOST)
                return false;
        }
    return true;
}

// Several items of a row for each thread.
static void emit_rows(struct kg_direct *direct, struct kg_code *code, int items)
{
    const struct kg_nest *nest = direct->nest;
    const int last = nest->output_axes - 1;
    kg_code_line(code, "enum { ITEMS = %d };", items);
    kg_code_begin(code);
    kg_text_add(code->text, "const INDEX length = ");
    kg_axes_extent(code->text, nest->axes[last]);
    kg_text_add(code->text, ", rows = ");
    kg_axes_product(code->text, nest, 0, last - 1);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_line(code, "const INDEX across = (INDEX)blockDim.x * ITEMS;");
    kg_code_line(code, "const INDEX tiles = (length + across - 1) / across;");
    kg_code_open(code, "for (INDEX tile = blockIdx.x; tile < rows * tiles; tile += gridDim.x)");
    kg_code_line(code, "INDEX rest = tile;");
    kg_code_line(code, "const INDEX first = kg_take(&rest, tiles) * across + threadIdx.x;");
    emit_outer_axes(code, nest, last, -1, "INDEX");
    kg_code_line(code, "#pragma unroll");
    kg_code_open(code, "for (int part = 0; part < ITEMS; part++)");
    kg_code_line(code, "const INDEX i%d = first + part * (INDEX)blockDim.x;", last);
    kg_code_line(code, "if (i%d >= length)", last);
    kg_code_line(code, "    break;");
    direct->level = code->depth;
    kg_direct_emit_element(direct);
    kg_code_close(code);
    kg_code_line(code, "if (sizeof(INDEX) < sizeof(int64_t))");
    kg_code_line(code, "    break;");
    kg_code_close(code);
}

static void emit_items(struct kg_direct *direct, struct kg_code *code)
{
    bool packed = kg_direct_is_packed(direct->nest->output);
    const char *integer = direct->integer;
    kg_code_begin(code);
    kg_text_format(code->text, "const %s items = ", integer);
    print_items(code->text, direct->nest, direct->scanned);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_line(code, "const %s first = (%s)blockIdx.x * blockDim.x + threadIdx.x;", integer,
                 integer);
    kg_code_line(code, "const %s step = (%s)gridDim.x * blockDim.x;", integer, integer);
    if (packed) {
        kg_code_open(code, "for (int64_t pair = first; pair < kg_ceildiv_i64(items, 2); "
                           "pair += step)");
        kg_code_open(code, "for (int64_t item = pair * 2; item < kg_min_i64(pair * 2 + 2, items); "
                           "item++)");
    } else {
        kg_code_open(code, "for (%s item = first; item < items; item += step)", integer);
    }
    if (direct->nest->output_axes > (direct->scanned >= 0))
        kg_code_line(code, "%s rest = item;", integer);
    emit_outer_axes(code, direct->nest, direct->nest->output_axes, direct->scanned, integer);
    direct->level = code->depth;
    if (direct->scanned >= 0)
        kg_direct_emit_scan(direct);
    else
        kg_direct_emit_element(direct);
    if (has_simple_places(direct->nest)) { // the grid of the second function covers everything
        kg_code_line(code, "if (sizeof(INDEX) < sizeof(int64_t))");
        kg_code_line(code, "    break;");
    }
    kg_code_close(code);
    if (packed)
        kg_code_close(code);
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    const struct kg_nest *nest = match->analysis;
    struct kg_code code = {source, 0};
    struct kg_space values;
    space(match, &values);
    kg_cuda_opening(source, group, "direct", config, &values);
    if (kg_group_is_private(group, nest->output)) { // nobody reads it
        kg_cuda_nothing(&code, group, entry);
        return !source->failed;
    }
    struct kg_direct direct = {
        .text = source,
        .group = group,
        .nest = nest,
        .entry = entry,
        .lanes = 1,
        .scanned = scanned_axis(nest),
        .inner = -1,
    };
    const int threads = (int)config->value[THREADS], registers = (int)config->value[REGISTERS];
    const bool simple = has_simple_places(nest);
    direct.integer = simple ? "INDEX" : "int64_t";
    kg_direct_complete(&direct);
    if (nest->has_reduce && kg_direct_sums_few(nest))
        direct.accumulate = KG_TYPE_F32;
    kg_text_add(source, kg_skeleton_find("cuda/index.cuh"));
    kg_text_add(source, "\n");
    if (simple)
        kg_cuda_open_body_in(&code, group, entry, "typename INDEX", "INDEX");
    else
        kg_cuda_open_function(&code, group, entry, 0, threads, registers);
    if (config->value[ITEMS] > 0)
        emit_rows(&direct, &code, (int)config->value[ITEMS]);
    else
        emit_items(&direct, &code);
    kg_code_close(&code);
    if (simple) {
        kg_cuda_function(&code, group, entry, 0, threads, registers, "int64_t");
        kg_cuda_function(&code, group, entry, 1, threads, registers, "int");
    }
    return !source->failed;
}

static void grids(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids)
{
    enum { MOST_BLOCKS = 1 << 30 };
    const struct kg_nest *nest = match->analysis;
    int64_t blocks = kg_ceil_div(items_of(nest), config->value[THREADS]);
    if (config->value[ITEMS] > 0 && blocks > 0)
        blocks = items_of(nest) / last_extent(nest) * tiles_of(nest, config);
    const bool simple = has_simple_places(nest), narrow = fits_int(&match->group);
    const struct kg_grid none = {.threads = {1, 1, 1}};
    const struct kg_grid grid = {
        .blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
        .threads = {(int)config->value[THREADS], 1, 1},
    };
    *grids = (struct kg_grids){.count = simple ? 2 : 1};
    grids->grids[0] = narrow ? none : grid;
    grids->grids[1] = narrow ? grid : none;
}

// How often a thread comes to its innermost loop: compilers do not load ahead from one time to the
// next, but where lengths are constants, as those of most windows are.
static double restarts_of(const struct kg_nest *nest)
{
    double restarts = 1;
    for (int axis = nest->output_axes; axis + 1 < nest->axis_count; axis++)
        if (nest->axes[axis]->end->kind != KG_EXPR_NUMBER)
            restarts *= (double)nest->extent[axis];
    return restarts;
}

// A row of a scan by one thread: each element waits for the one before, and where rows are lines,
// each lane of a warp touches lines of its own.
static void describe_scan(const struct kg_nest *nest, double turns,
                          struct kg_cuda_memory_work *work)
{
    enum { WARP = 32, LINE = 128 };
    work->trips = turns;
    work->near_trips = 0;
    if (scanned_axis(nest) != nest->output_axes - 1)
        return;
    for (int a = 0; a <= nest->access_count; a++) {
        const struct kg_tensor *tensor =
            a < nest->access_count ? nest->accesses[a].tensor : nest->output;
        double row = turns * kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0;
        work->lines += turns * fmin(WARP, ceil(WARP * row / LINE));
    }
}

// What a thread reads for its element it reads one by one; of neighbours that read the same, or
// lines of memory that several read, caches give all but the first.
int kg_cuda_direct_work(const struct kg_match *match, const struct kg_config *config,
                        struct kg_cuda_memory_work *works)
{
    const struct kg_group *group = &match->group;
    enum { AHEAD = 4, REGISTERS_USED = 32 }; // loads that compilers put before their first use
    enum { PLACE_STEPS = 8 };                // to compare places, and choose one; not fitted
    const struct kg_nest *nest = kg_group_nest(group, 0);
    double items = (double)items_of(nest), bytes = 0;
    struct kg_grids launch;
    grids(match, config, &launch);
    struct kg_cuda_memory_work *work = &works[0];
    *work = kg_cuda_memory_work_of(&launch.grids[fits_int(group) ? 1 : 0]);
    double turns = items > 0 ? nest->iterations / items : 0;
    const double of_thread = config->value[ITEMS] > 0 ? (double)config->value[ITEMS] : 1;
    // What windows of neighbouring outputs share, the first level of caches has.
    for (int a = 0; a < nest->access_count && nest->class != KG_CLASS_WINDOW; a++)
        bytes += kg_dtypes[kg_emit_tensor_dtype(nest->accesses[a].tensor)].bits / 8.0;
    work->registers = REGISTERS_USED;
    work->limit = (double)config->value[REGISTERS];
    work->bytes = kg_cuda_memory_bytes(group);
    if (nest->iterations * bytes > work->bytes)
        work->again = nest->iterations * bytes - work->bytes;
    work->trips = restarts_of(nest);
    work->near_trips = turns > AHEAD ? turns / AHEAD - 1 : 0;
    for (int a = 0; a < nest->access_count; a++)
        kg_cuda_memory_access(work, turns * of_thread,
                              kg_dtypes[kg_emit_tensor_dtype(nest->accesses[a].tensor)].bits / 8.0);
    kg_cuda_memory_access(work, of_thread,
                          kg_dtypes[kg_emit_tensor_dtype(nest->output)].bits / 8.0);
    kg_cuda_memory_compute(work, group, 0, nest->iterations, turns * of_thread);
    if (scanned_axis(nest) >= 0)
        describe_scan(nest, turns, work);
    if (nest->class == KG_CLASS_REDUCE && kg_reduces[nest->reduce].is_argument)
        work->steps += turns * of_thread * PLACE_STEPS;
    return 1;
}

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    // Factors by which the model may be too low, since it does not know of neighbouring threads
    // that load from different lines, nor of reductions whose loads wait for each other.
    const double unsure_columns = 1.1;
    static const double unsure[KG_CLASS_COUNT] = {
        [KG_CLASS_POINTWISE] = 1.2, [KG_CLASS_GATHER] = 1.2,   [KG_CLASS_REDUCE] = 1.4,
        [KG_CLASS_SCAN] = 1,        [KG_CLASS_CONTRACT] = 1.2, [KG_CLASS_WINDOW] = 1,
    };
    const struct kg_nest *nest = match->analysis;
    return (kg_cuda_memory_columns(match, nest) ? unsure_columns : unsure[nest->class]) *
           kg_cuda_memory_expected(kg_cuda_direct_work, &kg_cuda_direct_times, match, config);
}

const struct kg_family kg_cuda_direct = {
    .name = "direct",
    .summary = "a thread for each output element; takes any statement",
    .match = match_nest,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = expected,
    .orders_configs = true,
    .emit = emit,
    .grids = grids,
};
