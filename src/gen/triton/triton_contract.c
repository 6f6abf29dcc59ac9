// Sums of products of two operands, by tl.dot: matrix products, batched ones, convolutions as the
// products that they are, with the element-wise statements that follow.
//
// A program makes a tile of M x N outputs and walks K in blocks; programs that are near in time
// share rows and columns in the last-level cache. Of several summed axes one is walked in blocks,
// preferably one of unknown length; the others are loops. Where there are few tiles, several
// programs share the blocks of each, and a second kernel adds their parts.

#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_product.h"
#include "gen/triton/triton_tile.h"

#include <string.h>

// "M * N" over axes that need not be adjacent; "1" for none.
static const char *extent_of(struct kg_triton_kernel *kernel,
                             const struct kg_triton_product *product, enum kg_contract_role role)
{
    return kg_triton_tile_count(kernel, product->contract.nest, product->contract.axes[role],
                                product->contract.axis_count[role]);
}

static void split(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                  enum kg_contract_role role, const char *linear, const char *inside)
{
    kg_triton_tile_split(kernel, product->contract.nest, product->contract.axes[role],
                         product->contract.axis_count[role], linear, inside);
}

// The rows (M) or columns (N) of the tile.
static void declare_side(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                         enum kg_contract_role role, const char *tile)
{
    bool is_m = role == KG_CONTRACT_M;
    const char *block = kg_triton_block(kernel, is_m ? "BLOCK_M" : "BLOCK_N");
    int count = product->contract.axis_count[role];
    const struct kg_index *first = product->contract.nest->axes[product->contract.axes[role][0]];
    const char *name = kg_triton_fresh(kernel, count == 1 ? first->name : is_m ? "row" : "col");
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_line(kernel, "%s = (%s.to(INDEX) * %s + tl.arange(0, %s))[%s]", name, tile, block,
                   block, is_m ? ":, None" : "None, :");
    kg_triton_line(kernel, "%s = %s < %s", inside, name, extent_of(kernel, product, role));
    if (count == 1)
        kernel->axes[product->contract.axes[role][0]] =
            (struct kg_triton_axis){.name = name, .inside = inside};
    else
        split(kernel, product, role, name, inside);
}

static void declare_tile(struct kg_triton_kernel *kernel, const struct kg_triton_product *product)
{
    const char *pid = kg_triton_fresh(kernel, "pid");
    const char *m = kg_triton_fresh(kernel, "tiles_m"), *n = kg_triton_fresh(kernel, "tiles_n");
    kg_triton_line(kernel, "%s = %s", pid, kg_triton_program(kernel, 0, false));
    kg_triton_line(kernel, "%s = tl.cdiv(%s, BLOCK_M)", m,
                   extent_of(kernel, product, KG_CONTRACT_M));
    kg_triton_line(kernel, "%s = tl.cdiv(%s, BLOCK_N)", n,
                   extent_of(kernel, product, KG_CONTRACT_N));
    if (product->contract.axis_count[KG_CONTRACT_BATCH]) {
        const char *batch = kg_triton_fresh(kernel, "batch");
        kg_triton_line(kernel, "%s = (%s // (%s * %s)).to(INDEX)", batch, pid, m, n);
        kg_triton_line(kernel, "%s = %s %% (%s * %s)", pid, pid, m, n);
        split(kernel, product, KG_CONTRACT_BATCH, batch, NULL);
    }
    kg_triton_line(kernel, "# Eight rows of tiles at a time: their programs share columns in the "
                           "cache.");
    const char *first = kg_triton_fresh(kernel, "first_m");
    const char *height = kg_triton_fresh(kernel, "height");
    kg_triton_line(kernel, "%s = %s // (8 * %s) * 8", first, pid, n);
    kg_triton_line(kernel, "%s = tl.minimum(%s - %s, 8)", height, m, first);
    declare_side(kernel, product, KG_CONTRACT_M,
                 kg_triton_format(kernel, "(%s + %s %% (8 * %s) %% %s)", first, pid, n, height));
    declare_side(kernel, product, KG_CONTRACT_N,
                 kg_triton_format(kernel, "(%s %% (8 * %s) // %s)", pid, n, height));
}

// The three kernels: of the whole sum; of a part of it, which leaves its totals in memory; and of
// the outputs from the parts.
enum form { WHOLE, PART, END };

