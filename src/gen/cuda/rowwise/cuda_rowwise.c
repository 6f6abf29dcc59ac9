// Work on rows on CUDA: softmax, norms, losses and reductions by row.
//
// A row belongs to some lanes of a warp, to a block, or to a cluster of blocks. It is read from
// memory once, all of it before anything is computed, and stays in registers from pass to pass;
// what a thread cannot hold it reads again. What one pass leaves for another is held as computed,
// or computed again. Of long rows every thread holds a part in shared memory besides, in places of
// its own: a row that one block can hold waits for no other block. Sums go in one order whatever
// the grid: results are the same in every run.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/bound.h"
#include "gen/shared/contract_operands.h"

enum { THREADS, VECTOR, HOLD, KEEP, CLUSTER, SHARED, REGISTERS };

enum {
    ACCESS = 16,
    WARP = 32,
    LEAST_BLOCK = 128,
    LEAST_SHARED = 256,
    MOST_SHARED = 512,
    MOST_HELD = 8,
    MOST_BLOCKS = 8, // of a cluster
    LEAST_SHARE = 4, // elements of a thread there
    STORED_STEP = 4, // vectors of a thread in shared memory: a multiple of it
    MOST_STORED = 12,
    FIXED_SHARED = 4096, // bytes of shared memory, at most, for folding
    SPARE_REGISTERS = 24 // of a thread, beside what it holds
};

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

int kg_cuda_rowwise_blocks(const struct kg_device_facts *facts)
{
    int most = facts->unit.cluster < MOST_BLOCKS ? facts->unit.cluster : MOST_BLOCKS;
    return most > 1 ? most : 1;
}

static bool has_clusters(const struct kg_device_facts *facts)
{
    return kg_cuda_rowwise_blocks(facts) > 1;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_rowwise_plan *plan = match->analysis;
    bool kept = false;
    for (int i = 0; i < group->count; i++)
        kept |= plan->kept[i];
    *space = (struct kg_space){0};
    kg_space_add(space, "threads", 8, (int64_t[]){128, 256, 32, 64, 512, 1024, 16, 8});
    kg_space_add(space, "vector", 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "hold", 6, (int64_t[]){1, 2, 4, 8, 16, 0});
    kg_space_add(space, "keep", kept ? 2 : 1, (int64_t[]){0, 1});
    kg_space_add(space, "cluster", has_clusters(facts) ? 4 : 1, (int64_t[]){1, 2, 4, 8});
    kg_space_add(space, "shared", 4, (int64_t[]){0, 4, 8, 12});
    kg_cuda_space_registers(space);
}

void kg_cuda_rowwise_measure(const struct kg_rowwise_plan *plan, int64_t *rows, int64_t *columns,
                             int64_t *length)
{
    *rows = *columns = *length = 1;
    for (int axis = 0; axis <= plan->last; axis++) {
        *(axis < plan->rows ? rows : columns) *= plan->shape->extent[axis];
        *length *= axis >= plan->run ? plan->shape->extent[axis] : 1;
    }
}

// Bytes of the widest element that lies along the row.
static int widest_element(const struct kg_rowwise_plan *plan)
{
    int widest = 1;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a < nest->access_count && plan->role[i] != KG_ROWWISE_SCALAR; a++) {
            const struct kg_tensor *tensor = nest->accesses[a].tensor;
            int bytes = kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8;
            if (kg_group_maker(plan->group, tensor) < 0 && bytes > widest && tensor->rank > 0)
                widest = bytes;
        }
    }
    return widest;
}

// Such long rows, and so few, that most units would have none. Where later passes read what is made
// from each element, a statement at a time means to store it in between: three times the bytes.
static bool is_cut(const struct kg_rowwise_plan *plan, const struct kg_device_facts *facts)
{
    enum { DEARER = 3 };
    int64_t rows, columns, length, blocks = kg_cuda_rowwise_blocks(facts);
    bool kept = false;
    kg_cuda_rowwise_measure(plan, &rows, &columns, &length);
    for (int i = 0; i < plan->group->count; i++)
        kept |= plan->kept[i];
    return rows * blocks * (kept ? DEARER : 1) < facts->units &&
           columns * widest_element(plan) > blocks * KG_CUDA_ROWWISE_HELD;
}

static const void *match_rows(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct kg_rowwise_plan *plan = KG_NEW(arena, struct kg_rowwise_plan);
    bool fits = plan && kg_cuda_fits(group, reason) && kg_rowwise_plan_make(group, plan, reason);
    return fits ? plan : NULL;
}

static bool advised(const struct kg_match *match, struct kg_text *reason)
{
    if (kg_contract_is_in(&match->group))
        return refuse(reason, "a product of matrices is among it");
    return !is_cut(match->analysis, match->facts) ||
           refuse(reason, "fewer rows than units, and long ones");
}

