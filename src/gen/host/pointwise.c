// The family of element-wise formulas: a chain of nests over the same output axes, none of them a
// reduction. Values pass from nest to nest in registers; each element is read and written once.
//
// When tensors are contiguous, neighbouring axes that every tensor either walks together or leaves
// alone become one, so that most formulas are a single long loop. Items are blocks of the inner
// axis times the other axes. With `stream`, a short piece of the result is computed into a buffer
// in L1 and leaves by non-temporal stores, which do not read the line they overwrite: a third less
// traffic. With `ways`, several such items, far apart, are walked alternately. With `tile`, two
// axes are walked in square tiles, for reads that are contiguous along another axis than the output
// (transposes). Where the inner index is divided by constants, and where elements share bytes, it
// is walked in runs of that many elements, so that compilers can take the loop in vectors.

#include "gen/host/pointwise.h"

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"

#include <math.h>
#include <string.h>

enum { BLOCK, STREAM, TILE, WAYS, PARAMETERS };

// Of a formula, for each byte that is moved: below it, results are streamed.
#define MOST_CYCLES_PER_BYTE 0.07

// What interleaving has to gain on this machine: less is within the noise of measuring it.
#define LEAST_INTERLEAVING 1.1

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
    static const int64_t streams[] = {0, 64, 256, 1024, 128};
    static const int64_t tiles[] = {0, 16, 32, 64};
    static const int64_t ways[] = {1, 4, 2, 8};
    *space = (struct kg_space){0};
    kg_space_add(space, "block", KG_CHANGE_BLOCK, 5, blocks);
    kg_space_add(space, "stream", KG_CHANGE_ACCESS, group->problem->contiguous ? 5 : 1, streams);
    kg_space_add(space, "tile", KG_CHANGE_REUSE, crossing_of(match) >= 0 ? 4 : 1, tiles);
    kg_space_add_optional(space, "ways", KG_CHANGE_ACCESS, group->problem->contiguous ? 4 : 1,
                          ways);
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

// Is the inner index divided, so that elements are best walked in runs? Streamed pieces begin at
// lines of the output instead: unpacking 2^21 bytes into 4-bit numbers took 3850 us, and 141 in
// runs.
static bool is_split(const struct kg_group *group)
{
    const int inner = kg_group_nest(group, 0)->output_axes - 1;
    return inner >= 0 && kg_split_step(group, inner) > 1;
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_group *group = &match->group;
    if (config->value[STREAM] && config->value[TILE]) {
        kg_text_add(reason, "tiles are narrower than a stream of stores needs");
        return false;
    }
    if (config->value[STREAM] && is_split(group)) {
        kg_text_add(reason, "an index is divided: streamed pieces are not walked in runs");
        return false;
    }
    if (config->value[WAYS] > 1 && !config->value[STREAM]) {
        kg_text_add(reason, "only items whose results are streamed are walked alternately");
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

// What a group moves, in bytes.
struct traffic {
    double bytes;   // read and written
    double written; // of these
    double longest; // the size of the longest element of a tensor that is no broadcast
};

static struct traffic traffic_of(const struct kg_group *group)
{
    const struct kg_problem *problem = group->problem;
    const struct kg_nest *shape = kg_group_nest(group, 0);
    const double all = kg_axes_count(shape, 0, shape->output_axes - 1);
    struct traffic traffic = {.longest = 1};
    struct kg_needs needs;
    kg_group_needs(group, &needs);
    for (int id = 0; id < problem->tensor_count; id++) {
        if (!needs.tensor[id])
            continue;
        enum kg_dtype dtype = kg_emit_tensor_dtype(problem->tensors[id]);
        double elements = (double)problem->layouts[id].elements;
        double size = kg_dtypes[dtype].bits / 8.0;
        traffic.bytes += size * fmin(elements, all); // a broadcast stays in a cache
        if (kg_group_writes(group, problem->tensors[id]))
            traffic.written += size * fmin(elements, all);
        if (elements * 2 > all)
            traffic.longest = fmax(traffic.longest, size);
    }
    return traffic;
}

// Are all tensors walked from their beginning to their end, but for broadcasts? Where reads jump
// from row to row, alternating between more of them gains nothing: split_heads of 2 MiB took 250 us
// on a core of Zen 4, and 320 streamed.
static bool walks_in_order(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            const struct kg_layout *layout = &group->problem->layouts[access->tensor->id];
            double before = INFINITY;
            if (kg_pointwise_producer(group, access->tensor, i) >= 0)
                continue;
            for (int axis = 0; axis < nest->output_axes; axis++) {
                double stride = 0;
                for (int dim = 0; dim < access->tensor->rank; dim++) {
                    if (access->read->pad || !access->map[dim].is_affine)
                        return false;
                    stride +=
                        (double)access->map[dim].coefficient[axis] * (double)layout->stride[dim];
                }
                if (stride < 0 || stride > before)
                    return false;
                before = stride > 0 ? stride : before;
            }
        }
    }
    return true;
}

