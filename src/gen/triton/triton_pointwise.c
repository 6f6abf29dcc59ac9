// Chains of element-wise formulas over the same axes: values pass from statement to statement in
// registers, and each element is read and written once.

#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/shared/pointwise_chain.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_tile.h"
#include "gen/triton/triton_walk.h"

void kg_triton_write_elements(struct kg_triton_unit *unit)
{
    const struct kg_group *group = unit->group;
    const struct kg_nest *shape = kg_group_nest(group, 0);
    struct kg_triton_kernel *kernel = kg_triton_unit_begin(unit, "");
    if (!kernel)
        return;
    kernel->nest = shape;
    kernel->ties = kg_triton_ties(group, shape);
    (void)kg_triton_tile_outputs(kernel, shape);
    for (int i = 0; i < group->count; i++)
        kg_triton_element(kernel, i);
    bool walks = kg_triton_walk_pays(unit, shape);
    struct kg_triton_kernel *walk = walks ? kg_triton_unit_begin(unit, "_walk") : NULL;
    if (walk) {
        walk->nest = shape;
        kg_triton_walk_tile(walk, shape);
        for (int i = 0; i < group->count; i++)
            kg_triton_element(walk, i);
    }
    kg_triton_launch_tile(unit, kernel, walk, shape);
    kg_triton_unit_end(unit, kernel);
    if (walk)
        kg_triton_unit_end(unit, walk);
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    (void)plan;
    kg_triton_write_elements(unit);
}

static const void *match_chain(const struct kg_group *group, const struct kg_device_facts *facts,
                               struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts, (void)arena;
    static const struct kg_triton_plan chain = {
        write, "a tile of the output per program; the statements pass values in registers"};
    if (group->count == 1) {
        kg_text_add(reason, "a single statement: plain does it");
        return NULL;
    }
    for (int i = 0; i < group->count; i++) {
        const char *why = kg_pointwise_obstacle(group, i);
        if (why) {
            kg_text_format(reason, "%s: %s", kg_group_nest(group, i)->output->name, why);
            return NULL;
        }
    }
    return &chain;
}

const struct kg_family kg_triton_pointwise = {
    .name = "pointwise",
    .summary = "a chain of element-wise formulas; each element is read and written once",
    .match = match_chain,
    .space = kg_triton_space,
    .valid = kg_triton_valid,
    .guess = kg_triton_guess,
    .bound = kg_group_bound,
    .emit = kg_triton_emit,
};
