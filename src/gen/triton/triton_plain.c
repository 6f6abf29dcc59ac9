// The family that takes any nest as it stands.
//
// A program computes a tile of the output: the last axis along the columns, the others flattened
// along the rows. A reduction over a range known when the module is written (a window) runs as a
// loop over whole tiles. Any other has outputs along the rows of the tile and the last reduced
// index along its columns.

#include "gen/triton/triton_plain.h"

#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/triton/triton_fold.h"
#include "gen/triton/triton_tile.h"

enum { LONGEST_WINDOW = 32 };

bool kg_triton_is_window(const struct kg_nest *nest)
{
    const struct kg_index *axis = nest->axes[nest->axis_count - 1];
    return nest->has_reduce && axis->end->kind == KG_EXPR_NUMBER &&
           axis->end->integer <= LONGEST_WINDOW;
}

// Whether the last reduced axis is too long, or of unknown length, for a loop of single steps.
static bool reduces_columns(const struct kg_nest *nest)
{
    return nest->has_reduce && !kg_triton_is_window(nest);
}

// Loops over reduced axes [first, last], one step at a time.
static void open_loops(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int first,
                       int last)
{
    for (int axis = first; axis <= last; axis++) {
        kg_triton_hoist(kernel, axis);
        const char *name =
            kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_step", nest->axes[axis]->name));
        kg_triton_open(kernel, "for %s in range(%s, %s)", name,
                       kg_triton_begin_of(kernel, nest->axes[axis]),
                       kg_triton_end_of(kernel, nest->axes[axis]));
        const char *index = kg_triton_fresh(kernel, nest->axes[axis]->name);
        kg_triton_line(kernel, "%s = tl.cast(%s, INDEX)", index, name);
        kernel->axes[axis] = (struct kg_triton_axis){.name = index};
    }
}

static void close_loops(struct kg_triton_kernel *kernel, int count)
{
    for (int i = 0; i < count; i++)
        kg_triton_close(kernel);
}

// The relations of all reduced axes, and the mask of the last one.
static const char *validity(struct kg_triton_kernel *kernel, const struct kg_nest *nest)
{
    const char *valid = kernel->axes[nest->axis_count - 1].inside;
    for (int axis = nest->output_axes; axis < nest->axis_count; axis++)
        valid = kg_triton_and(kernel, valid, kg_triton_relation(kernel, nest->axes[axis]));
    return valid ? kg_triton_format(kernel, "(%s)", valid) : NULL;
}

static void write_outputs(struct kg_triton_kernel *kernel, const struct kg_nest *nest)
{
    struct kg_triton_tile tile = kg_triton_tile_outputs(kernel, nest);
    struct kg_triton_fold fold = kg_triton_fold_of(nest);
    fold.shape = tile.shape;
    kg_triton_fold_begin(kernel, &fold);
    open_loops(kernel, nest, nest->output_axes, nest->axis_count - 1);
    kg_triton_fold_step(kernel, &fold, validity(kernel, nest));
    close_loops(kernel, nest->axis_count - nest->output_axes);
    kg_triton_store(kernel, kg_triton_fold_end(kernel, &fold), fold.result);
}

static void write_columns(struct kg_triton_kernel *kernel, const struct kg_nest *nest)
{
    int last = nest->axis_count - 1;
    bool scalar = nest->output_axes == 0;
    kg_triton_tile_rows(kernel, nest, nest->output_axes, false);
    kg_triton_block(kernel, "BLOCK_COLS");
    struct kg_triton_fold fold = kg_triton_fold_of(nest);
    fold.shape = scalar ? "[BLOCK_COLS]" : "[BLOCK_ROWS, BLOCK_COLS]";
    fold.along = scalar ? 0 : 1;
    fold.keeps = !scalar;
    kg_triton_fold_begin(kernel, &fold);
    open_loops(kernel, nest, nest->output_axes, last - 1);
    kg_triton_hoist(kernel, last);
    const char *end = kg_triton_end_of(kernel, nest->axes[last]);
    const char *start = kg_triton_fresh(kernel, "start");
    kg_triton_open(kernel, "for %s in range(%s, %s, BLOCK_COLS)", start,
                   kg_triton_begin_of(kernel, nest->axes[last]), end);
    (void)kg_triton_tile_columns(kernel, nest, last, last, start, scalar ? "" : "[None, :]");
    kg_triton_fold_step(kernel, &fold, validity(kernel, nest));
    close_loops(kernel, 1 + last - nest->output_axes);
    kg_triton_store(kernel, kg_triton_fold_end(kernel, &fold), fold.result);
}

// The launch: numbers of rows and columns of the whole, the tile by shape, the grid.
static void launch(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                   const struct kg_nest *nest, bool columns)
{
    if (columns)
        kg_triton_launch_rows(unit, kernel, nest, nest->output_axes);
    else
        kg_triton_launch_tile(unit, kernel, NULL, nest);
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    (void)plan;
    const struct kg_nest *nest = kg_group_nest(unit->group, 0);
    if (!nest->has_reduce) {
        kg_triton_write_elements(unit);
        return;
    }
    bool columns = reduces_columns(nest);
    struct kg_triton_kernel *kernel = kg_triton_unit_begin(unit, "");
    if (!kernel)
        return;
    kernel->nest = nest;
    for (int axis = nest->output_axes; axis < nest->axis_count; axis++)
        kernel->shared |= nest->axes[axis]->relation != KG_RELATION_NONE; // outputs read all before
    if (columns)
        write_columns(kernel, nest);
    else
        write_outputs(kernel, nest);
    launch(unit, kernel, nest, columns);
    kg_triton_unit_end(unit, kernel);
}

static const void *match_nest(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts, (void)arena;
    static const struct kg_triton_plan outputs = {write, "a tile of the output per program"};
    static const struct kg_triton_plan reduces = {
        write, "rows of the output per program, which walk the reduced index in blocks"};
    if (group->count == 1)
        return reduces_columns(kg_group_nest(group, 0)) ? &reduces : &outputs;
    kg_text_add(reason, "it takes one nest at a time");
    return NULL;
}

const struct kg_family kg_triton_plain = {
    .name = "plain",
    .summary = "a tile of the output per program, reductions inside; takes any statement",
    .match = match_nest,
    .space = kg_triton_space,
    .valid = kg_triton_valid,
    .guess = kg_triton_guess,
    .bound = kg_group_bound,
    .emit = kg_triton_emit,
};
