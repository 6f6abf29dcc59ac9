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
#include "gen/skeleton.h"

enum { WIDTH, CHUNK, STREAM };

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static int find_scan(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (kg_group_nest(group, i)->has_reduce)
            return i;
    return -1;
}

// The bound has to be an output axis with the range of the reduced one.
static const char *obstacle(const struct kg_nest *nest)
{
    const struct kg_index *reduced = nest->axes[nest->axis_count - 1];
    if (nest->axis_count != nest->output_axes + 1)
        return "more than one reduced index";
    if (reduced->relation == KG_RELATION_NONE)
        return "the reduction does not depend on an output index";
    if (reduced->bound->kind != KG_EXPR_INDEX || reduced->bound->index->id >= nest->output_axes)
        return "the bound is not an output index alone";
    int axis = reduced->bound->index->id;
    if (!kg_axes_from_zero(reduced) || !kg_size_same(reduced->end, nest->axes[axis]->end))
        return "the reduced index and its bound have different ranges";
    if (kg_expr_uses(nest->body, axis, true))
        return "the formula uses the output index of the scan";
    // Backward, the later of two equals would have to win.
    if (kg_reduces[nest->reduce].is_argument &&
        (reduced->relation == KG_RELATION_GE || reduced->relation == KG_RELATION_GT))
        return "places are looked for forward only";
    return NULL;
}

static bool is_column(const struct kg_nest *nest)
{
    return nest->axes[nest->output_axes]->bound->index->id != nest->output_axes - 1;
}

bool kg_scan_plan_make(const struct kg_group *group, struct kg_scan_plan *plan,
                       struct kg_text *reason)
{
    int k = find_scan(group);
    if (k < 0)
        return refuse(reason, "no reduction");
    const struct kg_nest *nest = kg_group_nest(group, k);
    const char *why = obstacle(nest);
    if (why)
        return refuse(reason, why);
    if (!kg_group_inlines(group, k, reason))
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        if (i != k && kg_group_nest(group, i)->has_reduce)
            return refuse(reason, "more than one reduction");
        if (i < k && !kg_group_is_private(group, output))
            return refuse(reason, "what stands before the scan is needed elsewhere");
        if (i > k && !kg_group_follows(group, k, i))
            return refuse(reason, "what follows the scan has other axes");
        if (kg_dtype_is_packed(kg_emit_tensor_dtype(output)))
            return refuse(reason, "outputs of less than a byte");
    }
    const struct kg_index *reduced = nest->axes[nest->output_axes];
    *plan = (struct kg_scan_plan){
        .group = group,
        .nest = nest,
        .fold = kg_fold_of(nest),
        .k = k,
        .axis = reduced->bound->index->id,
        .bound = nest->output_axes,
        .last = nest->output_axes - 1,
        .column = is_column(nest),
        .backward = reduced->relation == KG_RELATION_GE || reduced->relation == KG_RELATION_GT,
        .exclusive = reduced->relation == KG_RELATION_LT || reduced->relation == KG_RELATION_GT,
    };
    plan->run = plan->last;
    if (plan->column) {
        plan->run = plan->axis + 1;
        for (int i = k; i < group->count; i++) {
            int run = kg_axes_run(group, kg_group_nest(group, i), plan->axis + 1, plan->last);
            plan->run = run > plan->run ? run : plan->run;
        }
    }
    return true;
}

static bool applicable(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_text *reason)
{
    (void)facts;
    struct kg_scan_plan plan;
    if (target != KG_TARGET_HOST)
        return refuse(reason, "written for the host");
    return kg_scan_plan_make(group, &plan, reason);
}

static bool may_stream(const struct kg_group *group, const struct kg_nest *nest)
{
    enum kg_relation relation = nest->axes[nest->output_axes]->relation;
    bool backward = relation == KG_RELATION_GE || relation == KG_RELATION_GT;
    if (!group->problem->contiguous || (!is_column(nest) && backward))
        return false;
    for (int i = find_scan(group); i < group->count; i++)
        if (!kg_group_is_private(group, kg_group_nest(group, i)->output))
            return true;
    return false; // of a definition that makes no use of it
}

static void space(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_space *space)
{
    (void)facts, (void)target;
    const struct kg_nest *nest = kg_group_nest(group, find_scan(group));
    *space = (struct kg_space){0};
    if (is_column(nest)) {
        kg_space_add(space, "width", 5, (int64_t[]){2048, 4096, 1024, 256, 64});
        kg_space_add(space, "chunk", 1, (int64_t[]){0});
    } else {
        kg_space_add(space, "width", 4, (int64_t[]){256, 512, 128, 64});
        kg_space_add(space, "chunk", 4, (int64_t[]){0, 1 << 20, 1 << 17, 1 << 14});
    }
    kg_space_add(space, "stream", may_stream(group, nest) ? 2 : 1, (int64_t[]){0, 1});
}

static bool valid(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, const struct kg_config *config, struct kg_text *reason)
{
    (void)group, (void)facts, (void)target, (void)config, (void)reason;
    return true;
}

static void guess(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_config *config)
{
    (void)target;
    const struct kg_nest *nest = kg_group_nest(group, find_scan(group));
    int axis = nest->axes[nest->output_axes]->bound->index->id;
    double cores = facts->units > 0 ? (double)facts->units : 1.0;
    double length = (double)nest->extent[axis];
    double all = kg_axes_count(nest, 0, nest->output_axes - 1),
           lines = length > 0 ? all / length : 0;
    bool far = kg_group_bytes(group) > (double)facts->cache[3]; // streams through memory
    *config = (struct kg_config){0};
    if (is_column(nest)) {
        double across = kg_axes_count(nest, axis + 1, nest->output_axes - 1);
        // Wide tiles, as long as every core gets one.
        config->value[WIDTH] = 4096;
        while (config->value[WIDTH] > 64 && lines / (double)config->value[WIDTH] < cores)
            config->value[WIDTH] /= config->value[WIDTH] > 1024 ? 2 : 4;
        config->value[STREAM] = far && may_stream(group, nest) && across >= 256.0;
        return;
    }
    config->value[WIDTH] = 256;
    config->value[STREAM] = far && may_stream(group, nest) && length >= 256.0;
    if (lines >= 2.0 * cores || cores < 2.0)
        return;
    config->value[CHUNK] = 1 << 14;
    for (int64_t chunk = 1 << 20; chunk > 1 << 14; chunk >>= 3)
        if (all / (double)chunk >= 4.0 * cores) {
            config->value[CHUNK] = chunk;
            break;
        }
}

static bool emit(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    struct kg_space parameters;
    struct kg_code code = {source, 0};
    struct kg_scan_plan plan;
    struct kg_text reason = {0};
    kg_scan_plan_make(group, &plan, &reason);
    kg_text_free(&reason);
    plan.stream = config->value[STREAM] != 0;
    plan.width = config->value[WIDTH];
    plan.chunk = config->value[CHUNK];
    plan.entry = entry;
    space(group, facts, target, &parameters);
    kg_emit_host_opening(source, group, "scan", config, &parameters);
    kg_text_add(source, kg_skeleton_find("host/lanes.h"));
    kg_text_add(source, "\n");
    kg_text_add(source, kg_skeleton_find("host/running.h"));
    kg_text_add(source, "\n");
    kg_scan_emit(&code, &plan);
    return !source->failed;
}

const struct kg_family kg_family_scan = {
    .name = "scan",
    .summary = "running totals along an axis",
    .applicable = applicable,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .emit = emit,
};
