// The family of element-wise formulas: a chain of nests over the same output axes, none of them a
// reduction. Values pass from nest to nest in registers; each element is read and written once.
//
// When tensors are contiguous, neighbouring axes that every tensor either walks together or leaves
// alone become one, so that most formulas are a single long loop. Items are blocks of the inner
// axis times the other axes. With `stream`, a short piece of the result is computed into a buffer
// in L1 and leaves by non-temporal stores, which do not read the line they overwrite: a third less
// traffic once outputs are larger than the last-level cache. With `tile`, two axes are walked in
// square tiles, for reads that are contiguous along another axis than the output (transposes).

#include "gen/host/pointwise.h"

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"

#include <string.h>

enum { BLOCK, STREAM, TILE, PARAMETERS };

// The axis along which some read is contiguous, other than the inner one; -1: none.
static int crossing_axis(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            int last = access->tensor->rank - 1;
            if (last < 1 || kg_pointwise_producer(group, access->tensor, i) >= 0)
                continue;
            bool inner = false;
            for (int dim = 0; dim < last; dim++)
                inner |= kg_pointwise_bare(access, dim, nest->output_axes - 1);
            for (int axis = 0; inner && axis < nest->output_axes - 1; axis++)
                if (kg_pointwise_bare(access, last, axis))
                    return axis;
        }
    }
    return -1;
}

struct analysis {
    int crossing; // the axis along which some read is contiguous, other than the inner one; or -1
};

static const void *match_chain(const struct kg_group *group, const struct kg_device_facts *facts,
                               struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    for (int i = 0; i < group->count; i++) {
        const char *why = kg_pointwise_obstacle(group, i);
        if (why) {
            kg_text_format(reason, "%s: %s", kg_group_nest(group, i)->output->name, why);
            return NULL;
        }
    }
    struct analysis *analysis = KG_NEW(arena, struct analysis);
    if (analysis)
        analysis->crossing = crossing_axis(group);
    return analysis;
}

static int crossing_of(const struct kg_match *match)
{
    return ((const struct analysis *)match->analysis)->crossing;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_group *group = &match->group;
    static const int64_t blocks[] = {16384, 4096, 65536, 262144, 1024};
    static const int64_t streams[] = {0, 64, 256, 1024};
    static const int64_t tiles[] = {0, 16, 32, 64};
    *space = (struct kg_space){0};
    kg_space_add(space, "block", 5, blocks);
    kg_space_add(space, "stream", group->problem->contiguous ? 4 : 1, streams);
    kg_space_add(space, "tile", crossing_of(match) >= 0 ? 4 : 1, tiles);
}

// Elements of the inner loop after merging.
static int64_t inner_length(const struct kg_group *group)
{
    const struct kg_nest *nest = kg_group_nest(group, 0);
    int axis = nest->output_axes - 1;
    int64_t length = axis >= 0 ? nest->extent[axis] : 1;
    while (axis > 0 && kg_pointwise_can_merge(group, axis - 1))
        length *= nest->extent[--axis];
    return length;
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_group *group = &match->group;
    if (config->value[STREAM] && config->value[TILE]) {
        kg_text_add(reason, "tiles are narrower than a stream of stores needs");
        return false;
    }
    if (config->value[TILE] && config->value[BLOCK] != 4096) {
        kg_text_add(reason, "tiles cut the inner axis themselves: block does not count");
        return false;
    }
    int64_t length = inner_length(group);
    if (config->value[BLOCK] > 1024 && config->value[BLOCK] / 4 >= length && !config->value[TILE]) {
        kg_text_add(reason, "the block is longer than the inner axis");
        return false;
    }
    return true;
}

static int64_t written_bytes(const struct kg_group *group)
{
    int64_t bytes = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        if (!kg_group_is_private(group, output))
            bytes += (int64_t)kg_dtype_bytes(kg_emit_tensor_dtype(output),
                                             (size_t)group->problem->layouts[output->id].elements);
    }
    return bytes;
}

// Is what is written converted from floats on the way? Then the conversion's own buffer stands
// between the formula and memory, and another one for a stream costs more than it saves: 256 MiB of
// bias_relu in f16 took 11.9 ms without and 13.5 ms with it on two cores of Zen 3.
static bool writes_narrow(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        enum kg_dtype dtype = kg_emit_tensor_dtype(output);
        if (!kg_group_is_private(group, output) && kg_dtype_is_narrow_float(dtype))
            return true;
    }
    return false;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    *config = (struct kg_config){{16384, 0, 0}};
    int64_t length = inner_length(group);
    if (crossing_of(match) >= 0)
        *config = (struct kg_config){{4096, 0, 32}};
    else if (group->problem->contiguous && length >= 256 && !writes_narrow(group))
        config->value[STREAM] = written_bytes(group) > facts->cache[3] ? 64 : 0;
    while (!config->value[TILE] && config->value[BLOCK] > 1024 &&
           config->value[BLOCK] / 4 >= length)
        config->value[BLOCK] /= 4;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_space values;
    space(match, &values);
    bool stored = false;
    for (int i = 0; i < group->count; i++)
        stored |= !kg_group_is_private(group, kg_group_nest(group, i)->output);
    kg_emit_host_opening(source, group, "pointwise", config, &values);
    if (!stored) { // nobody reads what it makes
        kg_emit_host_nothing(source, entry);
        return !source->failed;
    }
    struct kg_pointwise pointwise = {
        .text = source,
        .group = group,
        .entry = entry,
        .axes = kg_group_nest(group, 0)->output_axes,
        .tiled = config->value[TILE] ? crossing_of(match) : -1,
        .block = config->value[config->value[TILE] ? TILE : BLOCK],
        .stage = config->value[STREAM],
        .stream = config->value[STREAM] > 0 && kg_group_nest(group, 0)->output_axes > 0,
    };
    pointwise.inner = pointwise.axes - 1;
    for (int axis = 0; axis + 1 < pointwise.axes; axis++)
        pointwise.merged[axis] = kg_pointwise_can_merge(group, axis);
    kg_pointwise_emit(&pointwise);
    return !source->failed;
}

const struct kg_family kg_host_pointwise = {
    .name = "pointwise",
    .summary = "element-wise formulas and gathers, chained in one loop",
    .match = match_chain,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = kg_host_expect_pointwise,
    .emit = emit,
};