// Loops over the summed axes that are not walked in blocks.
static int open_loops(struct kg_triton_kernel *kernel, const struct kg_triton_product *product)
{
    const struct kg_contract *contract = &product->contract;
    int loops = 0;
    for (int i = 0; i < contract->axis_count[KG_CONTRACT_K]; i++) {
        int id = contract->axes[KG_CONTRACT_K][i];
        const struct kg_index *axis = contract->nest->axes[id];
        if (id == product->block)
            continue;
        const char *step = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_step", axis->name));
        kg_triton_open(kernel, "for %s in range(%s, %s)", step, kg_triton_begin_of(kernel, axis),
                       kg_triton_end_of(kernel, axis));
        const char *index = kg_triton_fresh(kernel, axis->name);
        kg_triton_line(kernel, "%s = tl.cast(%s, INDEX)", index, step);
        kernel->axes[id] = (struct kg_triton_axis){.name = index};
        loops++;
    }
    return loops;
}

// `split`: the name of the program's part of the blocks; NULL: it has all of them.
static void write_sum(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                      const char *split, const char *total)
{
    const struct kg_index *axis = product->contract.nest->axes[product->block];
    const char *begin = kg_triton_begin_of(kernel, axis), *all = kg_triton_end_of(kernel, axis);
    const char *end = all;
    if (split) { // whole blocks: the mask is that of the whole sum, whose length may be aligned
        const char *chunk = kernel->extras[1].name;
        const char *from = kg_triton_fresh(kernel, "begin");
        bool zero = strcmp(begin, "0") == 0;
        kg_triton_line(kernel, "%s = %s%s%s * %s", from, zero ? "" : begin, zero ? "" : " + ",
                       split, chunk);
        const char *to = kg_triton_fresh(kernel, "end");
        kg_triton_line(kernel, "%s = tl.minimum(%s + %s, %s)", to, from, chunk, end);
        begin = from;
        end = to;
    }
    int loops = open_loops(kernel, product);
    const char *start = kg_triton_fresh(kernel, "start");
    kg_triton_block(kernel, "BLOCK_K");
    kg_triton_open(kernel, "for %s in range(%s, %s, BLOCK_K)", start, begin, end);
    const char *k = kg_triton_fresh(kernel, axis->name);
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", k));
    kg_triton_line(kernel, "%s = tl.cast(%s, INDEX) + tl.arange(0, BLOCK_K)", k, start);
    kg_triton_line(kernel, "%s = %s < %s", inside, k, all);
    kg_triton_product_step(kernel, product, k, inside, start, total);
    for (int i = 0; i <= loops; i++)
        kg_triton_close(kernel);
}

// A sum whose scales or offsets are infinite, element by element: there NaN and infinity depend on
// which elements are 0, and sums that are scaled afterwards have forgotten it.
static void write_rare_sum(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                           const char *split, const char *total)
{
    struct kg_triton_product plain = *product;
    plain.scaled = -1;
    kg_triton_open(kernel, "if _has_unbounded(%s)", total);
    kg_triton_line(kernel, "%s = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)", total);
    write_sum(kernel, &plain, split, total);
    kg_triton_close(kernel);
}

// The sum with its constants.
static const char *scaled(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                          const char *total)
{
    const struct kg_contract *contract = &product->contract;
    const char *value = contract->negative ? kg_triton_format(kernel, "-%s", total) : total;
    for (int i = 0; i < contract->constant_count; i++) {
        const char *factor = kg_triton_value(kernel, contract->constants[i].expr, contract->type);
        value = kg_triton_format(kernel, "%s %s (%s)", value,
                                 contract->constants[i].divides ? "/" : "*", factor);
    }
    return value;
}

static void add_product(struct kg_text *text, const struct kg_triton_host *host,
                        const struct kg_triton_product *product, enum kg_contract_role role)
{
    for (int i = 0; i < product->contract.axis_count[role]; i++) {
        kg_text_add(text, i ? " * " : "");
        kg_triton_host_extent(text, host,
                              product->contract.nest->axes[product->contract.axes[role][i]]);
    }
    kg_text_add(text, product->contract.axis_count[role] ? "" : "1");
}

// The total of a tile, and the element-wise statements behind it.
static void write_results(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                          const char *total)
{
    kernel->nest = product->contract.nest;
    enum kg_type type = product->contract.type;
    if (product->integers)
        kg_triton_line(kernel, "%s = %s.to(tl.int64)", total, total);
    kg_triton_settle(kernel, 0, scaled(kernel, product, total), type);
    for (int i = 1; i < kernel->group->count; i++)
        kg_triton_element(kernel, i);
}

