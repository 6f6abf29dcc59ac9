// Expected times of kernels that wait for memory: see cuda_memory_time.h.

#include "gen/cuda/cuda_memory_time.h"

#include "gen/shared/emit.h"

#include <math.h>

enum { WARP = 32, ACCESS = 16, LINE = 128 };

struct kg_cuda_memory_work kg_cuda_memory_work_of(const struct kg_grid *grid)
{
    return (struct kg_cuda_memory_work){
        .blocks = (double)grid->blocks[0] * (double)grid->blocks[1] * (double)grid->blocks[2],
        .threads = grid->threads[0] * grid->threads[1] * grid->threads[2],
        .cluster = grid->cluster,
        .shared = grid->shared,
    };
}

// Registers that a thread would like to have, and has not.
static double spilled(const struct kg_cuda_memory_work *work, const struct kg_device_facts *facts)
{
    double most = fmin(facts->unit.thread_registers, facts->unit.registers / work->threads);
    if (work->limit > 0)
        most = fmin(most, work->limit);
    return fmax(0, work->registers - most);
}

double kg_cuda_memory_resident(const struct kg_cuda_memory_work *work,
                               const struct kg_device_facts *facts)
{
    enum { GRANULE = 8 }; // registers of a thread are given by eight
    const struct kg_unit_limits *unit = &facts->unit;
    double warps = ceil(work->threads / (double)WARP);
    double held = work->registers - spilled(work, facts);
    double registers = ceil(held / GRANULE) * GRANULE;
    double most = unit->blocks;
    most = fmin(most, floor(unit->threads / (warps * WARP)));
    if (registers > 0)
        most = fmin(most, floor(unit->registers / (registers * warps * WARP)));
    if (work->shared > 0)
        most =
            fmin(most, floor((double)unit->shared / (double)(work->shared + unit->block_reserve)));
    return most < 1 ? 1 : most;
}

double kg_cuda_memory_units(const struct kg_cuda_memory_work *work,
                            const struct kg_device_facts *facts)
{
    enum { LARGE = 4, TOGETHER = 16 };
    return work->cluster < LARGE || facts->units < TOGETHER
               ? facts->units
               : (double)(facts->units / TOGETHER * TOGETHER);
}

// How long a block stays, if it has its unit for itself.
static double block_seconds(const struct kg_cuda_memory_work *work,
                            const struct kg_device_facts *facts,
                            const struct kg_cuda_memory_times *times)
{
    double seconds = times->start;
    seconds += (work->accesses + work->steps + work->specials) * times->serial;
    // Loads that are evicted first come sooner: sums whose blocks only wait for one load of each
    // thread took 0.96 of the time.
    const double sooner = work->evicted > 0 ? 0.8 : 1;
    seconds +=
        (work->trips * sooner * times->trip + work->near_trips * times->near) * facts->latency;
    if (work->threads > WARP)
        seconds += work->meetings * times->meeting;
    return work->cluster > 1 ? seconds + work->meetings * times->clusters : seconds;
}

// What memory moves more, or less, because loads are evicted first from the L2: what other kernels
// wrote stays there and is not written to memory meanwhile, unless this kernel's own results take
// its place; such loads are a little slower
// unless each thread has but one. Sums and maxima of 16 to 512 MB on an H100, cold:
// times over those without are 0.85 at 64 MB, 0.93 at 128, 1 at 256 and 1.03 at 512; of softmax,
// norms and element-wise kernels 1.01.
static double evicting_bytes(const struct kg_cuda_memory_work *work,
                             const struct kg_device_facts *facts)
{
    const double WRITTEN = 0.29; // share of the L2 that other kernels wrote
    const double one_row = work->accesses <= 1 ? 0 : 0.045;   // one load of each thread, or more
    const double slower = work->segment > 0 ? 0.07 : one_row; // along columns, along a row
    double kept = fmin(work->evicted, (double)facts->cache[2]) - (work->bytes - work->evicted);
    return slower * work->evicted - WRITTEN * fmax(0, kept);
}

// What keeps a launch busy, one by one: rounds of blocks that wait, instructions, main memory, and
// the L2; and what it takes before the first of these begins and after the last has ended.
struct limits {
    double waiting, issue, memory, l2, edges;
};

