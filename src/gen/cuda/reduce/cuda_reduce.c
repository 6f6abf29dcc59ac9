// One reduction on CUDA, over any axes: sums, means, extremes, their places, any and all.
//
// Two ways of using vectors. Along the row: a block takes an output, its threads vectors along the
// reduced axes that lie innermost in memory. Along the column: neighbouring threads take vectors
// along the outputs, and groups of threads share what is reduced. Where that is too little for all
// units, several blocks share an output; what they find lies in memory for a second function, or,
// of little data, in the shared memory of a cluster of blocks, and is folded in a fixed order:
// results are the same in every run. Short rows belong to rowwise.

#include "gen/cuda/reduce/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/cuda/rowwise/cuda_rowwise.h"
#include "gen/shared/bound.h"
#include "gen/shared/contract_operands.h"

#include <string.h>

enum { ACCESS = 16, WARP = 32 };
enum { COMBINE_THREADS = 256 };
enum { MOST_BLOCKS = 1 << 30 };
// Threads that keep a device busy, and those for places, whose totals take longest to fold: three
// argmaxes of 16-bit floats along 74 to 290 rows by so many took 0.74 to 1.00 of the time on an
// H200, seven sums and maxima 0.98 to 1.17.
enum { PLENTY = 1 << 19, PLENTY_OF_PLACES = 1 << 17 };

const int64_t kg_cuda_reduce_splits[KG_CUDA_REDUCE_SPLITS] = {1,  2,   4,   8,   16,  32,   64,
                                                              96, 132, 264, 396, 528, 1056, 2112};

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

// ---- The plan ----

// The axes of the reduction at which one of its statements, number `reader`, reads an intermediate.
static bool find_axes(const struct kg_cuda_reduce_plan *plan, int reader,
                      const struct kg_access *access, int8_t *axes)
{
    unsigned seen = 0;
    if (!plan->in_place[reader] || access->read->pad ||
        access->tensor->rank != plan->nest->axis_count)
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        if (subscript->kind != KG_EXPR_INDEX)
            return false;
        axes[dim] = plan->axis_of[reader][subscript->index->id];
        seen |= 1u << axes[dim];
    }
    return seen == (1u << access->tensor->rank) - 1;
}

static void find_place(struct kg_cuda_reduce_plan *plan, int position)
{
    const struct kg_tensor *output = kg_group_nest(plan->group, position)->output;
    int8_t axes[KG_MAX_INDICES] = {0}, *known = plan->axis_of[position];
    for (int i = position + 1; i <= plan->k; i++) {
        const struct kg_nest *reader = kg_group_nest(plan->group, i);
        for (int a = 0; a < reader->access_count; a++) {
            if (reader->accesses[a].tensor != output)
                continue;
            bool first = !plan->in_place[position];
            plan->in_place[position] = find_axes(plan, i, &reader->accesses[a], axes) &&
                                       (first || memcmp(axes, known, sizeof axes) == 0);
            if (!plan->in_place[position])
                return;
            memcpy(known, axes, sizeof axes);
        }
    }
}

static void set_column(struct kg_cuda_reduce_plan *plan, bool column)
{
    plan->column = column;
    plan->last = (column ? plan->outputs : plan->nest->axis_count) - 1;
    plan->run = kg_axes_run(plan->group, plan->nest, column ? 0 : plan->outputs, plan->last);
}

static void make_plan(const struct kg_group *group, int k, struct kg_cuda_reduce_plan *plan)
{
    *plan = (struct kg_cuda_reduce_plan){.group = group, .nest = kg_group_nest(group, k), .k = k};
    plan->fold = kg_fold_of(plan->nest);
    plan->outputs = plan->nest->output_axes;
    plan->in_place[k] = true;
    for (int axis = 0; axis < plan->nest->axis_count; axis++)
        plan->axis_of[k][axis] = (int8_t)axis;
    for (int i = k - 1; i >= 0; i--)
        find_place(plan, i);
    set_column(plan, false);
}

