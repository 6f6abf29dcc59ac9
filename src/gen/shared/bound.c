// A lower bound of a group's time, from its compulsory reads, writes and operations. If the number
// of elements that a read touches is not known, it counts as none.

#include "gen/shared/bound.h"
#include "gen/shared/emit.h"

#include <string.h>

// Elements of its tensor that the access certainly touches: each axis counts for the first
// dimension that it moves, and a dimension counts its longest axis.
static double least_elements(const struct kg_nest *nest, const struct kg_access *access)
{
    bool charged[KG_MAX_INDICES] = {false};
    double elements = 1;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_affine *map = &access->map[dim];
        int64_t longest = 1;
        if (!map->is_affine || access->read->pad)
            continue;
        for (int axis = 0; axis < nest->axis_count; axis++) {
            if (map->coefficient[axis] == 0 || charged[axis])
                continue;
            charged[axis] = true;
            // With a relation, some elements may not be needed: not known here.
            bool whole = nest->axes[axis]->relation == KG_RELATION_NONE;
            if (whole && nest->extent[axis] > longest)
                longest = nest->extent[axis];
        }
        elements *= (double)longest;
    }
    return elements;
}

double kg_group_bytes(const struct kg_group *group)
{
    const struct kg_problem *problem = group->problem;
    double least[KG_MAX_NESTS + KG_MAX_TENSORS] = {0};
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int axis = 0; axis < nest->axis_count; axis++)
            if (nest->extent[axis] == 0)
                return 0;
        for (int j = 0; j < nest->access_count; j++) {
            double elements = least_elements(nest, &nest->accesses[j]);
            double *bytes_read = &least[nest->accesses[j].tensor->id];
            *bytes_read = elements > *bytes_read ? elements : *bytes_read;
        }
        least[nest->output->id] = (double)problem->layouts[nest->output->id].elements;
    }
    double bytes = 0;
    for (int id = 0; id < problem->tensor_count; id++) {
        const struct kg_tensor *tensor = problem->tensors[id];
        if (!kg_group_is_private(group, tensor))
            bytes += least[id] * kg_dtypes[kg_emit_tensor_dtype(tensor)].bits / 8.0;
    }
    return bytes;
}

double kg_group_bound(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    (void)config;
    double seconds = 0;
    // Bytes that fit the last-level cache may never reach main memory.
    double bytes = kg_group_bytes(group) - (double)facts->cache[3];
    if (facts->bandwidth > 0 && bytes > 0)
        seconds = bytes / facts->bandwidth;
    double operations = 0, rate = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (nest->class != KG_CLASS_SCAN) // computed incrementally, a scan takes far fewer
            operations += nest->operations;
    }
    for (int type = 0; type <= KG_TYPE_F64; type++)
        rate = facts->flops[type] > rate ? facts->flops[type] : rate;
    if (rate > 0 && operations / rate > seconds)
        seconds = operations / rate;
    return seconds;
}
