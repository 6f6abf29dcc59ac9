// Running totals on CUDA.
//
// Along the last axis a row belongs to some lanes of a warp or to a block. It goes through
// registers in tiles, read and written once: each thread adds up its vectors, the threads find out
// what stands before each of them, and the total so far is carried to the next tile. The loads of
// the next tile are on their way while this one is worked on. Rows may begin and end within vectors
// if those of all tensors do so at the same place.
//
// Along other axes each thread has a vector of columns, and the threads of a block are beside each
// other and below each other: a thread adds up some rows of its columns, one after the other, and
// those below each other find out what stands before them. Tiles follow each other as along rows.
//
// Where there are too few rows or columns for the device, they are cut into chunks: one function
// adds up each chunk, a second one begins each chunk with the total of those before it.
//
// Sums are carried with what rounding takes from them, so long rows stay accurate; everything is
// folded in a fixed order, so results are the same in every run.

#include "gen/cuda/scan/cuda_scan.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/bound.h"

enum { THREADS, VECTOR, HOLD, CLUSTER, CHUNKED, REGISTERS, ROWS };

enum { ACCESS = 16, WARP = 32, LEAST_BLOCK = 128, STATIC_SHARED = 48 << 10 };

static const void *match_scan(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct kg_scan_plan *plan = KG_NEW(arena, struct kg_scan_plan);
    bool fits = plan && kg_cuda_fits(group, reason) && kg_scan_plan_make(group, plan, reason);
    return fits ? plan : NULL;
}

void kg_cuda_scan_plan_make(const struct kg_match *match, const struct kg_config *config,
                            const char *entry, struct kg_cuda_scan_plan *plan)
{
    *plan = (struct kg_cuda_scan_plan){
        .scan = *(const struct kg_scan_plan *)match->analysis,
        .threads = (int)config->value[THREADS],
        .vector = (int)config->value[VECTOR],
        .hold = (int)config->value[HOLD],
        .registers = (int)config->value[REGISTERS],
        .blocks = 1,
        .cluster = (int)config->value[CLUSTER],
    };
    plan->scan.chunk = config->value[CHUNKED];
    plan->shifts = plan->vector > 1 && plan->scan.chunk == 0 && kg_cuda_scan_may_shift(&plan->scan);
    plan->scan.entry = entry;
    plan->rows = plan->scan.column && config->value[ROWS] > 0 ? (int)config->value[ROWS] : 1;
    if (!plan->scan.column && plan->threads <= WARP && plan->scan.chunk == 0)
        plan->blocks = LEAST_BLOCK / plan->threads;
}

static bool has_clusters(const struct kg_device_facts *facts)
{
    return facts->unit.cluster > 1;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    const struct kg_device_facts *facts = match->facts;
    const struct kg_scan_plan *plan = match->analysis;
    bool clusters = !plan->column && has_clusters(facts);
    *space = (struct kg_space){0};
    if (plan->column)
        kg_space_add(space, "threads", KG_CHANGE_STAGES, 4, (int64_t[]){128, 64, 256, 512});
    else
        kg_space_add(space, "threads", KG_CHANGE_STAGES, 8,
                     (int64_t[]){256, 512, 128, 64, 1024, 32, 16, 8});
    kg_space_add(space, "vector", KG_CHANGE_ACCESS, 5, (int64_t[]){8, 4, 2, 1, 16});
    kg_space_add(space, "hold", KG_CHANGE_REUSE, 5, (int64_t[]){4, 2, 8, 1, 16});
    kg_space_add(space, "cluster", KG_CHANGE_BLOCK, clusters ? 4 : 1, (int64_t[]){1, 2, 4, 8});
    if (plan->column)
        kg_space_add(space, "chunk", KG_CHANGE_BLOCK, 6,
                     (int64_t[]){0, 64, 256, 1024, 4096, 16384});
    else
        kg_space_add(space, "chunk", KG_CHANGE_BLOCK, 5,
                     (int64_t[]){0, 1 << 14, 1 << 16, 1 << 18, 1 << 20});
    kg_cuda_space_registers(space);
    if (plan->column)
        kg_space_add_optional(space, "rows", KG_CHANGE_BLOCK, 10,
                              (int64_t[]){1, 4, 8, 16, 32, 2, 64, 128, 256, 512});
}

