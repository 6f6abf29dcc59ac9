// Generated CUDA kernels as one file for people, and for programs of their own: the sources that
// are compiled, one prelude for all, and how each function is launched.

#include "gen/arguments.h"
#include "gen/shared/emit.h"
#include "gen/shared/tidy.h"
#include "gen/standalone.h"

#include <stdio.h>
#include <string.h>

static void add_arguments(const struct kg_group *group, int maps, struct kg_text *text)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    const struct kg_problem *problem = group->problem;
    int count = kg_group_arguments_and_maps(group, maps, arguments);
    for (int i = 0; i < count; i++) {
        const struct kg_argument *argument = &arguments[i];
        kg_text_add(text, i > 0 ? ", " : "");
        if (argument->kind == KG_ARGUMENT_TENSOR)
            kg_text_add(text, problem->tensors[argument->id]->name);
        else if (argument->kind == KG_ARGUMENT_SIZE)
            kg_text_format(text, "%s = %lld", problem->op->sizes[argument->id]->name,
                           (long long)problem->sizes[argument->id]);
        else if (argument->kind == KG_ARGUMENT_STRIDE)
            kg_text_format(text, "stride %d of %s", argument->dim,
                           problem->tensors[argument->id]->name);
        else if (argument->kind == KG_ARGUMENT_MAP)
            kg_text_format(text, "map_%d", argument->id);
        else
            kg_text_add(text, "scratch");
    }
}

// What the program that launches has to encode.
static void add_map(const struct kg_group *group, const struct kg_map *map, int number,
                    struct kg_text *text)
{
    if (map->rank == 0) {
        kg_text_format(text, "//          map_%d: of nothing, all bytes 0\n", number);
        return;
    }
    kg_text_format(text, "//          map_%d: of %s", number,
                   map->tensor == KG_MAP_SCRATCH ? "scratch"
                                                 : group->problem->tensors[map->tensor]->name);
    if (map->offset > 0)
        kg_text_format(text, " from byte %zu", map->offset);
    kg_text_format(text, ", elements of %d bytes, shape", map->element);
    for (int dim = 0; dim < map->rank; dim++)
        kg_text_format(text, " %lld", (long long)map->shape[dim]);
    kg_text_add(text, map->rank > 1 ? ", strides" : "");
    for (int dim = 1; dim < map->rank; dim++)
        kg_text_format(text, " %lld", (long long)map->stride[dim]);
    kg_text_add(text, ", box");
    for (int dim = 0; dim < map->rank; dim++)
        kg_text_format(text, " %d", map->box[dim]);
    kg_text_format(text, ", swizzle %d\n", map->swizzle);
}

static void add_shape(const char *entry, int function, const struct kg_grid *grid,
                      struct kg_text *text)
{
    kg_text_format(text, "%s_%d, %lld x %lld x %lld blocks of %d x %d x %d threads", entry,
                   function, (long long)grid->blocks[0], (long long)grid->blocks[1],
                   (long long)grid->blocks[2], grid->threads[0], grid->threads[1],
                   grid->threads[2]);
    if (grid->shared > 0)
        kg_text_format(text, ", %d bytes of dynamic shared memory", grid->shared);
    if (grid->cluster > 1)
        kg_text_format(text, ", clusters of %d", grid->cluster);
    kg_text_add(text, "\n");
}

static bool is_empty(const struct kg_grid *grid)
{
    return grid->blocks[0] == 0 || grid->blocks[1] == 0 || grid->blocks[2] == 0;
}

static void add_launches(const struct kg_choice *choice, int position, const char *entry,
                         struct kg_text *text)
{
    const struct kg_group *group = &choice->matches[position]->group;
    struct kg_grids grids = {0};
    choice->matches[position]->family->grids(choice->matches[position], &choice->configs[position],
                                             &grids);
    for (int i = 0; i < grids.count; i++) {
        if (is_empty(&grids.grids[i]))
            continue;
        kg_text_add(text, "// Launch:  ");
        add_shape(entry, i, &grids.grids[i], text);
    }
    kg_text_add(text, "//          with ");
    add_arguments(group, grids.map_count, text);
    kg_text_add(text, "\n");
    for (int i = 0; i < grids.map_count; i++)
        add_map(group, &grids.maps[i], i, text);
    if (grids.scratch > 0)
        kg_text_format(text, "//          scratch: %zu bytes\n", grids.scratch);
    for (int i = 0; i < grids.count && grids.alignment > 1; i++) {
        if (is_empty(&grids.unaligned[i]))
            continue;
        kg_text_format(text, "//          or, if an address is no multiple of %d, ",
                       grids.alignment);
        add_shape(entry, i, &grids.unaligned[i], text);
    }
}

// Memory that kernels hand on to one another.
static void add_intermediates(const struct kg_problem *problem, const struct kg_choice *choice,
                              struct kg_text *text)
{
    for (int id = 0; id < problem->tensor_count; id++)
        if (problem->tensors[id]->role == KG_ROLE_LOCAL && kg_choice_in_memory(choice, id))
            kg_text_format(text, "// Memory:  %s, %zu bytes, written and read by these kernels\n",
                           problem->tensors[id]->name, problem->layouts[id].bytes);
}

// One line for each kernel: this is what is read back.
static void add_choice(const struct kg_choice *choice, struct kg_text *text)
{
    struct kg_text print = {0};
    kg_choice_print(choice, &print);
    text->failed |= print.failed;
    for (const char *at = kg_text_string(&print); *at;) {
        size_t length = strcspn(at, ";");
        kg_text_format(text, "// Choice:  %.*s\n", (int)length, at);
        at += length;
        at += strspn(at, "; ");
    }
    kg_text_free(&print);
}

bool kg_gen_standalone_cuda(const struct kg_problem *problem, const struct kg_choice *choice,
                            const struct kg_device_facts *facts, struct kg_text *source)
{
    char entry[256];
    kg_text_format(source, "// Compile: NVRTC, --gpu-architecture=%s -std=c++17 -default-device\n",
                   facts->isa);
    add_choice(choice, source);
    for (int i = 0; i < choice->count; i++) {
        kg_choice_entry(choice, i, entry, sizeof entry);
        add_launches(choice, i, entry, source);
    }
    add_intermediates(problem, choice, source);
    kg_text_format(source,
                   "// Tensors are %s. The sizes are examples, and decide the launches.\n\n",
                   problem->contiguous ? "contiguous and row-major" : "strided");
    for (int i = 0; i < choice->count; i++) {
        size_t before = source->length;
        kg_choice_entry(choice, i, entry, sizeof entry);
        if (!choice->matches[i]->family->emit(choice->matches[i], &choice->configs[i], entry,
                                              source))
            return false;
        kg_gen_drop_repeats(source, before);
    }
    kg_gen_tidy(source);
    return !source->failed;
}
