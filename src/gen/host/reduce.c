// Reductions over any axes: sums, means, extremes, their places, any and all.
//
// Two ways of using vectors. Along the row: the run of reduced axes that lie innermost in memory is
// taken in lanes, which are folded at the end. Along the column: the innermost output axes stay
// apart, one accumulator each, and rows are added to them. Long reductions are cut into chunks of
// a fixed size, whose partial totals a second phase combines in order: the result does not depend
// on the number of threads.

#include "gen/host/reduce.h"

#include "gen/families.h"
#include "gen/host/host_costs.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"
#include "gen/shared/reduce_plan.h"
#include "gen/skeleton.h"

#include <math.h>

enum { COLUMN, WIDTH, UNROLL, CHUNK, PARAMETERS };
enum { WIDEST_LANES = 128 };

// Bytes of a row that is read as several streams: those of shorter rows lie too close together for
// the hardware to fetch ahead. Means of 8 MiB of f32 took one core of Zen 4 485 us in one stream
// and 861 in four with rows of 8 KiB, 470 and 497 with 32 KiB, 436 and 381 with 128 KiB.
#define LEAST_STREAMED 65536.0

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static const void *match_reduction(const struct kg_group *group,
                                   const struct kg_device_facts *facts, struct kg_arena *arena,
                                   struct kg_text *reason)
{
    (void)facts;
    int position = kg_reduce_position(group, reason);
    struct kg_reduce_analysis *analysis =
        position >= 0 ? KG_NEW(arena, struct kg_reduce_analysis) : NULL;
    if (analysis)
        *analysis = (struct kg_reduce_analysis){kg_group_nest(group, position), position};
    return analysis;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_reduce_analysis *analysis = match->analysis;
    bool scalar = analysis->nest->output_axes == 0;
    *space = (struct kg_space){0};
    kg_space_add(space, "column", KG_CHANGE_ACCESS, scalar ? 1 : 2, (int64_t[]){0, 1});
    kg_space_add(space, "width", KG_CHANGE_REUSE, scalar ? 4 : 6,
                 (int64_t[]){64, 32, 128, 16, 1024, 4096});
    kg_space_add(space, "unroll", KG_CHANGE_STAGES, 3, (int64_t[]){1, 4, 8});
    kg_space_add(space, "chunk", KG_CHANGE_BLOCK, 3, (int64_t[]){1 << 20, 1 << 17, 1 << 14});
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_reduce_analysis *analysis = match->analysis;
    bool lanes = config->value[WIDTH] <= WIDEST_LANES;
    if (config->value[COLUMN] && lanes)
        return refuse(reason, "a tile of columns is wider");
    if (!config->value[COLUMN] && !lanes)
        return refuse(reason, "more lanes than registers hold");
    if (!config->value[COLUMN] && config->value[UNROLL] > 1 &&
        kg_reduces[analysis->nest->reduce].is_argument)
        return refuse(reason, "the first place is found in order only");
    return true;
}

// Does the nest read memory in the order of this axis?
static int count_followers(const struct kg_group *group, const struct kg_nest *nest, int axis)
{
    int count = 0;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        const struct kg_layout *layout = &group->problem->layouts[access->tensor->id];
        for (int dim = 0; dim < access->tensor->rank; dim++)
            if (access->map[dim].is_affine && access->map[dim].coefficient[axis] == 1 &&
                layout->stride[dim] == 1)
                count++;
    }
    return count;
}

static bool prefers_column(const struct kg_group *group, const struct kg_nest *nest)
{
    int last = nest->axis_count - 1, inner = nest->output_axes - 1;
    if (nest->output_axes == 0)
        return false;
    int row = count_followers(group, nest, last), column = count_followers(group, nest, inner);
    if (row != column)
        return column > row;
    return nest->extent[inner] > nest->extent[last];
}

// Of a row as it lies in memory without a gap, the longest element taken for all.
static double run_bytes(const struct kg_group *group, const struct kg_nest *nest)
{
    double bits = 0;
    int last = nest->axis_count - 1, run = kg_axes_run(group, nest, nest->output_axes, last);
    for (int i = 0; i < nest->access_count; i++)
        bits = fmax(bits, kg_dtypes[kg_emit_tensor_dtype(nest->accesses[i].tensor)].bits);
    return kg_axes_count(nest, run, last) * bits / 8;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_reduce_analysis *analysis = match->analysis;
    const struct kg_nest *nest = analysis->nest;
    int outputs = nest->output_axes, last = nest->axis_count - 1;
    double reduced = kg_axes_count(nest, outputs, last), kept = kg_axes_count(nest, 0, outputs - 1);
    double cores = facts->units > 0 ? (double)facts->units : 1.0, items = kept;
    bool column = prefers_column(group, nest);
    config->value[COLUMN] = column;
    // Sums go through several streams at once; extremes are bound by their comparisons.
    bool streams = kg_fold_of(nest).is_sum && run_bytes(group, nest) >= LEAST_STREAMED;
    config->value[UNROLL] = column ? 8 : streams ? 4 : 1;
    // Lanes of 64 bits fill twice the registers.
    bool wide = kg_host_lanes(facts, kg_fold_of(nest).lane) < kg_host_lanes(facts, KG_TYPE_F32);
    config->value[WIDTH] = reduced < 64.0 ? 16 : wide ? 32 : 64;
    if (column) {
        double width = (double)nest->extent[outputs - 1];
        config->value[WIDTH] = width > 1024.0 ? 4096 : 1024;
        items =
            kept / (width < (double)config->value[WIDTH] ? width : (double)config->value[WIDTH]);
    }
    // The largest chunks that still give every core a few.
    config->value[CHUNK] = 1 << 14;
    for (int64_t chunk = 1 << 20; chunk > 1 << 14; chunk >>= 3) {
        double pieces = kept * reduced / (double)chunk;
        if (items >= 8.0 * cores || pieces >= 8.0 * cores) {
            config->value[CHUNK] = chunk;
            break;
        }
    }
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    const struct kg_reduce_analysis *analysis = match->analysis;
    struct kg_space parameters;
    struct kg_code code = {source, 0};
    int k = analysis->position;
    const struct kg_nest *nest = analysis->nest;
    struct kg_reduce_plan plan = {
        .group = group,
        .nest = nest,
        .fold = kg_fold_of(nest),
        .k = k,
        .outputs = nest->output_axes,
        .column = config->value[COLUMN] != 0,
        .width = config->value[WIDTH],
        .unroll = config->value[UNROLL],
        .chunk = config->value[CHUNK],
        .entry = entry,
    };
    plan.fold.counts_far = plan.column && kg_reduce_has_several(&plan);
    plan.last = (plan.column ? plan.outputs : nest->axis_count) - 1;
    plan.run = kg_axes_run(group, nest, plan.column ? 0 : plan.outputs, plan.last);
    for (int i = k + 1; i < group->count && plan.column; i++) { // what follows may tell axes apart
        int run = kg_axes_run(group, kg_group_nest(group, i), 0, plan.last);
        plan.run = run > plan.run ? run : plan.run;
    }
    space(match, &parameters);
    kg_emit_host_opening(source, group, "reduce", config, &parameters);
    kg_text_add(source, kg_skeleton_find("host/lanes.h"));
    kg_text_add(source, "\n");
    kg_reduce_emit(&code, &plan);
    return !source->failed;
}

const struct kg_family kg_host_reduce = {
    .name = "reduce",
    .summary = "reductions over any axes, with what leads to them and follows from them",
    .match = match_reduction,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = kg_host_expect_reduce,
    .emit = emit,
};