// Rows or lines of columns together, the elements vectors follow, and the length of a scan.
struct extent {
    int64_t lines, along, length;
};

static struct extent measure(const struct kg_scan_plan *plan)
{
    struct extent extent = {1, 1, plan->nest->extent[plan->axis]};
    for (int axis = 0; axis <= plan->last; axis++) {
        if (axis >= plan->run)
            extent.along *= plan->nest->extent[axis];
        else if (axis != plan->axis)
            extent.lines *= plan->nest->extent[axis];
    }
    return extent;
}

// Bytes of the widest element that lies along vectors, and of all of them together.
static void measure_elements(const struct kg_scan_plan *plan, int *widest, int *all)
{
    *widest = *all = 1;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a <= nest->access_count; a++) {
            bool is_output = a == nest->access_count;
            const struct kg_tensor *tensor = is_output ? nest->output : nest->accesses[a].tensor;
            int bytes = kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8;
            if (tensor->rank == 0 || kg_group_is_private(plan->group, tensor))
                continue;
            *widest = bytes > *widest ? bytes : *widest;
            *all += is_output ? 0 : bytes;
        }
    }
}

// Bytes of registers for a value and its running total.
static int lane_bytes(const struct kg_scan_plan *plan)
{
    int value = plan->fold.lane == KG_TYPE_F32 || plan->fold.lane == KG_TYPE_BOOL ? 4 : 8;
    return plan->fold.is_argument ? 16 : value;
}

int64_t kg_cuda_scan_registers(const struct kg_scan_plan *plan, const struct kg_config *config)
{
    enum { COLUMN_PLACES = 24 };
    int widest, all;
    int64_t elements = config->value[VECTOR] * config->value[HOLD];
    measure_elements(plan, &widest, &all);
    if (plan->column) // what is on its way, the totals, and what goes out; places of all rows
        return elements * (2 * all + lane_bytes(plan)) / 4 + COLUMN_PLACES;
    return (elements * (all + lane_bytes(plan)) + config->value[HOLD] * lane_bytes(plan)) / 4;
}

static bool refuse(struct kg_text *reason, const char *why)
{
    kg_text_add(reason, why);
    return false;
}

// Bytes of shared memory in which the threads of columns, warp by warp, leave totals: twice, for
// turns, those of chunks with what rounding took.
static int64_t slot_bytes(const struct kg_cuda_scan_plan *plan)
{
    const int64_t across = plan->threads / plan->rows, among = across < WARP ? WARP / across : 1;
    const int64_t slots = plan->threads / among * plan->vector * 2;
    const bool pair = plan->scan.fold.is_float_sum && plan->scan.chunk > 0;
    return slots * lane_bytes(&plan->scan) * (pair ? 1 + 2 : 1);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_scan_plan plan;
    kg_cuda_scan_plan_make(match, config, "", &plan);
    int64_t threads = plan.threads, vector = plan.vector, hold = plan.hold;
    struct extent extent = measure(&plan.scan);
    int64_t row = plan.scan.chunk > 0 ? plan.scan.chunk : extent.length;
    int widest, all;
    measure_elements(&plan.scan, &widest, &all);
    if (vector > 1 && vector * widest > 2 * ACCESS)
        return refuse(reason, "a vector is wider than two loads");
    if (plan.scan.chunk > 0 && plan.scan.chunk >= extent.length)
        return refuse(reason, "a chunk is all there is");
    if (plan.scan.chunk > 0 && !plan.scan.column && threads <= WARP)
        return refuse(reason, "chunks are for blocks");
    if (plan.cluster > 1 && (threads < LEAST_BLOCK || plan.scan.chunk > 0))
        return refuse(reason, "clusters are for large blocks, and chunks for single ones");
    if (plan.scan.column && plan.rows > threads)
        return refuse(reason, "more rows than threads");
    if (plan.scan.column && plan.rows * hold > 1 && plan.rows * hold / 2 >= row)
        return refuse(reason, "a tile is twice as long as the column");
    if (plan.scan.column && plan.rows > 1 && slot_bytes(&plan) > STATIC_SHARED)
        return refuse(reason, "the totals of a block's threads are more than static shared memory");
    if (!plan.scan.column && threads > 8 && threads / 2 >= row)
        return refuse(reason, "more threads than the row has elements");
    if (!plan.scan.column && hold > 1 && threads * plan.cluster * vector * hold / 2 >= row)
        return refuse(reason, "a tile is twice as long as the row");
    int64_t registers = plan.registers;
    int64_t most =
        registers > 0 ? registers : facts->unit.registers / (threads < 256 ? 256 : threads);
    if (kg_cuda_scan_registers(&plan.scan, config) + 16 >
        (most < facts->unit.thread_registers ? most : facts->unit.thread_registers))
        return refuse(reason, "holds more than a thread has registers");
    if (registers * threads * plan.blocks > facts->unit.registers)
        return refuse(reason, "a block would need more registers than there are");
    return true;
}

