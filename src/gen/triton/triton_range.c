// Intervals of integer formulas: see triton_range.h.

#include "gen/triton/triton_range.h"

struct range {
    bool known; // and int32, as everything that it was computed from
    int64_t low, high;
};

static const struct range unknown;

static struct range between(int64_t low, int64_t high)
{
    return low < INT32_MIN || high > INT32_MAX ? unknown : (struct range){true, low, high};
}

static bool has_read(const struct kg_expr *expr)
{
    bool found = expr->kind == KG_EXPR_READ;
    for (int i = 0; i < expr->argument_count; i++)
        found |= has_read(expr->arguments[i]);
    return found;
}

static struct range read_range(const struct kg_expr *read)
{
    const struct kg_tensor *tensor = read->tensor;
    const struct kg_dtype_info *info = &kg_dtypes[tensor->type.dtype];
    if (tensor->role != KG_ROLE_INPUT || read->pad || info->is_float)
        return unknown;
    for (int i = 0; i < read->argument_count; i++)
        if (has_read(read->arguments[i]))
            return unknown;
    if (tensor->type.dtype == KG_BOOL)
        return between(0, 1);
    if (info->bits > 32)
        return unknown;
    int64_t half = INT64_C(1) << (info->bits - 1);
    return info->is_signed ? between(-half, half - 1) : between(0, 2 * half - 1);
}

// Of a function that is monotonic in each argument: the least and the most of its four corners.
static struct range corners(struct range a, struct range b, int64_t (*function)(int64_t, int64_t))
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int i = 0; i < 4; i++) {
        int64_t value = function(i & 1 ? a.high : a.low, i & 2 ? b.high : b.low);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    return between(low, high);
}

static int64_t add(int64_t a, int64_t b)
{
    return a + b;
}

static int64_t subtract(int64_t a, int64_t b)
{
    return a - b;
}

static int64_t multiply(int64_t a, int64_t b)
{
    return a * b;
}

static int64_t shift_left(int64_t a, int64_t b)
{
    return a * (INT64_C(1) << b);
}

static int64_t shift_right(int64_t a, int64_t b)
{
    return a >> b;
}

static int64_t divide(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// All bits below the highest of `value`.
static int64_t mask_of(int64_t value)
{
    int64_t mask = 0;
    while (mask < value)
        mask = 2 * mask + 1;
    return mask;
}

static struct range bits_of(enum kg_function function, struct range a, struct range b)
{
    bool natural = a.low >= 0 && b.low >= 0;
    if (function == KG_FN_BIT_AND && (a.low >= 0 || b.low >= 0))
        return between(0, a.low < 0 ? b.high : b.low < 0 || a.high < b.high ? a.high : b.high);
    return natural ? between(0, mask_of(a.high > b.high ? a.high : b.high))
                   : between(INT32_MIN, INT32_MAX);
}

static struct range range_of(const struct kg_expr *expr);

static struct range call_range(const struct kg_expr *expr)
{
    if (kg_triton_is_digit(expr)) {
        bool remainder = expr->function == KG_FN_MOD;
        return remainder ? between(0, expr->arguments[1]->integer - 1) : unknown;
    }
    if (expr->argument_count < 1 || expr->argument_count > 2)
        return unknown;
    struct range a = range_of(expr->arguments[0]);
    struct range b = expr->argument_count > 1 ? range_of(expr->arguments[1]) : a;
    if (!a.known || !b.known)
        return unknown;
    switch (expr->function) {
    case KG_FN_ADD:
        return corners(a, b, add);
    case KG_FN_SUB:
        return corners(a, b, subtract);
    case KG_FN_MUL:
        return corners(a, b, multiply);
    case KG_FN_NEG:
        return between(-a.high, -a.low);
    case KG_FN_DIV:
        return b.low > 0 ? corners(a, b, divide) : unknown;
    case KG_FN_MOD:
        return b.low > 0 ? between(0, b.high - 1) : unknown;
    case KG_FN_SHIFT_LEFT:
        return b.low >= 0 && b.high < 31 ? corners(a, b, shift_left) : unknown;
    case KG_FN_SHIFT_RIGHT:
        return b.low >= 0 && b.high < 32 ? corners(a, b, shift_right) : unknown;
    case KG_FN_BIT_AND:
    case KG_FN_BIT_OR:
    case KG_FN_BIT_XOR:
        return bits_of(expr->function, a, b);
    case KG_FN_BIT_NOT:
        return between(-1 - a.high, -1 - a.low);
    case KG_FN_MIN:
        return between(a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high);
    case KG_FN_MAX:
        return between(a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high);
    default:
        return unknown;
    }
}

static struct range range_of(const struct kg_expr *expr)
{
    if (expr->type != KG_TYPE_I64)
        return unknown;
    switch (expr->kind) {
    case KG_EXPR_NUMBER: // a param's value may be edited in the module
        return expr->size || !expr->is_integer ? unknown : between(expr->integer, expr->integer);
    case KG_EXPR_READ:
        return read_range(expr);
    case KG_EXPR_CALL:
        return call_range(expr);
    default:
        return unknown;
    }
}

bool kg_triton_is_narrow(const struct kg_expr *expr)
{
    return range_of(expr).known;
}

bool kg_triton_is_within(const struct kg_expr *expr, int64_t low, int64_t high)
{
    struct range range = range_of(expr);
    return range.known && range.low >= low && range.high <= high;
}

bool kg_triton_is_digit(const struct kg_expr *expr)
{
    bool divides =
        expr->kind == KG_EXPR_CALL && (expr->function == KG_FN_DIV || expr->function == KG_FN_MOD);
    return divides && expr->arguments[0]->kind == KG_EXPR_INDEX &&
           expr->arguments[1]->kind == KG_EXPR_NUMBER && !expr->arguments[1]->size &&
           expr->arguments[1]->is_integer && expr->arguments[1]->integer > 0 &&
           !expr->arguments[0]->index->begin;
}
