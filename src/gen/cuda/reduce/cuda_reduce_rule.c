// The rule of the reduce family for CUDA: of blocks of all sizes, and of how many share an output,
// those that are expected to be fastest; short reductions by what their launches cost.

#include "gen/cuda/reduce/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/cuda/rowwise/cuda_rowwise.h"
#include "gen/shared/bound.h"

enum { ACCESS = 16, WARP = 32 };
// What a multiprocessor should have under way, in blocks of LOADED bytes a thread.
enum { BLOCKS_PER_UNIT = 4, LOADED = 64, USUAL_THREADS = 256, LARGEST_BLOCK = 1024 };
// Vectors of a row that one block reads sooner than several do, with a second launch after them.
enum { ONE_BLOCK = 4 * LARGEST_BLOCK };
// Bytes of columns, and of a row, that are sooner read by one cluster than by all units, with a
// second launch: measured on an H100.
enum { CLUSTERED = 1 << 20, CLUSTERED_ROW = 1 << 17 };
// Threads and vectors of each where a cluster reads a row, if that is enough for it.
enum { CLUSTER_THREADS = 512, CLUSTER_UNROLL = 4 };
enum { MOST_UNROLL = 16 }; // vectors that a thread loads at once
// Elements of a vector along columns whose places are kept, too: with eight of 2 bytes, 12 argmaxes
// drawn by a fresh seed took 1.04 to 1.35 times as long on an H200, 1.14 in the mean.
enum { MOST_PLACES = 4 };

