// What a config of the reduce family for CUDA has a GPU do: see cuda_memory_time.h.

#include "gen/cuda/reduce/cuda_reduce.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/families.h"
#include "gen/shared/bound.h"

#include <math.h>

enum { WHOLE, SINGLE, COMBINE }; // the functions of a kernel
// Registers of a thread beside what it loads and its totals: as NVRTC 13.0 had it for 1500 of these
// kernels. Instructions by which two totals become one.
enum { SECTOR = 32, OTHER_REGISTERS = 24, FOLD_STEPS = 20, PLACE_STEPS = 4 };
enum { SINGLE_STEPS = 10 }; // to find, in 64 bits, the place of an element that is read alone

// Bytes that a thread reads for each element of the reduction: of what lies in vectors, or else,
// one by one.
static double element_bytes(const struct kg_cuda_reduce_plan *plan, bool *singly)
{
    int widest, together;
    double bytes = 0;
    kg_cuda_reduce_elements(plan, &widest, &together);
    *singly = together == 0;
    for (int a = 0; a < plan->nest->access_count && together == 0; a++)
        bytes += kg_dtypes[kg_emit_tensor_dtype(plan->nest->accesses[a].tensor)].bits / 8.0;
    return together > 0 ? together : bytes;
}

static double count_registers(const struct kg_cuda_reduce_plan *plan, double bytes)
{
    // What is loaded, and where it is: compilers keep addresses, and elements as they come apart.
    const double loaded = 1.25 * bytes * plan->vector * plan->unroll;
    double totals =
        kg_cuda_reduce_fold_bytes(&plan->fold) * (plan->column ? 1.5 * plan->vector : 2);
    double registers = OTHER_REGISTERS + (totals + loaded) / 4;
    return registers;
}

// The blocks that read.
static void describe_reading(const struct kg_cuda_reduce_plan *plan, bool whole,
                             struct kg_cuda_memory_work *work)
{
    int64_t blocks, parts, wide = 1, groups = 1;
    kg_cuda_reduce_count(plan, &blocks, &parts);
    if (plan->column)
        kg_cuda_reduce_shape(plan, &wide, &groups);
    bool singly;
    double bytes = element_bytes(plan, &singly), turns = (double)kg_ceil_div(parts, plan->split);
    // The last vectors of what is reduced may not be there.
    double count = 1;
    for (int axis = plan->outputs; axis < plan->nest->axis_count; axis++)
        count *= (double)plan->nest->extent[axis];
    double shares = plan->column ? (double)groups : (double)plan->threads * plan->vector;
    double vectors = fmin(turns * plan->unroll, ceil(count / (shares * plan->split)));
    double elements = vectors * plan->vector;
    int batches = whole ? 1 : plan->unroll / kg_cuda_reduce_batch(plan);
    work->registers = count_registers(plan, bytes);
    work->limit = plan->registers;
    if (plan->column)
        work->segment = (double)wide * plan->vector * bytes;
    work->bytes = kg_cuda_memory_bytes(plan->group);
    work->again = fmax(0, plan->nest->iterations * bytes - work->bytes);
    work->evicted = plan->evict && whole ? kg_cuda_reduce_streamed(plan) : 0;
    // Neighbouring threads whose elements lie apart have whole sectors brought for each.
    double apart = kg_cuda_reduce_apart(plan), sector = SECTOR / bytes;
    work->bytes *= apart < 1 ? 1 : apart < sector ? apart : sector;
    work->trips = turns * (batches > 1 ? batches : 1);
    work->unrolled = (double)plan->unroll * plan->vector;
    const double found = singly ? elements : 0;
    singly |= !whole;
    kg_cuda_memory_access(work, vectors * (singly ? plan->vector : 1),
                          bytes * (singly ? 1 : plan->vector));
    // Places are compared, and chosen, beside values.
    work->steps = found * SINGLE_STEPS + (plan->fold.is_argument ? elements * PLACE_STEPS : 0);
    if (plan->column)
        kg_cuda_memory_divide(work, vectors, plan->nest->axis_count - 1 - plan->outputs);
    for (int i = 0; i <= plan->k; i++)
        kg_cuda_memory_compute(work, plan->group, i, plan->nest->iterations, elements);
    if (plan->fold.is_float_sum)
        work->steps += turns * 6 * (plan->column ? plan->vector : plan->unroll);
    double folds = plan->column ? log2((double)groups) : 2;
    work->meetings = folds + (plan->cluster ? 1 : 0);
    double fold_steps = plan->fold.is_argument ? 3 * FOLD_STEPS : FOLD_STEPS;
    work->steps += (folds + 1) * fold_steps * (plan->column ? plan->vector : 1);
}

// Those that fold what others left.
static void describe_folding(const struct kg_cuda_reduce_plan *plan, double outputs,
                             struct kg_cuda_memory_work *work)
{
    double left = outputs * plan->split * KG_CUDA_PARTIAL_BYTES;
    double of_thread = outputs * plan->split / (work->blocks * work->threads);
    work->registers = OTHER_REGISTERS;
    work->again = 2 * left;
    work->near_trips = fmax(1, of_thread);
    kg_cuda_memory_access(work, work->near_trips, KG_CUDA_PARTIAL_BYTES);
    work->steps = FOLD_STEPS * fmax(1, of_thread);
    work->meetings = 2;
}

// Joined columns are described as if they were not joined, so that no other family loses to them by
// this model: the rule joins columns only where `reduce` is chosen anyway. With four columns for
// each outer index, `direct`, a thread for each output, took 0.7 to 1.1 times as long as joined
// columns.
int kg_cuda_reduce_work(const struct kg_match *match, const struct kg_config *config,
                        struct kg_cuda_memory_work *works)
{
    struct kg_config described = *config;
    struct kg_cuda_reduce_plan plan;
    struct kg_grids grids;
    int count = 0;
    if (described.value[COLUMN] == ALONG_JOINED)
        described.value[COLUMN] = ALONG_COLUMNS;
    kg_cuda_reduce_plan_make(match, &described, &plan);
    match->family->grids(match, &described, &grids);
    double outputs = 1;
    for (int axis = 0; axis < plan.outputs; axis++)
        outputs *= (double)plan.nest->extent[axis];
    for (int i = 0; i < grids.count; i++) {
        if (grids.grids[i].blocks[0] == 0 || outputs == 0)
            continue;
        struct kg_cuda_memory_work *work = &works[count++];
        *work = kg_cuda_memory_work_of(&grids.grids[i]);
        if (i == COMBINE)
            describe_folding(&plan, outputs, work);
        else
            describe_reading(&plan, i == WHOLE, work);
    }
    return count;
}
