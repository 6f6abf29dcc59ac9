// A whole op in one launch: statements that share the rows of a reduction, whose axes may stand in
// any order.
//
// `rowwise` takes statements whose first axes are the rows. A softmax along the first axis, or
// statistics of the channels of images, have outputs whose axes are permuted, and are a launch for
// each statement, or two. Where the elements of a row fit in a program, none is needed but one: the
// tile is loaded once. Which shapes those are is known when the emitted function is called, so that
// this is no family: the launches of the families follow for longer rows.

#include "gen/triton/triton_whole.h"

#include "gen/shared/axes.h"
#include "gen/shared/contract_operands.h"
#include "gen/triton/triton_fold.h"
#include "gen/triton/triton_merge.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_tile.h"

#include <string.h>

struct whole {
    struct kg_triton_plan plan;
    struct kg_group group;
    const struct kg_nest *shape; // the first reduction: rows, then the axes that are reduced
    int rows;                    // row axes of the shape: 0 .. rows - 1
    // By position and axis: which axis of the shape it is.
    int axis_of[KG_MAX_NESTS][KG_MAX_INDICES];
};

// ---- Which axes are the same ----

static bool find_shape(struct whole *whole)
{
    for (int i = 0; i < whole->group.count && !whole->shape; i++)
        if (kg_group_nest(&whole->group, i)->has_reduce)
            whole->shape = kg_group_nest(&whole->group, i);
    if (!whole->shape || whole->shape->output_axes == 0)
        return false;
    whole->rows = whole->shape->output_axes;
    for (int axis = 0; axis < whole->shape->axis_count; axis++)
        if (whole->shape->axes[axis]->relation != KG_RELATION_NONE ||
            !kg_axes_from_zero(whole->shape->axes[axis]))
            return false;
    return true;
}

