// How long a matrix product on CUDA is expected to take: by units that copy and multiply stage
// after stage, in turns, and by memory, whichever is longer. What is particular to a form of
// kernel, the form says as its pace.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/bound.h"
#include "gen/shared/emit.h"

enum { REGISTER_FILE = 65536 };
enum { THREADS_OF_UNIT = 2048, BLOCKS_OF_UNIT = 32 };

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

static double side_bytes(const struct kg_cuda_contract_plan *plan, int side, int lines)
{
    return (double)lines * kg_dtypes[kg_cuda_contract_dtype(plan, side)].bits / 8 * plan->set.depth;
}

// Of a step of a tile, both sides. `once`: of what blocks share, the part that each copies.
static double stage_bytes(const struct kg_cuda_contract_plan *plan, bool once)
{
    int left = plan->set.swap ? 1 : 0;
    int64_t tall = kg_cuda_contract_m_after_swap(plan),
            wide = kg_cuda_contract_n_after_swap(plan); // there
    tall = tall < plan->set.rows ? tall : plan->set.rows;
    wide = wide < plan->set.columns ? wide : plan->set.columns;
    return side_bytes(plan, left, (int)tall) / (once ? plan->set.across : 1) +
           side_bytes(plan, !left, (int)wide) / (once ? plan->set.down : 1);
}

// Of a unit: what arrives for its block, or what that asks for itself, where lines that begin
// anywhere take longer.
static double fill_seconds(const struct kg_cuda_contract_plan *plan,
                           const struct kg_cuda_contract_cost_terms *cost_terms)
{
    double arrives = stage_bytes(plan, false), asked = stage_bytes(plan, true) * cost_terms->fill;
    return (arrives > asked ? arrives : asked) / plan->times->fill;
}

// With those of a cluster that are not there.
static int64_t tiles_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t down = plan->set.down, across = plan->set.across;
    return plan->batches * kg_ceil_div(kg_cuda_contract_m_after_swap(plan), plan->set.rows * down) *
           down * kg_ceil_div(kg_cuda_contract_n_after_swap(plan), plan->set.columns * across) *
           across;
}

// Of blocks that run at once.
static int64_t places_of(const struct kg_cuda_contract_plan *plan,
                         const struct kg_cuda_contract_cost_terms *cost_terms)
{
    int64_t units = plan->facts->units;
    int64_t size =
        cost_terms->folds_in_cluster ? plan->set.split : (int64_t)plan->set.down * plan->set.across;
    int64_t clusters = (int64_t)((double)units * plan->times->clustered) / size;
    return (size <= 2 || clusters == 0 ? units : clusters * size) * cost_terms->blocks;
}

double kg_cuda_contract_copying(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_cost_terms *cost_terms)
{
    const double step = 30e-9; // of a copy, however small
    int pieces = plan->set.split > 1 ? plan->set.split : 1;
    int64_t steps = kg_ceil_div(kg_ceil_div(plan->depth, plan->set.depth), pieces);
    int64_t items = kg_ceil_div(tiles_of(plan) * pieces, plan->facts->units);
    return (double)(items * steps) * (fill_seconds(plan, cost_terms) + step);
}

static double folding_seconds(const struct kg_cuda_contract_plan *plan, int64_t turns)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    double one = fit->cluster + fit->folding * plan->set.rows * plan->set.columns / (128.0 * 128.0);
    return one * (double)turns + fit->following * (double)(turns - 1);
}

// Of the units, all of which have about as many tiles, one after the other or some at a time, or
// as many steps.
static double units_seconds(const struct kg_cuda_contract_plan *plan,
                            const struct kg_cuda_contract_cost_terms *cost_terms, int64_t work,
                            int64_t steps, double fresh)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    int64_t places = places_of(plan, cost_terms), turns = kg_ceil_div(work, places);
    int64_t of_block = turns * steps, of_unit = kg_ceil_div(work, plan->facts->units) * steps;
    if (plan->set.split == 0 && work > places) {
        of_block = kg_ceil_div(work * steps, places);
        of_unit = kg_ceil_div(work * steps, plan->facts->units);
    }
    double fill = fill_seconds(plan, cost_terms);
    double stage = cost_terms->multiply > fill ? cost_terms->multiply : fill;
    double delay = fit->delay + fresh * fit->far;
    double alone = (delay + fit->held * cost_terms->multiply) / plan->set.stages;
    double busy = (double)of_unit * stage;
    double one = (double)of_block * (stage > alone ? stage : alone);
    busy += fit->late * (double)steps * alone;
    double finish = fit->finish + fit->leave * plan->set.rows * plan->set.columns / (128.0 * 128.0);
    // Blocks that fold in a cluster do not stay for a second tile.
    bool hides = !cost_terms->folds_in_cluster && (plan->set.pingpong || cost_terms->blocks > 1);
    double shown = hides ? 1 + fit->shown * (double)(turns - 1) : (double)turns;
    // Of part of a tile, few threads have values to work on.
    bool whole = kg_cuda_contract_m_after_swap(plan) >= plan->set.rows;
    double values = hides && whole ? 0 : cost_terms->values * (double)(turns - 1);
    return (busy > one ? busy : one) + finish * shown + values + cost_terms->parts;
}

double kg_cuda_contract_seconds(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_cost_terms *cost_terms)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    const struct kg_device_facts *facts = plan->facts;
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    int pieces = plan->set.split > 1 ? plan->set.split : 1;
    int64_t work = tiles_of(plan) * pieces;
    int64_t steps = kg_ceil_div(kg_ceil_div(plan->depth, plan->set.depth), pieces);
    double bytes = kg_group_bytes(plan->group), copies = (double)(work * steps);
    double loaded = copies * stage_bytes(plan, false);
    double read = copies * stage_bytes(plan, true); // from the L2
    double multiply =
        units_seconds(plan, cost_terms, work, steps, loaded > bytes ? bytes / loaded : 1);
    double memory = fit->begin + bytes / (facts->bandwidth * fit->memory);
    if (cost_terms->passes)
        memory -= fit->written;
    if (read > bytes)
        memory += fit->again * (cost_terms->again > 0 ? cost_terms->again : 1) * (read - bytes) /
                  (fit->fill * fit->units);
    double longer = multiply > memory ? multiply : memory;
    double seconds = fit->launch + longer + fit->both * (multiply + memory - longer);
    seconds += cost_terms->values;
    if (cost_terms->folds_in_cluster)
        seconds += folding_seconds(plan, kg_ceil_div(work, places_of(plan, cost_terms)));
    double outputs = (double)plan->batches * (double)plan->rows * (double)plan->columns;
    if (plan->set.split > 1 && !cost_terms->folds_in_cluster)
        seconds += fit->pieces + plan->set.split * outputs * 4 / (facts->bandwidth * fit->folded);
    if (kg_cuda_contract_is_clustered(plan))
        seconds += fit->meet;
    if (cost_terms->copied > 0)
        seconds += fit->pieces + 2 * cost_terms->copied / facts->bandwidth;
    return seconds * (1 + cost_terms->share);
}
