// Tiles of Triton kernels: see triton_tile.h.

#include "gen/triton/triton_tile.h"

#include "gen/shared/axes.h"
#include "gen/triton/triton_merge.h"
#include "gen/triton/triton_walk.h"

#include <ctype.h>
#include <string.h>

const char *kg_triton_tile_count(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                 const int *axes, int count)
{
    const char *product = NULL;
    for (int i = 0; i < count; i++) {
        const char *extent = kg_triton_extent(kernel, nest->axes[axes[i]]);
        product = product ? kg_triton_format(kernel, "%s * %s", product, extent) : extent;
    }
    return product ? product : "1";
}

// The axes [first, last] as a list.
static int range_of(int first, int last, int axes[KG_MAX_INDICES])
{
    int count = 0;
    for (int axis = first; axis <= last; axis++)
        axes[count++] = axis;
    return count;
}

const char *kg_triton_tile_product(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                   int first, int last)
{
    int axes[KG_MAX_INDICES];
    return kg_triton_tile_count(kernel, nest, axes, range_of(first, last, axes));
}

const char *kg_triton_tile_part(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                const char *split)
{
    const char *offset = NULL;
    if (nest->output_axes == 0)
        return split;
    for (int axis = 0; axis < nest->output_axes; axis++) {
        const char *name = kernel->axes[axis].name;
        offset = offset
                     ? kg_triton_format(kernel, "%s * %s + %s", kg_triton_operand(kernel, offset),
                                        kg_triton_extent(kernel, nest->axes[axis]), name)
                     : name;
    }
    const char *rows = kg_triton_tile_product(kernel, nest, 0, nest->output_axes - 1);
    return kg_triton_format(kernel, "%s * %s + %s", split, kg_triton_operand(kernel, rows), offset);
}

// The name of what multiplies instead of dividing by the length of an axis; "None" for a length
// that the compiler knows.
static const char *divisor_of(struct kg_triton_kernel *kernel, const struct kg_index *axis)
{
    const struct kg_expr *end = axis->end;
    bool known = end->kind == KG_EXPR_NUMBER || (end->size && end->size->is_param) ||
                 (end->kind == KG_EXPR_SIZE && kernel->is_constant[end->size->id]);
    if (known && !axis->begin)
        return "None";
    for (int i = 0; i < kernel->divisor_count; i++)
        if (kg_size_same(kernel->divisors[i].axis->end, end) &&
            kg_size_same(kernel->divisors[i].axis->begin, axis->begin))
            return kernel->divisors[i].name;
    if (kernel->divisor_count == KG_MAX_INDICES)
        return "None";
    const char *name = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_magic", axis->name));
    kernel->divisors[kernel->divisor_count].axis = axis;
    kernel->divisors[kernel->divisor_count++].name = name;
    return name;
}

void kg_triton_tile_split(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                          const int *axes, int count, const char *linear, const char *inside)
{
    for (int i = 0; i < count; i++) {
        const struct kg_index *axis = nest->axes[axes[i]];
        const char *name = kg_triton_fresh(kernel, axis->name), *value = linear;
        if (i + 1 < count)
            value = kg_triton_format(
                kernel, "%s // %s", value,
                kg_triton_operand(kernel,
                                  kg_triton_tile_count(kernel, nest, axes + i + 1, count - i - 1)));
        if (i > 0)
            value = kg_triton_format(kernel, "%s %% %s", value, kg_triton_extent(kernel, axis));
        kg_triton_line(kernel, "%s = %s", name, value);
        kernel->axes[axes[i]] = (struct kg_triton_axis){.name = name, .inside = inside};
    }
}

// The same without masks, by multiplications: fewer instructions, but the compiler sees no longer
// which values follow each other.
static void split_by_products(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                              const int *axes, int count, const char *linear)
{
    for (int i = count - 1; i > 0; i--) {
        const struct kg_index *axis = nest->axes[axes[i]];
        const char *extent = kg_triton_extent(kernel, axis), *magic = divisor_of(kernel, axis);
        const char *rest = kg_triton_fresh(kernel, i > 1 ? "rest" : nest->axes[axes[0]]->name);
        const char *name = kg_triton_fresh(kernel, axis->name);
        kg_triton_line(kernel, "%s = _quotient(%s, %s, %s)", rest, linear, extent, magic);
        kg_triton_line(kernel, "%s = _remainder(%s, %s, %s, %s)", name, linear, rest, extent,
                       magic);
        kernel->axes[axes[i]] = (struct kg_triton_axis){.name = name};
        linear = rest;
    }
    kernel->axes[axes[0]] = (struct kg_triton_axis){.name = linear};
}

