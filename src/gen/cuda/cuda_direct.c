// The family that takes any nest as it stands, on CUDA: a thread for each output element, with the
// reduction inside. It does what no other family does, and what the others are measured against.
//
// Where outputs are packed, a thread makes the two elements of a byte. A scan whose body does not
// depend on the scanned axis is carried along by one thread a row.

#include "gen/shared/direct_nest.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"
#include "gen/skeleton.h"

enum { THREADS, REGISTERS };

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

static void space(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    *space = (struct kg_space){0};
    kg_space_add(space, "threads", KG_CHANGE_STAGES, 4, (int64_t[]){256, 128, 64, 512});
    kg_cuda_space_registers(space);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    (void)match;
    (void)config, (void)reason;
    return true;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    (void)match;
    *config = (struct kg_config){{256, 0}};
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

// Declares the output axes but the scanned one, from the counter `item`.
static void emit_axes(struct kg_code *code, const struct kg_nest *nest, int scanned)
{
    int left = nest->output_axes - (scanned >= 0);
    if (left > 0)
        kg_code_line(code, "int64_t rest = item;");
    for (int axis = nest->output_axes - 1; axis >= 0; axis--) {
        if (axis == scanned)
            continue;
        kg_code_begin(code);
        if (--left == 0) {
            kg_text_format(code->text, "const int64_t i%d = rest;", axis);
        } else {
            kg_text_format(code->text, "const int64_t i%d = kg_take(&rest, ", axis);
            kg_axes_extent(code->text, nest->axes[axis]);
            kg_text_add(code->text, ");");
        }
        kg_code_end(code);
    }
}

static void emit_items(struct kg_direct *direct, struct kg_code *code)
{
    bool packed = kg_direct_is_packed(direct->nest->output);
    kg_code_begin(code);
    kg_text_add(code->text, "const int64_t items = ");
    print_items(code->text, direct->nest, direct->scanned);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_line(code, "const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;");
    kg_code_line(code, "const int64_t step = (int64_t)gridDim.x * blockDim.x;");
    if (packed) {
        kg_code_open(code, "for (int64_t pair = first; pair < kg_ceildiv_i64(items, 2); "
                           "pair += step)");
        kg_code_open(code, "for (int64_t item = pair * 2; item < kg_min_i64(pair * 2 + 2, items); "
                           "item++)");
    } else {
        kg_code_open(code, "for (int64_t item = first; item < items; item += step)");
    }
    emit_axes(code, direct->nest, direct->scanned);
    direct->level = code->depth;
    if (direct->scanned >= 0)
        kg_direct_emit_scan(direct);
    else
        kg_direct_emit_element(direct);
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
    kg_direct_complete(&direct);
    kg_text_add(source, kg_skeleton_find("cuda/index.cuh"));
    kg_text_add(source, "\n");
    kg_cuda_open_function(&code, group, entry, 0, (int)config->value[THREADS],
                          (int)config->value[REGISTERS]);
    emit_items(&direct, &code);
    kg_code_close(&code);
    return !source->failed;
}

static void grids(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids)
{
    enum { MOST_BLOCKS = 1 << 30 };
    int64_t blocks = kg_ceil_div(items_of(match->analysis), config->value[THREADS]);
    *grids = (struct kg_grids){.count = 1};
    grids->grids[0] = (struct kg_grid){
        .blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
        .threads = {(int)config->value[THREADS], 1, 1},
    };
}

// What a thread reads for its element it reads one by one; of neighbours that read the same, or
// lines of memory that several read, caches give all but the first.
int kg_cuda_direct_work(const struct kg_match *match, const struct kg_config *config,
                        struct kg_cuda_memory_work *works)
{
    const struct kg_group *group = &match->group;
    enum { AHEAD = 4, REGISTERS_USED = 32 }; // loads that compilers put before their first use
    const struct kg_nest *nest = kg_group_nest(group, 0);
    double items = (double)items_of(nest), bytes = 0;
    struct kg_grids launch;
    grids(match, config, &launch);
    struct kg_cuda_memory_work *work = &works[0];
    *work = kg_cuda_memory_work_of(&launch.grids[0]);
    double turns = items > 0 ? nest->iterations / items : 0;
    for (int a = 0; a < nest->access_count; a++)
        bytes += kg_dtypes[kg_emit_tensor_dtype(nest->accesses[a].tensor)].bits / 8.0;
    work->registers = REGISTERS_USED;
    work->limit = (double)config->value[REGISTERS];
    work->bytes = kg_cuda_memory_bytes(group);
    if (nest->iterations * bytes > work->bytes)
        work->again = nest->iterations * bytes - work->bytes;
    work->trips = 1;
    work->near_trips = turns > AHEAD ? turns / AHEAD - 1 : 0;
    for (int a = 0; a < nest->access_count; a++)
        kg_cuda_memory_access(work, turns,
                              kg_dtypes[kg_emit_tensor_dtype(nest->accesses[a].tensor)].bits / 8.0);
    kg_cuda_memory_access(work, 1, kg_dtypes[kg_emit_tensor_dtype(nest->output)].bits / 8.0);
    kg_cuda_memory_compute(work, group, 0, nest->iterations, turns);
    return 1;
}

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    // Nothing was measured of it: where another family is expected to take about as long, that one.
    const double unsure = 2;
    return unsure *
           kg_cuda_memory_expected(kg_cuda_direct_work, &kg_cuda_reduce_times, match, config);
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