static struct limits find_limits(const struct kg_cuda_memory_work *work,
                                 const struct kg_device_facts *facts,
                                 const struct kg_cuda_memory_times *times)
{
    double warps = ceil(work->threads / (double)WARP), units = facts->units;
    double resident = kg_cuda_memory_resident(work, facts), of_unit = work->blocks / units;
    double issue = warps * (work->accesses * times->access + work->moved * times->moved +
                            work->steps * times->step + work->specials * times->special +
                            spilled(work, facts) * times->spilled);
    double rounds = work->blocks / (resident * kg_cuda_memory_units(work, facts)),
           whole = ceil(rounds);
    // Blocks of the unit that has most of them.
    double busiest =
        rounds < 1 ? ceil(of_unit) : of_unit * (1 + times->tail * (whole / rounds - 1));
    issue += warps * work->lines * times->touch;
    rounds = rounds < 1 ? 1 : rounds + times->tail * (whole - rounds);
    double rate = facts->bandwidth * times->memory, at_once = fmin(1, resident / of_unit);
    struct limits limits = {.issue = busiest * issue};
    limits.memory = work->bytes / rate * (1 + times->drain * at_once);
    limits.memory *= 1 + times->uneven * (ceil(of_unit) / of_unit - 1);
    if (work->segment > 0)
        limits.memory *= 1 + times->segment * LINE / work->segment;
    if (work->streamed)
        limits.memory *= times->streamed;
    limits.memory += evicting_bytes(work, facts) / rate;
    limits.l2 = (work->bytes + work->again) / (rate * times->cached);
    // A block that is alone on its unit waits for its first bytes, and for its last: while others
    // are there too, they keep memory busy meanwhile.
    double block = block_seconds(work, facts, times);
    limits.edges = times->edges * block;
    limits.waiting = rounds * (block + fmax(limits.memory, limits.l2) / of_unit) - limits.edges;
    return limits;
}

static double launch_seconds(const struct kg_cuda_memory_work *work,
                             const struct kg_device_facts *facts,
                             const struct kg_cuda_memory_times *times)
{
    struct limits limits = find_limits(work, facts, times);
    const double all[] = {limits.waiting, limits.issue, limits.memory, limits.l2};
    enum { LIMITS = sizeof all / sizeof *all };
    double longest = 0, sum = 0;
    for (int i = 0; i < LIMITS; i++)
        longest = fmax(longest, all[i]);
    for (int i = 0; i < LIMITS; i++)
        sum += all[i] > 0 ? pow(all[i] / longest, times->sharp) : 0;
    double seconds = limits.edges + longest * pow(sum, 1 / times->sharp);
    // Blocks begin one after the other, whatever they do then: a limit as sharp as can be, but for
    // the order of configs that are all held up by it.
    const double sharp = 12;
    double begin = work->blocks * times->dispatch, more = fmax(seconds, begin);
    return more * pow(pow(seconds / more, sharp) + pow(begin / more, sharp), 1 / sharp);
}

double kg_cuda_memory_seconds(const struct kg_cuda_memory_work *works, int count,
                              const struct kg_device_facts *facts,
                              const struct kg_cuda_memory_times *times)
{
    if (facts->units <= 0 || facts->bandwidth <= 0 || facts->unit.threads <= 0)
        return 0;
    double seconds = times->launch + times->next * (count > 1 ? count - 1 : 0);
    for (int i = 0; i < count; i++)
        if (works[i].blocks > 0)
            seconds += launch_seconds(&works[i], facts, times) + works[i].unrolled * times->code;
    return seconds;
}

double kg_cuda_memory_expected(kg_cuda_memory_describe *describe,
                               const struct kg_cuda_memory_times *times,
                               const struct kg_match *match, const struct kg_config *config)
{
    struct kg_cuda_memory_work works[KG_MAX_GRIDS];
    int count = describe(match, config, works);
    return kg_cuda_memory_seconds(works, count, match->facts, times);
}