static void guess_row(const struct kg_scan_plan *plan, const struct extent *extent, int64_t units,
                      bool clusters, struct kg_config *config)
{
    enum { HELD_BYTES = 64, MOST_CHUNKS = 512 };
    int64_t *value = config->value, most = extent->lines >= 4 * units ? 256 : 512;
    value[THREADS] = 8, value[HOLD] = HELD_BYTES / (value[VECTOR] * lane_bytes(plan));
    value[HOLD] = value[HOLD] < 1 ? 1 : value[HOLD] > 8 ? 8 : value[HOLD];
    while (value[HOLD] > 1 && value[THREADS] * value[VECTOR] * value[HOLD] / 2 >= extent->length)
        value[HOLD] /= 2;
    while (value[THREADS] < most && value[THREADS] * value[VECTOR] * value[HOLD] < extent->length)
        value[THREADS] *= 2;
    // Few rows are shared until three quarters of the units have a block: 64 rows of a million took
    // a third longer by two blocks for each unit, on an H200.
    int64_t tile = value[THREADS] * value[VECTOR] * value[HOLD];
    while (clusters && value[CLUSTER] < 8 && extent->lines * value[CLUSTER] * 4 <= 3 * units &&
           extent->length >= 2 * value[CLUSTER] * tile)
        value[CLUSTER] *= 2;
    if (value[CLUSTER] > 1) { // where it is alone on its unit, as large as it can be
        value[THREADS] = extent->lines * value[CLUSTER] <= units ? 2 * most : most;
        value[REGISTERS] = 64;
        value[HOLD] /= value[HOLD] > 1 && lane_bytes(plan) > 4 ? 2 : 1;
    }
    // Chunks are read twice: worth it only where most of the device would have nothing to do.
    if (extent->lines * value[CLUSTER] * 2 > units)
        return;
    for (int64_t chunk = 1 << 14; chunk <= 1 << 20; chunk <<= 2) {
        if (extent->length < 4 * value[CLUSTER] * chunk)
            break;
        value[CHUNKED] = chunk;
        if (extent->length / chunk <= MOST_CHUNKS)
            break;
    }
    if (value[CHUNKED] > 0) {
        value[CLUSTER] = 1;
        value[THREADS] = value[THREADS] < most ? value[THREADS] : most;
    }
}

// Threads below each other until the units are busy, and chunks where these are not enough.
static void guess_column(const struct extent *extent, int64_t units, struct kg_config *config)
{
    enum { UNIT_THREADS = 256, MOST_ROWS = 32, MOST_CHUNKS = 512 };
    int64_t *value = config->value, vectors = extent->lines * extent->along / value[VECTOR];
    int64_t wanted = units * UNIT_THREADS, most = extent->along / value[VECTOR] < 8 ? 8 : 1;
    most = most * MOST_ROWS;
    value[THREADS] = UNIT_THREADS;
    value[HOLD] = value[VECTOR] > 4 ? 4 : 8;
    value[ROWS] = 1;
    while (value[HOLD] > 1 && value[HOLD] / 2 >= extent->length)
        value[HOLD] /= 2;
    while (value[ROWS] < most && vectors * value[ROWS] < wanted &&
           value[ROWS] * value[HOLD] < extent->length)
        value[ROWS] *= 2;
    if (vectors * value[ROWS] * 2 > wanted)
        return;
    for (int64_t chunk = 1 << 6; chunk <= 1 << 14; chunk <<= 2) {
        if (chunk < value[ROWS] * value[HOLD] || extent->length < 2 * chunk)
            continue;
        value[CHUNKED] = chunk;
        if (extent->length / chunk <= MOST_CHUNKS)
            break;
    }
}