void kg_cuda_rowwise_plan_make(const struct kg_match *match, const struct kg_config *config,
                               const char *entry, struct kg_cuda_rowwise_plan *plan)
{
    *plan = (struct kg_cuda_rowwise_plan){
        .row = *(const struct kg_rowwise_plan *)match->analysis,
        .threads = (int)config->value[THREADS],
        .vector = (int)config->value[VECTOR],
        .hold = (int)config->value[HOLD],
        .keep = config->value[KEEP] != 0,
        .cluster = (int)config->value[CLUSTER],
        .shared = (int)config->value[SHARED],
        .registers = (int)config->value[REGISTERS],
    };
    plan->row.entry = entry;
    plan->blocks = plan->threads <= WARP ? LEAST_BLOCK / plan->threads : 1;
}

// 32-bit registers of a thread for what it holds.
static int64_t held_registers(const struct kg_cuda_rowwise_plan *plan)
{
    const struct kg_rowwise_plan *row = &plan->row;
    struct kg_cuda_streams streams;
    int64_t bytes = 0;
    kg_cuda_streams_make(row, &streams);
    for (int i = 0; i < streams.count; i++)
        bytes += streams.items[i].held ? kg_cuda_stream_bytes(plan, &streams.items[i]) : 0;
    for (int i = 0; i < row->group->count && plan->keep; i++)
        if (row->kept[i])
            bytes +=
                plan->vector * (kg_group_nest(row->group, i)->body->type == KG_TYPE_F32 ? 4 : 8);
    return bytes * plan->hold / 4;
}

// Bytes of shared memory for what the threads of a block hold there; 0: they cannot.
static int64_t stored_bytes(const struct kg_cuda_rowwise_plan *plan)
{
    enum { LEAST_COPY = 4 };
    struct kg_cuda_streams streams;
    int64_t bytes = 0;
    kg_cuda_streams_make(&plan->row, &streams);
    for (int i = 0; i < streams.count; i++) {
        int vector = kg_cuda_stream_bytes(plan, &streams.items[i]);
        if (!streams.items[i].held)
            continue;
        if (vector < LEAST_COPY || vector > ACCESS)
            return 0;
        bytes += (int64_t)plan->shared * plan->threads * vector;
    }
    return bytes;
}

// `vectors`: how many a thread has of the row.
static bool is_stored(const struct kg_cuda_rowwise_plan *plan, const struct kg_device_facts *facts,
                      int64_t length, int64_t vectors, struct kg_text *reason)
{
    int64_t bytes = stored_bytes(plan);
    if (plan->threads < LEAST_SHARED)
        return refuse(reason, "blocks that hold rows in shared memory have more threads");
    if (plan->keep)
        return refuse(reason, "what is computed has no room in shared memory");
    if (bytes == 0 || kg_cuda_rowwise_alignment(plan, length) == 0)
        return refuse(reason, "vectors of 4 to 16 bytes are held in shared memory");
    if (plan->hold + plan->shared < vectors)
        return refuse(reason, "the row is too long to be held");
    if (plan->hold + plan->shared - STORED_STEP >= vectors)
        return refuse(reason, "holds more than a thread has of the row");
    if (bytes + FIXED_SHARED > facts->shared_bytes)
        return refuse(reason, "shared memory has no room for what a block holds");
    return true;
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_rowwise_plan plan;
    int64_t rows, columns, length;
    kg_cuda_rowwise_plan_make(match, config, "", &plan);
    kg_cuda_rowwise_measure(&plan.row, &rows, &columns, &length);
    int64_t threads = config->value[THREADS], registers = config->value[REGISTERS];
    int64_t vectors =
        kg_ceil_div(columns, threads * config->value[CLUSTER] * config->value[VECTOR]);
    if (config->value[VECTOR] > 1 && config->value[VECTOR] * widest_element(&plan.row) > 2 * ACCESS)
        return refuse(reason, "a vector is wider than two loads");
    if (threads > 8 && threads / 2 >= columns)
        return refuse(reason, "more threads than the row has elements");
    if (config->value[CLUSTER] > 1 && threads < LEAST_SHARED)
        return refuse(reason, "blocks of a cluster have more threads");
    if (config->value[CLUSTER] > 1 && threads * config->value[CLUSTER] * LEAST_SHARE > columns)
        return refuse(reason, "the row is too short for a cluster");
    if (config->value[HOLD] > 1 && config->value[HOLD] / 2 >= vectors)
        return refuse(reason, "holds more than a thread has of the row");
    int64_t most =
        registers > 0 ? registers : facts->unit.registers / (threads < 128 ? 128 : threads);
    if (most > facts->unit.thread_registers)
        most = facts->unit.thread_registers;
    if (held_registers(&plan) + SPARE_REGISTERS > most)
        return refuse(reason, "holds more than a thread has registers");
    if (registers * threads > facts->unit.registers)
        return refuse(reason, "a block would need more registers than there are");
    return plan.shared == 0 || is_stored(&plan, facts, length, vectors, reason);
}

