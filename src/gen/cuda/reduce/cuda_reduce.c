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

enum { COLUMN, THREADS, VECTOR, UNROLL, SPLIT, CLUSTER, REGISTERS };

enum { ACCESS = 16, WARP = 32 };
// What a multiprocessor should have under way, in blocks of LOADED bytes a thread.
enum { BLOCKS_PER_UNIT = 4, LOADED = 64, USUAL_THREADS = 256, LARGEST_BLOCK = 1024 };
enum { COMBINE_THREADS = 256 };
// Vectors of a row that one block reads sooner than several do, with a second launch after them.
enum { ONE_BLOCK = 4 * LARGEST_BLOCK };
enum { MOST_BLOCKS = 1 << 30 };
// Bytes of columns, and of a row, that are sooner read by one cluster than by all units, with a
// second launch: measured on an H100.
enum { CLUSTERED = 1 << 20, CLUSTERED_ROW = 1 << 17 };
// Threads and vectors of each where a cluster reads a row, if that is enough for it.
enum { CLUSTER_THREADS = 512, CLUSTER_UNROLL = 4 };
// Threads that keep a device busy.
enum { PLENTY = 1 << 19 };

static const int64_t splits[] = {1, 2, 4, 8, 16, 32, 64, 96, 132, 264, 396, 528, 1056, 2112};
enum { SPLITS = sizeof splits / sizeof *splits };

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
    set_column(plan, config->value[COLUMN] != 0);
    plan->threads = (int)config->value[THREADS];
    plan->vector = (int)config->value[VECTOR];
    plan->unroll = (int)config->value[UNROLL];
    plan->split = (int)config->value[SPLIT];
    plan->cluster = config->value[CLUSTER] != 0;
    plan->registers = (int)config->value[REGISTERS];
}

static int64_t product(const struct kg_nest *nest, int first, int last)
{
    int64_t count = 1;
    for (int axis = first; axis <= last; axis++)
        count *= nest->extent[axis];
    return count;
}

static int64_t outputs_of(const struct kg_cuda_reduce_plan *plan)
{
    return product(plan->nest, 0, plan->outputs - 1);
}

