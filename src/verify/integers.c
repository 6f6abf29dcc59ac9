// Functions of integers and booleans: int64 that wraps, floor division, and no undefined results.
// Quotient and remainder of a division by zero are 0.

#include "verify/program.h"

#include <math.h>

static int64_t wrapping(uint64_t bits)
{
    return (int64_t)bits; // modulo 2^64 with gcc and clang
}

// Dividing numbers of 32 bits takes a fraction of the time.
static bool are_small(int64_t a, int64_t b)
{
    return ((uint64_t)a | (uint64_t)b) <= UINT32_MAX;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (are_small(a, b))
        return (uint32_t)a / (uint32_t)b;
    if (b == -1)
        return wrapping(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_modulo(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    if (are_small(a, b))
        return (uint32_t)a % (uint32_t)b;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return wrapping(0 - (uint64_t)floor_divide(wrapping(0 - (uint64_t)a), b));
}

static int64_t power(int64_t base, int64_t exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1, factor = (uint64_t)base;
    for (uint64_t rest = (uint64_t)exponent; rest; rest >>= 1) {
        if (rest & 1)
            result *= factor;
        factor *= factor;
    }
    return wrapping(result);
}

// Floor division by a power of two; beyond 63 the sign is left.
static int64_t shift_right(int64_t a, int64_t count)
{
    if (count < 0 || count > 62)
        return a < 0 ? -1 : 0;
    return floor_divide(a, (int64_t)1 << count);
}

static inline __attribute__((always_inline)) int64_t apply(enum kg_function function, int64_t a,
                                                           int64_t b, int64_t c)
{
    switch (function) {
    case KG_FN_ADD:
        return wrapping((uint64_t)a + (uint64_t)b);
    case KG_FN_SUB:
        return wrapping((uint64_t)a - (uint64_t)b);
    case KG_FN_MUL:
        return wrapping((uint64_t)a * (uint64_t)b);
    case KG_FN_DIV:
        return floor_divide(a, b);
    case KG_FN_MOD:
        return floor_modulo(a, b);
    case KG_FN_CEILDIV:
        return ceil_divide(a, b);
    case KG_FN_NEG:
        return wrapping(0 - (uint64_t)a);
    case KG_FN_LT:
        return a < b;
    case KG_FN_LE:
        return a <= b;
    case KG_FN_GT:
        return a > b;
    case KG_FN_GE:
        return a >= b;
    case KG_FN_EQ:
        return a == b;
    case KG_FN_NE:
        return a != b;
    case KG_FN_AND:
        return a && b;
    case KG_FN_OR:
        return a || b;
    case KG_FN_NOT:
        return !a;
    case KG_FN_BIT_AND:
        return a & b;
    case KG_FN_BIT_OR:
        return a | b;
    case KG_FN_BIT_XOR:
        return a ^ b;
    case KG_FN_BIT_NOT:
        return ~a;
    case KG_FN_SHIFT_LEFT:
        return b < 0 || b > 63 ? 0 : wrapping((uint64_t)a << b);
    case KG_FN_SHIFT_RIGHT:
        return shift_right(a, b);
    case KG_FN_WHERE:
        return a ? b : c;
    case KG_FN_RELU:
        return a < 0 ? 0 : a;
    case KG_FN_ABS:
        return a < 0 ? wrapping(0 - (uint64_t)a) : a;
    case KG_FN_MIN:
        return a < b ? a : b;
    case KG_FN_MAX:
        return a > b ? a : b;
    case KG_FN_POW:
        return power(a, b);
    case KG_FN_SIGN:
        return (a > 0) - (a < 0);
    case KG_FN_ISNAN:
        return 0;
    default: // floor, ceil, round
        return a;
    }
}

// Infinity when an undecidable argument can change the result.
static double undecided(enum kg_function function, const int64_t values[3], const double slacks[3])
{
    bool a = slacks[0] == 0, b = slacks[1] == 0, c = slacks[2] == 0; // decidable?
    if (function == KG_FN_AND && ((a && !values[0]) || (b && !values[1])))
        return 0;
    if (function == KG_FN_OR && ((a && values[0]) || (b && values[1])))
        return 0;
    if (function == KG_FN_WHERE) {
        bool taken = values[0] ? b : c;
        return a ? (taken ? 0 : INFINITY) : (b && c && values[1] == values[2] ? 0 : INFINITY);
    }
    return a && b && c ? 0 : INFINITY;
}

// A loop for one function, in which the switch of `apply` is decided.
#define LOOP(function)                                                                             \
    case function:                                                                                 \
        for (int i = 0; i < lanes; i++)                                                            \
            result[i] = apply(function, a[i], b[i], c[i]);                                         \
        break;

// Frequent functions have loops of their own; the others use the switch for each lane.
void kg_integers_apply(enum kg_function function, int64_t *result, double *slack,
                       const int64_t *const *arguments, const double *const *slacks, int lanes)
{
    const int64_t *a = arguments[0], *b = arguments[1], *c = arguments[2];
    switch (function) {
        LOOP(KG_FN_ADD)
        LOOP(KG_FN_SUB)
        LOOP(KG_FN_MUL)
        LOOP(KG_FN_DIV)
        LOOP(KG_FN_MOD)
        LOOP(KG_FN_LT)
        LOOP(KG_FN_LE)
        LOOP(KG_FN_GT)
        LOOP(KG_FN_GE)
        LOOP(KG_FN_EQ)
        LOOP(KG_FN_NE)
        LOOP(KG_FN_AND)
        LOOP(KG_FN_OR)
        LOOP(KG_FN_NOT)
        LOOP(KG_FN_BIT_AND)
        LOOP(KG_FN_BIT_OR)
        LOOP(KG_FN_BIT_XOR)
        LOOP(KG_FN_SHIFT_LEFT)
        LOOP(KG_FN_SHIFT_RIGHT)
        LOOP(KG_FN_WHERE)
        LOOP(KG_FN_MIN)
        LOOP(KG_FN_MAX)
    default:
        for (int i = 0; i < lanes; i++)
            result[i] = apply(function, a[i], b[i], c[i]);
    }
    for (int i = 0; slack && i < lanes; i++) {
        int64_t values[3] = {a[i], b[i], c[i]};
        double uncertain[3] = {slacks[0][i], slacks[1][i], slacks[2][i]};
        slack[i] = undecided(function, values, uncertain);
    }
}

int64_t kg_integers_wrap(enum kg_dtype dtype, int64_t value)
{
    if (dtype == KG_DTYPE_COUNT)
        return value;
    if (kg_dtype_is_truth(dtype))
        return value != 0;
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (info->bits >= 64)
        return value;
    uint64_t mask = ((uint64_t)1 << info->bits) - 1;
    uint64_t bits = (uint64_t)value & mask;
    bool negative = info->is_signed && bits >> (info->bits - 1);
    return wrapping(negative ? bits | ~mask : bits);
}
