// Work on rows: softmax, norms, losses per row.
//
// The nests of the group share their leading output axes, the row. A row is read from memory once:
// its passes follow each other while it is in a near cache, and what one pass leaves for another
// lies in a row buffer, as computed. Rows are independent, so any number of threads gives the same
// result. The last pass may work one row behind the others, beside the one before it
// (rowwise_behind.c).

#include "gen/host/rowwise.h"

#include "gen/families.h"
#include "gen/skeleton.h"

enum { LANES, KEEP, STREAM, PREFETCH, BEHIND };

// Rows longer than this are better cut between the cores when there are fewer rows than cores.
enum { LONG_ROW = 1 << 16 };

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

static bool same_axes(const struct kg_nest *a, const struct kg_nest *b, int count)
{
    for (int axis = 0; axis < count; axis++)
        if (!kg_axes_same(a->axes[axis], b->axes[axis]))
            return false;
    return true;
}

static bool find_shape(struct kg_rowwise_plan *plan, struct kg_text *reason)
{
    const struct kg_group *group = plan->group;
    for (int i = 0; i < group->count && !plan->shape; i++)
        if (kg_group_nest(group, i)->has_reduce)
            plan->shape = kg_group_nest(group, i);
    if (!plan->shape)
        return refuse(reason, "no reduction");
    plan->rows = plan->shape->output_axes;
    plan->last = plan->shape->axis_count - 1;
    if (plan->rows == 0)
        return refuse(reason, "reduces all there is: no rows to work on apart");
    for (int axis = plan->rows; axis <= plan->last; axis++)
        if (plan->shape->axes[axis]->relation != KG_RELATION_NONE ||
            !kg_axes_from_zero(plan->shape->axes[axis]))
            return refuse(reason, "reduces a part of the row");
    return true;
}

static bool find_role(struct kg_rowwise_plan *plan, int i, struct kg_text *reason)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, i), *shape = plan->shape;
    if (nest->has_reduce && nest->output_axes == plan->rows &&
        nest->axis_count == shape->axis_count)
        plan->role[i] = KG_ROWWISE_REDUCE;
    else if (!nest->has_reduce && nest->output_axes == shape->axis_count)
        plan->role[i] = KG_ROWWISE_COLUMN;
    else if (!nest->has_reduce && nest->output_axes == plan->rows)
        plan->role[i] = KG_ROWWISE_SCALAR;
    else
        return refuse(reason, "the statements do not share rows and columns");
    if (!same_axes(nest, shape, nest->axis_count))
        return refuse(reason, "the statements differ in their rows or columns");
    if (kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return refuse(reason, "outputs of less than a byte");
    return true;
}

// The first pass in which everything that nest `i` reads is at hand.
static bool find_pass(struct kg_rowwise_plan *plan, int i, struct kg_text *reason)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, i);
    for (int a = 0; a < nest->access_count; a++) {
        int maker = kg_group_maker(plan->group, nest->accesses[a].tensor);
        if (maker < 0)
            continue;
        if (!kg_axes_identity(&nest->accesses[a]) ||
            (plan->role[maker] == KG_ROWWISE_COLUMN && plan->role[i] == KG_ROWWISE_SCALAR))
            return refuse(reason, "an intermediate is read at another place than it is made");
        int ready = plan->pass[maker] + (plan->role[maker] == KG_ROWWISE_REDUCE);
        if (plan->pass[i] < ready)
            plan->pass[i] = ready;
    }
    return true;
}

static bool reads(const struct kg_nest *nest, const struct kg_tensor *tensor)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].tensor == tensor)
            return true;
    return false;
}

// Private columns are made where they are first needed, and kept if that is not the only place.
static void place_columns(struct kg_rowwise_plan *plan)
{
    for (int i = plan->group->count - 1; i >= 0; i--) {
        const struct kg_tensor *output = kg_group_nest(plan->group, i)->output;
        int first = -1, last = -1;
        if (plan->role[i] != KG_ROWWISE_COLUMN || !kg_group_is_private(plan->group, output))
            continue;
        for (int j = i + 1; j < plan->group->count; j++) {
            if (!reads(kg_group_nest(plan->group, j), output))
                continue;
            first = first < 0 || plan->pass[j] < first ? plan->pass[j] : first;
            last = plan->pass[j] > last ? plan->pass[j] : last;
        }
        plan->pass[i] = first >= 0 ? first : plan->pass[i];
        plan->kept[i] = last > plan->pass[i];
    }
}

bool kg_rowwise_plan_make(const struct kg_group *group, struct kg_rowwise_plan *plan,
                          struct kg_text *reason)
{
    *plan = (struct kg_rowwise_plan){.group = group};
    if (!find_shape(plan, reason))
        return false;
    for (int i = 0; i < group->count; i++)
        if (!find_role(plan, i, reason) || !find_pass(plan, i, reason))
            return false;
    place_columns(plan);
    plan->run = plan->rows;
    for (int i = 0; i < group->count; i++) {
        if (plan->role[i] == KG_ROWWISE_SCALAR)
            continue;
        int run = kg_axes_run(group, kg_group_nest(group, i), plan->rows, plan->last);
        plan->run = run > plan->run ? run : plan->run;
        plan->passes = plan->pass[i] + 1 > plan->passes ? plan->pass[i] + 1 : plan->passes;
    }
    return true;
}

