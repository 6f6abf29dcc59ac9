// The rule of the rowwise family for CUDA: of all ways of holding a row by so many threads of so
// many blocks, the one that is expected to be fastest; plainly where rates are not known.

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/cuda/rowwise/cuda_rowwise.h"

#include <math.h>

enum { ACCESS = 16, WARP = 32 };
enum { MOST_SHARED = 512 }; // threads of a block
enum { MOST_HELD = 8 };     // vectors of a thread in registers, and in shared memory
enum { MOST_STORED = 12 };

// Rows that are written as they are read: loads that the L2 evicts last took 0.97 to 1.00 of the
// time where both are 300 MB and more, and up to 1.07 where they are less than 100 MB (24 cases,
// H200).
enum { EVICT_LAST = 6 };

static bool is_costly(const struct kg_rowwise_plan *plan)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->kept[i] && kg_group_nest(plan->group, i)->transcendentals > 0.0)
            return true;
    return false;
}

// Has a row's threads hold all of it, `stored` vectors of each in shared memory at most; false:
// they cannot.
static bool hold_all(const struct kg_match *match, int64_t columns, int64_t stored,
                     struct kg_config *config)
{
    const int64_t span =
        config->value[ROW_THREADS] * config->value[ROW_CLUSTER] * config->value[ROW_VECTOR];
    const int64_t vectors = kg_ceil_div(columns, span);
    struct kg_text reason = {0};
    bool done = false;
    for (int64_t hold = MOST_HELD; hold > 0 && !done; hold /= 2) {
        int64_t left = vectors > hold ? vectors - hold : 0;
        config->value[ROW_HOLD] = hold;
        config->value[ROW_SHARED] =
            kg_ceil_div(left, KG_CUDA_ROWWISE_STORED_STEP) * KG_CUDA_ROWWISE_STORED_STEP;
        done = config->value[ROW_SHARED] <= stored && (hold == 1 || hold / 2 < vectors) &&
               match->family->valid(match, config, &reason);
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
    const int64_t stored = kg_cuda_rowwise_shares(plan) ? 0 : MOST_STORED;
    config->value[ROW_KEEP] = 0;
    config->value[ROW_CLUSTER] = 1;
    config->value[ROW_THREADS] = facts->unit.block_threads;
    if (stored == 0 && rows * 2 > facts->units && hold_all(match, columns, stored, config))
        return;
    for (int64_t threads = MOST_SHARED; threads <= facts->unit.block_threads; threads *= 2)
        for (int64_t cluster = 1; cluster <= most; cluster *= 2) {
            config->value[ROW_THREADS] = threads;
            config->value[ROW_CLUSTER] = cluster;
            if ((cluster == most || rows * cluster * 2 > facts->units) &&
                hold_all(match, columns, stored, config))
                return;
        }
    config->value[ROW_HOLD] = MOST_HELD;
    config->value[ROW_SHARED] = 0;
}

// Where rates are not known.
static void guess_plainly(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    const struct kg_rowwise_plan *plan = match->analysis;
    struct kg_text reason = {0};
    int64_t rows, columns, length, least = 8;
    kg_cuda_rowwise_measure(plan, &rows, &columns, &length);
    *config = (struct kg_config){{8, ACCESS / kg_cuda_rowwise_widest(plan), 1, 0, 1, 0, 0, 0}};
    while (config->value[ROW_VECTOR] > 1 && length % config->value[ROW_VECTOR] != 0)
        config->value[ROW_VECTOR] /= 2;
    // Two vectors a thread of a row's block, then up to eight: measured on an H100.
    int64_t vector = config->value[ROW_VECTOR];
    while (config->value[ROW_THREADS] < MOST_SHARED &&
           config->value[ROW_THREADS] * vector * 2 < columns)
        config->value[ROW_THREADS] *= 2;
    // Few rows are a matter of latency: then a whole warp, one vector each.
    while (config->value[ROW_THREADS] < WARP && config->value[ROW_THREADS] * vector < columns &&
           rows * config->value[ROW_THREADS] * WARP <=
               (int64_t)facts->units * facts->unit.block_threads)
        config->value[ROW_THREADS] *= 2;
    while (config->value[ROW_HOLD] < MOST_HELD &&
           config->value[ROW_HOLD] * config->value[ROW_THREADS] * vector < columns)
        config->value[ROW_HOLD] *= 2;
    config->value[ROW_KEEP] = is_costly(plan) && config->value[ROW_HOLD] <= 2;
    if (MOST_SHARED * vector * MOST_HELD < columns)
        guess_long(match, rows, columns, config);
    if (!match->family->valid(match, config, &reason))
        config->value[ROW_KEEP] = 0;
    while (config->value[ROW_HOLD] > 1 && !match->family->valid(match, config, &reason))
        config->value[ROW_HOLD] /= 2;
    while (config->value[ROW_THREADS] > least && !match->family->valid(match, config, &reason))
        config->value[ROW_THREADS] /= 2;
    kg_text_free(&reason);
}

enum { MOST_BYTES = 128 }; // of a row, or of several, that a thread holds

// Bytes of a column that are read along the row: what is the row's own, or what all rows share.
static int column_bytes(const struct kg_rowwise_plan *plan, bool own)
{
    struct kg_cuda_streams streams;
    int bytes = 0;
    kg_cuda_streams_make(plan, &streams);
    for (int i = 0; i < streams.count; i++)
        if (streams.items[i].held == own)
            bytes += kg_dtypes[kg_emit_tensor_dtype(streams.items[i].access->tensor)].bits / 8;
    return bytes;
}

// Are the row's own elements f16, which instructions convert as they read a register?
static bool is_f16(const struct kg_rowwise_plan *plan)
{
    struct kg_cuda_streams streams;
    kg_cuda_streams_make(plan, &streams);
    for (int i = 0; i < streams.count; i++)
        if (streams.items[i].held &&
            kg_emit_tensor_dtype(streams.items[i].access->tensor) != KG_F16)
            return false;
    return true;
}

// A config with what all rows share copied ahead, for one row or for two, where races on an H200
// had it faster. Only for f16: converted elements of bf16 stay in registers, so that fewer blocks
// are resident, and f32 was not raced.
//
// One row: norms with one factor gained up to 6 %; with two they lost 15 %, because the L2 gives no
// more. Two rows: norms with two factors gained 3 to 6 % with 16 rows or more for each unit, and
// lost 2 to 7 % with half as many; larger blocks lost, too.
static void try_staged(struct kg_cuda_rule *rule, struct kg_config config, int64_t rows)
{
    enum { SOME = 2, MANY = 16, LARGEST = 256, MOST_ROWS = 2 };
    const struct kg_rowwise_plan *plan = rule->match->analysis;
    const int64_t units = rule->match->facts->units;
    int64_t *value = config.value;
    const int64_t held = value[ROW_HOLD] * value[ROW_VECTOR] * column_bytes(plan, true);
    if (!is_f16(plan))
        return;
    value[ROW_KEEP] = 0;
    value[ROW_STAGED] = 1;
    if (rows > SOME * units && column_bytes(plan, false) <= column_bytes(plan, true))
        kg_cuda_rule_try(rule, &config);
    value[ROW_STAGED] = MOST_ROWS;
    if (rows > MANY * units && MOST_ROWS * held <= MOST_BYTES && value[ROW_THREADS] <= LARGEST)
        kg_cuda_rule_try(rule, &config);
}

// All ways of holding a row by so many threads of so many blocks. Threads that hold more than 128
// bytes each are too few to keep memory busy: 256 took 8 to 17 % longer for norms of rows of 5120
// to 13944 on an H200.
static void try_shares(struct kg_cuda_rule *rule, struct kg_config config, int64_t columns,
                       int64_t bytes, int64_t stored, bool kept, int64_t rows)
{
    enum { MOST_TRIED = 16 };
    int64_t *value = config.value,
            span = value[ROW_THREADS] * value[ROW_CLUSTER] * value[ROW_VECTOR];
    int64_t vectors = kg_ceil_div(columns, span);
    for (value[ROW_HOLD] = MOST_TRIED; value[ROW_HOLD] > 0; value[ROW_HOLD] /= 2) {
        int64_t left = vectors > value[ROW_HOLD] ? vectors - value[ROW_HOLD] : 0;
        value[ROW_SHARED] =
            kg_ceil_div(left, KG_CUDA_ROWWISE_STORED_STEP) * KG_CUDA_ROWWISE_STORED_STEP;
        if (value[ROW_SHARED] > stored || value[ROW_HOLD] * value[ROW_VECTOR] * bytes > MOST_BYTES)
            continue;
        if (stored == 0)
            try_staged(rule, config, rows);
        for (value[ROW_KEEP] = 0; value[ROW_KEEP] <= kept; value[ROW_KEEP]++)
            kg_cuda_rule_try(rule, &config);
    }
}

// Rows of one tensor that are read once, and do not fit the L2 together: one vector a thread,
// evicted first, if nearly all threads of a block of at most 512 then have one. The model expects
// less of it than races on an H100 gave: with one vector a thread such loads are 3 to 5 % faster
// than others, with two or more 2 % slower. Sums, means and maxima of 20 MB to 1.2 GB, rows of 128
// to 512 vectors, took 3 % less time than by the model's choice. It expects them to take 12 % more
// at most there. Where memory is faster, they are not under way in time: on an H200 they took 16 %
// longer, and the model expects 30 %. Places of maxima are left out: of rows of 512 vectors they
// took 6 % more, since at the end threads exchange places, too.
static void try_single(struct kg_cuda_rule *rule, int64_t columns)
{
    enum { LEAST = 128, MOST = 512 };
    const double filled = 0.95, slower = 1.13;
    const struct kg_match *match = rule->match;
    const struct kg_rowwise_plan *plan = match->analysis;
    struct kg_text reason = {0};
    struct kg_cuda_streams streams;
    struct kg_config config = rule->best;
    int64_t *value = config.value, vectors = kg_ceil_div(columns, value[ROW_VECTOR]);
    kg_cuda_streams_make(plan, &streams);
    if (plan->passes != 1 || streams.count != 1 || !streams.items[0].held ||
        kg_cuda_rowwise_finds_places(plan) ||
        value[ROW_VECTOR] * kg_cuda_rowwise_widest(plan) != ACCESS ||
        kg_cuda_rowwise_streamed(plan) < KG_CUDA_EVICTING * (double)match->facts->cache[2])
        return;
    value[ROW_THREADS] = LEAST;
    while (value[ROW_THREADS] < vectors)
        value[ROW_THREADS] *= 2;
    value[ROW_HOLD] = value[ROW_CLUSTER] = value[ROW_EVICT] = 1;
    value[ROW_SHARED] = value[ROW_STAGED] = 0;
    if (value[ROW_THREADS] <= MOST && (double)vectors >= filled * (double)value[ROW_THREADS] &&
        match->family->valid(match, &config, &reason) &&
        match->family->expected(match, &config) < slower * rule->seconds)
        rule->best = config;
    kg_text_free(&reason);
}

// Where all blocks run at once only if compilers take no more registers than is expected, they are
// held to that: layer_norm of 686 rows of 2977 f32 then took 0.84 of the time (H200).
static void limit_registers(const struct kg_match *match, struct kg_config *config)
{
    enum { MORE = 16 }; // registers that compilers may take beyond
    static const int limits[] = {32, 40, 64, 80, 96, 128};
    struct kg_cuda_memory_work works[KG_MAX_GRIDS];
    struct kg_config limited = *config;
    struct kg_text reason = {0};
    if (kg_cuda_rowwise_work(match, config, works) != 1)
        return;
    struct kg_cuda_memory_work work = works[0];
    double needed = ceil(work.blocks / kg_cuda_memory_units(&work, match->facts));
    bool fits = needed > 1 && kg_cuda_memory_resident(&work, match->facts) >= needed;
    work.registers += MORE;
    if (!fits || kg_cuda_memory_resident(&work, match->facts) >= needed)
        return;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        limited.value[ROW_REGISTERS] = limits[i];
        work.registers = limits[i];
        if (limits[i] >= works[0].registers &&
            kg_cuda_memory_resident(&work, match->facts) >= needed &&
            match->family->valid(match, &limited, &reason)) {
            *config = limited;
            break;
        }
    }
    kg_text_free(&reason);
}