// A vector as the rows or columns of a tile, or as it is.
static const char *expanded(struct kg_triton_kernel *kernel, const char *vector, const char *expand)
{
    if (!*expand)
        return vector;
    if (!kernel->ties)
        return kg_triton_format(kernel, "(%s)%s", vector, expand);
    return kg_triton_format(kernel, "%s(%s)", expand[1] == ':' ? "_down" : "_across", vector);
}

struct kg_triton_axis kg_triton_tile_dimension(struct kg_triton_kernel *kernel, const char *base,
                                               int program, const char *block, const char *expand,
                                               const char *end)
{
    const char *name = kg_triton_fresh(kernel, base);
    kg_triton_block(kernel, block);
    const char *places = kg_triton_format(kernel, "%s * %s + tl.arange(0, %s)",
                                          kg_triton_program(kernel, program, true), block, block);
    kg_triton_line(kernel, "%s = %s", name, expanded(kernel, places, expand));
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_line(kernel, "%s = %s < %s", inside, name, end);
    return (struct kg_triton_axis){.name = name, .inside = inside};
}

static void mark_rows(struct kg_triton_kernel *kernel, const int *axes, int count)
{
    for (int i = 0; i < count; i++)
        kernel->axes[axes[i]].is_row = true;
}

void kg_triton_tile_rows_of(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                            const int *axes, int count, bool again)
{
    const char *total = kg_triton_tile_count(kernel, nest, axes, count);
    if (count > 1 && again) {
        const char *row = kg_triton_fresh(kernel, "row");
        kg_triton_block(kernel, "BLOCK_ROWS");
        kg_triton_line(kernel, "%s = %s * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)", row,
                       kg_triton_program(kernel, 0, true));
        const char *least = kg_triton_format(kernel, "tl.minimum(%s, %s - 1)", row, total);
        kg_triton_line(kernel, kernel->ties ? "%s = _down(%s)" : "%s = %s[:, None]", row, least);
        split_by_products(kernel, nest, axes, count, row);
        mark_rows(kernel, axes, count);
        return;
    }
    struct kg_triton_axis rows =
        kg_triton_tile_dimension(kernel, count == 1 ? nest->axes[axes[0]]->name : "row", 0,
                                 "BLOCK_ROWS", "[:, None]", total);
    if (count == 1)
        kernel->axes[axes[0]] = rows;
    else
        kg_triton_tile_split(kernel, nest, axes, count, rows.name, rows.inside);
    mark_rows(kernel, axes, count);
}

void kg_triton_tile_rows(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int count,
                         bool again)
{
    int axes[KG_MAX_INDICES];
    if (count > 0)
        kg_triton_tile_rows_of(kernel, nest, axes, range_of(0, count - 1, axes), again);
}

struct kg_triton_axis kg_triton_tile_columns(struct kg_triton_kernel *kernel,
                                             const struct kg_nest *nest, int first, int last,
                                             const char *start, const char *expand)
{
    const char *name = kg_triton_fresh(kernel, first == last ? nest->axes[first]->name : "col");
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_block(kernel, "BLOCK_COLS");
    kg_triton_line(kernel, "%s = %s%stl.arange(0, BLOCK_COLS)%s%s", name,
                   start ? kg_triton_format(kernel, "tl.cast(%s, INDEX)", start) : "",
                   start ? " + " : "", expand, start ? "" : ".to(INDEX)");
    kg_triton_line(kernel, "%s = %s < %s", inside, name,
                   first == last ? kg_triton_end_of(kernel, nest->axes[first])
                                 : kg_triton_tile_product(kernel, nest, first, last));
    int axes[KG_MAX_INDICES], count = range_of(first, last, axes);
    if (count > 1)
        kg_triton_tile_split(kernel, nest, axes, count, name, inside);
    else
        kernel->axes[first] = (struct kg_triton_axis){.name = name, .inside = inside};
    return (struct kg_triton_axis){.name = name, .inside = inside};
}

int kg_triton_turned_axis(const struct kg_group *group, const struct kg_nest *shape)
{
    int last = shape->output_axes - 1;
    for (int i = 0; i < group->count && !shape->has_reduce; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        for (int a = 0; a < nest->access_count; a++) {
            const struct kg_access *access = &nest->accesses[a];
            int rank = access->tensor->rank;
            const struct kg_expr *inner = rank ? access->map[rank - 1].subscript : NULL;
            if (inner && inner->kind == KG_EXPR_INDEX && inner->index->id < last &&
                kg_access_uses(access, last, last))
                return inner->index->id;
        }
    }
    return -1;
}