static int64_t count_of(const struct kg_cuda_reduce_plan *plan)
{
    return product(plan->nest, plan->outputs, plan->nest->axis_count - 1);
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

// Are columns the better way for these sizes?
static bool prefers_columns(struct kg_cuda_reduce_plan *plan)
{
    enum { WINDOWS = 16 };
    const struct kg_nest *nest = plan->nest;
    if (plan->outputs == 0)
        return false;
    set_column(plan, true);
    int64_t width = product(nest, plan->run, plan->last);
    int64_t column = cost_along(plan, plan->last), row = cost_along(plan, nest->axis_count - 1);
    if (width <= 1)
        return false;
    if (nest->class == KG_CLASS_WINDOW && width >= WINDOWS) // rows of a few elements
        return true;
    return column != row ? column < row : width > count_of(plan);
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
    int64_t rows = outputs_of(plan), blocks = kg_cuda_rowwise_blocks(facts);
    kg_cuda_reduce_elements(plan, &widest, &together);
    int64_t bytes = count_of(plan) * (widest > 0 ? widest : 1);
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
    if (prefers_columns(&plan))
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
    kg_space_add(space, "column", plan.outputs > 0 ? 2 : 1, (int64_t[]){0, 1});
    kg_space_add(space, "threads", 5, (int64_t[]){256, 128, 512, 1024, 32});
    kg_space_add(space, "vector", 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "unroll", 5, (int64_t[]){4, 8, 2, 1, 16});
    kg_space_add(space, "split", SPLITS, splits);
    kg_space_add(space, "cluster", kg_cuda_rowwise_blocks(facts) > 1 ? 2 : 1, (int64_t[]){0, 1});
    kg_cuda_space_registers(space);
}

int kg_cuda_reduce_fold_bytes(const struct kg_fold *fold)
{
    int bytes = fold->lane == KG_TYPE_F32 || fold->lane == KG_TYPE_BOOL ? 4 : 8;
    return fold->is_argument ? KG_CUDA_PARTIAL_BYTES : fold->is_float_sum ? 2 * bytes : bytes;
}

void kg_cuda_reduce_shape(const struct kg_cuda_reduce_plan *plan, int64_t *wide, int64_t *groups)
{
    int64_t width = product(plan->nest, plan->run, plan->last), count = count_of(plan);
    int64_t most = kg_power_of_two(kg_ceil_div(width, plan->vector));
    *wide = most < WARP ? most : WARP;
    *groups = plan->threads / *wide;
    while (*groups > 1 && *groups / 2 * plan->unroll >= count) {
        *groups /= 2;
        *wide *= *wide < most ? 2 : 1;
    }
    // What groups find has to be folded: none where there is enough without.
    int64_t threads = product(plan->nest, 0, plan->run - 1) * most;
    while (*groups > 1 && *wide < most && threads >= PLENTY) {
        *groups /= 2;
        *wide *= 2;
    }
}

void kg_cuda_reduce_count(const struct kg_cuda_reduce_plan *plan, int64_t *blocks, int64_t *parts)
{
    if (!plan->column) {
        *blocks = outputs_of(plan);
        *parts = kg_ceil_div(count_of(plan), (int64_t)plan->threads * plan->vector * plan->unroll);
        return;
    }
    int64_t wide, groups;
    kg_cuda_reduce_shape(plan, &wide, &groups);
    *blocks = product(plan->nest, 0, plan->run - 1) *
              kg_ceil_div(product(plan->nest, plan->run, plan->last), wide * plan->vector);
    *parts = kg_ceil_div(count_of(plan), groups * plan->unroll);
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
    if (plan.unroll > 1 && plan.unroll / 2 * (plan.column ? 1 : plan.vector) >= count_of(&plan))
        return refuse(reason, "a thread would take more at once than is reduced");
    int64_t most = plan.registers > 0 ? plan.registers : facts->unit.registers / plan.threads;
    most = most < facts->unit.thread_registers ? most : facts->unit.thread_registers;
    if ((totals + (int64_t)together * plan.vector * plan.unroll) / 4 + 16 > most)
        return refuse(reason, "holds more than a thread has registers");
    if (plan.registers * plan.threads > facts->unit.registers)
        return refuse(reason, "a block would need more registers than there are");
    return true;
}

// The same for a row: by as many threads as it takes for each to load all it has at once.
static void guess_row_cluster(const struct kg_match *match, int64_t most, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_config tried = *config;
    struct kg_text reason = {0};
    struct kg_cuda_reduce_plan plan = plan_of(match);
    configure(&plan, config);
    int64_t vectors = kg_ceil_div(kg_ceil_div(count_of(&plan), plan.vector), most);
    tried.value[CLUSTER] = 1;
    tried.value[SPLIT] = most;
    tried.value[THREADS] =
        vectors <= CLUSTER_THREADS * CLUSTER_UNROLL ? CLUSTER_THREADS : LARGEST_BLOCK;
    tried.value[UNROLL] = kg_power_of_two(kg_ceil_div(vectors, tried.value[THREADS]));
    if (outputs_of(&plan) * most <= facts->units && valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Where one cluster is enough for an output, or for a tile of columns.
static void guess_cluster(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    struct kg_config tried = *config;
    struct kg_text reason = {0};
    int widest, together;
    int64_t blocks, parts, most = kg_cuda_rowwise_blocks(facts);
    configure(&plan, config);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    int64_t bytes = count_of(&plan) * together;
    if (blocks > 0)
        bytes = bytes * outputs_of(&plan) / blocks;
    if (plan.split == 1 || most == 1 || bytes > (plan.column ? CLUSTERED : CLUSTERED_ROW))
        return;
    if (!plan.column) {
        guess_row_cluster(match, most, config);
        return;
    }
    tried.value[CLUSTER] = 1;
    tried.value[SPLIT] = most;
    while (tried.value[SPLIT] > 2 && tried.value[SPLIT] > parts)
        tried.value[SPLIT] /= 2;
    if (valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Rows that are read in less time than a launch takes: threads do what they do side by side, not
// one after the other. One block is enough for the shortest, of others there is one for each unit.
static void guess_short(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    struct kg_config tried = *config;
    struct kg_text reason = {0};
    configure(&plan, config);
    int64_t vectors = kg_ceil_div(count_of(&plan), plan.vector), least = outputs_of(&plan);
    if (vectors <= ONE_BLOCK) {
        tried.value[UNROLL] = vectors > WARP ? 2 : 1;
        int64_t threads = kg_power_of_two(kg_ceil_div(vectors, tried.value[UNROLL]));
        threads = threads > WARP && threads < 4 * WARP ? 4 * WARP : threads;
        tried.value[THREADS] = threads < WARP            ? WARP
                               : threads > LARGEST_BLOCK ? LARGEST_BLOCK
                                                         : threads;
        if (vectors > 2 * LARGEST_BLOCK)
            tried.value[UNROLL] = 4;
    } else {
        int64_t parts = kg_ceil_div(vectors, plan.threads);
        while (tried.value[UNROLL] > 1 &&
               kg_ceil_div(parts, tried.value[UNROLL] / 2) * least <= facts->units)
            tried.value[UNROLL] /= 2;
    }
    if (valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Where rates are not known.
static void guess_plainly(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan = plan_of(match);
    struct kg_text reason = {0};
    enum { MOST_PLACES = 4 };
    int widest, together;
    int64_t blocks, parts, units = facts->units > 0 ? facts->units : 1;
    *config = (struct kg_config){{prefers_columns(&plan), USUAL_THREADS, 1, 1, 1, 0, 0}};
    configure(&plan, config);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    int64_t length = product(plan.nest, plan.run, plan.last);
    if (widest > 0)
        config->value[VECTOR] = ACCESS / widest;
    while (config->value[VECTOR] > 1 && length % config->value[VECTOR] != 0)
        config->value[VECTOR] /= 2;
    // Measured on an H100: totals of places want room; rows of two tensors are twice as long.
    while (plan.column && plan.fold.is_argument && config->value[VECTOR] > MOST_PLACES)
        config->value[VECTOR] /= 2;
    int loaded = !plan.column && together > widest ? 2 * LOADED : LOADED;
    while (config->value[UNROLL] < 8 &&
           2 * config->value[UNROLL] * config->value[VECTOR] * together <= loaded)
        config->value[UNROLL] *= 2;
    while (config->value[UNROLL] > 1 && !valid(match, config, &reason))
        config->value[UNROLL] /= 2;
    while (config->value[VECTOR] > 1 && !valid(match, config, &reason))
        config->value[VECTOR] /= 2;
    if (!plan.column)
        guess_short(match, config);
    configure(&plan, config);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    for (int i = 0; i < SPLITS && blocks > 0; i++)
        if (splits[i] * blocks <= BLOCKS_PER_UNIT * units && splits[i] <= parts)
            config->value[SPLIT] = splits[i];
    // No part waits for another one where all units together have a block for each.
    for (int i = SPLITS - 1; i >= 0 && !plan.column && blocks * parts <= units; i--)
        if (splits[i] * blocks <= units && splits[i] >= parts)
            config->value[SPLIT] = splits[i];
    guess_cluster(match, config);
    kg_text_free(&reason);
}

// Blocks of all sizes, and outputs that more or fewer of them share. Threads load 64 elements at
// once: each takes a register when it is converted. With 128, sums of f16 took 7 to 15 % longer on
// an H200, since too few blocks were resident; with 32, up to 8 % longer. Blocks that share an
// output and load fewer than four times are over before their loads overlap.
static void try_blocks(struct kg_cuda_rule *rule, struct kg_config config)
{
    enum { LEAST_TRIED = 128, MOST_TRIED = 512, MOST_ELEMENTS = 64, MOST_UNROLL = 16 };
    enum { LEAST_TURNS = 4 };
    struct kg_cuda_reduce_plan plan;
    int64_t blocks, parts;
    int64_t *value = config.value;
    const int64_t fitting = MOST_ELEMENTS / value[VECTOR];
    const int64_t unroll = fitting < MOST_UNROLL ? fitting : MOST_UNROLL;
    for (value[THREADS] = LEAST_TRIED; value[THREADS] <= MOST_TRIED; value[THREADS] *= 2)
        for (int i = 0; i < SPLITS; i++) {
            bool fits = false;
            value[SPLIT] = splits[i];
            for (value[UNROLL] = unroll; value[UNROLL] > 0 && !fits; value[UNROLL] /= 2) {
                kg_cuda_reduce_plan_make(rule->match, &config, &plan);
                kg_cuda_reduce_count(&plan, &blocks, &parts);
                if (value[SPLIT] == 1 || parts >= LEAST_TURNS * value[SPLIT])
                    fits = kg_cuda_rule_try(rule, &config);
            }
        }
}

// Along columns, vectors as wide as an access, or half as wide, where totals want room; of elements
// that no vector fits, two at a time.
static void guess(const struct kg_match *match, struct kg_config *config)
{
    enum { LAUNCHES = 2 };
    struct kg_cuda_rule rule = {match, {{0}}, 0};
    struct kg_cuda_reduce_plan plan;
    int widest, together;
    guess_plainly(match, config);
    kg_cuda_rule_try(&rule, config);
    // What takes little longer than a launch is too short for what is expected to tell configs
    // apart.
    if (!config->value[COLUMN] || rule.seconds < LAUNCHES * kg_cuda_reduce_times.launch)
        return;
    // Of blocks that share an output, clusters were behind others in all races that long.
    rule.seconds = config->value[CLUSTER] ? 0 : rule.seconds;
    kg_cuda_reduce_plan_make(match, config, &plan);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    int64_t length = product(plan.nest, plan.run, plan.last), vector = ACCESS;
    while (vector > 1 && (vector * widest > ACCESS || length % vector != 0))
        vector /= 2;
    struct kg_config tried = *config;
    tried.value[CLUSTER] = 0;
    for (tried.value[VECTOR] = vector > 1 ? vector : 2;
         tried.value[VECTOR] > 0 && tried.value[VECTOR] * 2 >= vector; tried.value[VECTOR] /= 2)
        try_blocks(&rule, tried);
    if (rule.seconds > 0)
        *config = rule.best;
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
    int64_t outputs = outputs_of(&plan), side = kg_power_of_two(outputs);
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

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    return kg_cuda_memory_expected(kg_cuda_reduce_work, &kg_cuda_reduce_times, match, config);
}

const struct kg_family kg_cuda_reduce = {
    .name = "reduce",
    .summary = "reductions over any axes, by as many blocks as there is room for",
    .match = match_reduction,
    .advised = advised,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = expected,
    .orders_configs = true,
    .emit = emit,
    .grids = grids,
};
