// Recognising quantised weights by their formula: see scaled_operand.h.

#include "gen/shared/scaled_operand.h"

#include "gen/shared/axes.h"
#include "lang/panels.h"

#include <stdlib.h>

static bool refuse(struct kg_text *reason, const char *why)
{
    if (reason)
        kg_text_add(reason, why);
    return false;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The runs of values of `axis`, from 0 on, for which the expression has one value; 0: it does not
// depend on the axis.
static int64_t run_of(const struct kg_expr *expr, int axis)
{
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index->id == axis;
    bool divides = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_DIV &&
                   expr->type != KG_TYPE_F32 && expr->type != KG_TYPE_F64 &&
                   expr->arguments[0]->kind == KG_EXPR_INDEX &&
                   expr->arguments[1]->kind == KG_EXPR_NUMBER && expr->arguments[1]->integer > 0;
    if (divides && expr->arguments[0]->index->id == axis)
        return expr->arguments[1]->integer;
    int64_t run = expr->pad ? run_of(expr->pad, axis) : 0;
    for (int i = 0; i < expr->argument_count; i++)
        run = common_divisor(run, run_of(expr->arguments[i], axis));
    return run;
}

// Bounds of an integer, by its form. False if nothing is known.
static bool find_bounds(const struct kg_expr *expr, int64_t *least, int64_t *greatest)
{
    enum { LARGEST = 1 << 20 };
    if (expr->kind == KG_EXPR_NUMBER && expr->is_integer && llabs(expr->integer) <= LARGEST) {
        *least = *greatest = expr->integer;
        return true;
    }
    if (expr->kind == KG_EXPR_READ && !expr->pad) {
        enum kg_dtype dtype = kg_emit_tensor_dtype(expr->tensor);
        int bits = kg_dtypes[dtype].bits;
        bool is_signed = dtype == KG_I4 || dtype == KG_I8;
        if (dtype != KG_U4 && dtype != KG_U8 && !is_signed)
            return false;
        *least = is_signed ? -(1 << (bits - 1)) : 0;
        *greatest = *least + (1 << bits) - 1;
        return true;
    }
    bool adds = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_ADD;
    bool subtracts = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_SUB;
    int64_t low[2], high[2];
    if ((!adds && !subtracts) || !find_bounds(expr->arguments[0], &low[0], &high[0]) ||
        !find_bounds(expr->arguments[1], &low[1], &high[1]))
        return false;
    *least = adds ? low[0] + low[1] : low[0] - high[1];
    *greatest = adds ? high[0] + high[1] : high[0] - low[1];
    return llabs(*least) <= LARGEST && llabs(*greatest) <= LARGEST;
}

// ---- Packed weights ----

// Whether an access of operand 0 (A) or 1 (B) is to codes in panels whose rows are the axis of the
// sum, and whose columns are one axis.
static bool is_packed(const struct kg_contract *contract, int operand,
                      const struct kg_access *access)
{
    enum kg_contract_role columns = operand ? KG_CONTRACT_N : KG_CONTRACT_M;
    const struct kg_expr *row, *column;
    if (contract->axis_count[columns] != 1 ||
        kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits != 4 ||
        !kg_lang_reads_panels(access->read, &row, &column))
        return false;
    int axis = contract->axes[columns][0];
    return kg_axes_from_zero(contract->nest->axes[axis]) && row->kind == KG_EXPR_INDEX &&
           row->index->id == contract->axes[KG_CONTRACT_K][0] && column->kind == KG_EXPR_INDEX &&
           column->index->id == axis;
}

// The read of elements of 4 or 8 bits that the expression is; else NULL. An index from memory may
// choose among several matrices of them, one for each item of the batch.
static const struct kg_access *find_element(const struct kg_contract *contract, int operand,
                                            const struct kg_expr *expr)
{
    enum { MOST_BITS = 8, PACKED_SUBSCRIPTS = 3 };
    if (expr->kind != KG_EXPR_READ || expr->pad)
        return NULL;
    enum kg_dtype dtype = kg_emit_tensor_dtype(expr->tensor);
    if (kg_dtypes[dtype].bits > MOST_BITS || dtype == KG_BOOL)
        return NULL;
    const struct kg_access *access = kg_nest_access(contract->nest, expr);
    int dims =
        access->tensor->rank - (is_packed(contract, operand, access) ? PACKED_SUBSCRIPTS : 0);
    for (int dim = 0; dim < dims; dim++) {
        const struct kg_affine *map = &access->map[dim];
        if (!map->is_affine &&
            !(map->is_gather && kg_contract_is_of_batch(contract, map->subscript)))
            return NULL;
    }
    return access;
}

// Without casts to floats that have all small integers.
static const struct kg_expr *without_casts(const struct kg_expr *expr)
{
    while (expr->kind == KG_EXPR_CAST &&
           (kg_dtype_is_half(expr->cast.dtype) || expr->cast.dtype == KG_F32))
        expr = expr->arguments[0];
    return expr;
}

// Adds an integer to what the element is less or more.
static bool add_zero(struct kg_scaled_operand *scaled, const struct kg_expr *expr, bool adds)
{
    int64_t least, greatest;
    if (scaled->zero_count == KG_SCALED_ZEROS || !find_bounds(expr, &least, &greatest))
        return false;
    scaled->zeros[scaled->zero_count++] = (struct kg_scaled_zero){expr, adds};
    scaled->least_zero += adds ? -greatest : least;
    scaled->greatest_zero += adds ? -least : greatest;
    return true;
}

// Reads an expression as an element, less or more than which are integers; false if it does not
// begin with an element that depends on `axis` alone among reduced ones. What it has read is then
// of no use.
static bool read_element(const struct kg_contract *contract, int operand,
                         const struct kg_expr *expr, int axis, struct kg_scaled_operand *scaled)
{
    expr = without_casts(expr);
    const struct kg_access *element = find_element(contract, operand, expr);
    if (element && run_of(expr, axis) == 1) {
        scaled->element = element;
        return true;
    }
    bool adds = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_ADD;
    bool subtracts = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_SUB;
    return (adds || subtracts) && expr->type == KG_TYPE_I64 &&
           read_element(contract, operand, expr->arguments[0], axis, scaled) &&
           add_zero(scaled, expr->arguments[1], adds);
}

static bool is_call(const struct kg_expr *expr, enum kg_function function)
{
    return expr->kind == KG_EXPR_CALL && expr->function == function && expr->type == KG_TYPE_F32;
}

static bool add_scale(struct kg_scaled_operand *scaled, struct kg_contract_factor factor,
                      bool outside)
{
    if (scaled->scale_count == KG_CONTRACT_FACTORS)
        return false;
    scaled->outside[scaled->scale_count] = outside;
    scaled->scales[scaled->scale_count++] = factor;
    return true;
}

// Reads a product of an element, as above, and scales.
static bool read_product(const struct kg_contract *contract, int operand,
                         const struct kg_expr *expr, int axis, struct kg_scaled_operand *scaled)
{
    const struct kg_scaled_operand before = *scaled;
    if (read_element(contract, operand, expr, axis, scaled))
        return true;
    bool divides = is_call(expr, KG_FN_DIV);
    for (int side = 0; side < 2 && (divides ? side == 0 : is_call(expr, KG_FN_MUL)); side++) {
        *scaled = before;
        if (read_product(contract, operand, expr->arguments[side], axis, scaled) &&
            add_scale(scaled, (struct kg_contract_factor){expr->arguments[1 - side], divides},
                      false))
            return true;
    }
    *scaled = before;
    return false;
}

// Reads a factor that contains an element: a sum of such a product and an offset.
static bool read_sum(const struct kg_contract *contract, int operand, const struct kg_expr *expr,
                     int axis, struct kg_scaled_operand *scaled)
{
    const struct kg_scaled_operand before = *scaled;
    if (read_element(contract, operand, expr, axis, scaled))
        return true;
    bool subtracts = is_call(expr, KG_FN_SUB);
    for (int side = 0; side < 2 && (subtracts ? side == 0 : is_call(expr, KG_FN_ADD)); side++) {
        *scaled = before;
        if (!read_product(contract, operand, expr->arguments[side], axis, scaled))
            continue;
        scaled->offset = expr->arguments[1 - side];
        scaled->offset_subtracts = subtracts;
        return true;
    }
    *scaled = before;
    return false;
}

// Reads a factor that casts such a product or sum to a dtype of 16 bits.
static bool read_rounded(const struct kg_contract *contract, int operand,
                         const struct kg_expr *expr, int axis, struct kg_scaled_operand *scaled)
{
    if (expr->kind != KG_EXPR_CAST || !kg_dtype_is_half(expr->cast.dtype) ||
        (!read_product(contract, operand, expr->arguments[0], axis, scaled) &&
         !read_sum(contract, operand, expr->arguments[0], axis, scaled)))
        return false;
    scaled->rounds = expr->cast.dtype;
    return true;
}

bool kg_scaled_operand_read(const struct kg_contract *contract, int operand,
                            struct kg_scaled_operand *scaled, struct kg_text *reason)
{
    const struct kg_contract_operand *factors = &contract->operands[operand];
    *scaled = (struct kg_scaled_operand){.rounds = KG_F32};
    if (contract->type != KG_TYPE_F32 || contract->axis_count[KG_CONTRACT_K] != 1)
        return refuse(reason, "it is not a sum of floats along one axis");
    int axis = contract->axes[KG_CONTRACT_K][0];
    if (!kg_axes_from_zero(contract->nest->axes[axis]))
        return refuse(reason, "the sum does not begin at 0");
    int outer = 0;
    for (int i = 0; i < factors->count; i++) {
        const struct kg_contract_factor *factor = &factors->factors[i];
        bool reads = !scaled->element && !factor->divides &&
                     (read_sum(contract, operand, factor->expr, axis, scaled) ||
                      read_rounded(contract, operand, factor->expr, axis, scaled));
        if (!reads && !add_scale(scaled, *factor, true))
            return refuse(reason, "an operand has too many factors");
        outer += !reads;
    }
    if (!scaled->element)
        return refuse(reason, "no operand has elements of 4 or 8 bits, less an integer");
    if (scaled->rounds != KG_F32 && outer > 0)
        return refuse(reason, "what is rounded to 16 bits is then scaled again");
    scaled->is_packed = is_packed(contract, operand, scaled->element);
    for (int i = 0; i < scaled->scale_count; i++)
        scaled->group = common_divisor(scaled->group, run_of(scaled->scales[i].expr, axis));
    for (int i = 0; i < scaled->zero_count; i++)
        scaled->group = common_divisor(scaled->group, run_of(scaled->zeros[i].expr, axis));
    if (scaled->offset)
        scaled->group = common_divisor(scaled->group, run_of(scaled->offset, axis));
    return true;
}
