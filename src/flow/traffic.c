// Reuse distances of plain loops: an element is in the cache when it is used again if what was
// touched meanwhile fits into it.

#include "flow/traffic.h"

#include "gen/shared/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64.0
#define DIRECT "direct" // the family of plain loops
#define MAX_LEVELS (KG_MAX_INDICES + 1)

// A loop, from the outermost on. The last output axis may be cut in two: blocks outside, lanes
// innermost.
struct level {
    int axis;
    double extent;
    double step; // of its axis
};

struct loops {
    const struct kg_problem *problem;
    const struct kg_nest *nest;
    int count;
    struct level levels[MAX_LEVELS];
};

static void add_level(struct loops *loops, int axis, double extent, double step)
{
    loops->levels[loops->count++] = (struct level){axis, extent, step};
}

static struct loops order_loops(const struct kg_group *group, double lanes)
{
    const struct kg_nest *nest = kg_group_nest(group, 0);
    struct loops loops = {.problem = group->problem, .nest = nest};
    int last = nest->output_axes - 1;
    for (int axis = 0; axis < nest->axis_count; axis++) {
        double extent = (double)nest->extent[axis];
        if (axis == last && lanes > 1)
            add_level(&loops, axis, ceil(extent / lanes), lanes);
        else
            add_level(&loops, axis, extent, 1);
    }
    if (last >= 0 && lanes > 1)
        add_level(&loops, last, fmin(lanes, (double)nest->extent[last]), 1);
    return loops;
}

// Elements from one step of the loop to the next; 0: the access does not move.
static double stride_of(const struct loops *loops, const struct kg_access *access, int level)
{
    const struct level *at = &loops->levels[level];
    const struct kg_layout *layout = &loops->problem->layouts[access->tensor->id];
    double stride = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        stride += (double)access->map[dim].coefficient[at->axis] * (double)layout->stride[dim];
    return fabs(stride * at->step);
}

static double element_bytes(const struct kg_access *access)
{
    const struct kg_tensor *tensor = access->tensor;
    enum kg_dtype dtype = tensor->role == KG_ROLE_LOCAL ? tensor->memory : tensor->type.dtype;
    return kg_dtypes[dtype].bits / 8.0;
}

// Bytes of the lines that an access touches in the loops from `from` on.
static double touched(const struct loops *loops, const struct kg_access *access, int from)
{
    double elements = 1, least = LINE; // bytes between neighbours
    for (int level = from; level < loops->count; level++) {
        double stride = stride_of(loops, access, level) * element_bytes(access);
        if (stride <= 0)
            continue;
        elements *= loops->levels[level].extent;
        least = fmin(least, stride);
    }
    return elements * fmax(least, element_bytes(access));
}

static double volume(const struct loops *loops, int from)
{
    double bytes = 0;
    for (int i = 0; i < loops->nest->access_count; i++)
        bytes += touched(loops, &loops->nest->accesses[i], from);
    return bytes;
}

// Whether an access can be followed at all: a gather or a window goes where it likes.
static bool is_regular(const struct kg_access *access)
{
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!access->map[dim].is_affine)
            return false;
    return true;
}

static double read_bytes(const struct loops *loops, const struct kg_access *access, double cache)
{
    double elements = 1, bytes = LINE;
    for (int level = 0; level < loops->count; level++) {
        double stride = stride_of(loops, access, level) * element_bytes(access);
        bool stays = volume(loops, level + 1) <= cache;
        if (stride > 0 || !stays)
            elements *= loops->levels[level].extent;
        if (stride > 0 && stays) // the neighbours come before the line is gone
            bytes = fmin(bytes, stride);
    }
    return elements * fmax(bytes, element_bytes(access));
}

static double plain_bytes(const struct kg_group *group, double lanes, double cache)
{
    struct loops loops = order_loops(group, lanes);
    const struct kg_nest *nest = loops.nest;
    double bytes = (double)group->problem->layouts[nest->output->id].bytes;
    for (int i = 0; i < nest->access_count; i++) {
        if (!is_regular(&nest->accesses[i]))
            return 0;
        bytes += read_bytes(&loops, &nest->accesses[i], cache);
    }
    return bytes;
}

// The value of a parameter, 1 where the family has none of that name.
static double value_of(const struct kg_match *match, const struct kg_config *config,
                       const char *name)
{
    struct kg_space space = {0};
    match->family->space(match, &space);
    for (int i = 0; i < space.count; i++)
        if (strcmp(space.parameters[i].name, name) == 0)
            return (double)config->value[i];
    return 1;
}

double kg_flow_traffic(const struct kg_choice *choice, const struct kg_device_facts *facts)
{
    double bytes = 0;
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        double least = kg_group_bytes(&match->group), plain = 0;
        if (facts->shared_bytes == 0 && strcmp(match->family->name, DIRECT) == 0)
            plain = plain_bytes(&match->group, value_of(match, &choice->configs[i], "lanes"),
                                (double)facts->cache[2]);
        bytes += fmax(least, plain);
    }
    return bytes;
}