static void configure(struct kg_cuda_reduce_plan *plan, const struct kg_config *config)
{
    set_column(plan, config->value[COLUMN] != ALONG_ROWS);
    plan->joined = config->value[COLUMN] == ALONG_JOINED;
    plan->threads = (int)config->value[THREADS];
    plan->vector = (int)config->value[VECTOR];
    plan->unroll = (int)config->value[UNROLL];
    plan->split = (int)config->value[SPLIT];
    plan->cluster = config->value[CLUSTER] != 0;
    plan->evict = config->value[EVICT] != 0;
    plan->registers = (int)config->value[REGISTERS];
}

int64_t kg_cuda_reduce_extent(const struct kg_nest *nest, int first, int last)
{
    int64_t count = 1;
    for (int axis = first; axis <= last; axis++)
        count *= nest->extent[axis];
    return count;
}

int64_t kg_cuda_reduce_outputs(const struct kg_cuda_reduce_plan *plan)
{
    return kg_cuda_reduce_extent(plan->nest, 0, plan->outputs - 1);
}

int64_t kg_cuda_reduce_elements_of_output(const struct kg_cuda_reduce_plan *plan)
{
    return kg_cuda_reduce_extent(plan->nest, plan->outputs, plan->nest->axis_count - 1);
}

// A read that is made for every element of the reduction, and by which statement.
struct read {
    int position;
    const struct kg_access *access;
};

enum { MOST_READS = 64 };

static int list_reads(const struct kg_cuda_reduce_plan *plan, struct read reads[MOST_READS])
{
    int count = 0;
    for (int i = 0; i <= plan->k; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a < nest->access_count && plan->in_place[i]; a++)
            if (kg_group_maker(plan->group, nest->accesses[a].tensor) < 0 && count < MOST_READS)
                reads[count++] = (struct read){i, &nest->accesses[a]};
    }
    return count;
}

// What reading costs when neighbours along `axis` are taken together, in elements moved for each.
static int64_t cost_along(const struct kg_cuda_reduce_plan *plan, int axis)
{
    enum { WORST = 16 };
    struct read reads[MOST_READS];
    int64_t cost = 0;
    int count = list_reads(plan, reads);
    for (int i = 0; i < count; i++) {
        const struct kg_tensor *tensor = reads[i].access->tensor;
        const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
        int own = kg_cuda_reduce_axis(plan, reads[i].position, axis);
        int64_t stride = 0;
        for (int dim = 0; dim < tensor->rank; dim++) {
            const struct kg_affine *map = &reads[i].access->map[dim];
            if (map->is_affine)
                stride += map->coefficient[own] * layout->stride[dim];
            else if (kg_expr_uses(map->subscript, own, true))
                stride += WORST;
        }
        stride = stride < 0 ? -stride : stride;
        cost += stride < WORST ? stride : WORST;
    }
    return cost;
}

double kg_cuda_reduce_apart(const struct kg_cuda_reduce_plan *plan)
{
    struct read reads[MOST_READS];
    int count = list_reads(plan, reads);
    return count > 0 ? (double)cost_along(plan, plan->last) / count : 0;
}

// ---- The family ----

static bool starts_at_zero(const struct kg_nest *nest)
{
    for (int axis = 0; axis < nest->axis_count; axis++)
        if (nest->axes[axis]->relation != KG_RELATION_NONE || !kg_axes_from_zero(nest->axes[axis]))
            return false;
    return true;
}

void kg_cuda_reduce_elements(const struct kg_cuda_reduce_plan *plan, int *widest, int *together)
{
    struct read reads[MOST_READS];
    int count = list_reads(plan, reads);
    *widest = *together = 0;
    for (int i = 0; i < count; i++) {
        const struct kg_access *access = reads[i].access;
        bool seen = !kg_cuda_reduce_walks(plan, reads[i].position, access);
        for (int j = 0; j < i; j++)
            seen |= kg_cuda_reduce_same(plan, reads[i].position, access, reads[j].position,
                                        reads[j].access);
        int bytes = kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits / 8;
        *together += seen ? 0 : bytes;
        *widest = !seen && bytes > *widest ? bytes : *widest;
    }
}

