// Expected times of scans down columns on CUDA.
//
// A block goes from tile to tile, the loads of the next one on their way. A tile takes as long as
// memory's latency, or as what all blocks of its unit have to issue, or to move; a column is one
// chain of them. So where columns are few, what counts is the number of tiles; where they are many,
// the bytes.
//
// The constants were fitted to what an H100 took for 24 shapes, 460 configs
// (tests/data/h100_scans.txt); those fitted to every other shape chose 0.92 of the fastest on the
// others. The model of the other kernels (cuda_memory_time.h), which knows no chain, chose 0.84.

#include "gen/cuda/scan/cuda_scan.h"

#include "gen/cuda/cuda_memory_time.h"
#include "gen/shared/bound.h"

#include <math.h>

enum { WARP = 32, LINE = 128, GRANULE = 64 };

static const double launch_seconds = 3.67e-6, next_seconds = 3.7e-6;
static const double block_seconds = 1.17e-6; // until the first loads are there, and after the last
static const double tile_seconds = 0.51e-6;  // from one tile's loads to the next one's
static const double access_seconds = 1.99e-9, step_seconds = 0.217e-9; // of a warp
static const double special_seconds = 0.5e-9, line_seconds = 0.178e-9; // the same
static const double unit_rate = 93.2e9;                                // bytes per second of a unit
static const double memory_share = 0.817;                              // of the bandwidth
static const double total_seconds = 55e-9; // of a chunk's total, for those after it

// One launch, in sizes of a tile of a block.
struct column_work {
    const struct kg_cuda_scan_plan *plan;
    int vector, hold;
    bool writes;
    double size, read, written; // bytes of an element: all, of these
    double elements, tiles, chunks;
};

// Bytes that lie between what a block reads of one row and of the next; 0: nothing.
static double row_stride(const struct column_work *work)
{
    const struct kg_scan_plan *scan = &work->plan->scan;
    const double width = (double)scan->nest->extent[scan->last];
    const double side = (double)work->plan->threads / work->plan->rows * work->vector;
    return width > side ? width * work->read : 0;
}

// By how much more is read, as a share of what a block reads of a row: memory gives 64 bytes at
// least, from multiples of 64 on.
static double read_more(const struct column_work *work)
{
    const double side = (double)work->plan->threads / work->plan->rows * work->vector * work->read;
    const double stride = row_stride(work);
    double even = GRANULE;
    if (stride == 0 || side == 0)
        return 0;
    while (even > 1 && (fmod(side, even) != 0 || fmod(stride, even) != 0))
        even /= 2;
    return (GRANULE - even) / side;
}

// Lines that a warp touches by one access: its threads of a column are `hold` rows apart.
static double lines_of(const struct column_work *work, double size)
{
    const struct kg_scan_plan *scan = &work->plan->scan;
    const double across = (double)work->plan->threads / work->plan->rows;
    const double among = fmax(1, WARP / across);
    const double apart = work->hold * (double)scan->nest->extent[scan->last] * size;
    const double dense = ceil(WARP * work->vector * size / LINE);
    return among > 1 ? fmax(dense, among * fmin(1, apart / LINE)) : dense;
}

// Instructions by which the threads of a column find out what stands before each of them.
static double fold_steps(const struct column_work *work)
{
    const double rows = work->plan->rows, across = work->plan->threads / rows;
    const double among = fmax(1, WARP / across);
    return rows > 1 && work->writes ? work->vector * (3 * log2(among) + 2 * rows / among + 6) : 0;
}

// What a unit is busy with a tile of a block, if it only issues its instructions.
static double issue_seconds(const struct column_work *work)
{
    const struct kg_group *group = work->plan->scan.group;
    const double of_thread = (double)work->hold * work->vector;
    struct kg_cuda_memory_work counted = {0};
    double lines = work->hold * lines_of(work, work->read);
    kg_cuda_memory_access(&counted, work->hold, work->read * work->vector);
    if (work->writes) {
        kg_cuda_memory_access(&counted, work->hold, work->written * work->vector);
        lines += work->hold * lines_of(work, work->written);
    }
    // Sums are carried with what rounding takes from them.
    counted.steps = of_thread * (work->writes ? 8 : 5) + fold_steps(work);
    for (int i = 0; i < group->count; i++)
        kg_cuda_memory_compute(&counted, group, i, work->elements, of_thread);
    return (double)work->plan->threads / WARP *
           (counted.accesses * access_seconds + counted.steps * step_seconds +
            counted.specials * special_seconds + lines * line_seconds);
}

