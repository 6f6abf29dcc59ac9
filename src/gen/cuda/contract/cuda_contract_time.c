// The time model of matrix products on CUDA: the longer of two times, that of SMs which fill and
// multiply stage after stage, and that of memory traffic. A form describes what is particular to it
// by its cost terms.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/contract/cuda_contract_times.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/bound.h"
#include "gen/shared/emit.h"

#include <math.h>

double kg_cuda_contract_stage_seconds(const struct kg_cuda_contract_plan *plan, double rate,
                                      double share)
{
    double operations = 2.0 * plan->config.tile_m * plan->config.tile_n * plan->config.tile_k;
    return rate > 0 ? operations * plan->facts->units / (rate * share) : 0;
}

int kg_cuda_contract_blocks_per_sm(const struct kg_cuda_contract_plan *plan, int threads,
                                   int registers, int64_t shared)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int limit = plan->config.maxnreg;
    int64_t used = limit > 0 && limit < registers ? limit : registers, blocks = unit->blocks;
    const int64_t limits[] = {unit->threads / threads, unit->registers / (threads * used),
                              unit->shared / (shared + unit->block_reserve)};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        blocks = limits[i] < blocks ? limits[i] : blocks;
    return blocks < 1 ? 1 : (int)blocks;
}

static double operand_bytes(const struct kg_cuda_contract_plan *plan, int operand, int lines)
{
    return (double)lines * kg_dtypes[kg_cuda_contract_dtype(plan, operand)].bits / 8 *
           plan->config.tile_k;
}

static double output_bytes(const struct kg_cuda_contract_plan *plan)
{
    return kg_dtypes[kg_emit_tensor_dtype(kg_cuda_contract_output(plan))].bits / 8.0;
}

// Bytes of both operands for one stage of a tile. `once`: of operands that a cluster shares, only
// what each block loads itself.
static double stage_bytes(const struct kg_cuda_contract_plan *plan, bool once)
{
    int left = plan->config.swap ? 1 : 0;
    int64_t tall = kg_cuda_contract_m_after_swap(plan), wide = kg_cuda_contract_n_after_swap(plan);
    tall = tall < plan->config.tile_m ? tall : plan->config.tile_m;
    wide = wide < plan->config.tile_n ? wide : plan->config.tile_n;
    return operand_bytes(plan, left, (int)tall) / (once ? plan->config.cluster_n : 1) +
           operand_bytes(plan, !left, (int)wide) / (once ? plan->config.cluster_m : 1);
}

// Counts the tiles that complete a cluster beyond the edges too.
static int64_t tiles_of(const struct kg_cuda_contract_plan *plan)
{
    int64_t down = plan->config.cluster_m, across = plan->config.cluster_n;
    return plan->batches *
           kg_ceil_div(kg_cuda_contract_m_after_swap(plan), plan->config.tile_m * down) * down *
           kg_ceil_div(kg_cuda_contract_tiles_across(plan), across) * across;
}

// The time to fill one stage: the longest of receiving all of it, of issuing the block's own loads,
// which take longer for unaligned lines, and of the L2's share for these while other SMs load, too.
static double fill_seconds(const struct kg_cuda_contract_plan *plan,
                           const struct kg_cuda_contract_cost_terms *cost_terms)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    int64_t splits = plan->config.split_k > 1 ? plan->config.split_k : 1;
    double units = (double)plan->facts->units, work = (double)(tiles_of(plan) * splits);
    double own = stage_bytes(plan, true), loading = work < units ? work / units : 1;
    double copied = cost_terms->copies_all_lines ? operand_bytes(plan, 0, plan->config.tile_m) +
                                                       operand_bytes(plan, 1, plan->config.tile_n)
                                                 : own;
    double issued = fmax(stage_bytes(plan, false), copied * cost_terms->copy_factor);
    return fmax(issued / fit->shared_rate, own * loading / fit->l2_rate);
}

// Blocks that run at once on the device.
static int64_t resident_blocks(const struct kg_cuda_contract_plan *plan,
                               const struct kg_cuda_contract_cost_terms *cost_terms)
{
    int64_t units = plan->facts->units;
    int64_t size = cost_terms->folds_in_cluster
                       ? plan->config.split_k
                       : (int64_t)plan->config.cluster_m * plan->config.cluster_n;
    int64_t clusters = (int64_t)((double)units * plan->times->clustered_units) / size;
    return (size <= 2 || clusters == 0 ? units : clusters * size) * cost_terms->blocks_per_sm;
}

double kg_cuda_contract_copy_seconds(const struct kg_cuda_contract_plan *plan,
                                     const struct kg_cuda_contract_cost_terms *cost_terms)
{
    const double step = 30e-9; // fixed time of a fill
    int splits = plan->config.split_k > 1 ? plan->config.split_k : 1;
    int64_t steps = kg_ceil_div(kg_ceil_div(plan->k, plan->config.tile_k), splits);
    int64_t items = kg_ceil_div(tiles_of(plan) * splits, plan->facts->units);
    return (double)(items * steps) * (fill_seconds(plan, cost_terms) + step);
}