// Is there a row for every unit, or are rows so short that the blocks that share one hold it?
static bool has_good_rows(const struct kg_cuda_reduce_plan *plan,
                          const struct kg_device_facts *facts)
{
    int widest, together;
    int64_t rows = kg_cuda_reduce_outputs(plan), blocks = kg_cuda_rowwise_blocks(facts);
    kg_cuda_reduce_elements(plan, &widest, &together);
    int64_t bytes = kg_cuda_reduce_elements_of_output(plan) * (widest > 0 ? widest : 1);
    return rows >= 2 * (int64_t)facts->units || bytes <= KG_CUDA_ROWWISE_HELD ||
           (rows * blocks >= facts->units && bytes <= blocks * KG_CUDA_ROWWISE_HELD);
}

static const void *match_reduction(const struct kg_group *group,
                                   const struct kg_device_facts *facts, struct kg_arena *arena,
                                   struct kg_text *reason)
{
    (void)facts;
    int k = kg_cuda_fits(group, reason) ? kg_reduce_position(group, reason) : -1;
    if (k < 0)
        return NULL;
    if (!starts_at_zero(kg_group_nest(group, k))) {
        refuse(reason, "an index does not run over the whole of 0 to its end");
        return NULL;
    }
    struct kg_cuda_reduce_plan *plan = KG_NEW(arena, struct kg_cuda_reduce_plan);
    if (plan)
        make_plan(group, k, plan);
    return plan;
}

// The plan by columns or rows, before any config.
static struct kg_cuda_reduce_plan plan_of(const struct kg_match *match)
{
    return *(const struct kg_cuda_reduce_plan *)match->analysis;
}

bool kg_cuda_reduce_prefers_columns(const struct kg_match *match)
{
    enum { WINDOWS = 16 };
    struct kg_cuda_reduce_plan plan = plan_of(match);
    const struct kg_nest *nest = plan.nest;
    if (plan.outputs == 0)
        return false;
    set_column(&plan, true);
    int64_t width = kg_cuda_reduce_extent(nest, plan.run, plan.last);
    int64_t column = cost_along(&plan, plan.last), row = cost_along(&plan, nest->axis_count - 1);
    if (width <= 1)
        return false;
    if (nest->class == KG_CLASS_WINDOW && width >= WINDOWS) // rows of a few elements
        return true;
    return column != row ? column < row : width > kg_cuda_reduce_elements_of_output(&plan);
}

void kg_cuda_reduce_plan_make(const struct kg_match *match, const struct kg_config *config,
                              struct kg_cuda_reduce_plan *plan)
{
    *plan = plan_of(match);
    configure(plan, config);
}

static bool advised(const struct kg_match *match, struct kg_text *reason)
{
    struct kg_cuda_reduce_plan plan = plan_of(match);
    struct kg_rowwise_plan rows;
    struct kg_text ignored = {0};
    if (kg_contract_is_in(&match->group))
        return refuse(reason, "a product of matrices is among it");
    if (kg_cuda_reduce_prefers_columns(match))
        return true;
    set_column(&plan, false);
    bool by_row =
        has_good_rows(&plan, match->facts) && kg_rowwise_plan_make(&match->group, &rows, &ignored);
    kg_text_free(&ignored);
    return by_row ? refuse(reason, "rows on their own: rowwise does them") : true;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    *space = (struct kg_space){0};
    kg_space_add(space, "column", KG_CHANGE_ACCESS, plan.outputs > 0 ? 3 : 1,
                 (int64_t[]){ALONG_ROWS, ALONG_COLUMNS, ALONG_JOINED});
    kg_space_add(space, "threads", KG_CHANGE_STAGES, 5, (int64_t[]){256, 128, 512, 1024, 32});
    kg_space_add(space, "vector", KG_CHANGE_ACCESS, 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "unroll", KG_CHANGE_STAGES, 5, (int64_t[]){4, 8, 2, 1, 16});
    kg_space_add(space, "split", KG_CHANGE_BLOCK, KG_CUDA_REDUCE_SPLITS, kg_cuda_reduce_splits);
    kg_space_add(space, "cluster", KG_CHANGE_BLOCK, kg_cuda_rowwise_blocks(facts) > 1 ? 2 : 1,
                 (int64_t[]){0, 1});
    kg_space_add_optional(space, "evict", KG_CHANGE_ACCESS, 2, (int64_t[]){0, 1});
    kg_cuda_space_registers(space);
}