static void write_tiles(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                        const struct kg_triton_host *host, enum form form)
{
    const struct kg_nest *nest = kernel->nest = product->contract.nest;
    const char *split = NULL;
    if (form == PART) {
        kg_triton_extra(kernel, "part_ptr", host->part);
        kg_triton_extra(kernel, "chunk", host->chunk);
    }
    declare_tile(kernel, product);
    if (form == PART) {
        split = kg_triton_fresh(kernel, "split");
        kg_triton_line(kernel, "%s = %s", split, kg_triton_program(kernel, 1, false));
    }
    const char *total = kg_triton_fresh(kernel, "total");
    kg_triton_line(kernel, "%s = tl.zeros([BLOCK_M, BLOCK_N], %s)", total,
                   product->integers ? "tl.int32" : "tl.float32");
    kernel->shared = true; // programs near in time read the same rows and columns
    write_sum(kernel, product, split, total);
    if (product->scaled >= 0)
        write_rare_sum(kernel, product, split, total);
    kernel->shared = false;
    if (form == WHOLE) {
        write_results(kernel, product, total);
        return;
    }
    const struct kg_contract *contract = &product->contract;
    kg_triton_line(kernel, "tl.store(%s + %s, %s, mask=%s & %s)", kernel->extras[0].name,
                   kg_triton_tile_part(kernel, nest, split), total,
                   kernel->axes[contract->axes[KG_CONTRACT_M][0]].inside,
                   kernel->axes[contract->axes[KG_CONTRACT_N][0]].inside);
}

// Tiles of the output, in which the parts are added in a fixed order.
static void write_end(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
                      const struct kg_triton_host *host)
{
    const struct kg_nest *nest = kernel->nest = product->contract.nest;
    kg_triton_extra(kernel, "part_ptr", host->part);
    kg_triton_extra(kernel, "splits", host->splits);
    struct kg_triton_tile tile = kg_triton_tile_outputs(kernel, nest);
    const char *total = kg_triton_fresh(kernel, "total");
    kg_triton_line(kernel, "%s = tl.zeros(%s, %s)", total, tile.shape,
                   product->integers ? "tl.int64" : "tl.float32");
    const char *split = kg_triton_fresh(kernel, "split");
    kg_triton_open(kernel, "for %s in range(%s)", split, kernel->extras[1].name);
    const char *mask = kernel->axes[nest->output_axes - 1].inside;
    if (nest->output_axes > 1)
        mask = kg_triton_and(kernel, kernel->axes[0].inside, mask);
    kg_triton_line(kernel, "%s += tl.load(%s + %s, mask=%s, other=0)", total,
                   kernel->extras[0].name, kg_triton_tile_part(kernel, nest, split), mask);
    kg_triton_close(kernel);
    write_results(kernel, product, total);
}

static void launch(const struct kg_triton_product *product, struct kg_triton_unit *unit,
                   struct kg_triton_kernel *const kernels[3])
{
    struct kg_text *text = unit->launches, batch = {0}, depth = {0};
    const struct kg_triton_host *host = unit->host;
    const char *rows = host->counts[0], *cols = host->counts[1], *tile = host->tile;
    bool batched = product->contract.axis_count[KG_CONTRACT_BATCH] > 0;
    int block = kg_triton_product_block(product);
    add_product(&batch, host, product, KG_CONTRACT_BATCH);
    kg_triton_host_extent(&depth, host, product->contract.nest->axes[product->block]);
    kg_text_format(text, "    %s, %s = ", rows, cols);
    add_product(text, host, product, KG_CONTRACT_M);
    kg_text_add(text, ", ");
    add_product(text, host, product, KG_CONTRACT_N);
    kg_text_format(text, "\n    if %s and %s%s%s:\n", rows, cols, batched ? " and " : "",
                   batched ? kg_text_string(&batch) : "");
    kg_text_format(text, "        %s = _product_tile(%s, %s, %s, %s, ", tile, rows, cols,
                   kg_text_string(&depth), kg_text_string(&batch));
    kg_triton_product_bytes(text, host, product);
    kg_text_format(text, ", _shared(%s), ", host->device);
    kg_triton_add_most(unit, 2 + 2 * unit->group->count, true); // the sum, each value and its copy
    if (block) // all of a block has the same scales
        kg_text_format(text, ", longest=%d", block);
    kg_text_add(text, ")\n");
    if (product->integers) // 65536 products of i8 fit in 32 bits
        kg_text_format(text, "        %s = %s._replace(splits=max(%s.splits, _cdiv(%s, 65536)))\n",
                       tile, tile, tile, kg_text_string(&depth));
    kg_text_format(text, "        if %s.splits == 1:\n", tile);
    kg_text_format(text,
                   "            %s = lambda meta: (_cdiv(%s, meta[\"BLOCK_M\"]) * "
                   "_cdiv(%s, meta[\"BLOCK_N\"])%s%s,)\n",
                   host->grid, rows, cols, batched ? " * " : "",
                   batched ? kg_text_string(&batch) : "");
    kg_triton_launch_call(unit, kernels[WHOLE], 3, KG_TRITON_TUNE_ALL);
    kg_text_format(text, "        else:\n            %s = %s.splits\n", host->splits, tile);
    kg_text_format(text, "            %s = _cdiv(_cdiv(%s, %s), %s.k) * %s.k\n", host->chunk,
                   kg_text_string(&depth), host->splits, tile, tile);
    kg_text_format(text, "            %s = _empty((%s, %s * %s%s%s), dtype=torch.%s, device=%s)\n",
                   host->part, host->splits, rows, cols, batched ? " * " : "",
                   batched ? kg_text_string(&batch) : "", product->integers ? "int32" : "float32",
                   host->device);
    kg_text_format(text, "            %s = (_cdiv(%s, %s.m) * _cdiv(%s, %s.n)%s%s, %s)\n",
                   host->grid, rows, tile, cols, tile, batched ? " * " : "",
                   batched ? kg_text_string(&batch) : "", host->splits);
    kg_triton_launch_call(unit, kernels[PART], 3, KG_TRITON_TUNE_NONE);
    kg_triton_launch_outputs(unit, kernels[END], product->contract.nest,
                             product->contract.nest->output_axes - 1, 3);
    text->failed |= batch.failed | depth.failed;
    kg_text_free(&batch);
    kg_text_free(&depth);
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    static const char *const suffixes[] = {"", "_part", "_end"};
    const struct kg_triton_product *product = (const struct kg_triton_product *)plan;
    struct kg_triton_kernel *kernels[3];
    bool made = true;
    for (enum form form = WHOLE; form <= END; form++) {
        kernels[form] = kg_triton_unit_begin(unit, suffixes[form]);
        made &= kernels[form] != NULL;
        if (!kernels[form])
            continue;
        if (form == END)
            write_end(kernels[form], product, unit->host);
        else
            write_tiles(kernels[form], product, unit->host, form);
    }
    if (made)
        launch(product, unit, kernels);
    for (enum form form = WHOLE; form <= END; form++)
        if (kernels[form])
            kg_triton_unit_end(unit, kernels[form]);
}

