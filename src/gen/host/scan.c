// Running totals: sums, products, extremes and their places over all elements up to (or from) each
// element of an axis.
//
// Along the last axis a row goes through a block in a near cache: the values, their running totals,
// the carry of what stands before. When there are few rows, a row is cut into chunks of a fixed
// size: their totals first, then what stands before each, then the scan itself; the result does not
// depend on the number of threads. Along other axes each column keeps its own total, and vectors
// follow the columns.

#include "gen/host/scan.h"

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"
#include "gen/skeleton.h"

enum { WIDTH, CHUNK, STREAM };

static const void *match_scan(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct kg_scan_plan *plan = KG_NEW(arena, struct kg_scan_plan);
    return plan && kg_scan_plan_make(group, plan, reason) ? plan : NULL;
}

static bool may_stream(const struct kg_scan_plan *plan)
{
    const struct kg_group *group = plan->group;
    if (!group->problem->contiguous || (!plan->column && plan->backward))
        return false;
    for (int i = plan->k; i < group->count; i++)
        if (!kg_group_is_private(group, kg_group_nest(group, i)->output))
            return true;
    return false; // of a definition that makes no use of it
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_scan_plan *plan = match->analysis;
    *space = (struct kg_space){0};
    if (plan->column) {
        kg_space_add(space, "width", KG_CHANGE_REUSE, 5, (int64_t[]){2048, 4096, 1024, 256, 64});
        kg_space_add(space, "chunk", KG_CHANGE_BLOCK, 1, (int64_t[]){0});
    } else {
        kg_space_add(space, "width", KG_CHANGE_REUSE, 4, (int64_t[]){256, 512, 128, 64});
        kg_space_add(space, "chunk", KG_CHANGE_BLOCK, 4, (int64_t[]){0, 1 << 20, 1 << 17, 1 << 14});
    }
    kg_space_add(space, "stream", KG_CHANGE_ACCESS, may_stream(plan) ? 2 : 1, (int64_t[]){0, 1});
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    (void)match, (void)config, (void)reason;
    return true;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_scan_plan *plan = match->analysis;
    const struct kg_nest *nest = plan->nest;
    int axis = plan->axis;
    double cores = facts->units > 0 ? (double)facts->units : 1.0;
    double length = (double)nest->extent[axis];
    double all = kg_axes_count(nest, 0, nest->output_axes - 1),
           lines = length > 0 ? all / length : 0;
    bool far = kg_group_bytes(group) > (double)facts->cache[3]; // streams through memory
    *config = (struct kg_config){0};
    if (plan->column) {
        double across = kg_axes_count(nest, axis + 1, nest->output_axes - 1);
        // Wide tiles, as long as every core gets one.
        config->value[WIDTH] = 4096;
        while (config->value[WIDTH] > 64 && lines / (double)config->value[WIDTH] < cores)
            config->value[WIDTH] /= config->value[WIDTH] > 1024 ? 2 : 4;
        config->value[STREAM] = far && may_stream(plan) && across >= 256.0;
        return;
    }
    // Only the copies into and out of a block wait for memory. Where what is between them takes
    // long, short blocks overlap better: cummax of 1024 rows of 1024 took two AVX2 cores 810 us in
    // blocks of 128, 1010 us of 256, 920 us in plain loops.
    config->value[WIDTH] = facts->vector_bytes == 32 ? 128 : 256;
    config->value[STREAM] = far && may_stream(plan) && length >= 256.0;
    if (lines >= 2.0 * cores || cores < 2.0)
        return;
    config->value[CHUNK] = 1 << 14;
    for (int64_t chunk = 1 << 20; chunk > 1 << 14; chunk >>= 3)
        if (all / (double)chunk >= 4.0 * cores) {
            config->value[CHUNK] = chunk;
            break;
        }
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_space parameters;
    struct kg_code code = {source, 0};
    struct kg_scan_plan plan = *(const struct kg_scan_plan *)match->analysis;
    plan.stream = config->value[STREAM] != 0;
    plan.width = config->value[WIDTH];
    plan.chunk = config->value[CHUNK];
    plan.entry = entry;
    space(match, &parameters);
    kg_emit_host_opening(source, group, "scan", config, &parameters);
    kg_text_add(source, kg_skeleton_find("host/lanes.h"));
    kg_text_add(source, "\n");
    kg_text_add(source, kg_skeleton_find("host/running.h"));
    kg_text_add(source, "\n");
    kg_scan_emit(&code, &plan);
    return !source->failed;
}

const struct kg_family kg_host_scan = {
    .name = "scan",
    .summary = "running totals along an axis",
    .match = match_scan,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = kg_host_expect_scan,
    .emit = emit,
};