// One cluster for a row: by as many threads as it takes for each to load all it has at once.
static void guess_row_cluster(const struct kg_match *match, int64_t most, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_config tried = *config;
    struct kg_text reason = {0};
    struct kg_cuda_reduce_plan plan;
    kg_cuda_reduce_plan_make(match, config, &plan);
    int64_t vectors =
        kg_ceil_div(kg_ceil_div(kg_cuda_reduce_elements_of_output(&plan), plan.vector), most);
    tried.value[CLUSTER] = 1;
    tried.value[SPLIT] = most;
    tried.value[THREADS] =
        vectors <= CLUSTER_THREADS * CLUSTER_UNROLL ? CLUSTER_THREADS : LARGEST_BLOCK;
    tried.value[UNROLL] = kg_power_of_two(kg_ceil_div(vectors, tried.value[THREADS]));
    if (tried.value[UNROLL] <= MOST_UNROLL &&
        kg_cuda_reduce_outputs(&plan) <= facts->units / most &&
        match->family->valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Where one cluster is enough for an output, or for a tile of columns.
static void guess_cluster(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan;
    struct kg_config tried = *config;
    struct kg_text reason = {0};
    int widest, together;
    int64_t blocks, parts, most = kg_cuda_rowwise_blocks(facts);
    kg_cuda_reduce_plan_make(match, config, &plan);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    double bytes = (double)kg_cuda_reduce_elements_of_output(&plan) * together;
    if (blocks > 0)
        bytes *= (double)kg_cuda_reduce_outputs(&plan) / (double)blocks;
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
    if (match->family->valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Rows that are read in less time than a launch takes: threads do what they do side by side, not
// one after the other. One block is enough for the shortest, of others there is one for each unit.
static void guess_short(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan;
    struct kg_config tried = *config;
    struct kg_text reason = {0};
    kg_cuda_reduce_plan_make(match, config, &plan);
    int64_t vectors = kg_ceil_div(kg_cuda_reduce_elements_of_output(&plan), plan.vector),
            least = kg_cuda_reduce_outputs(&plan);
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
    if (match->family->valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Few rows above many columns: narrower vectors make blocks for all units sooner than blocks that
// share an output do, which have to wait for each other at the end.
static void guess_narrow(const struct kg_match *match, struct kg_config *config)
{
    enum { MOST_ROWS = 1024, TURNS = 4, AT_ONCE = 8, LEAST_THREADS = 128, MOST_THREADS = 512 };
    const int64_t units = match->facts->units;
    struct kg_config tried = *config;
    struct kg_cuda_reduce_plan plan;
    struct kg_text reason = {0};
    int64_t *value = tried.value, blocks, parts;
    value[SPLIT] = 1;
    value[CLUSTER] = 0;
    value[THREADS] = LEAST_THREADS;
    kg_cuda_reduce_plan_make(match, &tried, &plan);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    while (blocks < units && value[VECTOR] > 1) {
        value[VECTOR] /= 2;
        value[UNROLL] = value[UNROLL] < AT_ONCE ? 2 * value[UNROLL] : value[UNROLL];
        kg_cuda_reduce_plan_make(match, &tried, &plan);
        kg_cuda_reduce_count(&plan, &blocks, &parts);
    }
    const int64_t rows = kg_cuda_reduce_elements_of_output(&plan);
    while (value[THREADS] < MOST_THREADS && value[THREADS] / WARP * value[UNROLL] * TURNS < rows)
        value[THREADS] *= 2;
    if (config->value[SPLIT] > 1 && rows <= MOST_ROWS && 2 * blocks >= units &&
        match->family->valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Columns that several blocks share, and that are read in little more time than a launch takes:
// single elements, so that as many threads as can be have loads under way, and two blocks for each
// unit. On an H100 eight such reductions of 2 to 17 MB took 1.03 to 1.52 times as long with
// vectors; three of 40 MB and more gained by them.
static void guess_spread(const struct kg_match *match, double bytes, struct kg_config *config)
{
    enum { FEWEST_ROWS = 1024, THREADS_OF_BLOCK = 256, AT_ONCE = 16, BLOCKS = 2 };
    const double SMALL = 0.4; // of the L2
    const struct kg_device_facts *facts = match->facts;
    struct kg_config tried = *config;
    struct kg_cuda_reduce_plan plan;
    struct kg_text reason = {0};
    int64_t *value = tried.value, blocks, parts;
    value[THREADS] = THREADS_OF_BLOCK;
    value[VECTOR] = 1;
    value[UNROLL] = AT_ONCE;
    value[CLUSTER] = 0;
    kg_cuda_reduce_plan_make(match, &tried, &plan);
    if (config->value[SPLIT] == 1 || bytes > SMALL * (double)facts->cache[2] ||
        kg_cuda_reduce_elements_of_output(&plan) <= FEWEST_ROWS)
        return;
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    for (int i = 0; i < KG_CUDA_REDUCE_SPLITS; i++) {
        value[SPLIT] = kg_cuda_reduce_splits[i];
        if (value[SPLIT] * blocks >= BLOCKS * (int64_t)facts->units || 2 * value[SPLIT] > parts)
            break;
    }
    if (match->family->valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Where rates are not known.
static void guess_plainly(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_reduce_plan plan;
    struct kg_text reason = {0};
    int widest, together;
    int64_t blocks, parts, units = facts->units > 0 ? facts->units : 1;
    *config =
        (struct kg_config){{kg_cuda_reduce_prefers_columns(match), USUAL_THREADS, 1, 1, 1, 0, 0}};
    kg_cuda_reduce_plan_make(match, config, &plan);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    int64_t length = kg_cuda_reduce_extent(plan.nest, plan.run, plan.last);
    if (widest > 0)
        config->value[VECTOR] = ACCESS / widest;
    while (config->value[VECTOR] > 1 && length % config->value[VECTOR] != 0)
        config->value[VECTOR] /= 2;
    while (plan.column && plan.fold.is_argument && config->value[VECTOR] > MOST_PLACES)
        config->value[VECTOR] /= 2;
    // Measured on an H100: rows of two tensors are twice as long.
    int loaded = !plan.column && together > widest ? 2 * LOADED : LOADED;
    while (config->value[UNROLL] < 8 &&
           2 * config->value[UNROLL] * config->value[VECTOR] * together <= loaded)
        config->value[UNROLL] *= 2;
    while (config->value[UNROLL] > 1 && !match->family->valid(match, config, &reason))
        config->value[UNROLL] /= 2;
    while (config->value[VECTOR] > 1 && !match->family->valid(match, config, &reason))
        config->value[VECTOR] /= 2;
    if (!plan.column)
        guess_short(match, config);
    kg_cuda_reduce_plan_make(match, config, &plan);
    kg_cuda_reduce_count(&plan, &blocks, &parts);
    for (int i = 0; i < KG_CUDA_REDUCE_SPLITS && blocks > 0; i++)
        if (kg_cuda_reduce_splits[i] * blocks <= BLOCKS_PER_UNIT * units &&
            kg_cuda_reduce_splits[i] <= parts)
            config->value[SPLIT] = kg_cuda_reduce_splits[i];
    // No part waits for another one where all units together have a block for each.
    for (int i = KG_CUDA_REDUCE_SPLITS - 1; i >= 0 && !plan.column && blocks * parts <= units; i--)
        if (kg_cuda_reduce_splits[i] * blocks <= units && kg_cuda_reduce_splits[i] >= parts)
            config->value[SPLIT] = kg_cuda_reduce_splits[i];
    guess_cluster(match, config);
    kg_text_free(&reason);
}

// Blocks that share an output and load fewer than four times are over before their loads overlap.
enum { LEAST_TURNS = 4 };

// The widest vectors of columns that are not wider than an access; of elements that no vector fits,
// two at a time.
static int64_t widest_vector(const struct kg_cuda_reduce_plan *plan)
{
    int widest, together;
    int64_t length = kg_cuda_reduce_extent(plan->nest, plan->run, plan->last), vector = ACCESS;
    kg_cuda_reduce_elements(plan, &widest, &together);
    while (vector > 1 && (vector * widest > ACCESS || length % vector != 0))
        vector /= 2;
    return vector > 1 ? vector : 2;
}

// Vectors that a thread loads at once, to have so many elements. Of whole vectors of elements that
// are converted, more than eight take registers from other blocks: of 42 pairs of such configs on
// an H100, those with 16 took 1.1 times as long in the mean, and 0.8 to 2.2 times. Only if places
// are sought in long columns that no wider vectors fit, 16 vectors of two are better: eight took
// 0.96 to 1.10 times as long in seven argmaxes drawn by that seed, 1.05 in the mean. Where four
// elements fit, 16 vectors of two lose.
static int64_t unroll_of(const struct kg_cuda_rule *rule, const struct kg_config *config,
                         int64_t elements)
{
    enum { CONVERTED = 8, COMPUTED_BYTES = 4 };
    struct kg_cuda_reduce_plan plan;
    int widest, together;
    kg_cuda_reduce_plan_make(rule->match, config, &plan);
    kg_cuda_reduce_elements(&plan, &widest, &together);
    const bool whole = plan.vector > 1 && kg_cuda_reduce_alignment(&plan) > 0;
    const bool seeks = plan.fold.is_argument && widest_vector(&plan) == 2 &&
                       kg_cuda_reduce_elements_of_output(&plan) >= LEAST_TURNS * MOST_UNROLL;
    const int64_t most = whole && widest < COMPUTED_BYTES && !seeks ? CONVERTED : MOST_UNROLL;
    return elements / plan.vector < most ? elements / plan.vector : most;
}

// Outputs that more or fewer blocks share, whose threads load so many elements at once.
static void try_splits(struct kg_cuda_rule *rule, struct kg_config config, int64_t elements)
{
    struct kg_cuda_reduce_plan plan;
    int64_t blocks, parts;
    int64_t *value = config.value, unroll = unroll_of(rule, &config, elements);
    for (int i = 0; i < KG_CUDA_REDUCE_SPLITS; i++) {
        bool fits = false;
        value[SPLIT] = kg_cuda_reduce_splits[i];
        for (value[UNROLL] = unroll; value[UNROLL] > 0 && !fits; value[UNROLL] /= 2) {
            kg_cuda_reduce_plan_make(rule->match, &config, &plan);
            kg_cuda_reduce_count(&plan, &blocks, &parts);
            if (value[SPLIT] == 1 || parts >= LEAST_TURNS * value[SPLIT])
                fits = kg_cuda_rule_try(rule, &config);
        }
    }
}

// Of usual blocks, as many as fill half of all units' threads: on an H200, twice as many took 3 to
// 7 % longer, half as many up to 8 %, which expected times do not tell.
static void try_half(struct kg_cuda_rule *rule, struct kg_config config, int64_t elements)
{
    const struct kg_device_facts *facts = rule->match->facts;
    struct kg_cuda_reduce_plan plan;
    int64_t blocks, parts;
    int64_t *value = config.value;
    const int64_t most = (int64_t)facts->units * facts->unit.threads / 2 / value[THREADS];
    bool fits = false;
    for (int i = KG_CUDA_REDUCE_SPLITS - 1; i >= 0 && !fits; i--) {
        value[SPLIT] = kg_cuda_reduce_splits[i];
        value[UNROLL] = unroll_of(rule, &config, elements);
        kg_cuda_reduce_plan_make(rule->match, &config, &plan);
        kg_cuda_reduce_count(&plan, &blocks, &parts);
        if (value[SPLIT] == 1 ||
            (blocks * value[SPLIT] <= most && parts >= LEAST_TURNS * value[SPLIT]))
            fits = kg_cuda_rule_try(rule, &config);
    }
}

// Blocks of 128 threads that load 32 elements at once stood within 2 % of the best in most races on
// an H200, which times expected of others do not tell well: these have to promise 6 % more. Each
// element takes a register when it is converted: with 128 at once, sums of f16 took 7 to 15 %
// longer, since too few blocks were resident.
// `bytes`: of an element.
static void try_blocks(struct kg_cuda_rule *rule, const struct kg_config *config, int64_t vector,
                       int64_t bytes)
{
    enum { USUAL = 128, MOST = 512, ELEMENTS = 32 };
    struct kg_config tried = *config;
    struct kg_cuda_reduce_plan plan;
    int64_t *value = tried.value, least = (vector + 1) / 2;
    kg_cuda_reduce_plan_make(rule->match, config, &plan);
    const int64_t most = plan.fold.is_argument && vector > MOST_PLACES ? MOST_PLACES : vector;
    value[THREADS] = USUAL;
    for (value[VECTOR] = least; value[VECTOR] <= most; value[VECTOR] *= 2)
        if (value[VECTOR] * bytes >= ACCESS / 2)
            try_half(rule, tried, ELEMENTS);
        else
            try_splits(rule, tried, ELEMENTS);
    rule->surely = 0.94;
    for (value[THREADS] = USUAL; value[THREADS] <= MOST; value[THREADS] *= 2)
        for (value[VECTOR] = most; value[VECTOR] >= least; value[VECTOR] /= 2) {
            try_splits(rule, tried, ELEMENTS);
            try_splits(rule, tried, 2 * ELEMENTS);
        }
}

// Where the columns of one outer index leave almost half of a warp idle, or are so few that many
// groups of threads share their rows and have to be folded: joined columns, if there are enough
// outputs to give all units threads.
static void join_columns(const struct kg_match *match, struct kg_config *config)
{
    enum { LEAST_OUTPUTS = 1 << 15 };
    const double FILLED = 0.6;
    struct kg_config tried = *config;
    struct kg_cuda_reduce_plan plan;
    struct kg_text reason = {0};
    int64_t wide, groups;
    kg_cuda_reduce_plan_make(match, config, &plan);
    kg_cuda_reduce_shape(&plan, &wide, &groups);
    const int64_t width = kg_cuda_reduce_columns(&plan), tile = wide * plan.vector;
    const bool filled = (double)width > FILLED * (double)(kg_ceil_div(width, tile) * tile);
    tried.value[COLUMN] = ALONG_JOINED;
    if (config->value[COLUMN] == ALONG_COLUMNS && (wide < WARP || !filled) &&
        kg_cuda_reduce_outputs(&plan) >= LEAST_OUTPUTS &&
        match->family->valid(match, &tried, &reason))
        *config = tried;
    kg_text_free(&reason);
}

// Blocks and vectors of all sizes, where they are expected to gain much over `config`: of 65 drawn
// reductions on an H200 nine did, and took 0.90 of the time, cold, and 0.98 in graphs. Smaller
// promises were not kept: 51 that the model would have chosen took 1.01 and 1.05 of the time.
static void consider_all(const struct kg_match *match, int64_t vector, struct kg_config *config)
{
    enum { SHORT = 7, LEAST_THREADS = 128, MOST_THREADS = 512, LEAST_UNROLL = 4 };
    const double surely = 0.9;
    const double now = match->family->expected(match, config);
    // A second launch takes longer in graphs than is expected.
    const bool single = config->value[SPLIT] == 1 || config->value[CLUSTER] == 1;
    struct kg_cuda_rule rule = {.match = match};
    struct kg_config tried = *config;
    struct kg_cuda_reduce_plan plan;
    int64_t *value = tried.value, blocks, parts;
    value[CLUSTER] = 0;
    if (now <= 0 || now > SHORT * kg_cuda_reduce_column_times.launch)
        return;
    for (value[THREADS] = LEAST_THREADS; value[THREADS] <= MOST_THREADS; value[THREADS] *= 2)
        for (value[VECTOR] = vector; value[VECTOR] > 0; value[VECTOR] /= 2)
            for (value[UNROLL] = MOST_UNROLL; value[UNROLL] >= LEAST_UNROLL; value[UNROLL] /= 2) {
                kg_cuda_reduce_plan_make(match, &tried, &plan);
                kg_cuda_reduce_count(&plan, &blocks, &parts);
                for (int i = 0; i < KG_CUDA_REDUCE_SPLITS; i++) {
                    value[SPLIT] = kg_cuda_reduce_splits[i];
                    if (value[SPLIT] == 1 || (!single && value[SPLIT] <= parts))
                        kg_cuda_rule_try(&rule, &tried);
                }
            }
    if (rule.seconds > 0 && rule.seconds < surely * now)
        *config = rule.best;
}

void kg_cuda_reduce_guess(const struct kg_match *match, struct kg_config *config)
{
    enum { LAUNCHES = 4, OF_OTHERS = 2 };
    struct kg_cuda_rule rule = {.match = match};
    struct kg_cuda_reduce_plan plan;
    int widest, together;
    guess_plainly(match, config);
    kg_cuda_rule_try(&rule, config);
    kg_cuda_reduce_plan_make(match, config, &plan);
    const double bytes = kg_cuda_reduce_streamed(&plan);
    const int64_t vector = widest_vector(&plan);
    if (!config->value[COLUMN]) {
        kg_cuda_rule_try_evicting(&rule, EVICT, 1, bytes);
        *config = rule.seconds > 0 ? rule.best : *config;
        return;
    }
    const struct kg_cuda_memory_times *times = kg_cuda_reduce_times_of(match, config);
    const bool is_told = times == &kg_cuda_reduce_column_times;
    // What takes little longer than a launch is too short for what is expected to tell configs
    // apart.
    const bool tiny = rule.seconds < (is_told ? LAUNCHES : OF_OTHERS) * times->launch;
    if (tiny) {
        guess_narrow(match, config);
    } else {
        struct kg_config tried = *config;
        // Of blocks that share an output, clusters were behind others in all races that long.
        tried.value[CLUSTER] = 0;
        rule.seconds = 0;
        kg_cuda_reduce_elements(&plan, &widest, &together);
        try_blocks(&rule, &tried, vector, widest);
        kg_cuda_rule_try_evicting(&rule, EVICT, 1, bytes);
        if (rule.seconds > 0)
            *config = rule.best;
    }
    guess_spread(match, bytes, config);
    if (is_told)
        consider_all(match, vector, config);
    if (!tiny)
        join_columns(match, config);
}