// A tile, where a unit has so many blocks.
static double tile_time(const struct column_work *work, double blocks)
{
    const double moved = (double)work->plan->threads * work->hold * work->vector *
                         (work->size + work->read * read_more(work));
    const double issue = blocks * issue_seconds(work), move = blocks * moved / unit_rate;
    return sqrt(tile_seconds * tile_seconds + issue * issue + move * move);
}

// All blocks of the busiest unit, in rounds of those that it runs at once.
static double unit_time(const struct column_work *work, double blocks, double resident,
                        double units)
{
    enum { EVEN = 3 }; // after so many rounds units have become free at different times
    const double of_unit = blocks / units, rounds = of_unit / resident;
    if (rounds >= EVEN)
        return rounds * (work->tiles * tile_time(work, resident) + block_seconds);
    const double whole = floor(ceil(of_unit) / resident);
    const double rest = ceil(of_unit) - whole * resident;
    double seconds = whole * tile_time(work, resident);
    if (rest > 0)
        seconds += tile_time(work, rest);
    return work->tiles * seconds + fmax(1, ceil(rounds)) * block_seconds;
}

static double launch_time(const struct column_work *work, const struct kg_grid *grid,
                          const struct kg_config *config, const struct kg_device_facts *facts)
{
    const double sharp = 4.65, kept = 0.7, again = 0.2; // of the L2; of what it holds already
    const double rate = facts->bandwidth * memory_share;
    struct kg_cuda_memory_work counted = kg_cuda_memory_work_of(grid);
    counted.registers = 20 + (double)kg_cuda_scan_registers(&work->plan->scan, config);
    counted.limit = work->plan->registers;
    double read = work->elements * work->read;
    const bool second = work->writes && work->chunks > 1;
    const bool found = second && read < kept * (double)facts->cache[2];
    read = read * ((found ? again : 1) + read_more(work));
    const double memory = (read + work->elements * (work->size - work->read)) / rate;
    const double unit =
        unit_time(work, counted.blocks, kg_cuda_memory_resident(&counted, facts), facts->units);
    const double longest = fmax(memory, unit);
    const double seconds =
        longest * pow(pow(memory / longest, sharp) + pow(unit / longest, sharp), 1 / sharp);
    return seconds + (second ? ceil(work->chunks / work->plan->rows) * total_seconds : 0);
}

double kg_cuda_scan_column_seconds(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    struct kg_cuda_scan_plan plan;
    struct kg_grids grids;
    double seconds = launch_seconds - next_seconds;
    if (facts->units <= 0 || facts->bandwidth <= 0 || facts->unit.threads <= 0)
        return 0;
    kg_cuda_scan_plan_make(match, config, "", &plan);
    match->family->grids(match, config, &grids);
    const struct kg_nest *nest = plan.scan.nest;
    const double length = (double)nest->extent[plan.scan.axis];
    const double chunk = plan.scan.chunk > 0 ? fmin(length, (double)plan.scan.chunk) : length;
    struct column_work work = {.plan = &plan, .elements = 1};
    for (int axis = 0; axis < nest->output_axes; axis++)
        work.elements *= (double)nest->extent[axis];
    work.chunks = chunk > 0 ? ceil(length / chunk) : 0;
    kg_cuda_scan_measure(&plan.scan, &work.read, &work.written);
    for (int i = 0; i < grids.count; i++) {
        const bool single = i % 2 == KG_CUDA_SCAN_SINGLE;
        if (grids.grids[i].blocks[0] == 0)
            continue;
        work.writes = i + 2 >= grids.count;
        work.size = work.read + (work.writes ? work.written : 0);
        work.vector = single ? 1 : plan.vector;
        work.hold = single ? kg_cuda_scan_single(&plan) : plan.hold;
        work.tiles = ceil(chunk / ((double)work.hold * plan.rows));
        seconds += next_seconds + launch_time(&work, &grids.grids[i], config, facts);
    }
    return seconds;
}
