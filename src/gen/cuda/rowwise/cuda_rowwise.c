// Work on rows on CUDA: softmax, norms, losses and reductions by row.
//
// A row belongs to some lanes of a warp, to a block, or to a cluster of blocks. It is read from
// memory once, all of it before anything is computed, and stays in registers from pass to pass;
// what a thread cannot hold it reads again. What one pass leaves for another is held as computed,
// or computed again. Of long rows every thread holds a part in shared memory besides, in places of
// its own: a row that one block can hold waits for no other block. Sums go in one order whatever
// the grid: results are the same in every run. What all rows share, such as the factors of a norm,
// comes from the L1 for short rows; a cluster may copy its columns of it to shared memory while the
// row is on its way, and use it for two rows, because the L2 gives no more than so many bytes.

#include "gen/cuda/rowwise/cuda_rowwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/bound.h"
#include "gen/shared/contract_operands.h"

enum {
    ACCESS = 16,
    WARP = 32,
    LEAST_BLOCK = 128,
    LEAST_SHARED = 256,
    MOST_BLOCKS = 8,     // of a cluster
    LEAST_SHARE = 4,     // elements of a thread there
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
    kg_space_add(space, "threads", KG_CHANGE_STAGES, 8,
                 (int64_t[]){128, 256, 32, 64, 512, 1024, 16, 8});
    kg_space_add(space, "vector", KG_CHANGE_ACCESS, 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "hold", KG_CHANGE_REUSE, 6, (int64_t[]){1, 2, 4, 8, 16, 0});
    kg_space_add(space, "keep", KG_CHANGE_REUSE, kept ? 2 : 1, (int64_t[]){0, 1});
    kg_space_add(space, "cluster", KG_CHANGE_BLOCK, has_clusters(facts) ? 4 : 1,
                 (int64_t[]){1, 2, 4, 8});
    kg_space_add(space, "shared", KG_CHANGE_REUSE, 4, (int64_t[]){0, 4, 8, 12});
    kg_space_add_optional(space, "staged", KG_CHANGE_STAGES,
                          has_clusters(facts) && kg_cuda_rowwise_shares(plan) ? 3 : 1,
                          (int64_t[]){0, 1, 2});
    kg_space_add_optional(space, "evict", KG_CHANGE_ACCESS, 3, (int64_t[]){0, 1, 2});
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

int kg_cuda_rowwise_widest(const struct kg_rowwise_plan *plan)
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
           columns * kg_cuda_rowwise_widest(plan) > blocks * KG_CUDA_ROWWISE_HELD;
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
        .threads = (int)config->value[ROW_THREADS],
        .vector = (int)config->value[ROW_VECTOR],
        .hold = (int)config->value[ROW_HOLD],
        .keep = config->value[ROW_KEEP] != 0,
        .cluster = (int)config->value[ROW_CLUSTER],
        .shared = (int)config->value[ROW_SHARED],
        .staged = (int)config->value[ROW_STAGED],
        .evict = (enum kg_cuda_evict)config->value[ROW_EVICT],
        .registers = (int)config->value[ROW_REGISTERS],
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
    return bytes * plan->hold * (plan->staged > 1 ? plan->staged : 1) / 4;
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

// Bytes of shared memory for what all rows share.
static int64_t staged_bytes(const struct kg_cuda_rowwise_plan *plan)
{
    struct kg_cuda_streams streams;
    int64_t bytes = 0;
    kg_cuda_streams_make(&plan->row, &streams);
    for (int i = 0; i < streams.count; i++)
        if (kg_cuda_stream_is_staged(plan, &streams.items[i]))
            bytes +=
                (int64_t)plan->hold * plan->threads * kg_cuda_stream_bytes(plan, &streams.items[i]);
    return bytes;
}

bool kg_cuda_rowwise_finds_places(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] == KG_ROWWISE_REDUCE &&
            kg_fold_of(kg_group_nest(plan->group, i)).is_argument)
            return true;
    return false;
}

