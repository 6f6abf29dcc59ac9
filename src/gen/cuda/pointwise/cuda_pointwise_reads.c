// How the pointwise family for CUDA reads each tensor: see cuda_pointwise.h.

#include "gen/cuda/pointwise/cuda_pointwise.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"
#include "gen/shared/direct_nest.h"

// Whether elements of the access follow each other in another way than those of the output do.
static bool is_apart(const struct kg_group *group, const struct kg_access *access)
{
    const struct kg_nest *nest = kg_group_nest(group, 0);
    for (int axis = 0; axis + 1 < nest->output_axes; axis++)
        if (!kg_pointwise_allows_merge(nest, access, axis))
            return true;
    return false;
}

unsigned kg_cuda_pointwise_dims(const struct kg_cuda_pointwise_plan *plan,
                                const struct kg_access *access)
{
    const bool line = plan->flat && !is_apart(plan->group, access);
    unsigned dims = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        bool skipped = false;
        for (int axis = 0; axis + 1 < plan->axes; axis++)
            skipped |= (line || plan->merged[axis]) && kg_pointwise_bare(access, dim, axis);
        dims |= (unsigned)!skipped << dim;
    }
    return dims;
}

unsigned kg_cuda_pointwise_output_dims(const struct kg_cuda_pointwise_plan *plan)
{
    unsigned dims = 0;
    for (int axis = 0; axis < plan->axes; axis++)
        dims |= (unsigned)!(plan->merged[axis] || (plan->flat && axis + 1 < plan->axes)) << axis;
    return dims;
}

// Whether the access follows `axis` in memory, and moves with it in no other way.
static bool follows(const struct kg_access *access, int axis, unsigned dims)
{
    int last = access->tensor->rank - 1;
    if (last < 0 || axis < 0 || kg_direct_is_packed(access->tensor) ||
        !kg_pointwise_bare(access, last, axis))
        return false;
    for (int dim = 0; dim < last; dim++)
        if ((dims >> dim & 1) && kg_expr_uses(access->map[dim].subscript, axis, true))
            return false;
    return true;
}

static bool is_made(const struct kg_group *group, const struct kg_access *access)
{
    return kg_pointwise_producer(group, access->tensor, group->count) >= 0;
}

int kg_cuda_pointwise_crossing(const struct kg_group *group)
{
    int columns = kg_group_nest(group, 0)->output_axes - 1;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            if (access->read->pad || is_made(group, access))
                continue;
            for (int axis = 0; axis < columns; axis++)
                if (follows(access, axis, ~0u) && kg_access_uses(access, columns, columns))
                    return axis;
        }
    }
    return -1;
}

// Repeats along the last axis, wherever the one before it stands.
static bool repeats(const struct kg_access *access, int column)
{
    return !access->read->pad && follows(access, column, ~0u) &&
           !kg_access_uses(access, column - 1, column - 1);
}

bool kg_cuda_pointwise_rounds(const struct kg_group *group)
{
    int column = kg_group_nest(group, 0)->output_axes - 1;
    bool found = false;
    if (column < 1 || !group->problem->contiguous)
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (kg_expr_uses(nest->body, column - 1, false) || kg_expr_uses(nest->body, column, false))
            return false;
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            if (is_made(group, access) || kg_pointwise_allows_merge(nest, access, column - 1))
                continue;
            if (!repeats(access, column))
                return false;
            found = true;
        }
    }
    return found;
}

// Just an axis, or nothing that moves.
static bool is_simple(const struct kg_affine *map)
{
    if (map->is_gather)
        return false;
    if (map->subscript->kind == KG_EXPR_INDEX)
        return true;
    for (int axis = 0; axis < KG_MAX_INDICES; axis++)
        if (kg_expr_uses(map->subscript, axis, true))
            return false;
    return true;
}

// Whether places are sums of axes times strides.
static bool has_simple_places(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int axis = 0; axis < nest->output_axes; axis++)
            if (!kg_axes_from_zero(nest->axes[axis]))
                return false;
        for (int j = 0; j < nest->access_count; j++) {
            if (nest->accesses[j].read->pad)
                return false;
            for (int dim = 0; dim < nest->accesses[j].tensor->rank; dim++)
                if (!is_simple(&nest->accesses[j].map[dim]))
                    return false;
        }
    }
    return true;
}

bool kg_cuda_pointwise_can_be_flat(const struct kg_group *group)
{
    const int axes = kg_group_nest(group, 0)->output_axes;
    bool is_line = true;
    int reads = 0;
    for (int axis = 0; axis + 1 < axes; axis++)
        is_line &= kg_pointwise_can_merge(group, axis);
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        reads += nest->access_count;
        for (int j = 0; j < nest->access_count; j++)
            if (kg_direct_is_packed(nest->accesses[j].tensor))
                return false;
    }
    return group->problem->contiguous && !is_line && reads <= KG_CUDA_MOST_SLOTS &&
           has_simple_places(group);
}

int kg_cuda_pointwise_first_index(const struct kg_group *group)
{
    int first = kg_group_nest(group, 0)->output_axes;
    for (int i = 0; i < group->count; i++)
        for (int axis = first - 1; axis >= 0; axis--)
            if (kg_expr_uses(kg_group_nest(group, i)->body, axis, false))
                first = axis;
    return first;
}

