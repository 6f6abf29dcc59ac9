// Sums of products of two operands, by tl.dot: matrix products, batched ones, convolutions as the
// products that they are, with the element-wise statements that follow.
//
// A program makes a tile of M x N outputs and walks K in blocks; programs that are near in time
// share rows and columns in the last-level cache. Of several summed axes one is walked in blocks,
// preferably one of unknown length; the others are loops.

#include "gen/families.h"
#include "gen/shared/bound.h"
#include "gen/shared/contract_operands.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_tile.h"

struct product {
    struct kg_triton_plan plan;
    struct kg_contract contract;
    struct kg_group group;
    int block; // the summed axis that is walked in blocks
};

static const struct kg_nest *nest_of(const struct product *product)
{
    return kg_group_nest(&product->group, 0);
}

// "M * N" over axes that need not be adjacent; "1" for none.
static const char *extent_of(struct kg_triton_kernel *kernel, const struct product *product,
                             enum kg_contract_role role)
{
    return kg_triton_tile_count(kernel, nest_of(product), product->contract.axes[role],
                                product->contract.axis_count[role]);
}

static void split(struct kg_triton_kernel *kernel, const struct product *product,
                  enum kg_contract_role role, const char *linear, const char *inside)
{
    kg_triton_tile_split(kernel, nest_of(product), product->contract.axes[role],
                         product->contract.axis_count[role], linear, inside);
}

// The rows (M) or columns (N) of the tile.
static void declare_side(struct kg_triton_kernel *kernel, const struct product *product,
                         enum kg_contract_role role, const char *tile)
{
    bool is_m = role == KG_CONTRACT_M;
    const char *block = kg_triton_block(kernel, is_m ? "BLOCK_M" : "BLOCK_N");
    int count = product->contract.axis_count[role];
    const struct kg_index *first = nest_of(product)->axes[product->contract.axes[role][0]];
    const char *name = kg_triton_fresh(kernel, count == 1 ? first->name : is_m ? "row" : "col");
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", name));
    kg_triton_line(kernel, "%s = (%s.to(INDEX) * %s + tl.arange(0, %s))[%s]", name, tile, block,
                   block, is_m ? ":, None" : "None, :");
    kg_triton_line(kernel, "%s = %s < %s", inside, name, extent_of(kernel, product, role));
    if (count == 1)
        kernel->axes[product->contract.axes[role][0]] = (struct kg_triton_axis){name, inside};
    else
        split(kernel, product, role, name, inside);
}