// Whether every subscript that uses the axis is the axis alone.
static bool is_bare(const struct kg_nest *nest, int axis)
{
    for (int i = 0; i < nest->access_count; i++)
        for (int dim = 0; dim < nest->accesses[i].tensor->rank; dim++) {
            const struct kg_expr *subscript = nest->accesses[i].map[dim].subscript;
            if (kg_expr_uses(subscript, axis, true) && subscript->kind != KG_EXPR_INDEX)
                return false;
        }
    return true;
}

// The last summed axis of unknown length, of those that are no window if there are such.
static int block_axis(const struct kg_contract *contract)
{
    int count = contract->axis_count[KG_CONTRACT_K];
    for (int windows = 0; windows < 2; windows++)
        for (int i = count - 1; i >= 0; i--) {
            int axis = contract->axes[KG_CONTRACT_K][i];
            if (contract->nest->axes[axis]->end->kind != KG_EXPR_NUMBER &&
                (windows || is_bare(contract->nest, axis)))
                return axis;
        }
    return contract->axes[KG_CONTRACT_K][count - 1];
}

static const void *match_product(const struct kg_group *group, const struct kg_device_facts *facts,
                                 struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct kg_triton_product *product = KG_NEW(arena, struct kg_triton_product);
    if (!product)
        return NULL;
    *product = (struct kg_triton_product){
        .plan = {write, "tiles of the product by tl.dot, summed in float32; where they are few, "
                        "programs share the sums (_part, _end)"},
        .group = *group,
    };
    struct kg_contract *contract = &product->contract;
    if (!kg_contract_read(&product->group, contract, reason))
        return NULL;
    const char *why = NULL;
    product->integers = kg_triton_product_has_integers(product);
    if (contract->type != KG_TYPE_F32 && !product->integers)
        why = "it is not computed in float32";
    else if (!contract->axis_count[KG_CONTRACT_M] || !contract->axis_count[KG_CONTRACT_N])
        why = "an operand has no axes of its own: the sum reads each of its elements once";
    else if (!contract->axis_count[KG_CONTRACT_K])
        why = "it sums over nothing";
    if (why) {
        kg_text_add(reason, why);
        return NULL;
    }
    product->block = block_axis(contract);
    kg_triton_product_find_scaled(product);
    return product;
}

const struct kg_family kg_triton_contract = {
    .name = "contract",
    .summary = "sums of products of two operands, by tl.dot",
    .match = match_product,
    .space = kg_triton_space,
    .valid = kg_triton_valid,
    .guess = kg_triton_guess,
    .bound = kg_group_bound,
    .emit = kg_triton_emit,
};