// `vectors`: how many a thread has of the row.
static bool is_staged(const struct kg_cuda_rowwise_plan *plan, const struct kg_device_facts *facts,
                      int64_t rows, int64_t length, int64_t vectors, struct kg_text *reason)
{
    struct kg_cuda_streams streams;
    kg_cuda_streams_make(&plan->row, &streams);
    if (plan->cluster == 1 || plan->shared > 0 || plan->keep)
        return refuse(reason, "what rows share is copied for clusters that hold rows in registers");
    if (plan->row.run > plan->row.rows || kg_cuda_rowwise_alignment(plan, length) == 0)
        return refuse(reason, "what rows share is copied in pieces of 16 bytes, side by side");
    for (int i = 0; i < streams.count; i++)
        if (kg_cuda_stream_is_staged(plan, &streams.items[i]) &&
            kg_cuda_stream_bytes(plan, &streams.items[i]) % ACCESS != 0)
            return refuse(reason, "what rows share is copied in pieces of 16 bytes, side by side");
    if (plan->hold < vectors)
        return refuse(reason, "the row is too long to be held");
    if (plan->staged > 1 && (rows < plan->staged || kg_cuda_rowwise_finds_places(&plan->row)))
        return refuse(reason, "several rows are worked on at once if there are, without places");
    if (staged_bytes(plan) + 4 * FIXED_SHARED > facts->shared_bytes)
        return refuse(reason, "shared memory has no room for what a block holds");
    return true;
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
    if (plan->hold + plan->shared - KG_CUDA_ROWWISE_STORED_STEP >= vectors)
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
    int64_t threads = config->value[ROW_THREADS], registers = config->value[ROW_REGISTERS];
    int64_t vectors =
        kg_ceil_div(columns, threads * config->value[ROW_CLUSTER] * config->value[ROW_VECTOR]);
    if (config->value[ROW_VECTOR] > 1 &&
        config->value[ROW_VECTOR] * kg_cuda_rowwise_widest(&plan.row) > 2 * ACCESS)
        return refuse(reason, "a vector is wider than two loads");
    if (threads > 8 && threads / 2 >= columns)
        return refuse(reason, "more threads than the row has elements");
    if (config->value[ROW_CLUSTER] > 1 && threads < LEAST_SHARED)
        return refuse(reason, "blocks of a cluster have more threads");
    if (config->value[ROW_CLUSTER] > 1 &&
        threads * config->value[ROW_CLUSTER] * LEAST_SHARE > columns)
        return refuse(reason, "the row is too short for a cluster");
    if (config->value[ROW_HOLD] > 1 && config->value[ROW_HOLD] / 2 >= vectors)
        return refuse(reason, "holds more than a thread has of the row");
    int64_t most =
        registers > 0 ? registers : facts->unit.registers / (threads < 128 ? 128 : threads);
    if (most > facts->unit.thread_registers)
        most = facts->unit.thread_registers;
    if (held_registers(&plan) + SPARE_REGISTERS > most)
        return refuse(reason, "holds more than a thread has registers");
    if (registers * threads > facts->unit.registers)
        return refuse(reason, "a block would need more registers than there are");
    if (plan.evict == KG_CUDA_EVICT_FIRST && plan.row.passes > 1 &&
        plan.hold + plan.shared < vectors)
        return refuse(reason, "the row is read again, and should not be evicted");
    if (plan.staged > 0 && !is_staged(&plan, facts, rows, length, vectors, reason))
        return false;
    return plan.shared == 0 || is_stored(&plan, facts, length, vectors, reason);
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
    if (function == 0 && plan.staged > 0)
        grids->grids[0].shared = (int)staged_bytes(&plan);
    if (function == 0 && plan.staged > 1)
        grids->grids[0].blocks[0] = kg_ceil_div(rows, plan.staged) * plan.cluster;
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
    .guess = kg_cuda_rowwise_guess,
    .bound = kg_group_bound,
    .expected = expected,
    .orders_configs = true,
    .emit = emit,
    .grids = grids,
};
