// The least time a group can take, from what it must read, write and compute. Never above the
// truth: where the number of elements a read touches is not plain to see, it counts as none.

#include "gen/shared/bound.h"
#include "gen/shared/emit.h"

#include <string.h>

// Elements of its tensor that the access surely touches: each axis is charged to the first
// dimension it moves, and a dimension counts the longest of its axes.
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
            // A relation leaves at least the part that some output element needs; not known here.
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
            double *most = &least[nest->accesses[j].tensor->id];
            *most = elements > *most ? elements : *most;
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
    // As much as the last-level cache holds may never reach main memory.
    double bytes = kg_group_bytes(group) - (double)facts->cache[3];
    if (facts->bandwidth > 0 && bytes > 0)
        seconds = bytes / facts->bandwidth;
    double operations = 0, rate = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (nest->class != KG_CLASS_SCAN) // carried along, it needs far fewer
            operations += nest->operations;
    }
    for (int type = 0; type <= KG_TYPE_F64; type++)
        rate = facts->flops[type] > rate ? facts->flops[type] : rate;
    if (rate > 0 && operations / rate > seconds)
        seconds = operations / rate;
    return seconds;
}