// Does memory keep a core waiting longer than the formula takes? Then results are streamed, past
// the caches, which would read the lines that they overwrite, and, where the machine gains by it,
// items are walked alternately. One core of Zen 4, 2^20 elements of f32, beyond the caches: relu
// 493 us, streamed 329, and 259 in four ways; sqrt 469 and 292; but exp 416 and 500, as pieces with
// long formulas do not hide the wait. Two cores of Zen 5, whose prefetchers serve one place well,
// in the same order: relu of 2^24 elements 3380 us, 2580 and 3170; is_nan 1800, 1630 and 2480.
static bool waits_for_memory(const struct kg_match *match, double bytes)
{
    const struct kg_group *group = &match->group;
    const struct kg_nest *shape = kg_group_nest(group, 0);
    double all = kg_axes_count(shape, 0, shape->output_axes - 1);
    double cycles = kg_host_pointwise_cycles(group, match->facts);
    return cycles * all < MOST_CYCLES_PER_BYTE * bytes;
}

static bool is_gathered(const struct kg_access *access, int axis)
{
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_affine *map = &access->map[dim];
        if (map->is_gather && kg_expr_uses(map->subscript, axis, true))
            return true;
    }
    return false;
}

// Is a read's place computed anew for each element, and the result stored at once? Such loops go
// element by element, too slowly to hide memory. Two cores of Zen 4, f32, a row's elements in
// another order: 2^24 of them 36.8 ms, streamed in four ways 25.0, but 2^20, which the last cache
// holds, 690 and 821 us. On an AVX2 machine the loops take longer than memory does, and streams
// gain at no size: 2^20 elements 969 and 1010 us, 2^24 11.4 and 11.8 ms. Narrow floats are stored
// in pieces anyway.
static bool stores_gathered(const struct kg_group *group)
{
    bool gathered = false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int j = 0; j < nest->access_count; j++)
            gathered |= is_gathered(&nest->accesses[j], nest->output_axes - 1);
        if (!kg_group_is_private(group, nest->output) &&
            kg_dtype_is_narrow_float(kg_emit_tensor_dtype(nest->output)))
            return false;
    }
    return gathered;
}

// Intermediates are read again, from the caches while these hold them.
static bool writes_for_others(const struct kg_match *match)
{
    const struct kg_group *group = &match->group;
    double bytes = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        if (output->role != KG_ROLE_OUTPUT && !kg_group_is_private(group, output))
            bytes += kg_dtypes[kg_emit_tensor_dtype(output)].bits / 8.0 *
                     (double)group->problem->layouts[output->id].elements;
    }
    return bytes > 0 && bytes <= (double)match->facts->cache[3];
}

// Where next to nothing is read, nothing competes with the lines that stores fetch: the last cache
// takes them in. Two cores of Zen 4, f32, outer_sum: 8 MiB written 276 us, streamed 314; 16 MiB 564
// and 623; but 64 MiB, twice that cache, 1835 and 1264. With 1 byte read for every 4 written,
// streams gain 8 % at all these sizes.
static bool only_writes(const struct traffic *traffic)
{
    return traffic->bytes - traffic->written < traffic->written / 8;
}

// What caches hold of what kernels move again and again, so that stores had better go through them:
// as it was measured, or else the caches of the cores. An AVX2 machine that says it has 512 KiB for
// each of two cores and 8 MiB for both: relu of 2^19 f32, 4 MiB, 227 us, streamed 273; of 2^20 479
// and 483; of 2^22 2197 and 1773.
static double held_by_caches(const struct kg_device_facts *facts)
{
    return facts->streamed > 0 ? facts->streamed : (double)facts->cache[2] * fmax(1, facts->units);
}

static bool gains_by_streams(const struct kg_match *match, const struct traffic *traffic)
{
    const double bytes = traffic->bytes;
    const struct kg_group *group = &match->group;
    const int64_t *cache = match->facts->cache;
    double near = held_by_caches(match->facts);
    if (!group->problem->contiguous || inner_length(group) < 256 || is_split(group) ||
        writes_for_others(match))
        return false;
    if (stores_gathered(group))
        return bytes > (double)cache[3] && match->facts->vector_bytes > 32;
    if (only_writes(traffic))
        near = fmax(near, (double)cache[3]);
    return bytes > near && walks_in_order(group) && waits_for_memory(match, bytes);
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    *config = (struct kg_config){{16384, 0, 0, 1}};
    int64_t length = inner_length(group);
    const struct traffic traffic = traffic_of(group);
    if (crossing_of(match) >= 0) {
        *config = (struct kg_config){{4096, 0, 32, 1}};
    } else if (gains_by_streams(match, &traffic)) {
        config->value[STREAM] = traffic.longest >= 4 ? 64 : traffic.longest >= 2 ? 128 : 256;
        config->value[WAYS] = match->facts->interleaving > LEAST_INTERLEAVING ? 4 : 1;
    } else if (traffic.longest >= 4 && !waits_for_memory(match, traffic.bytes)) {
        // Two cores of a Granite Rapids, log1p of 2^19 f32: 201 us, 238 by blocks of 16384; silu of
        // 2^20 337 and 362. Those of f16, which are converted in pieces: 281 and 249.
        config->value[BLOCK] = 1024;
    }
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
        .vector_bytes = match->facts->vector_bytes,
        .stage = config->value[STREAM],
        .stream = config->value[STREAM] > 0 && kg_group_nest(group, 0)->output_axes > 0,
        .ways = 1,
    };
    pointwise.inner = pointwise.axes - 1;
    if (pointwise.stream)
        pointwise.ways = config->value[WAYS];
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
