// Operands of products in Triton kernels: see triton_product.h.

#include "gen/triton/triton_product.h"

static enum kg_dtype plain_dtype(const struct kg_contract_operand *operand)
{
    if (operand->count != 1 || operand->factors[0].divides ||
        operand->factors[0].expr->kind != KG_EXPR_READ)
        return KG_DTYPE_COUNT;
    return kg_emit_tensor_dtype(operand->factors[0].expr->tensor);
}

// The dtype of 16 bits to which an operand is cast; KG_DTYPE_COUNT: it is not.
static enum kg_dtype rounded_dtype(const struct kg_contract_operand *operand)
{
    const struct kg_expr *expr = operand->factors[0].expr;
    if (operand->count != 1 || operand->factors[0].divides || expr->kind != KG_EXPR_CAST ||
        !kg_dtype_is_half(expr->cast.dtype))
        return KG_DTYPE_COUNT;
    return expr->cast.dtype;
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

// Whether an operand of such a dtype is multiplied as it lies in memory: if the other one has the
// same elements, or becomes such.
static bool is_native(enum kg_dtype own, const struct kg_contract_operand *opposite)
{
    enum kg_dtype dtype = plain_dtype(opposite);
    return is_wide(own) && (own == dtype || is_exact(dtype) || own == rounded_dtype(opposite));
}

// The variable with the tile of an operand at the current axes: as it lies in memory if both
// operands have the same elements, else computed. What is outside the operand is 0.
static const char *write_operand(struct kg_triton_kernel *kernel,
                                 const struct kg_triton_product *product, int side,
                                 const char *inside, const char *other)
{
    const struct kg_contract_operand *operand = &product->contract.operands[side];
    enum kg_dtype own = plain_dtype(operand),
                  opposite = plain_dtype(&product->contract.operands[!side]);
    kernel->native = is_native(own, &product->contract.operands[!side]);
    kernel->whole = product->integers;
    const char *value = product->integers
                            ? kg_triton_value(kernel, operand->factors[0].expr, KG_TYPE_I64)
                            : factors(kernel, operand);
    kernel->native = kernel->whole = false;
    if (own == KG_DTYPE_COUNT) // a formula need not be 0 where nothing was read
        value = kg_triton_format(kernel, "tl.where(%s, %s, 0.0)", inside, value);
    if (is_byte(own) && (is_byte(opposite))) // float16 holds them exactly
        value = kg_triton_format(kernel, "%s.to(tl.float16)", value);
    else if (other && is_wide(opposite) && (is_exact(own) || rounded_dtype(operand) == opposite))
        value = kg_triton_format(kernel, "%s.to(%s.dtype)", value, other);
    if (is_wide(own) || product->integers) // its name will do
        return value;
    const char *name = kg_triton_fresh(kernel, side ? "b" : "a");
    kg_triton_line(kernel, "%s = %s", name, value);
    return name;
}

// The axis in blocks, as a row for A and as a column for B.
static const char *declare_k(struct kg_triton_kernel *kernel,
                             const struct kg_triton_product *product, const char *k,
                             const char *inside, bool row, const char **mask)
{
    const char *expand = row ? "[None, :]" : "[:, None]";
    const struct kg_index *axis = product->contract.nest->axes[product->block];
    const char *name =
        kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_%s", axis->name, row ? "a" : "b"));
    kg_triton_line(kernel, "%s = %s%s", name, k, expand);
    *mask = kg_triton_format(kernel, "%s%s", inside, expand);
    kernel->axes[product->block] = (struct kg_triton_axis){.name = name, .inside = *mask};
    return name;
}

static const char *side_mask(struct kg_triton_kernel *kernel,
                             const struct kg_triton_product *product, enum kg_contract_role role,
                             const char *k)
{
    const char *side = kernel->axes[product->contract.axes[role][0]].inside;
    return kg_triton_format(kernel, "%s & %s", side, k);
}

// ---- Scaled elements ----

// The product of scales inside of the sum with the offset, or outside of it; NULL: there are none.
static const char *scales_of(struct kg_triton_kernel *kernel,
                             const struct kg_triton_product *product, bool outside)
{
    const struct kg_scaled_operand *scale = &product->scale;
    const char *text = NULL;
    for (int i = 0; i < scale->scale_count; i++) {
        if (scale->outside[i] != outside)
            continue;
        bool divides = scale->scales[i].divides;
        const char *value =
            kg_triton_operand(kernel, kg_triton_value(kernel, scale->scales[i].expr, KG_TYPE_F32));
        if (text)
            text = kg_triton_format(kernel, "%s %s %s", text, divides ? "/" : "*", value);
        else
            text = divides ? kg_triton_format(kernel, "1.0 / %s", value) : value;
    }
    return text ? kg_triton_operand(kernel, text) : NULL;
}

// The small integers or floats of the scaled operand, which the dtype of the other one has.
static const char *small_elements(struct kg_triton_kernel *kernel,
                                  const struct kg_triton_product *product, const char *other,
                                  const char *zeros)
{
    const struct kg_scaled_operand *scale = &product->scale;
    kernel->small = true;
    const char *value = kg_triton_value(kernel, scale->element->read, scale->element->read->type);
    kernel->small = false;
    const char *name = kg_triton_fresh(kernel, product->scaled ? "b" : "a");
    kg_triton_line(kernel, "%s = %s.to(tl.float32).to(%s.dtype)", name,
                   kg_triton_operand(kernel, kg_triton_format(kernel, "%s%s", value, zeros)),
                   other);
    return name;
}

// A step of the sum: blocks of K are not longer than a group, so that zeros and scales are those of
// its first element. Where nothing was read the other operand is 0.
static void write_scaled_step(struct kg_triton_kernel *kernel,
                              const struct kg_triton_product *product, const char *k,
                              const char *inside, const char *start, const char *total)
{
    const struct kg_scaled_operand *scale = &product->scale;
    int side = product->scaled;
    const char *mask, *zeros = "";
    declare_k(kernel, product, k, inside, side == 1, &mask);
    kernel->native = true;
    const char *other = factors(kernel, &product->contract.operands[!side]);
    kernel->native = false;
    // What is the same in a group has no dimension of K.
    const char *first = kg_triton_fresh(
        kernel,
        kg_triton_format(kernel, "%s_first", product->contract.nest->axes[product->block]->name));
    kg_triton_line(kernel, "%s = tl.full([1, 1], %s, INDEX)", first, start);
    kernel->axes[product->block] = (struct kg_triton_axis){.name = first};
    kernel->small = true;
    for (int i = 0; i < scale->zero_count; i++)
        zeros = kg_triton_format(
            kernel, "%s %s %s", zeros, scale->zeros[i].adds ? "+" : "-",
            kg_triton_operand(kernel, kg_triton_value(kernel, scale->zeros[i].expr, KG_TYPE_I64)));
    kernel->small = false;
    const char *inner = scales_of(kernel, product, false);
    const char *outer = scales_of(kernel, product, true);
    const char *offset =
        scale->offset
            ? kg_triton_operand(kernel, kg_triton_value(kernel, scale->offset, KG_TYPE_F32))
            : NULL;
    declare_k(kernel, product, k, inside, side == 0, &mask);
    const char *small = small_elements(kernel, product, other, zeros);
    const char *part = kg_triton_fresh(kernel, "part");
    kg_triton_line(kernel, "%s = _dot(%s, %s, tl.zeros([BLOCK_M, BLOCK_N], tl.float32))", part,
                   side ? other : small, side ? small : other);
    if (inner)
        part = kg_triton_format(kernel, "%s * %s", part, inner);
    if (offset)
        part = kg_triton_format(kernel,
                                "(%s %s tl.sum(%s.to(tl.float32), %d, keep_dims=True) * %s)", part,
                                scale->offset_subtracts ? "-" : "+", other, side ? 1 : 0, offset);
    if (outer)
        part = kg_triton_format(kernel, "%s * %s", part, outer);
    kg_triton_line(kernel, "%s += %s", total, part);
}

static void write_step(struct kg_triton_kernel *kernel, const struct kg_triton_product *product,
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
    kg_triton_line(kernel, "%s = %s(%s, %s, %s)", total,
                   product->integers ? "_dot_integers" : "_dot", a, b, total);
}

void kg_triton_product_step(struct kg_triton_kernel *kernel,
                            const struct kg_triton_product *product, const char *k,
                            const char *inside, const char *start, const char *total)
{
    if (product->scaled >= 0)
        write_scaled_step(kernel, product, k, inside, start, total);
    else
        write_step(kernel, product, k, inside, total);
}

// ---- Matching ----

// The longest block that divides a group, a power of two; 0: there are no groups.
static int block_of(int64_t group)
{
    enum { LONGEST = 1024 };
    int64_t divisor = group & -group;
    return (int)(divisor > LONGEST ? LONGEST : divisor);
}

bool kg_triton_product_has_integers(const struct kg_triton_product *product)
{
    const struct kg_contract *contract = &product->contract;
    return contract->type == KG_TYPE_I64 && contract->axis_count[KG_CONTRACT_K] == 1 &&
           plain_dtype(&contract->operands[0]) == KG_I8 &&
           plain_dtype(&contract->operands[1]) == KG_I8;
}

int kg_triton_product_block(const struct kg_triton_product *product)
{
    return product->scaled < 0 ? 0 : block_of(product->scale.group);
}

void kg_triton_product_bytes(struct kg_text *text, const struct kg_triton_host *host,
                             const struct kg_triton_product *product)
{
    const struct kg_contract_operand *operands = product->contract.operands;
    enum kg_dtype own[2] = {plain_dtype(&operands[0]), plain_dtype(&operands[1])};
    for (int side = 0; side < 2; side++) {
        if (is_native(own[side], &operands[!side]) ||
            (is_wide(own[side]) && product->scaled == !side)) {
            const struct kg_tensor *tensor = operands[side].factors[0].expr->tensor;
            kg_text_format(text, "%s.element_size()", host->tensors[tensor->id]);
            return;
        }
    }
    bool bytes = is_byte(own[0]) && is_byte(own[1]);
    kg_text_add(text, product->integers ? "1" : bytes ? "2" : "4");
}

// Whether the other operand's dtype has all values of an element, less or more than its zeros.
static bool is_held(const struct kg_scaled_operand *scale, enum kg_dtype other)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(scale->element->tensor);
    if (kg_dtypes[dtype].is_float)
        return true;
    int64_t least = kg_dtypes[dtype].is_signed ? -(1 << (kg_dtypes[dtype].bits - 1)) : 0;
    int64_t greatest = least + (1 << kg_dtypes[dtype].bits) - 1;
    int64_t held = other == KG_BF16 ? 256 : 2048;
    return least - scale->greatest_zero >= -held && greatest - scale->least_zero <= held;
}

// An operand that is an element of few bits and scales that are the same for a block of K, beside
// one of 16-bit floats: its elements are multiplied on matrix units, and their sums are scaled.
void kg_triton_product_find_scaled(struct kg_triton_product *product)
{
    enum { SHORTEST = 16 }; // of what tl.dot takes
    product->scaled = -1;
    for (int side = 1; side >= 0; side--) {
        const struct kg_contract_operand *other = &product->contract.operands[!side];
        enum kg_dtype dtype = plain_dtype(other);
        struct kg_scaled_operand scale;
        if (other->count != 1 || !is_wide(dtype) || kg_dtypes[dtype].bits != 16 ||
            plain_dtype(&product->contract.operands[side]) != KG_DTYPE_COUNT ||
            !kg_scaled_operand_read(&product->contract, side, &scale, NULL) ||
            scale.rounds != KG_F32 || (scale.group > 0 && block_of(scale.group) < SHORTEST) ||
            !is_held(&scale, dtype))
            continue;
        product->scaled = side;
        product->scale = scale;
        return;
    }
}