double kg_cuda_memory_bytes(const struct kg_group *group)
{
    const struct kg_problem *problem = group->problem;
    double most[KG_MAX_NESTS + KG_MAX_TENSORS] = {0}, bytes = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int a = 0; a < nest->access_count; a++) {
            int id = nest->accesses[a].tensor->id;
            double elements = fmin(nest->iterations, (double)problem->layouts[id].elements);
            most[id] = fmax(most[id], elements);
        }
        most[nest->output->id] = (double)problem->layouts[nest->output->id].elements;
    }
    for (int id = 0; id < problem->tensor_count; id++)
        if (!kg_group_is_private(group, problem->tensors[id]))
            bytes += most[id] * kg_dtypes[kg_emit_tensor_dtype(problem->tensors[id])].bits / 8.0;
    return bytes;
}

bool kg_cuda_memory_columns(const struct kg_match *match, const struct kg_nest *nest)
{
    enum { MANY = 64 };
    const double SHORT = 20e-6; // seconds that memory takes at least
    bool columns = nest->class == KG_CLASS_REDUCE && nest->output_axes > 0 &&
                   nest->extent[nest->output_axes - 1] >= MANY &&
                   kg_cuda_memory_bytes(&match->group) < SHORT * match->facts->bandwidth;
    for (int a = 0; columns && a < nest->access_count; a++) {
        const int last = nest->accesses[a].tensor->rank - 1;
        const struct kg_affine *map = &nest->accesses[a].map[last < 0 ? 0 : last];
        columns = last < 0 || map->is_affine;
        for (int axis = nest->output_axes; columns && last >= 0 && axis < nest->axis_count; axis++)
            columns = map->coefficient[axis] == 0;
    }
    return columns;
}

void kg_cuda_memory_compute(struct kg_cuda_memory_work *work, const struct kg_group *group,
                            int position, double elements, double times)
{
    const struct kg_nest *nest = kg_group_nest(group, position);
    if (elements <= 0)
        return;
    work->steps += times * (nest->operations / elements + nest->access_count);
    work->specials += times * nest->transcendentals / elements;
}

void kg_cuda_memory_access(struct kg_cuda_memory_work *work, double times, double bytes)
{
    // Lanes of a wide vector's loads are as far apart as it is wide: lines are touched twice.
    double touched = bytes > ACCESS ? 2 * bytes : bytes;
    work->accesses += times * ceil(touched / ACCESS);
    work->moved += times * touched;
}

void kg_cuda_memory_divide(struct kg_cuda_memory_work *work, double times, int digits)
{
    enum { DIVISION = 25 }; // instructions, in 32 bits
    work->steps += times * digits * DIVISION;
}

void kg_cuda_rule_try_evicting(struct kg_cuda_rule *rule, int parameter, int64_t value,
                               double bytes)
{
    struct kg_config config = rule->best;
    if (rule->seconds <= 0 || bytes < KG_CUDA_EVICTING * (double)rule->match->facts->cache[2])
        return;
    config.value[parameter] = value;
    rule->surely = 0;
    kg_cuda_rule_try(rule, &config);
}

void kg_cuda_rule_evict_last(struct kg_cuda_rule *rule, int parameter, int64_t value, double times)
{
    const struct kg_group *group = &rule->match->group;
    const double bytes = kg_cuda_memory_bytes(group);
    double written = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = kg_group_nest(group, i)->output;
        if (!kg_group_is_private(group, output))
            written += (double)group->problem->layouts[output->id].elements *
                       kg_dtypes[kg_emit_tensor_dtype(output)].bits / 8;
    }
    if (rule->seconds > 0 && bytes > times * (double)rule->match->facts->cache[2] &&
        4 * written >= bytes)
        rule->best.value[parameter] = value;
}

bool kg_cuda_rule_try(struct kg_cuda_rule *rule, const struct kg_config *config)
{
    // Less than that is noise of the model: rules stay with what they begin with.
    const double surely = rule->surely > 0 ? rule->surely : 0.99;
    struct kg_text reason = {0};
    bool fits = rule->match->family->valid(rule->match, config, &reason);
    kg_text_free(&reason);
    if (!fits)
        return false;
    double seconds = rule->match->family->expected(rule->match, config);
    if (rule->seconds <= 0 || seconds < rule->seconds * surely) {
        rule->seconds = seconds;
        rule->best = *config;
    }
    return true;
}
