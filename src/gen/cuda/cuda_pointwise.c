// The family of element-wise formulas on CUDA: a chain of nests over the same output axes, none of
// them a reduction. Values pass from nest to nest in registers; each element is read and written
// once.
//
// The last axes, as far as every tensor walks them together or leaves them alone, are the columns;
// the axes before them are the rows. A thread makes a few vectors of 16 bytes (or fewer), all of
// them loaded before the first is used: one below the other, where what only depends on the column
// is loaded once, or side by side where there are no rows. Where some tensor is not aligned for
// vectors the same code goes element by element, neighbouring threads on neighbouring elements.

#include "gen/cuda/cuda_pointwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"

#include <string.h>

enum { THREADS, VECTOR, ROWS, STREAM, REGISTERS };

enum { ACCESS = 16, REGISTER_FILE = 65536 };

static bool applicable(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_text *reason)
{
    (void)facts;
    if (!kg_cuda_fits(group, target, reason))
        return false;
    for (int i = 0; i < group->count; i++) {
        const char *why = kg_pointwise_obstacle(group, i);
        if (why) {
            kg_text_format(reason, "%s: %s", kg_pointwise_nest(group, i)->output->name, why);
            return false;
        }
    }
    return true;
}

static void space(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_space *space)
{
    (void)group, (void)facts, (void)target;
    *space = (struct kg_space){0};
    kg_space_add(space, "threads", 4, (int64_t[]){512, 256, 128, 1024});
    kg_space_add(space, "vector", 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "rows", 4, (int64_t[]){2, 4, 1, 8});
    kg_space_add(space, "stream", 2, (int64_t[]){0, 1});
    kg_cuda_space_registers(space);
}

// Of what is stored, in bytes.
static int widest_element(const struct kg_group *group)
{
    int widest = 1;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_pointwise_nest(group, i)->output;
        int bytes = kg_dtypes[kg_emit_tensor_dtype(output)].bits / 8;
        if (!kg_group_is_private(group, output) && bytes > widest)
            widest = bytes;
    }
    return widest;
}

static void make_plan(const struct kg_group *group, const struct kg_config *config,
                      struct kg_cuda_pointwise_plan *plan)
{
    *plan = (struct kg_cuda_pointwise_plan){.group = group};
    plan->axes = kg_pointwise_nest(group, 0)->output_axes;
    plan->run = plan->axes - 1;
    for (int axis = 0; axis + 1 < plan->axes; axis++)
        plan->merged[axis] = kg_pointwise_can_merge(group, axis);
    while (plan->run > 0 && plan->merged[plan->run - 1])
        plan->run--;
    plan->threads = (int)config->value[THREADS];
    plan->vector = (int)config->value[VECTOR];
    plan->rows = (int)config->value[ROWS];
    plan->stream = config->value[STREAM] != 0;
    plan->registers = (int)config->value[REGISTERS];
}

// Elements of a row, and rows.
static void measure(const struct kg_cuda_pointwise_plan *plan, int64_t *columns, int64_t *rows)
{
    const struct kg_nest *nest = kg_pointwise_nest(plan->group, 0);
    *columns = *rows = 1;
    for (int axis = 0; axis < plan->axes; axis++)
        *(axis < plan->run ? rows : columns) *= nest->extent[axis];
}

static bool valid(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, const struct kg_config *config, struct kg_text *reason)
{
    (void)facts, (void)target;
    struct kg_cuda_pointwise_plan plan;
    int64_t columns, rows;
    make_plan(group, config, &plan);
    measure(&plan, &columns, &rows);
    if (plan.vector * widest_element(group) > ACCESS) {
        kg_text_add(reason, "a vector is wider than a store");
        return false;
    }
    if (plan.rows > 1 && plan.rows > (plan.run > 0 ? rows : kg_ceil_div(columns, plan.vector))) {
        kg_text_add(reason, "more vectors a thread than there are");
        return false;
    }
    if (config->value[REGISTERS] > 0 && config->value[REGISTERS] * plan.threads > REGISTER_FILE) {
        kg_text_add(reason, "a block would need more registers than there are");
        return false;
    }
    return true;
}