bool kg_cuda_pointwise_simple(const struct kg_group *group)
{
    return has_simple_places(group) &&
           kg_cuda_pointwise_first_index(group) == kg_group_nest(group, 0)->output_axes;
}

// How a thread gets what the access reads before it computes; false: it does not, but reads it
// then.
static bool kind_of(const struct kg_cuda_pointwise_plan *plan, const struct kg_access *access,
                    enum kg_cuda_slot_kind *kind)
{
    unsigned dims = kg_cuda_pointwise_dims(plan, access);
    int column = plan->axes - 1, run = plan->run > 0 ? plan->run : 0;
    if (access->read->pad || is_made(plan->group, access))
        return false;
    if (plan->flat && is_apart(plan->group, access))
        *kind = KG_CUDA_SLOT_APART;
    else if (plan->tile && follows(access, plan->across, dims) &&
             kg_access_uses(access, run, column))
        *kind = KG_CUDA_SLOT_TILE;
    else if (follows(access, column, dims))
        *kind = plan->last && !kg_access_uses(access, column - 1, column - 1) ? KG_CUDA_SLOT_ROUND
                                                                              : KG_CUDA_SLOT_VECTOR;
    else if (!kg_access_uses(access, run, column))
        *kind = KG_CUDA_SLOT_ONE;
    else
        return false;
    return true;
}

int kg_cuda_pointwise_piece(const struct kg_tensor *tensor)
{
    enum { ACCESS = 16 };
    return ACCESS * 8 / kg_dtypes[kg_emit_tensor_dtype(tensor)].bits;
}

int64_t kg_cuda_pointwise_extent(const struct kg_cuda_pointwise_plan *plan, int axis)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, 0);
    int64_t extent = axis >= 0 ? nest->extent[axis] : 1;
    while (axis > 0 && plan->merged[axis - 1])
        extent *= nest->extent[--axis];
    return extent;
}

// Whether vectors of the tensor are whole as far as strides tell; then `alignment` counts it.
static bool is_whole(const struct kg_cuda_pointwise_plan *plan, const struct kg_tensor *tensor,
                     unsigned dims, int vector, int *alignment)
{
    int bytes = kg_cuda_alignment(tensor, vector);
    *alignment = bytes > *alignment ? bytes : *alignment;
    return kg_cuda_is_whole(plan->group->problem, tensor, dims, vector);
}

static bool reads_whole(const struct kg_cuda_pointwise_plan *plan, const struct kg_access *access,
                        int *alignment)
{
    enum kg_cuda_slot_kind kind;
    int vector = plan->vector;
    if (!kind_of(plan, access, &kind) || kind == KG_CUDA_SLOT_ONE || kind == KG_CUDA_SLOT_APART)
        return true;
    if (kind == KG_CUDA_SLOT_ROUND)
        vector = plan->last;
    if (kind == KG_CUDA_SLOT_TILE) {
        vector = kg_cuda_pointwise_piece(access->tensor);
        if (kg_cuda_pointwise_extent(plan, plan->across) % vector != 0)
            return false;
    }
    return is_whole(plan, access->tensor, kg_cuda_pointwise_dims(plan, access), vector, alignment);
}

bool kg_cuda_pointwise_is_line(const struct kg_cuda_pointwise_plan *plan)
{
    return plan->run <= 0 && !plan->tile;
}

int kg_cuda_pointwise_alignment(const struct kg_cuda_pointwise_plan *plan)
{
    int alignment = 1;
    if ((!kg_cuda_pointwise_is_line(plan) &&
         kg_cuda_pointwise_extent(plan, plan->axes - 1) % plan->vector != 0) ||
        (plan->last && kg_group_nest(plan->group, 0)->extent[plan->axes - 1] != plan->last))
        return 0;
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        if (!kg_group_is_private(plan->group, nest->output) &&
            !is_whole(plan, nest->output, kg_cuda_pointwise_output_dims(plan), plan->vector,
                      &alignment))
            return 0;
        for (int j = 0; j < nest->access_count; j++)
            if (!reads_whole(plan, &nest->accesses[j], &alignment))
                return 0;
    }
    return alignment;
}

static bool is_known(const struct kg_cuda_slots *slots, const struct kg_access *access)
{
    for (int i = 0; i < slots->count; i++)
        if (kg_access_same(access, slots->items[i].access))
            return true;
    return false;
}

void kg_cuda_pointwise_find_slots(const struct kg_cuda_pointwise_plan *plan,
                                  struct kg_cuda_slots *slots)
{
    *slots = (struct kg_cuda_slots){0};
    for (int i = 0; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            enum kg_cuda_slot_kind kind;
            if (slots->count == KG_CUDA_MOST_SLOTS || !kind_of(plan, access, &kind) ||
                is_known(slots, access))
                continue;
            // Rows of tiles are those of their other axis.
            int from = plan->tile ? plan->across : 0,
                to = plan->tile ? plan->across : plan->run - 1;
            slots->items[slots->count++] = (struct kg_cuda_slot){
                .nest = nest,
                .access = access,
                .kind = kind,
                .moves = (kind == KG_CUDA_SLOT_VECTOR && (plan->run <= 0 || plan->tile)) ||
                         kind == KG_CUDA_SLOT_APART || kg_access_uses(access, from, to),
            };
        }
    }
}
