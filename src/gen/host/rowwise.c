// Work on rows: softmax, norms, losses per row.
//
// The nests of the group share their leading output axes, the row. A row is read from memory once:
// its passes follow each other while it is in a near cache, and what one pass leaves for another
// lies in a row buffer, as computed. Rows are independent, so any number of threads gives the same
// result. The last pass may work one row behind the others, beside the one before it
// (rowwise_behind.c).

#include "gen/host/rowwise.h"

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"
#include "gen/shared/reduce_plan.h"
#include "gen/skeleton.h"

enum { LANES, KEEP, STREAM, PREFETCH, BEHIND };

// Rows longer than this are better cut between the cores when there are fewer rows than cores.
enum { LONG_ROW = 1 << 16 };

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static const void *match_rows(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct kg_rowwise_plan *plan = KG_NEW(arena, struct kg_rowwise_plan);
    return plan && kg_rowwise_plan_make(group, plan, reason) ? plan : NULL;
}

static bool advised(const struct kg_match *match, struct kg_text *reason)
{
    const struct kg_rowwise_plan *plan = match->analysis;
    struct kg_text ignored = {0};
    bool single = kg_reduce_position(&match->group, &ignored) >= 0;
    kg_text_free(&ignored);
    if (single)
        return refuse(reason, "a single reduction: reduce does it");
    if (kg_axes_count(plan->shape, 0, plan->rows - 1) < (double)match->facts->units &&
        kg_axes_count(plan->shape, plan->rows, plan->last) > (double)LONG_ROW)
        return refuse(reason, "fewer rows than cores, and long ones");
    return true;
}

static bool has_kept(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->kept[i])
            return true;
    return false;
}

static double per_element(const struct kg_nest *nest, double count)
{
    double elements = kg_axes_count(nest, 0, nest->axis_count - 1);
    return elements > 0.0 ? count / elements : 0.0;
}

// Is something kept that takes longer to make than to store and load?
static bool keeps_costly(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        if (plan->kept[i] &&
            (nest->transcendentals > 0.0 || per_element(nest, nest->operations) > 4.0))
            return true;
    }
    return false;
}

// Does the second pass compute while memory could be at work?
static bool is_second_heavy(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] != KG_ROWWISE_SCALAR && plan->pass[i] == 1 &&
            kg_group_nest(plan->group, i)->transcendentals > 0.0)
            return true;
    return false;
}

static bool has_column_output(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] == KG_ROWWISE_COLUMN &&
            !kg_group_is_private(plan->group, kg_group_nest(plan->group, i)->output))
            return true;
    return false;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_group *group = &match->group;
    const struct kg_rowwise_plan *plan = match->analysis;
    *space = (struct kg_space){0};
    kg_space_add(space, "lanes", KG_CHANGE_ACCESS, 4, (int64_t[]){64, 32, 128, 16});
    kg_space_add(space, "keep", KG_CHANGE_REUSE, has_kept(plan) ? 2 : 1, (int64_t[]){0, 1});
    kg_space_add(space, "stream", KG_CHANGE_ACCESS,
                 has_column_output(plan) && group->problem->contiguous ? 2 : 1, (int64_t[]){0, 1});
    kg_space_add(space, "prefetch", KG_CHANGE_ACCESS, plan->passes > 1 ? 3 : 1,
                 (int64_t[]){0, 1, 2});
    kg_space_add(space, "behind", KG_CHANGE_REUSE, kg_rowwise_can_follow(plan) ? 2 : 1,
                 (int64_t[]){0, 1});
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_rowwise_plan *plan = match->analysis;
    if (config->value[BEHIND] == 0)
        return true;
    if (config->value[KEEP] == 0 && has_kept(plan))
        return refuse(reason, "a pass behind reads what others keep");
    if (config->value[LANES] != 64 || config->value[PREFETCH] != KG_ROWWISE_SECOND)
        return refuse(reason, "with a pass behind, lanes and prefetches are given");
    return true;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_rowwise_plan *plan = match->analysis;
    *config = (struct kg_config){0};
    double columns = kg_axes_count(plan->shape, plan->rows, plan->last),
           near = (double)facts->cache[2];
    // Streamed stores spare memory the lines that are read only to be overwritten, and put out of
    // the cache what the next kernel may want. On two cores of Zen 3 with 32 MiB, rms_norm in f32
    // over 8, 16 and 24 MiB took 0.67, 0.66 and 0.65 of the time with cold caches, 1.45, 1.3 and
    // 0.66 with warm ones.
    bool far = 2.0 * kg_group_bytes(group) > (double)facts->cache[3];
    config->value[LANES] = columns < 64.0 ? 16 : 64;
    // Reading what was kept beats computing it again only from a near cache.
    config->value[KEEP] = keeps_costly(plan) && columns * 8.0 <= near;
    config->value[STREAM] =
        far && columns >= 256.0 && has_column_output(plan) && group->problem->contiguous;
    if (plan->passes > 1 && columns * 12.0 <= near)
        config->value[PREFETCH] = is_second_heavy(plan) ? KG_ROWWISE_SECOND : KG_ROWWISE_HALVES;
    config->value[BEHIND] = config->value[PREFETCH] == KG_ROWWISE_SECOND &&
                            config->value[LANES] == 64 && columns * 20.0 <= near &&
                            (config->value[KEEP] != 0 || !has_kept(plan)) &&
                            kg_rowwise_can_follow(plan);
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_rowwise_plan plan = *(const struct kg_rowwise_plan *)match->analysis;
    struct kg_space parameters;
    struct kg_code code = {source, 0};
    plan.lanes = config->value[LANES];
    plan.keep = config->value[KEEP] != 0;
    plan.stream = config->value[STREAM] != 0;
    plan.prefetch = (enum kg_rowwise_prefetch)config->value[PREFETCH];
    plan.behind = config->value[BEHIND] != 0;
    plan.entry = entry;
    space(match, &parameters);
    kg_emit_host_opening(source, group, "rowwise", config, &parameters);
    kg_text_add(source, kg_skeleton_find("host/lanes.h"));
    if (plan.behind)
        kg_text_add(source, kg_skeleton_find("host/floats.h"));
    kg_text_add(source, "\n");
    kg_rowwise_emit(&code, &plan);
    return !source->failed;
}

const struct kg_family kg_host_rowwise = {
    .name = "rowwise",
    .summary = "rows on their own: softmax, norms, losses; each row is read once",
    .match = match_rows,
    .advised = advised,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = kg_host_expect_rowwise,
    .emit = emit,
};