static void guess(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_config *config)
{
    (void)target;
    struct kg_cuda_pointwise_plan plan;
    int64_t columns, rows;
    *config = (struct kg_config){{512, ACCESS / widest_element(group), 2, 0, 0}};
    make_plan(group, config, &plan);
    measure(&plan, &columns, &rows);
    // Vectors that rows are whole numbers of.
    while (plan.run > 0 && config->value[VECTOR] > 1 && columns % config->value[VECTOR] != 0)
        config->value[VECTOR] /= 2;
    // Small problems are spread over all units first.
    double threads = (double)columns * (double)rows / (double)config->value[VECTOR];
    while (config->value[ROWS] > 1 &&
           threads / (double)config->value[ROWS] < 1024.0 * (facts->units > 0 ? facts->units : 1))
        config->value[ROWS] /= 2;
    struct kg_text reason = {0};
    while (config->value[ROWS] > 1 && !valid(group, facts, target, config, &reason))
        config->value[ROWS] /= 2;
    kg_text_free(&reason);
}

static double bound(const struct kg_group *group, const struct kg_device_facts *facts,
                    enum kg_target target, const struct kg_config *config)
{
    (void)target, (void)config;
    return kg_group_bound(group, facts);
}

static bool emit(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    struct kg_space values;
    struct kg_cuda_pointwise_plan plan;
    struct kg_code code = {source, 0};
    bool stored = false;
    for (int i = 0; i < group->count; i++)
        stored |= !kg_group_is_private(group, kg_pointwise_nest(group, i)->output);
    space(group, facts, target, &values);
    kg_cuda_opening(source, group, "pointwise", config, &values);
    if (!stored) { // nobody reads what it makes
        kg_cuda_nothing(&code, group, entry);
        return !source->failed;
    }
    make_plan(group, config, &plan);
    plan.entry = entry;
    kg_cuda_pointwise_emit(source, &plan);
    return !source->failed;
}

static struct kg_grid grid_of(const struct kg_cuda_pointwise_plan *plan, int64_t columns,
                              int64_t rows)
{
    enum { MOST_ACROSS = 65535, MOST_ALONG = 1 << 30 };
    int64_t vectors = kg_ceil_div(columns, plan->vector), wide = plan->threads;
    if (plan->run <= 0) { // side by side
        int64_t blocks = kg_ceil_div(vectors, (int64_t)plan->threads * plan->rows);
        return (struct kg_grid){.blocks = {blocks < MOST_ALONG ? blocks : MOST_ALONG, 1, 1},
                                .threads = {plan->threads, 1, 1}};
    }
    if (vectors < wide)
        wide = kg_power_of_two(vectors);
    int64_t high = plan->threads / wide;
    int64_t along = kg_ceil_div(rows, high * plan->rows), across = kg_ceil_div(vectors, wide);
    return (struct kg_grid){
        .blocks = {along < MOST_ALONG ? along : MOST_ALONG,
                   across < MOST_ACROSS ? across : MOST_ACROSS, 1},
        .threads = {(int)wide, (int)high, 1},
    };
}

static void grids(const struct kg_group *group, const struct kg_device_facts *facts,
                  const struct kg_config *config, struct kg_grids *grids)
{
    (void)facts;
    struct kg_cuda_pointwise_plan plan;
    int64_t columns, rows;
    const struct kg_grid none = {.threads = {1, 1, 1}};
    make_plan(group, config, &plan);
    measure(&plan, &columns, &rows);
    struct kg_grid grid = grid_of(&plan, columns, rows);
    int alignment = kg_cuda_pointwise_alignment(&plan, columns);
    *grids = (struct kg_grids){.count = 2, .alignment = alignment};
    grids->grids[0] = alignment ? grid : none;
    grids->grids[1] = alignment ? none : grid;
    grids->unaligned[0] = none;
    grids->unaligned[1] = grid;
}

const struct kg_family kg_cuda_pointwise = {
    .name = "pointwise",
    .summary = "element-wise formulas and gathers, chained in registers",
    .applicable = applicable,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = bound,
    .emit = emit,
    .grids = grids,
};
