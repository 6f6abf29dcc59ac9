// Tiles of Triton kernels: see triton_tile.h.

#include "gen/triton/triton_tile.h"

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
            value = kg_triton_format(kernel, "%s // (%s)", value,
                                     kg_triton_tile_product(kernel, nest, axis + 1, last));
        if (axis > first)
            value = kg_triton_format(kernel, "%s %% %s", value,
                                     kg_triton_extent(kernel, nest->axes[axis]));
        kg_triton_line(kernel, "%s = %s", name, value);
        kernel->axes[axis] = (struct kg_triton_axis){name, inside};
    }
}

// One dimension of a tile: values and mask. Returns the name of the values.
static const char *dimension(struct kg_triton_kernel *kernel, const char *base, int program,
                             const char *block, const char *expand, const char *end,
                             const char **inside)
{
    const char *name = kg_triton_fresh(kernel, base);
    kg_triton_block(kernel, block);
    kg_triton_line(kernel,
                   *expand ? "%s = (%s * %s + tl.arange(0, %s))%s"
                           : "%s = %s * %s + tl.arange(0, %s)%s",
                   name, kg_triton_tile_program(kernel, program), block, block, expand);
    *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_line(kernel, "%s = %s < %s", *inside, name, end);
    return name;
}

struct kg_triton_tile kg_triton_tile_outputs(struct kg_triton_kernel *kernel,
                                             const struct kg_nest *nest)
{
    int last = nest->output_axes - 1;
    const char *inside;
    if (last < 0)
        return (struct kg_triton_tile){"", 0};
    if (last == 0) {
        const char *name = dimension(kernel, nest->axes[0]->name, 0, "BLOCK_COLS", "",
                                     kg_triton_end_of(kernel, nest->axes[0]), &inside);
        kernel->axes[0] = (struct kg_triton_axis){name, inside};
        return (struct kg_triton_tile){"[BLOCK_COLS]", 1};
    }
    const char *rows =
        dimension(kernel, last == 1 ? nest->axes[0]->name : "row", 0, "BLOCK_ROWS", "[:, None]",
                  kg_triton_tile_product(kernel, nest, 0, last - 1), &inside);
    const char *rows_in = inside;
    const char *cols = dimension(kernel, nest->axes[last]->name, 1, "BLOCK_COLS", "[None, :]",
                                 kg_triton_end_of(kernel, nest->axes[last]), &inside);
    kernel->axes[last] = (struct kg_triton_axis){cols, inside};
    if (last == 1)
        kernel->axes[0] = (struct kg_triton_axis){rows, rows_in};
    else
        kg_triton_tile_split(kernel, nest, 0, last - 1, rows, rows_in);
    return (struct kg_triton_tile){"[BLOCK_ROWS, BLOCK_COLS]", 2};
}