// Where rates are not known.
static void guess_plainly(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    const struct kg_scan_plan *plan = match->analysis;
    struct kg_text reason = {0};
    int widest, all;
    struct extent extent = measure(plan);
    measure_elements(plan, &widest, &all);
    *config = (struct kg_config){{128, ACCESS / widest, 1, 1, 0, 0}};
    while (config->value[VECTOR] > 1 && extent.along % config->value[VECTOR] != 0 &&
           !kg_cuda_scan_may_shift(plan))
        config->value[VECTOR] /= 2;
    if (plan->column)
        guess_column(&extent, facts->units > 0 ? facts->units : 1, config);
    else
        guess_row(plan, &extent, facts->units > 0 ? facts->units : 1, has_clusters(facts), config);
    while (config->value[HOLD] > 1 && !valid(match, config, &reason))
        config->value[HOLD] /= 2;
    kg_text_free(&reason);
}

// Of a row that one block has for itself, or some lanes of a warp: fewer threads, and tiles that
// are shorter, where these are expected to be clearly faster. Tiles that a row does not fill cost:
// rows of 87 elements by tiles of 128 took 1.24 of the time of tiles of 32, on an H100. Half
// vectors may divide a row that whole ones do not: rows of 52 f16 took 0.70 of the time by these,
// on an H200.
static void try_rows(struct kg_cuda_rule *rule, const struct kg_config *first)
{
    enum { LEAST_THREADS = 8, MOST_HOLD = 8 };
    const struct extent extent = measure(rule->match->analysis);
    struct kg_config tried = *first;
    int64_t *value = tried.value;
    if (value[CLUSTER] > 1 || value[CHUNKED] > 0)
        return;
    const int64_t whole = value[VECTOR], half = whole / 2;
    const bool halves = half > 1 && extent.along % whole != 0 && extent.along % half == 0;
    for (value[VECTOR] = whole; value[VECTOR] >= (halves ? half : whole); value[VECTOR] /= 2) {
        rule->surely = value[VECTOR] < whole ? 0.99 : 0.95;
        for (value[THREADS] = first->value[THREADS]; value[THREADS] >= LEAST_THREADS;
             value[THREADS] /= 2)
            for (value[HOLD] = 1; value[HOLD] <= MOST_HOLD; value[HOLD] *= 2)
                kg_cuda_rule_try(rule, &tried);
    }
}

// Is it worth asking what this takes? Not if most threads had no column, nor are chunks where the
// units have enough to do without them.
static bool may_be_best(const struct extent *extent, int64_t units, const struct kg_config *config)
{
    const int64_t *value = config->value, across = value[THREADS] / value[ROWS];
    const int64_t lines = extent->lines * (extent->along / value[VECTOR]);
    return (across == 1 || across < 2 * lines) &&
           (value[CHUNKED] == 0 || kg_ceil_div(lines, across) < 2 * units);
}

// Columns are shared among threads, and cut into chunks, as it is expected to be fastest.
static void try_columns(struct kg_cuda_rule *rule)
{
    enum { LEAST_HOLD = 4, MOST_HOLD = 16, LEAST_THREADS = 128, MOST_THREADS = 512 };
    const struct kg_scan_plan *plan = rule->match->analysis;
    const int64_t units = rule->match->facts->units;
    struct kg_space values;
    int widest, all;
    measure_elements(plan, &widest, &all);
    space(rule->match, &values);
    struct kg_config tried = {{0, ACCESS / widest, 1, 1}};
    struct extent extent = measure(plan);
    int64_t *value = tried.value;
    const int64_t least = extent.length < 2 * LEAST_HOLD ? 1 : LEAST_HOLD;
    while (value[VECTOR] > 1 && extent.along % value[VECTOR] != 0)
        value[VECTOR] /= 2;
    const int64_t narrowest = value[VECTOR] > 1 ? value[VECTOR] / 2 : 1;
    for (; value[VECTOR] >= narrowest; value[VECTOR] /= 2)
        for (value[THREADS] = LEAST_THREADS; value[THREADS] <= MOST_THREADS; value[THREADS] *= 2)
            for (value[ROWS] = 1; value[ROWS] <= value[THREADS]; value[ROWS] *= 2)
                for (int k = 0; k < values.parameters[CHUNKED].count; k++) {
                    value[CHUNKED] = values.parameters[CHUNKED].choices[k];
                    if (may_be_best(&extent, units, &tried))
                        for (value[HOLD] = least; value[HOLD] <= MOST_HOLD; value[HOLD] *= 2)
                            kg_cuda_rule_try(rule, &tried);
                }
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    struct kg_cuda_rule rule = {.match = match};
    const struct kg_scan_plan *plan = match->analysis;
    guess_plainly(match, config);
    if (!kg_cuda_rule_try(&rule, config) || rule.seconds <= 0)
        return;
    if (plan->column)
        try_columns(&rule);
    else
        try_rows(&rule, config);
    *config = rule.best;
}

