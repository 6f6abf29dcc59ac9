// What a config of the pointwise family for CUDA has a GPU do: see cuda_memory_time.h.

#include "gen/cuda/pointwise/cuda_pointwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/families.h"

#include <math.h>

enum { SINGLE = 1 };           // the function that goes element by element
enum { OTHER_REGISTERS = 10 }; // of a thread beside its vectors: NVRTC 13.0, 1300 kernels

static double bytes_of(const struct kg_tensor *tensor)
{
    return kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0;
}

// Loads, and what they fill.
static void add_slots(const struct kg_cuda_pointwise_plan *plan, bool single, double vectors,
                      struct kg_cuda_memory_work *work)
{
    struct kg_cuda_slots slots;
    double held = 0;
    kg_cuda_pointwise_find_slots(plan, &slots);
    for (int i = 0; i < slots.count; i++) {
        const struct kg_cuda_slot *slot = &slots.items[i];
        double count = slot->moves || slot->kind == KG_CUDA_SLOT_TILE ? vectors : 1;
        double elements = slot->kind == KG_CUDA_SLOT_ONE ? 1 : plan->vector;
        double bytes = bytes_of(slot->access->tensor) * elements;
        work->accesses += count * (single ? elements : kg_cuda_memory_accesses(bytes));
        held += count * fmax(bytes, 4);
        if (slot->kind == KG_CUDA_SLOT_TILE) {
            work->shared +=
                (int64_t)((plan->tile + 4) * plan->tile * bytes_of(slot->access->tensor));
            work->accesses += 2 * vectors;
            work->meetings = 1;
        }
        for (int dim = 0; dim < slot->access->tensor->rank; dim++)
            if (slot->access->map[dim].is_gather)
                work->trips = 2; // what it is read by is read before
    }
    work->registers = OTHER_REGISTERS + held / 4 + plan->vector;
    if (plan->registers > 0)
        work->registers = fmin(work->registers, plan->registers);
}

int kg_cuda_pointwise_work(const struct kg_group *group, const struct kg_device_facts *facts,
                           const struct kg_config *config, struct kg_cuda_memory_work *works)
{
    struct kg_cuda_pointwise_plan plan;
    struct kg_grids grids;
    int count = 0;
    kg_cuda_pointwise_plan_make(group, config, &plan);
    kg_cuda_pointwise.grids(group, facts, config, &grids);
    const struct kg_nest *nest = kg_group_nest(group, group->count - 1);
    double elements = 1;
    for (int axis = 0; axis < nest->output_axes; axis++)
        elements *= (double)nest->extent[axis];
    for (int i = 0; i < grids.count; i++) {
        if (grids.grids[i].blocks[0] == 0 || elements == 0)
            continue;
        struct kg_cuda_memory_work *work = &works[count++];
        double vectors =
            plan.tile ? (double)plan.tile * plan.tile / plan.vector / plan.threads : plan.rows;
        *work = kg_cuda_memory_work_of(&grids.grids[i]);
        work->bytes = kg_group_bytes(group);
        work->trips = 1;
        add_slots(&plan, i == SINGLE, vectors, work);
        for (int k = 0; k < group->count; k++) {
            const struct kg_tensor *output = kg_group_nest(group, k)->output;
            if (!kg_group_is_private(group, output))
                work->accesses +=
                    vectors * (i == SINGLE
                                   ? plan.vector
                                   : kg_cuda_memory_accesses(bytes_of(output) * plan.vector));
        }
        work->steps = vectors * plan.vector *
                      (kg_cuda_memory_steps(group, 0, group->count - 1, elements) + 2);
    }
    return count;
}
