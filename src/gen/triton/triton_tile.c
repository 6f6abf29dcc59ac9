// Tiles of Triton kernels: see triton_tile.h.

#include "gen/triton/triton_tile.h"

#include <ctype.h>
#include <string.h>

const char *kg_triton_tile_product(struct kg_triton_kernel *kernel, const struct kg_nest *nest,
                                   int first, int last)
{
    const char *product = NULL;
    for (int axis = first; axis <= last; axis++) {
        const char *extent = kg_triton_extent(kernel, nest->axes[axis]);
        product = product ? kg_triton_format(kernel, "%s * %s", product, extent) : extent;
    }
    return product ? product : "1";
}

const char *kg_triton_tile_program(struct kg_triton_kernel *kernel, int dimension)
{
    return kg_triton_format(kernel, "tl.program_id(%d).to(INDEX)", dimension);
}

void kg_triton_tile_split(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int first,
                          int last, const char *linear, const char *inside)
{
    for (int axis = first; axis <= last; axis++) {
        const char *name = kg_triton_fresh(kernel, nest->axes[axis]->name), *value = linear;
        if (axis < last)
            value = kg_triton_format(
                kernel, "%s // %s", value,
                kg_triton_operand(kernel, kg_triton_tile_product(kernel, nest, axis + 1, last)));
        if (axis > first)
            value = kg_triton_format(kernel, "%s %% %s", value,
                                     kg_triton_extent(kernel, nest->axes[axis]));
        kg_triton_line(kernel, "%s = %s", name, value);
        kernel->axes[axis] = (struct kg_triton_axis){name, inside};
    }
}

struct kg_triton_axis kg_triton_tile_dimension(struct kg_triton_kernel *kernel, const char *base,
                                               int program, const char *block, const char *expand,
                                               const char *end)
{
    const char *name = kg_triton_fresh(kernel, base);
    kg_triton_block(kernel, block);
    kg_triton_line(kernel, "%s = %s%s * %s + tl.arange(0, %s)%s%s", name, *expand ? "(" : "",
                   kg_triton_tile_program(kernel, program), block, block, *expand ? ")" : "",
                   expand);
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_line(kernel, "%s = %s < %s", inside, name, end);
    return (struct kg_triton_axis){name, inside};
}

void kg_triton_tile_rows(struct kg_triton_kernel *kernel, const struct kg_nest *nest, int count)
{
    if (count == 0)
        return;
    struct kg_triton_axis rows =
        kg_triton_tile_dimension(kernel, count == 1 ? nest->axes[0]->name : "row", 0, "BLOCK_ROWS",
                                 "[:, None]", kg_triton_tile_product(kernel, nest, 0, count - 1));
    if (count == 1)
        kernel->axes[0] = rows;
    else
        kg_triton_tile_split(kernel, nest, 0, count - 1, rows.name, rows.inside);
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
    if (first < last)
        kg_triton_tile_split(kernel, nest, first, last, name, inside);
    else
        kernel->axes[first] = (struct kg_triton_axis){name, inside};
    return (struct kg_triton_axis){name, inside};
}

void kg_triton_launch_call(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           int level)
{
    struct kg_text constants = {0};
    const char *tile = unit->host->tile;
    for (int i = 0; i < kernel->block_count; i++) {
        kg_text_format(&constants, "%s=%s.", kernel->blocks[i], tile);
        for (const char *c = kernel->blocks[i] + strlen("BLOCK_"); *c; c++)
            kg_text_format(&constants, "%c", tolower((unsigned char)*c));
        kg_text_add(&constants, ", ");
    }
    kg_text_format(&constants, "num_warps=%s.warps", tile);
    kg_text_format(unit->launches, "%*s_check_grid(%s, %s)\n", 4 * level, "", unit->host->device,
                   unit->host->grid);
    kg_triton_host_call(unit->launches, unit->host, kernel, level, kg_text_string(&constants));
    unit->launches->failed |= constants.failed;
    kg_text_free(&constants);
}

void kg_triton_launch_tile(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           const struct kg_nest *nest)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    const char *rows = host->counts[0], *cols = host->counts[1];
    int last = nest->output_axes - 1;
    kg_text_format(text, "    %s, %s = ", rows, cols);
    kg_triton_host_product(text, host, nest, 0, last - 1);
    kg_text_add(text, ", ");
    kg_triton_host_product(text, host, nest, last < 0 ? 0 : last, last);
    kg_text_format(
        text, "\n    if %s and %s:\n        %s = _tile(%s, %s, _most(%s, %d))\n        %s = (",
        rows, cols, host->tile, rows, cols, host->device, kg_triton_values(kernel), host->grid);
    if (last > 0)
        kg_text_format(text, "triton.cdiv(%s, %s.rows), ", rows, host->tile);
    kg_text_format(text, "triton.cdiv(%s, %s.cols)%s)\n", cols, host->tile, last > 0 ? "" : ",");
    kg_triton_launch_call(unit, kernel, 2);
}

void kg_triton_launch_rows(struct kg_triton_unit *unit, const struct kg_triton_kernel *kernel,
                           const struct kg_nest *nest, int rows, const char *tile)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    kg_text_format(text, "    %s, %s = ", host->counts[0], host->counts[1]);
    kg_triton_host_product(text, host, nest, 0, rows - 1);
    kg_text_add(text, ", ");
    kg_triton_host_extent(text, host, nest->axes[nest->axis_count - 1]);
    kg_text_format(text, "\n    if %s:\n        %s = %s(%s, %s, _most(%s, %d))\n", host->counts[0],
                   host->tile, tile, host->counts[0], host->counts[1], host->device,
                   kg_triton_values(kernel));
    kg_text_format(text, "        %s = (triton.cdiv(%s, %s.rows),)\n", host->grid, host->counts[0],
                   host->tile);
    kg_triton_launch_call(unit, kernel, 2);
}

struct kg_triton_tile kg_triton_tile_outputs(struct kg_triton_kernel *kernel,
                                             const struct kg_nest *nest)
{
    int last = nest->output_axes - 1;
    if (last < 0)
        return (struct kg_triton_tile){"", 0};
    kg_triton_tile_rows(kernel, nest, last);
    kernel->axes[last] = kg_triton_tile_dimension(kernel, nest->axes[last]->name, last == 0 ? 0 : 1,
                                                  "BLOCK_COLS", last == 0 ? "" : "[None, :]",
                                                  kg_triton_end_of(kernel, nest->axes[last]));
    return last == 0 ? (struct kg_triton_tile){"[BLOCK_COLS]", 1}
                     : (struct kg_triton_tile){"[BLOCK_ROWS, BLOCK_COLS]", 2};
}
