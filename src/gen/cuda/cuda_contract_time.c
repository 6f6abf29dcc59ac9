// How long a matrix product on CUDA is expected to take: by units that copy and multiply stage
// after stage, in turns, and by memory, whichever is longer. What is particular to a form of
// kernel, the form says as its pace.

#include "gen/cuda/cuda_contract.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/emit.h"
#include "gen/families.h"

enum { REGISTER_FILE = 65536 };
enum { THREADS_OF_UNIT = 2048, BLOCKS_OF_UNIT = 32 };

// As fitted to configs of the forms for wgmma and mma.sync, by an H100 (80 GB, SXM5, driver 580,
// f16, cold L2): first 121 on 43 shapes, then, with these as the first guess, 1155 in 83 races.
// docs/model.md says how well that orders shapes that it was not fitted to. Rates are of a unit,
// times in seconds.
static const struct {
    double launch;  // and whatever else no kernel is without
    double units;   // of that device, by whose number shared rates scale
    double fill;    // of shared memory, bytes a second
    double delay;   // of a copy from the L2, and
    double far;     // as much more from memory
    double memory;  // of the bandwidth that is reached
    double begin;   // until memory is busy
    double again;   // what is read more than once, of the time of a fill
    double late;    // of a delay, where stages are under way; more of them are no worse
    double finish;  // of a tile, and
    double leave;   // of 128 x 128 sums
    double cluster; // of folding 128 x 128 sums there
    double shown;   // of these, where another tile is multiplied meanwhile
    double pieces;  // folding in memory: a launch, and the bytes
    double folded;  // of the bandwidth
    double both;    // of the shorter of two things at once
    double held;    // stages that are being multiplied, and cannot be filled
} measured = {3.92e-6, 132,     92.5e9,  1.45e-6, 0.21e-6, 0.773, 1.43e-6, 0.092, 0.063,
              0.29e-6, 1.19e-6, 12.3e-6, 1.23,    4.16e-6, 0.52,  0.134,   1.45};

double kg_cuda_contract_stage(const struct kg_cuda_contract_plan *plan, double rate, double share)
{
    double operations = 2.0 * plan->set.rows * plan->set.columns * plan->set.depth;
    return rate > 0 ? operations * plan->facts->units / (rate * share) : 0;
}

int kg_cuda_contract_blocks(const struct kg_cuda_contract_plan *plan, int threads, int registers,
                            int64_t shared)
{
    int limit = plan->set.registers;
    int64_t used = limit > 0 && limit < registers ? limit : registers, blocks = BLOCKS_OF_UNIT;
    const int64_t most[] = {THREADS_OF_UNIT / threads, REGISTER_FILE / (threads * used),
                            KG_CUDA_UNIT_SHARED / (shared + KG_CUDA_SYSTEM_SHARED)};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++)
        blocks = most[i] < blocks ? most[i] : blocks;
    return blocks < 1 ? 1 : (int)blocks;
}

// Of a step of a tile, both sides.
static double stage_bytes(const struct kg_cuda_contract_plan *plan)
{
    int left = plan->set.swap ? 1 : 0;
    double bits = (double)plan->set.rows * kg_dtypes[kg_cuda_contract_dtype(plan, left)].bits +
                  (double)plan->set.columns * kg_dtypes[kg_cuda_contract_dtype(plan, !left)].bits;
    return bits / 8 * plan->set.depth;
}

// Of the units, all of which have about as many tiles, one after the other or some at a time, or
// as many steps.
static double units_seconds(const struct kg_cuda_contract_plan *plan,
                            const struct kg_cuda_contract_pace *pace, int64_t work, int64_t steps,
                            double fresh)
{
    int64_t places = (int64_t)plan->facts->units * pace->blocks, turns = kg_ceil_div(work, places);
    int64_t of_block = turns * steps, of_unit = kg_ceil_div(work, plan->facts->units) * steps;
    if (plan->set.split == 0 && work > places) {
        of_block = kg_ceil_div(work * steps, places);
        of_unit = kg_ceil_div(work * steps, plan->facts->units);
    }
    double fill = stage_bytes(plan) / measured.fill * pace->fill;
    double stage = pace->multiply > fill ? pace->multiply : fill;
    double delay = measured.delay + fresh * measured.far;
    double alone = (delay + measured.held * pace->multiply) / plan->set.stages;
    double busy = (double)of_unit * stage;
    double one = (double)of_block * (stage > alone ? stage : alone);
    busy += measured.late * (double)steps * alone;
    double finish =
        measured.finish + measured.leave * plan->set.rows * plan->set.columns / (128.0 * 128.0);
    // Blocks that fold in a cluster do not stay for a second tile.
    bool hides = !pace->folds_in_cluster && (plan->set.pingpong || pace->blocks > 1);
    double shown = hides ? 1 + measured.shown * (double)(turns - 1) : (double)turns;
    // Of part of a tile, few threads have values to work on.
    bool whole = kg_cuda_contract_tall(plan) >= plan->set.rows;
    double values = hides && whole ? 0 : pace->values * (double)(turns - 1);
    return (busy > one ? busy : one) + finish * shown + values + pace->parts;
}

double kg_cuda_contract_seconds(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_pace *pace)
{
    const struct kg_device_facts *facts = plan->facts;
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    int pieces = plan->set.split > 1 ? plan->set.split : 1;
    int64_t work = kg_cuda_contract_tiles(plan) * pieces;
    int64_t steps = kg_ceil_div(kg_ceil_div(plan->depth, plan->set.depth), pieces);
    double bytes = kg_group_bytes(plan->group);
    double loaded = (double)(work * steps) * stage_bytes(plan);
    double multiply = units_seconds(plan, pace, work, steps, loaded > bytes ? bytes / loaded : 1);
    double memory = measured.begin + bytes / (facts->bandwidth * measured.memory);
    if (loaded > bytes)
        memory += measured.again * (pace->again > 0 ? pace->again : 1) * (loaded - bytes) /
                  (measured.fill * measured.units);
    double longer = multiply > memory ? multiply : memory;
    double seconds = measured.launch + longer + measured.both * (multiply + memory - longer);
    seconds += pace->values;
    if (pace->folds_in_cluster) // a part of it for the fewest sums
        seconds +=
            measured.cluster * (0.3 + 0.7 * plan->set.rows * plan->set.columns / (128.0 * 128.0));
    double outputs = (double)plan->batches * (double)plan->rows * (double)plan->columns;
    if (plan->set.split > 1 && !pace->folds_in_cluster)
        seconds +=
            measured.pieces + plan->set.split * outputs * 4 / (facts->bandwidth * measured.folded);
    if (pace->copied > 0)
        seconds += measured.pieces + 2 * pace->copied / facts->bandwidth;
    return seconds * (1 + pace->share);
}