// Whether the subscript grows by one with the axis.
static bool follows(const struct kg_expr *subscript, int axis)
{
    if (subscript->kind == KG_EXPR_INDEX)
        return subscript->index->id == axis;
    if (subscript->kind != KG_EXPR_CALL ||
        (subscript->function != KG_FN_ADD && subscript->function != KG_FN_SUB))
        return false;
    const struct kg_expr *left = subscript->arguments[0], *right = subscript->arguments[1];
    return (follows(left, axis) && !kg_expr_uses(right, axis, true)) ||
           (subscript->function == KG_FN_ADD && follows(right, axis) &&
            !kg_expr_uses(left, axis, true));
}

// Whether the elements that the axis reads one after the other lie close together, but not one
// after the other. Where the axis moves along several dimensions, or among panels, rows may be
// closer.
static bool is_scattered(const struct kg_access *access, int axis)
{
    int rank = access->tensor->rank;
    if (!kg_access_uses(access, axis, axis) || access->tensor->panel_rows)
        return false;
    for (int dim = 0; dim < rank - 1; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return false;
    return kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)) ||
           !follows(access->map[rank - 1].subscript, axis);
}

bool kg_triton_ties(const struct kg_group *group, const struct kg_nest *shape)
{
    int last = shape->output_axes - 1;
    if (last < 1 || shape->has_reduce || kg_triton_turned_axis(group, shape) >= 0)
        return false;
    for (int i = 0; i < group->count; i++)
        for (int a = 0; a < kg_group_nest(group, i)->access_count; a++)
            if (is_scattered(&kg_group_nest(group, i)->accesses[a], last))
                return true;
    return false;
}

static bool has_block(const struct kg_triton_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->block_count; i++)
        if (strcmp(kernel->blocks[i], name) == 0)
            return true;
    return false;
}

void kg_triton_launch_grid(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           int level, bool columns)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    bool rows = has_block(kernel, "BLOCK_ROWS");
    columns &= has_block(kernel, "BLOCK_COLS");
    kg_text_format(text, "%*s%s = lambda meta: (", 4 * level, "", host->grid);
    if (rows)
        kg_text_format(text, "_cdiv(%s, meta[\"BLOCK_ROWS\"]),%s", host->counts[0],
                       columns ? " " : "");
    if (columns)
        kg_text_format(text, "_cdiv(%s, meta[\"BLOCK_COLS\"])%s", host->counts[1], rows ? "" : ",");
    kg_text_add(text, rows || columns ? ")\n" : "1,)\n");
}

// "BLOCK_ROWS=tile.rows, " for the blocks of a kernel.
static void add_blocks(struct kg_text *text, const struct kg_triton_kernel *kernel,
                       const char *tile)
{
    for (int i = 0; i < kernel->block_count; i++) {
        kg_text_format(text, "%s%s=%s.", i ? ", " : "", kernel->blocks[i], tile);
        for (const char *c = kernel->blocks[i] + strlen("BLOCK_"); *c; c++)
            kg_text_format(text, "%c", tolower((unsigned char)*c));
    }
}

// The names of the blocks that a tuner may change, as arguments of _launcher.
static void add_tunable(struct kg_text *text, const struct kg_triton_kernel *kernel,
                        enum kg_triton_tunable tunable)
{
    for (int i = 0; i < kernel->block_count; i++)
        if (strcmp(kernel->blocks[i], "BLOCK_K") != 0 &&
            (tunable == KG_TRITON_TUNE_ALL || strcmp(kernel->blocks[i], "BLOCK_ROWS") == 0))
            kg_text_format(text, ", \"%s\"", kernel->blocks[i]);
}

void kg_triton_launch_call(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           int level, enum kg_triton_tunable tunable)
{
    struct kg_text constants = {0}, called = {0};
    const struct kg_triton_host *host = unit->host;
    add_blocks(&constants, kernel, host->tile);
    bool blocks = tunable != KG_TRITON_TUNE_NONE && kernel->block_count > 0;
    kg_text_format(unit->launches, "%*s%s, %s, %s, %s = _spread(%s, %s%s%s%s)\n", 4 * level, "",
                   host->grid, host->turns, host->last, host->across, host->device, host->grid,
                   has_block(kernel, "BLOCK_M") ? ", True" : "", blocks ? ", " : "",
                   blocks ? kg_text_string(&constants) : "");
    kg_text_format(&constants, "%snum_warps=%s.warps", kernel->block_count ? ", " : "", host->tile);
    if (has_block(kernel, "BLOCK_M"))
        kg_text_format(&constants, ", num_stages=%s.stages", host->tile);
    kg_text_format(&called, "_launcher(%s", kernel->entry);
    if (tunable != KG_TRITON_TUNE_NONE)
        add_tunable(&called, kernel, tunable);
    kg_text_add(&called, ")");
    kg_triton_host_call(unit->launches, host, kernel, level, kg_text_string(&called),
                        kg_text_string(&constants));
    unit->launches->failed |= constants.failed | called.failed;
    kg_text_free(&constants);
    kg_text_free(&called);
}