int kg_cuda_reduce_fold_bytes(const struct kg_fold *fold)
{
    int bytes = fold->lane == KG_TYPE_F32 || fold->lane == KG_TYPE_BOOL ? 4 : 8;
    return fold->is_argument ? KG_CUDA_PARTIAL_BYTES : fold->is_float_sum ? 2 * bytes : bytes;
}

int64_t kg_cuda_reduce_columns(const struct kg_cuda_reduce_plan *plan)
{
    return kg_cuda_reduce_extent(plan->nest, plan->joined ? 0 : plan->run, plan->last);
}

// Outer indices whose columns are divided into tiles each for itself.
static int64_t outers_of(const struct kg_cuda_reduce_plan *plan)
{
    return plan->joined ? 1 : kg_cuda_reduce_extent(plan->nest, 0, plan->run - 1);
}

void kg_cuda_reduce_shape(const struct kg_cuda_reduce_plan *plan, int64_t *wide, int64_t *groups)
{
    int64_t width = kg_cuda_reduce_columns(plan), count = kg_cuda_reduce_elements_of_output(plan);
    int64_t most = kg_power_of_two(kg_ceil_div(width, plan->vector));
    *wide = most < WARP ? most : WARP;
    *groups = plan->threads / *wide;
    while (*groups > 1 && *groups / 2 * plan->unroll >= count) {
        *groups /= 2;
        *wide *= *wide < most ? 2 : 1;
    }
    // What groups find has to be folded: none where there is enough without.
    const int64_t plenty = plan->fold.is_argument ? PLENTY_OF_PLACES : PLENTY;
    int64_t threads = outers_of(plan) * most;
    while (*groups > 1 && *wide < most && threads >= plenty) {
        *groups /= 2;
        *wide *= 2;
    }
}

void kg_cuda_reduce_count(const struct kg_cuda_reduce_plan *plan, int64_t *blocks, int64_t *parts)
{
    if (!plan->column) {
        *blocks = kg_cuda_reduce_outputs(plan);
        *parts = kg_ceil_div(kg_cuda_reduce_elements_of_output(plan),
                             (int64_t)plan->threads * plan->vector * plan->unroll);
        return;
    }
    int64_t wide, groups;
    kg_cuda_reduce_shape(plan, &wide, &groups);
    *blocks = outers_of(plan) * kg_ceil_div(kg_cuda_reduce_columns(plan), wide * plan->vector);
    *parts = kg_ceil_div(kg_cuda_reduce_elements_of_output(plan), groups * plan->unroll);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    int widest, together;
    int64_t blocks, parts;
    configure(&plan, config);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    if (plan.vector > 1 && plan.vector * widest > 2 * ACCESS)
        return refuse(reason, "a vector is wider than two loads");
    if (plan.joined &&
        (plan.run == 0 || kg_cuda_reduce_extent(plan.nest, plan.run, plan.last) % plan.vector != 0))
        return refuse(reason, "there is no outer index, or a vector would cross to the next one");
    if (plan.threads == WARP && (plan.column || plan.split > 1))
        return refuse(reason, "a single warp reduces a short row");
    int64_t totals = kg_cuda_reduce_fold_bytes(&plan.fold) * (plan.column ? plan.vector : 1);
    if (plan.column && totals * plan.threads > facts->unit.static_shared)
        return refuse(reason, "a block would need more shared memory than there is");
    if (plan.split > 1 && plan.split / 2 >= parts)
        return refuse(reason, "more blocks share an output than there is work for");
    if (plan.cluster && (plan.split == 1 || plan.split > 2 * kg_cuda_rowwise_blocks(facts)))
        return refuse(reason, "a cluster has more than one block, and no more than 16");
    if (plan.cluster && blocks > MOST_BLOCKS / plan.split)
        return refuse(reason, "more clusters than a launch has");
    if (plan.unroll > 1 && plan.unroll / 2 * (plan.column ? 1 : plan.vector) >=
                               kg_cuda_reduce_elements_of_output(&plan))
        return refuse(reason, "a thread would take more at once than is reduced");
    int64_t most = plan.registers > 0 ? plan.registers : facts->unit.registers / plan.threads;
    most = most < facts->unit.thread_registers ? most : facts->unit.thread_registers;
    if ((totals + (int64_t)together * plan.vector * plan.unroll) / 4 + 16 > most)
        return refuse(reason, "holds more than a thread has registers");
    if (plan.registers * plan.threads > facts->unit.registers)
        return refuse(reason, "a block would need more registers than there are");
    return true;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    struct kg_space values;
    configure(&plan, config);
    plan.entry = entry;
    space(match, &values);
    kg_cuda_opening(source, group, "reduce", config, &values);
    kg_cuda_reduce_emit(source, &plan);
    return !source->failed;
}