static bool is_costly(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->kept[i] && kg_group_nest(plan->group, i)->transcendentals > 0.0)
            return true;
    return false;
}

// What every row reads again, as it reads the factors of a norm.
static bool shares_columns(const struct kg_rowwise_plan *plan)
{
    struct kg_cuda_streams streams;
    kg_cuda_streams_make(plan, &streams);
    for (int i = 0; i < streams.count; i++)
        if (!streams.items[i].held)
            return true;
    return false;
}

// Has a row's threads hold all of it, `stored` vectors of each in shared memory at most; false:
// they cannot.
static bool hold_all(const struct kg_match *match, int64_t columns, int64_t stored,
                     struct kg_config *config)
{
    const int64_t span = config->value[THREADS] * config->value[CLUSTER] * config->value[VECTOR];
    const int64_t vectors = kg_ceil_div(columns, span);
    struct kg_text reason = {0};
    bool done = false;
    for (int64_t hold = MOST_HELD; hold > 0 && !done; hold /= 2) {
        int64_t left = vectors > hold ? vectors - hold : 0;
        config->value[HOLD] = hold;
        config->value[SHARED] = kg_ceil_div(left, STORED_STEP) * STORED_STEP;
        done = config->value[SHARED] <= stored && (hold == 1 || hold / 2 < vectors) &&
               valid(match, config, &reason);
    }
    kg_text_free(&reason);
    return done;
}

// A row that a block has no registers for: in shared memory too, and by the fewest blocks that hold
// all of it, because they wait for each other; by more where there are few rows. What all rows
// share stays near the units if nothing else is there: then a block of its own holds the row, or
// more blocks do, in registers.
static void guess_long(const struct kg_match *match, int64_t rows, int64_t columns,
                       struct kg_config *config)
{
    const struct kg_rowwise_plan *plan = match->analysis;
    const struct kg_device_facts *facts = match->facts;
    const int most = kg_cuda_rowwise_blocks(facts);
    const int64_t stored = shares_columns(plan) ? 0 : MOST_STORED;
    config->value[KEEP] = 0;
    config->value[CLUSTER] = 1;
    config->value[THREADS] = facts->unit.block_threads;
    if (stored == 0 && rows * 2 > facts->units && hold_all(match, columns, stored, config))
        return;
    for (int64_t threads = MOST_SHARED; threads <= facts->unit.block_threads; threads *= 2)
        for (int64_t cluster = 1; cluster <= most; cluster *= 2) {
            config->value[THREADS] = threads;
            config->value[CLUSTER] = cluster;
            if ((cluster == most || rows * cluster * 2 > facts->units) &&
                hold_all(match, columns, stored, config))
                return;
        }
    config->value[HOLD] = MOST_HELD;
    config->value[SHARED] = 0;
}

// Where rates are not known.
static void guess_plainly(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    const struct kg_rowwise_plan *plan = match->analysis;
    struct kg_text reason = {0};
    int64_t rows, columns, length, least = 8;
    kg_cuda_rowwise_measure(plan, &rows, &columns, &length);
    *config = (struct kg_config){{8, ACCESS / widest_element(plan), 1, 0, 1, 0, 0}};
    while (config->value[VECTOR] > 1 && length % config->value[VECTOR] != 0)
        config->value[VECTOR] /= 2;
    // Two vectors a thread of a row's block, then up to eight: measured on an H100.
    int64_t vector = config->value[VECTOR];
    while (config->value[THREADS] < MOST_SHARED && config->value[THREADS] * vector * 2 < columns)
        config->value[THREADS] *= 2;
    // Few rows are a matter of latency: then a whole warp, one vector each.
    while (config->value[THREADS] < WARP && config->value[THREADS] * vector < columns &&
           rows * config->value[THREADS] * WARP <=
               (int64_t)facts->units * facts->unit.block_threads)
        config->value[THREADS] *= 2;
    while (config->value[HOLD] < MOST_HELD &&
           config->value[HOLD] * config->value[THREADS] * vector < columns)
        config->value[HOLD] *= 2;
    config->value[KEEP] = is_costly(plan) && config->value[HOLD] <= 2;
    if (MOST_SHARED * vector * MOST_HELD < columns)
        guess_long(match, rows, columns, config);
    if (!valid(match, config, &reason))
        config->value[KEEP] = 0;
    while (config->value[HOLD] > 1 && !valid(match, config, &reason))
        config->value[HOLD] /= 2;
    while (config->value[THREADS] > least && !valid(match, config, &reason))
        config->value[THREADS] /= 2;
    kg_text_free(&reason);
}

