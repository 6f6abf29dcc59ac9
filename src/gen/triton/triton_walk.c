// Short last axes, walked together with the axis before: see triton_walk.h.

#include "gen/triton/triton_walk.h"

#include "gen/shared/axes.h"
#include "gen/triton/triton_merge.h"
#include "gen/triton/triton_tile.h"

#include <string.h>

// Whether an access goes along the axis in another way than along both of the last two.
static bool uses_apart(const struct kg_group *group, int axis, int last)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int a = 0; a < nest->access_count; a++) {
            int dims[2];
            if (kg_access_uses(&nest->accesses[a], axis, axis) &&
                !kg_triton_is_walked(nest, &nest->accesses[a], last, dims))
                return true;
        }
    }
    return false;
}

// Whether tensors have strides, and those that go along both axes have them as their own.
static bool is_plain(const struct kg_nest *nest, int last)
{
    int dims[2];
    if (nest->has_reduce || kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return false;
    for (int a = 0; a < nest->access_count; a++) {
        const struct kg_access *access = &nest->accesses[a];
        bool both =
            kg_access_uses(access, last - 1, last - 1) && kg_access_uses(access, last, last);
        if (kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)) ||
            (both && !kg_triton_is_walked(nest, access, last, dims)))
            return false;
    }
    return true;
}

bool kg_triton_walk_pays(const struct kg_triton_unit *unit, const struct kg_nest *shape)
{
    const struct kg_group *group = unit->group;
    int last = shape->output_axes - 1;
    if (last < 1 || kg_triton_turned_axis(group, shape) >= 0 ||
        !kg_triton_can_merge(group, shape, last - 1) || !kg_triton_can_merge(group, shape, last) ||
        kg_size_same(shape->axes[last - 1]->end, shape->axes[last]->end))
        return false;
    bool apart = false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        if (!is_plain(nest, last))
            return false;
        for (int a = 0; a < nest->access_count; a++)
            apart |= !kg_group_is_private(group, nest->accesses[a].tensor) &&
                     kg_access_uses(&nest->accesses[a], last - 1, last - 1) !=
                         kg_access_uses(&nest->accesses[a], last, last);
    }
    return apart;
}

void kg_triton_walk_tile(struct kg_triton_kernel *kernel, const struct kg_nest *shape)
{
    int last = shape->output_axes - 1;
    kg_triton_tile_rows(kernel, shape, last - 1, true);
    struct kg_triton_axis both = kg_triton_tile_dimension(
        kernel, "col", last > 1 ? 1 : 0, "BLOCK_COLS", last > 1 ? "[None, :]" : "",
        kg_triton_tile_product(kernel, shape, last - 1, last));
    kernel->is_constant[shape->axes[last]->end->size->id] = true;
    const char *length = kg_triton_extent(kernel, shape->axes[last]);
    for (int axis = last - 1; axis <= last; axis++) {
        const char *name = both.name;
        if (uses_apart(kernel->group, axis, last)) {
            name = kg_triton_fresh(kernel, shape->axes[axis]->name);
            kg_triton_line(kernel, "%s = %s %s %s", name, both.name, axis == last ? "%" : "//",
                           length);
        }
        kernel->axes[axis] = (struct kg_triton_axis){.name = name, .inside = both.inside};
    }
    kernel->walk = both.name;
    kernel->walked = last;
}

// "(x.stride(2), x.stride(3))" of a tensor, once.
static void add_strides(struct kg_text *all, const char *tensor, int outer, int inner)
{
    struct kg_text one = {0};
    kg_text_format(&one, ", (%s.stride(%d), %s.stride(%d))", tensor, outer, tensor, inner);
    if (!strstr(kg_text_string(all), kg_text_string(&one)))
        kg_text_add(all, kg_text_string(&one));
    all->failed |= one.failed;
    kg_text_free(&one);
}

void kg_triton_walk_condition(struct kg_triton_unit *unit, const struct kg_nest *shape)
{
    const struct kg_group *group = unit->group;
    const struct kg_triton_host *host = unit->host;
    int last = shape->output_axes - 1;
    struct kg_text strides = {0};
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int a = 0; a < nest->access_count; a++) {
            const struct kg_tensor *tensor = nest->accesses[a].tensor;
            int dims[2];
            if (!kg_group_is_private(group, tensor) &&
                kg_triton_is_walked(nest, &nest->accesses[a], last, dims))
                add_strides(&strides, host->tensors[tensor->id], dims[0], dims[1]);
        }
        if (!kg_group_is_private(group, nest->output))
            add_strides(&strides, host->tensors[nest->output->id], last - 1, last);
    }
    kg_text_format(unit->launches, "_walks(%s, ", host->device);
    kg_triton_host_extent(unit->launches, host, shape->axes[last - 1]);
    kg_text_add(unit->launches, ", ");
    kg_triton_host_extent(unit->launches, host, shape->axes[last]);
    kg_text_format(unit->launches, "%s)", kg_text_string(&strides));
    unit->launches->failed |= strides.failed;
    kg_text_free(&strides);
}