void kg_triton_launch_tile(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           const struct kg_triton_kernel *walk, const struct kg_nest *nest)
{
    int last = nest->output_axes - 1;
    const struct kg_triton_host *given = unit->host;
    struct kg_triton_host merged = kg_triton_merge(unit, nest, 0, nest->output_axes - 1);
    unit->host = &merged;
    if (walk) {
        struct kg_text *proofs = unit->proofs;
        unit->proofs = NULL; // Ascend devices never run it
        kg_text_add(unit->launches, "    if ");
        kg_triton_walk_condition(unit, nest);
        kg_text_add(unit->launches, ":\n");
        kg_triton_launch_outputs(unit, walk, nest, last - 1, 2);
        kg_text_add(unit->launches, "    else:\n");
        unit->proofs = proofs;
    }
    kg_triton_launch_outputs(unit, kernel, nest, last, walk ? 2 : 1);
    unit->host = given;
}

void kg_triton_launch_outputs(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                              const struct kg_nest *nest, int columns, int level)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    int last = nest->output_axes - 1, indent = 4 * level;
    const char *rows = host->counts[0], *cols = host->counts[1];
    kg_text_format(text, "%*s%s, %s = ", indent, "", rows, cols);
    kg_triton_host_product(text, host, nest, 0, columns - 1);
    kg_text_add(text, ", ");
    kg_triton_host_product(text, host, nest, columns < 0 ? 0 : columns, last);
    kg_text_format(text, "\n%*sif %s and %s:\n%*s    %s = %s(%s, %s, ", indent, "", rows, cols,
                   indent, "", host->tile,
                   kg_triton_turned_axis(unit->group, nest) < 0 ? "_tile" : "_transpose_tile", rows,
                   cols);
    kg_triton_add_most(unit, kg_triton_values(kernel), false);
    kg_text_add(text, ")\n");
    kg_triton_launch_grid(unit, kernel, level + 1, true);
    kg_triton_launch_call(unit, kernel, level + 1, KG_TRITON_TUNE_ALL);
}

void kg_triton_launch_rows(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           const struct kg_nest *nest, int rows)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    kg_text_format(text, "    %s, %s = ", host->counts[0], host->counts[1]);
    kg_triton_host_product(text, host, nest, 0, rows - 1);
    kg_text_add(text, ", ");
    kg_triton_host_extent(text, host, nest->axes[nest->axis_count - 1]);
    kg_text_format(text, "\n    if %s:\n        %s = _reduce_tile(%s, %s, ", host->counts[0],
                   host->tile, host->counts[0], host->counts[1]);
    kg_triton_add_most(unit, kg_triton_values(kernel), false);
    kg_text_add(text, ", False)\n");
    kg_triton_launch_grid(unit, kernel, 2, false);
    kg_triton_launch_call(unit, kernel, 2, KG_TRITON_TUNE_ALL);
}

struct kg_triton_tile kg_triton_tile_outputs(struct kg_triton_kernel *kernel,
                                             const struct kg_nest *nest)
{
    int last = nest->output_axes - 1, turned = kg_triton_turned_axis(kernel->group, nest);
    if (last < 0)
        return (struct kg_triton_tile){"", 0};
    int axes[KG_MAX_INDICES], count = 0;
    for (int axis = 0; axis < last; axis++)
        if (axis != turned)
            axes[count++] = axis;
    if (turned >= 0) // its neighbours in the tile are neighbours in memory
        axes[count++] = turned;
    if (count > 0)
        kg_triton_tile_rows_of(kernel, nest, axes, count, turned < 0);
    kernel->axes[last] = kg_triton_tile_dimension(kernel, nest->axes[last]->name, last == 0 ? 0 : 1,
                                                  "BLOCK_COLS", last == 0 ? "" : "[None, :]",
                                                  kg_triton_end_of(kernel, nest->axes[last]));
    return last == 0 ? (struct kg_triton_tile){"[BLOCK_COLS]", 1}
                     : (struct kg_triton_tile){"[BLOCK_ROWS, BLOCK_COLS]", 2};
}