// All ways of holding a row by so many threads of so many blocks. Threads that hold more than 128
// bytes each are too few to keep memory busy: 256 took 8 to 17 % longer for norms of rows of 5120
// to 13944 on an H200.
static void try_shares(struct kg_cuda_rule *rule, struct kg_config config, int64_t columns,
                       int64_t bytes, int64_t stored, bool kept)
{
    enum { MOST_TRIED = 16, MOST_BYTES = 128 };
    int64_t *value = config.value, span = value[THREADS] * value[CLUSTER] * value[VECTOR];
    int64_t vectors = kg_ceil_div(columns, span);
    for (value[HOLD] = MOST_TRIED; value[HOLD] > 0; value[HOLD] /= 2) {
        int64_t left = vectors > value[HOLD] ? vectors - value[HOLD] : 0;
        value[SHARED] = kg_ceil_div(left, STORED_STEP) * STORED_STEP;
        if (value[SHARED] > stored || value[HOLD] * value[VECTOR] * bytes > MOST_BYTES)
            continue;
        for (value[KEEP] = 0; value[KEEP] <= kept; value[KEEP]++)
            kg_cuda_rule_try(rule, &config);
    }
}

// Of all ways of holding a whole row the one that is expected to be fastest. What all rows share
// stays near the units only if rows do not take the shared memory.
static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    const struct kg_rowwise_plan *plan = match->analysis;
    int64_t rows, columns, length;
    struct kg_cuda_rule rule = {.match = match};
    guess_plainly(match, config);

    kg_cuda_rowwise_measure(plan, &rows, &columns, &length);
    kg_cuda_rule_try(&rule, config);
    const int64_t stored = shares_columns(plan) ? 0 : MOST_STORED;
    struct kg_config tried = {{0}};
    tried.value[VECTOR] = config->value[VECTOR];
    for (int64_t threads = 8; threads <= facts->unit.block_threads; threads *= 2)
        for (int64_t cluster = 1; cluster <= kg_cuda_rowwise_blocks(facts); cluster *= 2) {
            tried.value[THREADS] = threads;
            tried.value[CLUSTER] = cluster;
            try_shares(&rule, tried, columns, widest_element(plan), stored, is_costly(plan));
        }
    if (rule.seconds > 0)
        *config = rule.best;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_cuda_rowwise_plan plan;
    struct kg_space values;
    kg_cuda_rowwise_plan_make(match, config, entry, &plan);
    space(match, &values);
    kg_cuda_opening(source, group, "rowwise", config, &values);
    kg_cuda_rowwise_emit(source, &plan);
    return !source->failed;
}

static void grids(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    enum { MOST_CLUSTERS = 1 << 27 };
    struct kg_cuda_rowwise_plan plan;
    int64_t rows, columns, length;
    kg_cuda_rowwise_plan_make(match, config, "", &plan);
    kg_cuda_rowwise_measure(&plan.row, &rows, &columns, &length);
    int64_t blocks = kg_ceil_div(rows, plan.blocks);
    bool all_rows = blocks <= MOST_CLUSTERS;
    blocks = (blocks < MOST_CLUSTERS ? blocks : MOST_CLUSTERS) * plan.cluster;
    const struct kg_grid none = {.threads = {1, 1, 1}};
    const struct kg_grid grid = {
        .blocks = {blocks, 1, 1},
        .threads = {plan.threads, plan.blocks, 1},
        .cluster = plan.cluster,
    };
    int alignment = kg_cuda_rowwise_alignment(&plan, length);
    int64_t span = (int64_t)plan.threads * plan.cluster * plan.vector;
    bool held = all_rows && columns <= span * (plan.hold + plan.shared);
    int function = alignment == 0 ? 2 : held ? 0 : 1;
    *grids = (struct kg_grids){.count = 3, .alignment = alignment};
    for (int i = 0; i < grids->count; i++) {
        grids->grids[i] = i == function ? grid : none;
        grids->unaligned[i] = i == 2 ? grid : none;
    }
    if (function == 0 && columns > span * plan.hold)
        grids->grids[0].shared = (int)stored_bytes(&plan);
    kg_cuda_start_early(group, facts, grids);
}

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    // Columns that are read as rows, and products of matrices, were not measured: the families that
    // are made for them have them, unless they are expected to take far longer.
    double unsure = kg_cuda_rowwise_reads_apart(match->analysis) ? 1.5 : 1;
    unsure = kg_contract_is_in(&match->group) ? 4 : unsure;
    return unsure *
           kg_cuda_memory_expected(kg_cuda_rowwise_work, &kg_cuda_rowwise_times, match, config);
}

const struct kg_family kg_cuda_rowwise = {
    .name = "rowwise",
    .summary = "softmax, norms, losses and reductions by row, which stays in registers",
    .match = match_rows,
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