static double folding_seconds(const struct kg_cuda_contract_plan *plan, int64_t waves)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    double one = fit->cluster_fold + fit->cluster_fold_tile * plan->config.tile_m *
                                         plan->config.tile_n / (128.0 * 128.0);
    return one * (double)waves + fit->cluster_next * (double)(waves - 1);
}

// The time of the SMs. `work` tiles or K slices are divided evenly, in whole waves; stream-K
// divides their `steps` (stages) evenly instead. `fresh`: the share of loads that come from memory.
static double units_seconds(const struct kg_cuda_contract_plan *plan,
                            const struct kg_cuda_contract_cost_terms *cost_terms, int64_t work,
                            int64_t steps, double fresh)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    int64_t resident = resident_blocks(plan, cost_terms), waves = kg_ceil_div(work, resident);
    int64_t of_block = waves * steps, of_unit = kg_ceil_div(work, plan->facts->units) * steps;
    if (plan->config.split_k == 0 && work > resident) {
        of_block = kg_ceil_div(work * steps, resident);
        of_unit = kg_ceil_div(work * steps, plan->facts->units);
    }
    double fill = fill_seconds(plan, cost_terms);
    double stage = cost_terms->multiply_seconds > fill ? cost_terms->multiply_seconds : fill;
    double delay = fit->l2_latency + fresh * fit->memory_latency;
    double latency_bound =
        (delay + fit->busy_stages * cost_terms->multiply_seconds) / plan->config.stages;
    double busy = (double)of_unit * stage;
    double least = fmax(latency_bound, cost_terms->stage_latency);
    double one = (double)of_block * fmax(stage, least);
    busy += fit->exposed_latency * (double)steps * latency_bound;
    double finish = fit->tile_end + cost_terms->store_seconds +
                    fit->tile_store * plan->config.tile_m * plan->config.tile_n / (128.0 * 128.0);
    // Blocks that add up K slices in a cluster have one tile only.
    bool hides =
        !cost_terms->folds_in_cluster && (plan->config.pingpong || cost_terms->blocks_per_sm > 1);
    double exposed = hides ? 1 + fit->exposed_end * (double)(waves - 1) : (double)waves;
    // In a tile that is larger than the output, few threads have epilogue work.
    bool whole = kg_cuda_contract_m_after_swap(plan) >= plan->config.tile_m;
    double values = hides && whole ? 0 : cost_terms->epilogue_seconds * (double)(waves - 1);
    return (busy > one ? busy : one) + finish * exposed + values + cost_terms->stream_k_seconds;
}

double kg_cuda_contract_seconds(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_contract_cost_terms *cost_terms)
{
    const struct kg_cuda_contract_times *fit = plan->times;
    const struct kg_device_facts *facts = plan->facts;
    if (facts->units <= 0 || facts->bandwidth <= 0)
        return 0;
    int splits = plan->config.split_k > 1 ? plan->config.split_k : 1;
    int64_t work = tiles_of(plan) * splits;
    int64_t steps = kg_ceil_div(kg_ceil_div(plan->k, plan->config.tile_k), splits);
    double bytes = kg_group_bytes(plan->group), copies = (double)(work * steps);
    double loaded = copies * stage_bytes(plan, false);
    double read = copies * stage_bytes(plan, true); // from the L2
    double multiply =
        units_seconds(plan, cost_terms, work, steps, loaded > bytes ? bytes / loaded : 1);
    double memory = fit->memory_start + bytes / (facts->bandwidth * fit->bandwidth_share);
    if (cost_terms->is_streamed)
        memory -= fit->streamed_saving;
    if (read > bytes)
        memory += fit->reread_share *
                  (cost_terms->reread_factor > 0 ? cost_terms->reread_factor : 1) * (read - bytes) /
                  (fit->shared_rate * fit->fitted_units);
    double outputs = (double)plan->batches * (double)plan->m * (double)plan->n;
    if (cost_terms->store_factor > 1)
        memory += (cost_terms->store_factor - 1) * outputs * output_bytes(plan) /
                  (facts->bandwidth * fit->bandwidth_share);
    double longer = multiply > memory ? multiply : memory;
    double seconds = fit->launch + longer + fit->overlap_loss * (multiply + memory - longer);
    seconds += cost_terms->epilogue_seconds;
    if (cost_terms->folds_in_cluster)
        seconds += folding_seconds(plan, kg_ceil_div(work, resident_blocks(plan, cost_terms)));
    if (plan->config.split_k > 1 && !cost_terms->folds_in_cluster)
        seconds += fit->fold_launch +
                   plan->config.split_k * outputs * 4 / (facts->bandwidth * fit->fold_bandwidth);
    if (kg_cuda_contract_is_clustered(plan))
        seconds += fit->cluster_barrier;
    if (cost_terms->packed_bytes > 0)
        seconds += fit->fold_launch + 2 * cost_terms->packed_bytes / facts->bandwidth;
    return seconds * (1 + cost_terms->extra_share);
}