// Does anybody read what it makes?
static bool is_wanted(const struct kg_cuda_scan_plan *plan)
{
    for (int i = plan->scan.k; i < plan->scan.group->count; i++)
        if (kg_scan_is_stored(&plan->scan, i))
            return true;
    return false;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    struct kg_cuda_scan_plan plan;
    struct kg_space values;
    struct kg_code code = {source, 0};
    kg_cuda_scan_plan_make(match, config, entry, &plan);
    space(match, &values);
    kg_cuda_opening(source, group, "scan", config, &values);
    if (is_wanted(&plan))
        kg_cuda_scan_emit(source, &plan);
    else
        kg_cuda_nothing(&code, group, entry);
    return !source->failed;
}

static struct kg_grid grid_of(const struct kg_cuda_scan_plan *plan, const struct extent *extent,
                              int64_t chunks, int64_t vector)
{
    enum { MOST_BLOCKS = 1 << 27 };
    int64_t items = extent->lines * chunks;
    if (plan->scan.column)
        items = kg_ceil_div(extent->lines * (extent->along / vector), plan->threads / plan->rows) *
                chunks;
    int64_t blocks = kg_ceil_div(items, plan->blocks);
    blocks = (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS) * plan->cluster;
    return (struct kg_grid){.blocks = {blocks, 1, 1},
                            .threads = {plan->threads, plan->blocks, 1},
                            .cluster = plan->cluster};
}

static void grids(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_scan_plan plan;
    const struct kg_grid none = {.threads = {1, 1, 1}};
    kg_cuda_scan_plan_make(match, config, "", &plan);
    struct extent extent = measure(&plan.scan);
    int64_t chunk = plan.scan.chunk > 0 ? plan.scan.chunk : extent.length;
    int64_t chunks = chunk > 0 ? kg_ceil_div(extent.length, chunk) : 0;
    int alignment = kg_cuda_scan_alignment(&plan, extent.along);
    if (!is_wanted(&plan)) {
        *grids = (struct kg_grids){.count = 1, .grids = {none}};
        return;
    }
    const int functions = kg_cuda_scan_functions(&plan);
    const int chosen = alignment > 0 ? KG_CUDA_SCAN_WHOLE
                       : plan.shifts ? KG_CUDA_SCAN_SHIFTED
                                     : KG_CUDA_SCAN_SINGLE;
    if (chosen == KG_CUDA_SCAN_SHIFTED)
        alignment = kg_cuda_scan_shifted_alignment(&plan);
    *grids = (struct kg_grids){.count = plan.scan.chunk > 0 ? 2 * functions : functions,
                               .alignment = alignment};
    for (int i = 0; i < grids->count; i++) {
        const int function = i % functions;
        bool single = function == KG_CUDA_SCAN_SINGLE, totals = i + functions < grids->count;
        struct kg_grid grid = grid_of(&plan, &extent, chunks, single ? 1 : plan.vector);
        if (totals && chunks <= 1) // nothing stands before the only chunk
            grid = none;
        grids->grids[i] = function == chosen ? grid : none;
        grids->unaligned[i] = single ? grid : none;
    }
    if (chunks > 1)
        grids->scratch =
            (size_t)(extent.lines * chunks) * 16 * (size_t)(plan.scan.column ? extent.along : 1);
    kg_cuda_start_early(group, facts, grids);
}

static double expected(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_scan_plan *plan = match->analysis;
    if (plan->column)
        return kg_cuda_scan_column_seconds(match, config);
    return kg_cuda_memory_expected(kg_cuda_scan_work, &kg_cuda_scan_times, match, config);
}

const struct kg_family kg_cuda_scan = {
    .name = "scan",
    .summary = "running totals along an axis, read and written once",
    .match = match_scan,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = expected,
    .orders_configs = true,
    .emit = emit,
    .grids = grids,
};