static void declare_tile(struct kg_triton_kernel *kernel, const struct product *product)
{
    const char *pid = kg_triton_fresh(kernel, "pid");
    const char *m = kg_triton_fresh(kernel, "tiles_m"), *n = kg_triton_fresh(kernel, "tiles_n");
    kg_triton_line(kernel, "%s = tl.program_id(0)", pid);
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

// ---- Operands ----

static enum kg_dtype plain_dtype(const struct kg_contract_operand *operand)
{
    if (operand->count != 1 || operand->factors[0].divides ||
        operand->factors[0].expr->kind != KG_EXPR_READ)
        return KG_DTYPE_COUNT;
    return kg_triton_memory(operand->factors[0].expr->tensor);
}

static bool is_wide(enum kg_dtype dtype)
{
    return dtype < KG_DTYPE_COUNT && kg_dtypes[dtype].is_float && kg_dtypes[dtype].bits >= 16;
}

static bool is_byte(enum kg_dtype dtype)
{
    return dtype < KG_DTYPE_COUNT && kg_dtypes[dtype].is_float && kg_dtypes[dtype].bits == 8;
}

// Has every wider float all values of the dtype? Formulas have not: those are multiplied in f32.
static bool is_exact(enum kg_dtype dtype)
{
    return dtype < KG_DTYPE_COUNT && kg_dtypes[dtype].bits <= 8;
}

static const char *factors(struct kg_triton_kernel *kernel,
                           const struct kg_contract_operand *operand)
{
    const char *text = NULL;
    for (int i = 0; i < operand->count; i++) {
        const struct kg_contract_factor *factor = &operand->factors[i];
        const char *value = kg_triton_value(kernel, factor->expr, KG_TYPE_F32);
        if (operand->count > 1 && factor->expr->kind != KG_EXPR_READ)
            value = kg_triton_format(kernel, "(%s)", value);
        if (!text)
            text = factor->divides ? kg_triton_format(kernel, "1.0 / %s", value) : value;
        else
            text = kg_triton_format(kernel, "%s %s %s", text, factor->divides ? "/" : "*", value);
    }
    return text ? text : "1.0";
}

// The variable with the tile of an operand at the current axes: as it lies in memory if both
// operands have the same elements, else computed. What is outside the operand is 0.
static const char *write_operand(struct kg_triton_kernel *kernel, const struct product *product,
                                 int side, const char *inside, const char *other)
{
    const struct kg_contract_operand *operand = &product->contract.operands[side];
    enum kg_dtype own = plain_dtype(operand),
                  opposite = plain_dtype(&product->contract.operands[!side]);
    bool native = is_wide(own) && (own == opposite || is_exact(opposite));
    kernel->native = native;
    const char *value = factors(kernel, operand);
    kernel->native = false;
    if (own == KG_DTYPE_COUNT) // a formula need not be 0 where nothing was read
        value = kg_triton_format(kernel, "tl.where(%s, %s, 0.0)", inside, value);
    if (is_byte(own) && (is_byte(opposite))) // float16 holds them exactly
        value = kg_triton_format(kernel, "%s.to(tl.float16)", value);
    else if (is_exact(own) && is_wide(opposite) && other)
        value = kg_triton_format(kernel, "%s.to(%s.dtype)", value, other);
    if (is_wide(own)) // its name will do
        return value;
    const char *name = kg_triton_fresh(kernel, side ? "b" : "a");
    kg_triton_line(kernel, "%s = %s", name, value);
    return name;
}

// The axis in blocks, as a row for A and as a column for B.
static const char *declare_k(struct kg_triton_kernel *kernel, const struct product *product,
                             const char *k, const char *inside, bool row, const char **mask)
{
    const char *expand = row ? "[None, :]" : "[:, None]";
    const struct kg_index *axis = nest_of(product)->axes[product->block];
    const char *name =
        kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_%s", axis->name, row ? "a" : "b"));
    kg_triton_line(kernel, "%s = %s%s", name, k, expand);
    *mask = kg_triton_format(kernel, "%s%s", inside, expand);
    kernel->axes[product->block] = (struct kg_triton_axis){name, *mask};
    return name;
}

static const char *side_mask(struct kg_triton_kernel *kernel, const struct product *product,
                             enum kg_contract_role role, const char *k)
{
    const char *side = kernel->axes[product->contract.axes[role][0]].inside;
    return kg_triton_format(kernel, "%s & %s", side, k);
}

static void write_step(struct kg_triton_kernel *kernel, const struct product *product,
                       const char *k, const char *inside, const char *total)
{
    const char *mask, *a = NULL, *b = NULL;
    // The operand that is converted needs the other one's dtype.
    int first = is_wide(plain_dtype(&product->contract.operands[0])) ? 0 : 1;
    for (int i = 0; i < 2; i++) {
        int side = i == 0 ? first : !first;
        declare_k(kernel, product, k, inside, side == 0, &mask);
        enum kg_contract_role role = side == 0 ? KG_CONTRACT_M : KG_CONTRACT_N;
        const char *name =
            write_operand(kernel, product, side, side_mask(kernel, product, role, mask), a ? a : b);
        *(side == 0 ? &a : &b) = name;
    }
    kg_triton_line(kernel, "%s = _dot(%s, %s, %s)", total, a, b, total);
}

static void write_sum(struct kg_triton_kernel *kernel, const struct product *product,
                      const char *total)
{
    const struct kg_contract *contract = &product->contract;
    int loops = 0;
    for (int i = 0; i < contract->axis_count[KG_CONTRACT_K]; i++) {
        int axis = contract->axes[KG_CONTRACT_K][i];
        if (axis == product->block)
            continue;
        const char *step = kg_triton_fresh(
            kernel, kg_triton_format(kernel, "%s_step", nest_of(product)->axes[axis]->name));
        kg_triton_open(kernel, "for %s in range(%s, %s)", step,
                       kg_triton_begin_of(kernel, nest_of(product)->axes[axis]),
                       kg_triton_end_of(kernel, nest_of(product)->axes[axis]));
        const char *index = kg_triton_fresh(kernel, nest_of(product)->axes[axis]->name);
        kg_triton_line(kernel, "%s = tl.cast(%s, INDEX)", index, step);
        kernel->axes[axis] = (struct kg_triton_axis){index, NULL};
        loops++;
    }
    const struct kg_index *axis = nest_of(product)->axes[product->block];
    const char *start = kg_triton_fresh(kernel, "start"), *end = kg_triton_end_of(kernel, axis);
    kg_triton_block(kernel, "BLOCK_K");
    kg_triton_open(kernel, "for %s in range(%s, %s, BLOCK_K)", start,
                   kg_triton_begin_of(kernel, axis), end);
    const char *k = kg_triton_fresh(kernel, axis->name);
    const char *inside = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_in", k));
    kg_triton_line(kernel, "%s = tl.cast(%s, INDEX) + tl.arange(0, BLOCK_K)", k, start);
    kg_triton_line(kernel, "%s = %s < %s", inside, k, end);
    write_step(kernel, product, k, inside, total);
    for (int i = 0; i <= loops; i++)
        kg_triton_close(kernel);
}

// The sum with its constants.
static const char *scaled(struct kg_triton_kernel *kernel, const struct product *product,
                          const char *total)
{
    const struct kg_contract *contract = &product->contract;
    const char *value = contract->negative ? kg_triton_format(kernel, "-%s", total) : total;
    for (int i = 0; i < contract->constant_count; i++) {
        const char *factor = kg_triton_value(kernel, contract->constants[i].expr, KG_TYPE_F32);
        value = kg_triton_format(kernel, "%s %s (%s)", value,
                                 contract->constants[i].divides ? "/" : "*", factor);
    }
    return value;
}

static void add_product(struct kg_text *text, const struct kg_triton_host *host,
                        const struct product *product, enum kg_contract_role role)
{
    for (int i = 0; i < product->contract.axis_count[role]; i++) {
        kg_text_add(text, i ? " * " : "");
        kg_triton_host_extent(text, host, nest_of(product)->axes[product->contract.axes[role][i]]);
    }
    kg_text_add(text, product->contract.axis_count[role] ? "" : "1");
}

static void launch(const struct product *product, struct kg_triton_unit *unit,
                   const struct kg_triton_kernel *kernel)
{
    struct kg_text *text = unit->launches;
    const struct kg_triton_host *host = unit->host;
    const char *rows = host->counts[0], *cols = host->counts[1];
    bool batched = product->contract.axis_count[KG_CONTRACT_BATCH] > 0;
    kg_text_format(text, "    %s, %s = ", rows, cols);
    add_product(text, host, product, KG_CONTRACT_M);
    kg_text_add(text, ", ");
    add_product(text, host, product, KG_CONTRACT_N);
    kg_text_format(text, "\n    if %s and %s", rows, cols);
    if (batched) {
        kg_text_add(text, " and ");
        add_product(text, host, product, KG_CONTRACT_BATCH);
    }
    kg_text_format(text, ":\n        %s = _product_tile(%s, %s, ", host->tile, rows, cols);
    kg_triton_host_extent(text, host, nest_of(product)->axes[product->block]);
    kg_text_format(text, ")\n        %s = (triton.cdiv(%s, %s.m) * triton.cdiv(%s, %s.n)",
                   host->grid, rows, host->tile, cols, host->tile);
    if (batched) {
        kg_text_add(text, " * ");
        add_product(text, host, product, KG_CONTRACT_BATCH);
    }
    kg_text_add(text, ",)\n");
    kg_triton_launch_call(unit, kernel, 2);
}

static void write(const struct kg_triton_plan *plan, struct kg_triton_unit *unit)
{
    const struct product *product = (const struct product *)plan;
    struct kg_triton_kernel *kernel = kg_triton_unit_begin(unit, "");
    if (!kernel)
        return;
    kernel->nest = nest_of(product);
    declare_tile(kernel, product);
    const char *total = kg_triton_fresh(kernel, "total");
    kg_triton_line(kernel, "%s = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)", total);
    kernel->shared = true; // programs near in time read the same rows and columns
    write_sum(kernel, product, total);
    kernel->shared = false;
    kg_triton_settle(kernel, 0, scaled(kernel, product, total), KG_TYPE_F32);
    for (int i = 1; i < unit->group->count; i++)
        kg_triton_element(kernel, i);
    launch(product, unit, kernel);
    kg_triton_unit_end(unit, kernel);
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
    struct product *product = KG_NEW(arena, struct product);
    if (!product)
        return NULL;
    *product = (struct product){
        .plan = {write, "tiles of the product by tl.dot, summed in float32"},
        .group = *group,
    };
    struct kg_contract *contract = &product->contract;
    if (!kg_contract_read(&product->group, contract, reason))
        return NULL;
    const char *why = NULL;
    if (contract->type != KG_TYPE_F32)
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