// Of all ways of holding a whole row the one that is expected to be fastest. What all rows share
// stays near the units only if rows do not take the shared memory. It is copied there where that is
// expected to take no longer. Threads that would have no vector are not tried. What takes little
// longer than a launch is told apart by waiting, of which the model knows less: it has to expect a
// clear gain there (sums, maxima, softmax and norms of 128 to 8192 rows of 128 to 1000 elements in
// graphs, on an H100).
void kg_cuda_rowwise_guess(const struct kg_match *match, struct kg_config *config)
{
    enum { LAUNCHES = 2 };
    const double short_surely = 0.95;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_rowwise_plan *plan = match->analysis;
    const int64_t stored = kg_cuda_rowwise_shares(plan) ? 0 : MOST_STORED;
    int64_t rows, columns, length;
    struct kg_cuda_rule rule = {.match = match};
    guess_plainly(match, config);

    kg_cuda_rowwise_measure(plan, &rows, &columns, &length);
    if (stored == 0)
        try_staged(&rule, *config, rows);
    kg_cuda_rule_try(&rule, config);
    if (rule.seconds < LAUNCHES * kg_cuda_rowwise_times.launch)
        rule.surely = short_surely;
    struct kg_config tried = {{0}};
    tried.value[ROW_VECTOR] = config->value[ROW_VECTOR];
    const int64_t vectors = kg_ceil_div(columns, tried.value[ROW_VECTOR]);
    for (int64_t threads = 8; threads <= facts->unit.block_threads && threads / 2 < vectors;
         threads *= 2)
        for (int64_t cluster = 1; cluster <= kg_cuda_rowwise_blocks(facts); cluster *= 2) {
            tried.value[ROW_THREADS] = threads;
            tried.value[ROW_CLUSTER] = cluster;
            try_shares(&rule, tried, columns, kg_cuda_rowwise_widest(plan), stored, is_costly(plan),
                       rows);
        }
    kg_cuda_rule_try_evicting(&rule, ROW_EVICT, 1, kg_cuda_rowwise_streamed(plan));
    kg_cuda_rule_evict_last(&rule, ROW_EVICT, KG_CUDA_EVICT_LAST, EVICT_LAST);
    if (rule.seconds > 0) {
        try_single(&rule, columns);
        *config = rule.best;
        limit_registers(match, config);
    }
}