int kg_cuda_combine_threads(const struct kg_cuda_reduce_plan *plan)
{
    return !plan->column && plan->split <= 2 * WARP ? WARP : COMBINE_THREADS;
}

static struct kg_grid grid_of(int64_t blocks, int64_t split, int64_t wide, int64_t high)
{
    return (struct kg_grid){.blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, split, 1},
                            .threads = {(int)wide, (int)high, 1}};
}

static void grids(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    int64_t blocks, parts, wide, groups = 1;
    const struct kg_grid none = {.threads = {1, 1, 1}};
    configure(&plan, config);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    wide = plan.threads;
    if (plan.column)
        kg_cuda_reduce_shape(&plan, &wide, &groups);
    int64_t outputs = kg_cuda_reduce_outputs(&plan), side = kg_power_of_two(outputs);
    side = side < WARP ? side : WARP;
    struct kg_grid grid = grid_of(blocks, plan.split, wide, groups);
    if (plan.cluster) {
        grid = grid_of(blocks * plan.split, 1, wide, groups);
        grid.cluster = plan.split;
    }
    const int threads = kg_cuda_combine_threads(&plan);
    struct kg_grid last = plan.column ? grid_of(kg_ceil_div(outputs, side), 1, side, threads / side)
                                      : grid_of(outputs, 1, threads, 1);
    last.early = kg_cuda_rowwise_blocks(facts) > 1; // it came with clusters
    int alignment = kg_cuda_reduce_alignment(&plan);
    bool folds_last = plan.split > 1 && !plan.cluster;
    *grids = (struct kg_grids){.count = folds_last ? 3 : 2, .alignment = alignment};
    grids->grids[0] = alignment ? grid : none;
    grids->grids[1] = alignment ? none : grid;
    grids->unaligned[0] = none;
    grids->unaligned[1] = grid;
    if (folds_last) {
        grids->grids[2] = grids->unaligned[2] = last;
        grids->scratch = (size_t)outputs * (size_t)plan.split * KG_CUDA_PARTIAL_BYTES;
    }
    kg_cuda_start_early(group, facts, grids);
}

const struct kg_cuda_memory_times *kg_cuda_reduce_times_of(const struct kg_match *match,
                                                           const struct kg_config *config)
{
    const struct kg_cuda_reduce_plan *plan = match->analysis;
    // Not products, nor few columns, to which these times are not fitted; of long reductions they
    // choose worse than the others.
    return config->value[COLUMN] && kg_cuda_memory_columns(match, plan->nest)
               ? &kg_cuda_reduce_column_times
               : &kg_cuda_reduce_times;
}

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    return kg_cuda_memory_expected(kg_cuda_reduce_work, kg_cuda_reduce_times_of(match, config),
                                   match, config);
}

const struct kg_family kg_cuda_reduce = {
    .name = "reduce",
    .summary = "reductions over any axes, by as many blocks as there is room for",
    .match = match_reduction,
    .advised = advised,
    .space = space,
    .valid = valid,
    .guess = kg_cuda_reduce_guess,
    .bound = kg_group_bound,
    .expected = expected,
    .orders_configs = true,
    .is_fitted = true,
    .emit = emit,
    .grids = grids,
};
