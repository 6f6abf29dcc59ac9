// Products of integers of few bits: what the factors' dtypes and operations say about their values,
// and so which multiplication of the processor gives exact products. AVX2 has none of 64 bits; with
// AVX-512, which has one, these forms were not measured and are not used.

#include "gen/host/contract_writer.h"

#include <math.h>
#include <string.h>

// Steps of k that a block must have to be worth its own sums.
enum { LEAST_STEPS = 128, UNIT_STEPS = 8 };

struct range {
    double low, high;
};

static struct range range_of_products(struct range a, struct range b)
{
    double low = fmin(a.low * b.low, a.low * b.high), high = fmax(a.low * b.low, a.low * b.high);
    return (struct range){fmin(low, fmin(a.high * b.low, a.high * b.high)),
                          fmax(high, fmax(a.high * b.low, a.high * b.high))};
}

static bool find_range(const struct kg_expr *expr, struct range *range);

static bool find_call_range(const struct kg_expr *expr, struct range *range)
{
    struct range a, b;
    if (expr->argument_count < 1 || !find_range(expr->arguments[0], &a))
        return false;
    if (expr->function == KG_FN_NEG) {
        *range = (struct range){-a.high, -a.low};
        return true;
    }
    if (expr->argument_count != 2 || !find_range(expr->arguments[1], &b))
        return false;
    switch (expr->function) {
    case KG_FN_ADD:
        *range = (struct range){a.low + b.low, a.high + b.high};
        return true;
    case KG_FN_SUB:
        *range = (struct range){a.low - b.high, a.high - b.low};
        return true;
    case KG_FN_MUL:
        *range = range_of_products(a, b);
        return true;
    default:
        return false;
    }
}

// The values of an integer expression that no operation wraps; false if they are not known.
static bool find_range(const struct kg_expr *expr, struct range *range)
{
    const double most = 0x1p40; // sums and products of two of these are exact in f64 and in i64
    if (expr->type != KG_TYPE_I64)
        return false;
    if (expr->kind == KG_EXPR_NUMBER) {
        *range = (struct range){(double)expr->integer, (double)expr->integer};
        return expr->is_integer && fabs(range->low) <= most;
    }
    if (expr->kind == KG_EXPR_READ) {
        const struct kg_dtype_info *dtype = &kg_dtypes[kg_emit_tensor_dtype(expr->tensor)];
        struct range pad;
        *range = (struct range){dtype->smallest, dtype->largest};
        if (dtype->is_float || dtype->bits > 32)
            return false;
        if (!expr->pad)
            return true;
        if (!find_range(expr->pad, &pad))
            return false;
        *range = (struct range){fmin(range->low, pad.low), fmax(range->high, pad.high)};
        return true;
    }
    if (expr->kind != KG_EXPR_CALL || !find_call_range(expr, range))
        return false;
    return fabs(range->low) <= most && fabs(range->high) <= most;
}

static bool find_operand_range(const struct kg_contract_operand *operand, struct range *range)
{
    *range = (struct range){1, 1};
    for (int i = 0; i < operand->count; i++) {
        struct range factor;
        if (operand->factors[i].divides || !find_range(operand->factors[i].expr, &factor))
            return false;
        *range = range_of_products(*range, factor);
        if (fabs(range->low) > 0x1p33 || fabs(range->high) > 0x1p33)
            return false;
    }
    return operand->count > 0;
}

// The largest size of a part: of the value itself, or of its low byte, which is signed, and what is
// left above that.
static double part_size(struct range range, int parts)
{
    double size = fmax(fabs(range.low), fabs(range.high));
    return parts == 1 ? size : fmax(128, floor((size + 128) / 256));
}

static bool fits(struct range range, double low, double high)
{
    return range.low >= low && range.high <= high;
}

bool kg_contract_takes_shorts(const struct kg_contract_shorts *shorts, double m, double n, double k)
{
    const double columns = 8, steps = 8; // LEAST_COLUMNS and LEAST_K of contract_entry.h
    int passes = shorts->parts[0] * shorts->parts[1];
    return passes > 0 && m >= passes && n >= columns && k >= steps;
}

struct kg_contract_shorts kg_contract_shorts(const struct kg_contract *contract,
                                             const struct kg_device_facts *facts)
{
    static const int splits[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
    struct kg_contract_shorts shorts = {0};
    struct range range[2];
    if (contract->type != KG_TYPE_I64 || facts->vector_bytes != 32 || !strstr(facts->isa, "avx2") ||
        !find_operand_range(&contract->operands[0], &range[0]) ||
        !find_operand_range(&contract->operands[1], &range[1]))
        return shorts;
    if (fits(range[0], INT32_MIN, INT32_MAX) && fits(range[1], INT32_MIN, INT32_MAX))
        shorts.words = KG_CONTRACT_SIGNED;
    else if (fits(range[0], 0, UINT32_MAX) && fits(range[1], 0, UINT32_MAX))
        shorts.words = KG_CONTRACT_UNSIGNED;
    for (int i = 0; i < 2; i++) {
        shorts.is_unsigned[i] = range[i].high > INT16_MAX;
        if (!fits(range[i], shorts.is_unsigned[i] ? 0 : INT16_MIN, UINT16_MAX))
            return shorts;
    }
    for (int i = 0; i < 4; i++) {
        double size = part_size(range[0], splits[i][0]) * part_size(range[1], splits[i][1]);
        int64_t steps = (int64_t)fmin(floor(INT32_MAX / fmax(size, 1)), 1 << 16);
        if (steps < LEAST_STEPS || (shorts.is_unsigned[0] && splits[i][0] == 1) ||
            (shorts.is_unsigned[1] && splits[i][1] == 1))
            continue;
        shorts.parts[0] = splits[i][0];
        shorts.parts[1] = splits[i][1];
        shorts.steps = steps / UNIT_STEPS * UNIT_STEPS;
        break;
    }
    return shorts;
}
