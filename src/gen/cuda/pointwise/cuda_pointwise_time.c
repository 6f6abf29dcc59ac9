// What a config of the pointwise family for CUDA has a GPU do: see cuda_memory_time.h.

#include "gen/cuda/pointwise/cuda_pointwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/families.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"

#include <math.h>

enum { SINGLE = 1 };           // the function that goes element by element
enum { OTHER_REGISTERS = 10 }; // of a thread beside its vectors: NVRTC 13.0, 1300 kernels

static double bytes_of(const struct kg_tensor *tensor)
{
    return kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0;
}

// Bytes that are brought in vain: elements that neighbouring threads read lie apart, and whole
// sectors come for each.
static double apart_bytes(const struct kg_cuda_pointwise_plan *plan, const struct kg_access *access)
{
    enum { SECTOR = 32 };
    const struct kg_tensor *tensor = access->tensor;
    const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
    double stride = 0, bytes = bytes_of(tensor);
    for (int dim = 0; dim < tensor->rank && plan->axes > 0; dim++)
        if (access->map[dim].is_affine)
            stride +=
                fabs((double)(access->map[dim].coefficient[plan->axes - 1] * layout->stride[dim]));
    stride = fmin(stride, SECTOR / bytes);
    return stride > 1 ? (stride - 1) * bytes * (double)layout->elements : 0;
}

// Reads that no slot has are made one by one.
static void add_plain_reads(const struct kg_cuda_pointwise_plan *plan, double vectors,
                            struct kg_cuda_memory_work *work)
{
    struct kg_cuda_slots slots;
    kg_cuda_pointwise_find_slots(plan, &slots);
    for (int k = 0; k < plan->group->count; k++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, k);
        for (int a = 0; a < nest->access_count; a++) {
            const struct kg_access *access = &nest->accesses[a];
            bool has_slot = kg_group_maker(plan->group, access->tensor) >= 0;
            for (int i = 0; i < slots.count; i++)
                has_slot |= kg_access_same(slots.items[i].access, access);
            if (has_slot)
                continue;
            kg_cuda_memory_access(work, vectors * plan->vector, bytes_of(access->tensor));
            work->bytes += apart_bytes(plan, access);
        }
    }
}

double kg_cuda_pointwise_streamed(const struct kg_cuda_pointwise_plan *plan)
{
    struct kg_cuda_slots slots;
    double bytes = 0;
    kg_cuda_pointwise_find_slots(plan, &slots);
    for (int i = 0; i < slots.count; i++)
        if (slots.items[i].kind == KG_CUDA_SLOT_VECTOR)
            bytes += kg_cuda_once_bytes(plan->group, slots.items[i].nest, slots.items[i].access);
    return bytes;
}

// Finding the indices of the elements of vectors: the first one's are divided out, those of the
// others are counted on; each for itself in the function that goes element by element.
static double place_steps(const struct kg_cuda_pointwise_plan *plan, bool single, double vectors)
{
    enum { DIVIDED = 12, COUNTED = 3 }; // instructions for each axis
    double axes = 0;
    for (int axis = 0; axis < plan->axes; axis++)
        axes += !plan->merged[axis];
    double elements = vectors * plan->vector;
    return axes * (single ? elements * DIVIDED : vectors * DIVIDED + elements * COUNTED);
}

// Loads, and what they fill.
static void add_slots(const struct kg_cuda_pointwise_plan *plan, bool single, double vectors,
                      struct kg_cuda_memory_work *work)
{
    struct kg_cuda_slots slots;
    const bool indexed = plan->flat && kg_cuda_pointwise_first_index(plan->group) < plan->axes;
    double held = 0, places = indexed ? place_steps(plan, single, vectors) : 0;
    kg_cuda_pointwise_find_slots(plan, &slots);
    for (int i = 0; i < slots.count; i++) {
        const struct kg_cuda_slot *slot = &slots.items[i];
        double count = slot->moves || slot->kind == KG_CUDA_SLOT_TILE ? vectors : 1;
        double elements = slot->kind == KG_CUDA_SLOT_ONE ? 1 : plan->vector;
        double bytes = bytes_of(slot->access->tensor) * elements;
        const bool apart = slot->kind == KG_CUDA_SLOT_APART, singly = single || apart;
        kg_cuda_memory_access(work, singly ? count * elements : count,
                              singly ? bytes / elements : bytes);
        held += count * fmax(bytes, apart ? 4 * elements : 4);
        if (apart) {
            places = fmax(places, place_steps(plan, single, count));
            work->bytes += apart_bytes(plan, slot->access);
        }
        if (slot->kind == KG_CUDA_SLOT_TILE) {
            work->shared +=
                (int64_t)((plan->tile + 4) * plan->tile * bytes_of(slot->access->tensor));
            kg_cuda_memory_access(work, 2 * vectors, bytes);
            work->meetings = 1;
            work->segment = plan->tile * bytes_of(slot->access->tensor);
        }
        for (int dim = 0; dim < slot->access->tensor->rank; dim++)
            if (slot->access->map[dim].is_gather)
                work->trips = 2; // what it is read by is read before
    }
    work->steps += places;
    work->registers = OTHER_REGISTERS + held / 4 + plan->vector;
    work->limit = plan->registers;
}

int kg_cuda_pointwise_work(const struct kg_match *match, const struct kg_config *config,
                           struct kg_cuda_memory_work *works)
{
    const struct kg_group *group = &match->group;
    struct kg_cuda_pointwise_plan plan;
    struct kg_grids grids;
    int count = 0;
    kg_cuda_pointwise_plan_make(match, config, &plan);
    match->family->grids(match, config, &grids);
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
        work->bytes = kg_cuda_memory_bytes(group);
        work->trips = 1;
        work->streamed = plan.stream == KG_CUDA_POINTWISE_ONCE;
        if (plan.stream == KG_CUDA_POINTWISE_FIRST && i != SINGLE)
            work->evicted = kg_cuda_pointwise_streamed(&plan);
        add_slots(&plan, i == SINGLE, vectors, work);
        add_plain_reads(&plan, vectors, work);
        for (int k = 0; k < group->count; k++) {
            const struct kg_tensor *output = kg_group_nest(group, k)->output;
            double bytes = bytes_of(output) * plan.vector;
            if (kg_group_is_private(group, output))
                continue;
            kg_cuda_memory_access(work, i == SINGLE ? vectors * plan.vector : vectors,
                                  i == SINGLE ? bytes / plan.vector : bytes);
        }
        for (int k = 0; k < group->count; k++)
            kg_cuda_memory_compute(work, group, k, elements, vectors * plan.vector);
    }
    return count;
}
