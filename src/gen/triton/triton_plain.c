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

// Whether the last reduced axis is too long, or of unknown length, for a loop of single steps.
static bool reduces_columns(const struct kg_nest *nest)
{
    if (!nest->has_reduce)
        return false;
    const struct kg_index *axis = nest->axes[nest->axis_count - 1];
    return axis->end->kind != KG_EXPR_NUMBER || axis->end->integer > LONGEST_WINDOW;
}

// Loops over reduced axes [first, last], one step at a time.
static void open_loops(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int first,
                       int last)
{
    for (int axis = first; axis <= last; axis++) {
        kg_triton_hoist(kernel, axis);
        const char *name = kg_triton_fresh(kernel, nest->axes[axis]->name);
        kg_triton_open(kernel, "for %s in range(%s, %s)", name,
                       kg_triton_begin_of(kernel, nest->axes[axis]),
                       kg_triton_end_of(kernel, nest->axes[axis]));
        const char *index = kg_triton_fresh(kernel, nest->axes[axis]->name);
        kg_triton_line(kernel, "%s = tl.cast(%s, INDEX)", index, name);
        kernel->axes[axis] = (struct kg_triton_axis){index, NULL};
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
    if (!nest->has_reduce) {
        const char *value = kg_triton_value(kernel, nest->body, nest->body->type);
        kg_triton_store(kernel, value, nest->body->type);
        return;
    }
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
    if (!scalar) {
        const char *name =
            kg_triton_fresh(kernel, nest->output_axes == 1 ? nest->axes[0]->name : "row");
        const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
        kg_triton_block(kernel, "BLOCK_ROWS");
        kg_triton_line(kernel, "%s = (%s * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]", name,
                       kg_triton_tile_program(kernel, 0));
        kg_triton_line(kernel, "%s = %s < %s", inside, name,
                       kg_triton_tile_product(kernel, nest, 0, nest->output_axes - 1));
        if (nest->output_axes == 1)
            kernel->axes[0] = (struct kg_triton_axis){name, inside};
        else
            kg_triton_tile_split(kernel, nest, 0, nest->output_axes - 1, name, inside);
    }
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
    const char *name = kg_triton_fresh(kernel, nest->axes[last]->name);
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_line(kernel, "%s = tl.cast(%s, INDEX) + tl.arange(0, BLOCK_COLS)%s", name, start,
                   scalar ? "" : "[None, :]");
    kg_triton_line(kernel, "%s = %s < %s", inside, name, end);
    kernel->axes[last] = (struct kg_triton_axis){name, inside};
    kg_triton_fold_step(kernel, &fold, validity(kernel, nest));
    close_loops(kernel, 1 + last - nest->output_axes);
    kg_triton_store(kernel, kg_triton_fold_end(kernel, &fold), fold.result);
}

// The launch: numbers of rows and columns of the whole, the tile by shape, the grid.
static void launch(const struct kg_triton_host *host, struct kg_triton_kernel *kernel,
                   const struct kg_nest *nest, bool columns)
{
    struct kg_text *text = &kernel->launch;
    int outputs = nest->output_axes;
    const char *rows = host->counts[0], *cols = host->counts[1];
    kg_text_format(text, "    %s, %s = ", rows, cols);
    kg_triton_host_product(text, host, nest, 0, columns ? outputs - 1 : outputs - 2);
    kg_text_add(text, ", ");
    if (columns)
        kg_triton_host_extent(text, host, nest->axes[nest->axis_count - 1]);
    else
        kg_triton_host_product(text, host, nest, outputs > 0 ? outputs - 1 : 0, outputs - 1);
    kg_text_format(text, "\n    if %s%s%s:\n", rows, columns ? "" : " and ", columns ? "" : cols);
    kg_text_format(text, "        %s = %s(%s, %s)\n", host->tile,
                   columns ? "_reduce_tile" : "_tile", rows, cols);
    if (columns || outputs == 0)
        kg_text_format(text, "        %s = (triton.cdiv(%s, %s.rows),)\n", host->grid, rows,
                       host->tile);
    else if (outputs == 1)
        kg_text_format(text, "        %s = (triton.cdiv(%s, %s.cols),)\n", host->grid, cols,
                       host->tile);
    else
        kg_text_format(text, "        %s = (triton.cdiv(%s, %s.rows), triton.cdiv(%s, %s.cols))\n",
                       host->grid, rows, host->tile, cols, host->tile);
    struct kg_text constants = {0};
    for (int i = 0; i < kernel->block_count; i++)
        kg_text_format(&constants, "%s=%s.%s, ", kernel->blocks[i], host->tile,
                       kernel->blocks[i][6] == 'R' ? "rows" : "cols");
    kg_text_format(&constants, "num_warps=%s.warps", host->tile);
    kg_triton_host_call(text, host, kernel, 2, kg_text_string(&constants));
    text->failed |= constants.failed;
    kg_text_free(&constants);
}

static void write(const struct kg_triton_plan *plan, const struct kg_triton_host *host,
                  struct kg_triton_kernel *kernel)
{
    const struct kg_nest *nest = kg_group_nest(plan->group, 0);
    bool columns = reduces_columns(nest);
    kernel->nest = nest;
    if (columns)
        write_columns(kernel, nest);
    else
        write_outputs(kernel, nest);
    launch(host, kernel, nest, columns);
}

static const void *match_nest(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    if (group->count > 1) {
        kg_text_add(reason, "it takes one nest at a time");
        return NULL;
    }
    struct kg_triton_plan *plan = KG_NEW(arena, struct kg_triton_plan);
    if (!plan)
        return NULL;
    struct kg_group *kept = KG_NEW(arena, struct kg_group);
    if (!kept)
        return NULL;
    *kept = *group;
    *plan = (struct kg_triton_plan){write, "A tile of the output.", kept};
    return plan;
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
