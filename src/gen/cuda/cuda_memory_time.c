// Expected times of kernels that wait for memory: see cuda_memory_time.h.

#include "gen/cuda/cuda_memory_time.h"

#include <math.h>

enum { WARP = 32, ACCESS = 16 };

struct kg_cuda_memory_work kg_cuda_memory_work_of(const struct kg_grid *grid)
{
    return (struct kg_cuda_memory_work){
        .blocks = (double)grid->blocks[0] * (double)grid->blocks[1] * (double)grid->blocks[2],
        .threads = grid->threads[0] * grid->threads[1] * grid->threads[2],
        .cluster = grid->cluster,
        .shared = grid->shared,
    };
}

double kg_cuda_memory_resident(const struct kg_cuda_memory_work *work,
                               const struct kg_device_facts *facts)
{
    enum { GRANULE = 8 }; // registers of a thread are given by eight
    const struct kg_unit_limits *unit = &facts->unit;
    double warps = ceil(work->threads / (double)WARP);
    double registers = ceil(work->registers / GRANULE) * GRANULE;
    double most = unit->blocks;
    most = fmin(most, floor(unit->threads / (warps * WARP)));
    if (registers > 0)
        most = fmin(most, floor(unit->registers / (registers * warps * WARP)));
    if (work->shared > 0)
        most =
            fmin(most, floor((double)unit->shared / (double)(work->shared + unit->block_reserve)));
    return most < 1 ? 1 : most;
}

// How long a block stays, if it has its unit for itself.
static double block_seconds(const struct kg_cuda_memory_work *work,
                            const struct kg_device_facts *facts,
                            const struct kg_cuda_memory_times *times, double issue)
{
    double seconds = times->start + issue;
    seconds += (work->trips * times->trip + work->near_trips * times->near) * facts->latency;
    if (work->threads > WARP)
        seconds += work->meetings * times->meeting;
    return work->cluster > 1 ? seconds + work->meetings * times->clusters : seconds;
}

static double launch_seconds(const struct kg_cuda_memory_work *work,
                             const struct kg_device_facts *facts,
                             const struct kg_cuda_memory_times *times)
{
    double warps = ceil(work->threads / (double)WARP), units = facts->units;
    double resident = kg_cuda_memory_resident(work, facts), of_unit = work->blocks / units;
    double issue = warps * (work->accesses * times->access + work->steps * times->step);
    double rounds = of_unit / resident, whole = ceil(rounds);
    rounds = rounds < 1 ? 1 : rounds + times->tail * (whole - rounds);
    double rate = facts->bandwidth * times->memory, bytes = work->bytes / rate;
    double at_once = fmin(1, resident * units / work->blocks);
    double memory = bytes * (1 + times->drain * at_once) + work->again / (rate * times->cached);
    memory *= 1 + times->uneven * (ceil(of_unit) / of_unit - 1);
    const double limits[] = {
        rounds * block_seconds(work, facts, times, issue),
        of_unit * issue,
        work->blocks * times->dispatch,
        memory,
    };
    double longest = 0, sum = 0;
    for (int i = 0; i < 4; i++)
        longest = fmax(longest, limits[i]);
    for (int i = 0; i < 4; i++)
        sum += pow(limits[i] / longest, times->sharp);
    return longest * pow(sum, 1 / times->sharp);
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
            seconds += launch_seconds(&works[i], facts, times);
    return seconds;
}

double kg_cuda_memory_estimate(kg_cuda_memory_describe *describe, const struct kg_group *group,
                               const struct kg_device_facts *facts, const struct kg_config *config)
{
    struct kg_cuda_memory_work works[KG_MAX_GRIDS];
    int count = describe(group, facts, config, works);
    return kg_cuda_memory_seconds(works, count, facts, &kg_cuda_memory_times);
}

double kg_cuda_memory_steps(const struct kg_group *group, int first, int last, double elements)
{
    enum { SPECIAL = 8 }; // instructions of a transcendental function, about
    double steps = 0;
    for (int i = first; i <= last && elements > 0; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        steps += (nest->operations + SPECIAL * nest->transcendentals) / elements;
    }
    return steps;
}

double kg_cuda_memory_accesses(double bytes)
{
    return ceil(bytes / ACCESS);
}
