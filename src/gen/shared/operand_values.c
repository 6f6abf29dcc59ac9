// The values that an expression can have, judged by its form: see operand_values.h.

#include "gen/shared/operand_values.h"

#include "gen/shared/emit.h"

#include <math.h>

enum { ALL = KG_VALUES_F16 | KG_VALUES_BF16 };

// bf16 has 8 bits of mantissa, f16 has 11: both represent every 8-bit integer.
static unsigned values_of_dtype(enum kg_dtype dtype)
{
    if (dtype == KG_F16)
        return KG_VALUES_F16;
    if (dtype == KG_BF16)
        return KG_VALUES_BF16;
    return kg_dtypes[dtype].bits <= 8 ? ALL : 0;
}

static unsigned values_of_number(double value)
{
    return value == 0 || isinf(value) || (value == floor(value) && fabs(value) <= 256) ? ALL : 0;
}

static unsigned values_of(const struct kg_expr *expr);

// Functions that return one of their arguments, or its negative: the arguments from `first` on.
static unsigned values_of_arguments(const struct kg_expr *expr, int first)
{
    unsigned values = ALL;
    for (int i = first; i < expr->argument_count; i++)
        values &= values_of(expr->arguments[i]);
    return values;
}

static unsigned values_of_call(const struct kg_expr *expr)
{
    switch (expr->function) {
    case KG_FN_WHERE:
        return values_of_arguments(expr, 1);
    case KG_FN_NEG:
    case KG_FN_ABS:
    case KG_FN_RELU:
    case KG_FN_MIN:
    case KG_FN_MAX:
        return values_of_arguments(expr, 0);
    default:
        return 0;
    }
}

// A cast between floats rounds to the named type; a widening one keeps the value.
static unsigned values_of_cast(const struct kg_expr *expr)
{
    enum kg_dtype to = expr->cast.dtype;
    bool widens = to == KG_F32 || to == KG_F64;
    return widens ? values_of(expr->arguments[0]) : values_of_dtype(to);
}

static unsigned values_of(const struct kg_expr *expr)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        return values_of_number(expr->is_integer ? (double)expr->integer : expr->number);
    case KG_EXPR_READ:
        return values_of_dtype(kg_emit_tensor_dtype(expr->tensor)) &
               (expr->pad ? values_of(expr->pad) : ALL);
    case KG_EXPR_CAST:
        return values_of_cast(expr);
    case KG_EXPR_CALL:
        return values_of_call(expr);
    default:
        return 0;
    }
}

unsigned kg_operand_values(const struct kg_contract *contract, int operand)
{
    const struct kg_contract_operand *factors = &contract->operands[operand];
    bool alone = factors->count == 1 && !factors->factors[0].divides;
    return alone && contract->type == KG_TYPE_F32 ? values_of(factors->factors[0].expr) : 0;
}
