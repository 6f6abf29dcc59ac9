// What a config of the scan family for CUDA has a GPU do along rows: see cuda_memory_time.h.

#include "gen/cuda/scan/cuda_scan.h"

#include "gen/cuda/cuda_memory_time.h"
#include "gen/families.h"
#include "gen/shared/bound.h"

#include <math.h>

// Of a row that begins or ends within a vector, each element is asked whether it is there: fitted
// to eleven races of odd rows on an H200, of which the model chose 1.09 of the fastest without
// this, and 1.02 with it.
enum { OTHER_REGISTERS = 20, FOLD_STEPS = 20, SHIFT_STEPS = 8 };

void kg_cuda_scan_measure(const struct kg_scan_plan *plan, double *read, double *written)
{
    *read = *written = 0;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int a = 0; a < nest->access_count; a++) {
            const struct kg_tensor *tensor = nest->accesses[a].tensor;
            if (tensor->rank > 0 && !kg_group_is_private(plan->group, tensor))
                *read += kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0;
        }
        if (kg_scan_is_stored(plan, i))
            *written += kg_dtypes[kg_emit_tensor_dtype(nest->output)].bits / 8.0;
    }
}

static void describe(const struct kg_cuda_scan_plan *plan, const struct kg_config *config,
                     bool single, bool writes, struct kg_cuda_memory_work *work)
{
    const struct kg_nest *nest = plan->scan.nest;
    double length = (double)nest->extent[plan->scan.axis], elements = 1, read, written;
    double chunk = plan->scan.chunk > 0 ? fmin(length, (double)plan->scan.chunk) : length;
    for (int axis = 0; axis < nest->output_axes; axis++)
        elements *= (double)nest->extent[axis];
    kg_cuda_scan_measure(&plan->scan, &read, &written);
    int vector = single ? 1 : plan->vector, hold = single ? kg_cuda_scan_single(plan) : plan->hold;
    double tile = (double)plan->threads * plan->cluster * vector * hold;
    double tiles = ceil(chunk / tile), of_thread = tiles * hold * vector;
    work->bytes = elements * (read + (writes ? written : 0));
    work->registers = OTHER_REGISTERS + (double)kg_cuda_scan_registers(&plan->scan, config);
    work->limit = plan->registers;
    work->trips = tiles;
    work->meetings = 2 * tiles;
    kg_cuda_memory_access(work, tiles * hold, read * vector);
    if (writes)
        kg_cuda_memory_access(work, tiles * hold, written * vector);
    // Sums are carried with what rounding takes from them.
    work->steps += of_thread * 8;
    if (plan->shifts && nest->extent[plan->scan.axis] % plan->vector != 0)
        work->steps += of_thread * SHIFT_STEPS;
    for (int i = 0; i < plan->scan.group->count; i++)
        kg_cuda_memory_compute(work, plan->scan.group, i, elements, of_thread);
    work->steps += tiles * hold * FOLD_STEPS;
}

int kg_cuda_scan_work(const struct kg_match *match, const struct kg_config *config,
                      struct kg_cuda_memory_work *works)
{
    struct kg_cuda_scan_plan plan;
    struct kg_grids grids;
    int count = 0;
    kg_cuda_scan_plan_make(match, config, "", &plan);
    match->family->grids(match, config, &grids);
    for (int i = 0; i < grids.count; i++) {
        if (grids.grids[i].blocks[0] == 0)
            continue;
        works[count] = kg_cuda_memory_work_of(&grids.grids[i]);
        const int functions = kg_cuda_scan_functions(&plan);
        describe(&plan, config, i % functions == KG_CUDA_SCAN_SINGLE, i + functions >= grids.count,
                 &works[count]);
        count++;
    }
    return count;
}