static bool applicable(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_text *reason)
{
    struct kg_rowwise_plan plan;
    struct kg_text ignored = {0};
    if (target != KG_TARGET_HOST)
        return refuse(reason, "written for the host");
    if (!kg_rowwise_plan_make(group, &plan, reason))
        return false;
    bool single = kg_family_reduce.applicable(group, facts, target, &ignored);
    kg_text_free(&ignored);
    if (single)
        return refuse(reason, "a single reduction: reduce does it");
    if (kg_axes_count(plan.shape, 0, plan.rows - 1) < (double)facts->units &&
        kg_axes_count(plan.shape, plan.rows, plan.last) > (double)LONG_ROW)
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

static void space(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_space *space)
{
    (void)facts, (void)target;
    struct kg_rowwise_plan plan;
    struct kg_text ignored = {0};
    kg_rowwise_plan_make(group, &plan, &ignored);
    kg_text_free(&ignored);
    *space = (struct kg_space){0};
    kg_space_add(space, "lanes", 4, (int64_t[]){64, 32, 128, 16});
    kg_space_add(space, "keep", has_kept(&plan) ? 2 : 1, (int64_t[]){0, 1});
    kg_space_add(space, "stream", has_column_output(&plan) && group->problem->contiguous ? 2 : 1,
                 (int64_t[]){0, 1});
    kg_space_add(space, "prefetch", plan.passes > 1 ? 3 : 1, (int64_t[]){0, 1, 2});
    kg_space_add(space, "behind", kg_rowwise_can_follow(&plan) ? 2 : 1, (int64_t[]){0, 1});
}

static bool valid(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, const struct kg_config *config, struct kg_text *reason)
{
    (void)facts, (void)target;
    struct kg_rowwise_plan plan;
    if (config->value[BEHIND] == 0)
        return true;
    kg_rowwise_plan_make(group, &plan, reason);
    if (config->value[KEEP] == 0 && has_kept(&plan))
        return refuse(reason, "a pass behind reads what others keep");
    if (config->value[LANES] != 64 || config->value[PREFETCH] != KG_ROWWISE_SECOND)
        return refuse(reason, "with a pass behind, lanes and prefetches are given");
    return true;
}

static void guess(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_config *config)
{
    (void)target;
    struct kg_rowwise_plan plan;
    struct kg_text ignored = {0};
    *config = (struct kg_config){0};
    kg_rowwise_plan_make(group, &plan, &ignored);
    kg_text_free(&ignored);
    double columns = kg_axes_count(plan.shape, plan.rows, plan.last),
           near = (double)facts->cache[2];
    // Streamed stores spare memory the lines that are read only to be overwritten, and put out of
    // the cache what the next kernel may want. On two cores of Zen 3 with 32 MiB, rms_norm in f32
    // over 8, 16 and 24 MiB took 0.67, 0.66 and 0.65 of the time with cold caches, 1.45, 1.3 and
    // 0.66 with warm ones.
    bool far = 2.0 * kg_group_bytes(group) > (double)facts->cache[3];
    config->value[LANES] = columns < 64.0 ? 16 : 64;
    // Reading what was kept beats computing it again only from a near cache.
    config->value[KEEP] = keeps_costly(&plan) && columns * 8.0 <= near;
    config->value[STREAM] =
        far && columns >= 256.0 && has_column_output(&plan) && group->problem->contiguous;
    if (plan.passes > 1 && columns * 12.0 <= near)
        config->value[PREFETCH] = is_second_heavy(&plan) ? KG_ROWWISE_SECOND : KG_ROWWISE_HALVES;
    config->value[BEHIND] = config->value[PREFETCH] == KG_ROWWISE_SECOND &&
                            config->value[LANES] == 64 && columns * 20.0 <= near &&
                            (config->value[KEEP] != 0 || !has_kept(&plan)) &&
                            kg_rowwise_can_follow(&plan);
}

static bool emit(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    struct kg_rowwise_plan plan;
    struct kg_space parameters;
    struct kg_text ignored = {0};
    struct kg_code code = {source, 0};
    kg_rowwise_plan_make(group, &plan, &ignored);
    kg_text_free(&ignored);
    plan.lanes = config->value[LANES];
    plan.keep = config->value[KEEP] != 0;
    plan.stream = config->value[STREAM] != 0;
    plan.prefetch = (enum kg_rowwise_prefetch)config->value[PREFETCH];
    plan.behind = config->value[BEHIND] != 0;
    plan.entry = entry;
    space(group, facts, target, &parameters);
    kg_emit_host_opening(source, group, "rowwise", config, &parameters);
    kg_text_add(source, kg_skeleton_find("host/lanes.h"));
    if (plan.behind)
        kg_text_add(source, kg_skeleton_find("host/floats.h"));
    kg_text_add(source, "\n");
    kg_rowwise_emit(&code, &plan);
    return !source->failed;
}

const struct kg_family kg_family_rowwise = {
    .name = "rowwise",
    .summary = "rows on their own: softmax, norms, losses; each row is read once",
    .applicable = applicable,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .emit = emit,
};