// Whether the statement has a value for each row, or for each row and column.
static bool has_known_axes(const struct whole *whole, const struct kg_nest *nest)
{
    int all = whole->shape->axis_count;
    if (kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return false;
    if (nest->has_reduce)
        return nest->output_axes == whole->rows && nest->axis_count == all;
    return nest->output_axes == whole->rows || nest->output_axes == all;
}

// The axes by which the statement reads what earlier ones made, which are those that these have.
static bool match_reads(struct whole *whole, int i, int axis_of[KG_MAX_INDICES])
{
    const struct kg_nest *nest = kg_group_nest(&whole->group, i);
    for (int a = 0; a < nest->access_count; a++) {
        const struct kg_access *access = &nest->accesses[a];
        int maker = kg_group_maker(&whole->group, access->tensor);
        if (maker < 0)
            continue;
        if (maker >= i || access->read->pad)
            return false;
        for (int dim = 0; dim < access->tensor->rank; dim++) {
            const struct kg_expr *subscript = access->map[dim].subscript;
            int wanted = whole->axis_of[maker][dim];
            if (subscript->kind != KG_EXPR_INDEX)
                return false;
            int *found = &axis_of[subscript->index->id];
            if (*found >= 0 && *found != wanted)
                return false;
            *found = wanted;
        }
    }
    return true;
}

// The other axes, in order.
static bool match_rest(const struct whole *whole, const struct kg_nest *nest,
                       int axis_of[KG_MAX_INDICES])
{
    bool taken[KG_MAX_INDICES] = {false};
    for (int axis = 0; axis < nest->axis_count; axis++)
        if (axis_of[axis] >= 0 && taken[axis_of[axis]])
            return false;
        else if (axis_of[axis] >= 0)
            taken[axis_of[axis]] = true;
    for (int axis = 0, next = 0; axis < nest->axis_count; axis++) {
        while (axis_of[axis] < 0 && next < whole->shape->axis_count && taken[next])
            next++;
        if (axis_of[axis] < 0)
            axis_of[axis] = next++;
        if (axis_of[axis] >= whole->shape->axis_count ||
            !kg_axes_same(nest->axes[axis], whole->shape->axes[axis_of[axis]]))
            return false;
    }
    return true;
}

static bool match_axes(struct whole *whole, int i)
{
    const struct kg_nest *nest = kg_group_nest(&whole->group, i);
    int *axis_of = whole->axis_of[i];
    for (int axis = 0; axis < nest->axis_count; axis++)
        axis_of[axis] = -1;
    if (!has_known_axes(whole, nest) || !match_reads(whole, i, axis_of) ||
        !match_rest(whole, nest, axis_of))
        return false;
    // Rows are rows, in their order: what is reduced, and values of a row, have no columns.
    for (int axis = 0; axis < whole->rows && nest->output_axes == whole->rows; axis++)
        if (axis_of[axis] != axis)
            return false;
    return true;
}

// ---- The kernel ----

// Whether neighbouring rows are neighbours in the memory of what is reduced.
static bool are_adjacent(const struct whole *whole)
{
    for (int i = 0; i < whole->shape->access_count; i++) {
        const struct kg_access *access = &whole->shape->accesses[i];
        int rank = access->tensor->rank;
        for (int axis = 0; rank > 0 && axis < whole->rows; axis++)
            if (kg_expr_uses(access->map[rank - 1].subscript, axis, true))
                return true;
    }
    return false;
}

static void reduce(struct kg_triton_kernel *kernel, int i, const char *inside)
{
    struct kg_triton_fold fold = kg_triton_fold_of(kernel->nest);
    fold.shape = "[BLOCK_ROWS, BLOCK_COLS]";
    fold.along = 1;
    fold.keeps = true;
    kg_triton_fold_once(kernel, &fold, inside);
    kg_triton_settle(kernel, i, kg_triton_fold_end(kernel, &fold), fold.result);
}

static void write_kernel(const struct whole *whole, struct kg_triton_kernel *kernel)
{
    struct kg_triton_axis axes[KG_MAX_INDICES];
    int order[KG_MAX_INDICES];
    kernel->nest = whole->shape;
    kg_triton_tile_rows(kernel, whole->shape, whole->rows, !are_adjacent(whole));
    struct kg_triton_axis columns = kg_triton_tile_columns(
        kernel, whole->shape, whole->rows, whole->shape->axis_count - 1, NULL, "[None, :]");
    memcpy(axes, kernel->axes, sizeof axes);
    kernel->order = order;
    for (int i = 0; i < whole->group.count; i++) {
        kernel->nest = kg_group_nest(&whole->group, i);
        for (int axis = 0; axis < kernel->nest->axis_count; axis++) {
            kernel->axes[axis] = axes[whole->axis_of[i][axis]];
            order[whole->axis_of[i][axis]] = axis;
        }
        if (kernel->nest->has_reduce)
            reduce(kernel, i, columns.inside);
        else
            kg_triton_element(kernel, i);
    }
    kernel->order = NULL;
}

static void launch(const struct whole *whole, struct kg_triton_unit *unit,
                   const struct kg_triton_kernel *kernel)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *given = unit->host;
    const struct kg_op *op = whole->group.problem->op;
    int last = whole->shape->axis_count - 1;
    struct kg_triton_host merged = kg_triton_merge(unit, whole->shape, whole->rows, last);
    const struct kg_triton_host *host = unit->host = &merged;
    kg_text_format(text, "    %s, %s = ", host->counts[0], host->counts[1]);
    kg_triton_host_product(text, host, whole->shape, 0, whole->rows - 1);
    kg_text_add(text, ", ");
    kg_triton_host_product(text, host, whole->shape, whole->rows, last);
    kg_text_format(text, "\n    %s = _whole_tile(%s, %s, %s, ", host->tile, host->counts[0],
                   host->counts[1], are_adjacent(whole) ? "True" : "False");
    kg_triton_add_most(unit, kg_triton_values(kernel), false);
    kg_text_format(text, ")\n    if %s is not None:\n", host->tile);
    kg_triton_launch_grid(unit, kernel, 2, false);
    kg_triton_launch_call(unit, kernel, 2, KG_TRITON_TUNE_ROWS);
    kg_text_add(text, "        return ");
    for (int i = 0; i < op->output_count; i++)
        kg_text_format(text, "%s%s", i ? ", " : "", host->tensors[op->input_count + i]);
    kg_text_add(text, "\n");
    unit->host = given;
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    const struct whole *whole = (const struct whole *)plan;
    struct kg_triton_kernel *kernel = kg_triton_unit_begin(unit, "");
    if (!kernel)
        return;
    write_kernel(whole, kernel);
    launch(whole, unit, kernel);
    kg_triton_unit_end(unit, kernel);
}

bool kg_triton_whole_match(const struct kg_problem *problem, struct kg_arena *arena,
                           struct kg_match *match)
{
    struct whole *whole = KG_NEW(arena, struct whole);
    if (!whole)
        return false;
    whole->plan = (struct kg_triton_plan){
        write, "all statements, with whole rows in registers; for longer rows:"};
    whole->group = (struct kg_group){problem, 0, problem->nest_count};
    if (kg_contract_is_in(&whole->group) || !find_shape(whole))
        return false;
    for (int i = 0; i < whole->group.count; i++)
        if (!match_axes(whole, i))
            return false;
    *match = (struct kg_match){.group = whole->group, .analysis = whole};
    return true;
}
