// Functions of reals: their values in f64, with a running error analysis.
//
// The analysis is first order and per operation: it propagates the arguments' slack, and adds the
// error that the operation may make when a kernel evaluates it in its compute type. Selections
// (relu, max, where) add nothing. Arithmetic adds one rounding. Other functions add a few units in
// the last place and may round their argument once, because computing exp(x) as exp2(x * log2(e))
// is legitimate. docs/verification.md has the formulas.

#include "verify/program.h"

#include <float.h>
#include <math.h>

const struct kg_precision kg_precisions[KG_TYPE_F64 + 1] = {
    [KG_TYPE_F32] = {0x1p-24, 0x1p-149, 0x1p-126, FLT_MAX, FLT_MAX},
    [KG_TYPE_F64] = {0x1p-53, 0x1p-1074, 0x1p-1022, DBL_MAX, DBL_MAX},
};

const struct kg_precision kg_precisions_stored[KG_TYPE_F64 + 1] = {
    [KG_TYPE_F32] = {0x1p-24, 0x1p-149, 0x1p-126, FLT_MAX, INFINITY},
    [KG_TYPE_F64] = {0x1p-53, 0x1p-1074, 0x1p-1022, DBL_MAX, INFINITY},
};

// A number with its slack.
struct near {
    double value;
    double slack;
};

static double relu(double x)
{
    return x < 0 ? 0 : x;
}

static double negate(double x)
{
    return -x;
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// The error that a kernel's version of a one-argument function may add, in units of the compute
// type.
struct unary {
    double (*function)(double);
    // Of the result; above 1: results below the smallest normal may become zero.
    double relative;
    double argument; // of the argument, before the function
    double absolute; // of the argument, after the function: 1 + erf(x) cancels for negative x
    double range;    // 0, or the largest difference of any two results
    bool gentle;     // its slope is at most 1
};

static const struct unary unaries[KG_FUNCTION_COUNT] = {
    [KG_FN_NEG] = {negate, 0, 0, 0, 0, false},
    [KG_FN_RELU] = {relu, 0, 0, 0, 0, false},
    [KG_FN_GELU] = {gelu, 4, 1, 2, 0, false},
    [KG_FN_GELU_TANH] = {gelu_tanh, 4, 1, 2, 0, false},
    [KG_FN_SIGMOID] = {sigmoid, 4, 1, 0, 1, false},
    [KG_FN_SILU] = {silu, 4, 1, 0, 0, false},
    [KG_FN_TANH] = {tanh, 4, 1, 0, 2, false},
    [KG_FN_EXP] = {exp, 4, 1, 0, 0, false},
    [KG_FN_EXP2] = {exp2, 4, 1, 0, 0, false},
    [KG_FN_EXPM1] = {expm1, 4, 1, 0, 0, false},
    [KG_FN_LOG] = {log, 4, 1, 0, 0, false},
    [KG_FN_LOG2] = {log2, 4, 1, 0, 0, false},
    [KG_FN_LOG1P] = {log1p, 4, 1, 0, 0, false},
    [KG_FN_SQRT] = {sqrt, 1, 0, 0, 0, false},
    [KG_FN_RSQRT] = {rsqrt, 2, 0, 0, 0, false},
    [KG_FN_ABS] = {fabs, 0, 0, 0, 0, false},
    [KG_FN_FLOOR] = {floor, 0, 0, 0, 0, false},
    [KG_FN_CEIL] = {ceil, 0, 0, 0, 0, false},
    [KG_FN_ROUND] = {rint, 0, 0, 0, 0, false},
    [KG_FN_ERF] = {erf, 4, 1, 0, 2, false},
    [KG_FN_SIN] = {sin, 4, 1, 0, 2, true},
    [KG_FN_COS] = {cos, 4, 1, 0, 2, true},
    [KG_FN_SOFTPLUS] = {softplus, 4, 1, 0, 0, false},
    [KG_FN_SIGN] = {sign, 0, 0, 0, 2, false},
};

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

// How far `function` may move when its argument moves by `reach`; infinity if it may change from a
// number to infinity or NaN.
static double movement(double (*function)(double), double x, double reach, double fx)
{
    double up = function(x + reach), down = function(x - reach);
    if (isfinite(up) && isfinite(down) && isfinite(fx))
        return fmax(fabs(up - fx), fabs(down - fx));
    return same(up, fx) && same(down, fx) ? 0 : INFINITY;
}

static double unary_slack(const struct unary *row, struct near x, double fx,
                          const struct kg_precision *p)
{
    if (isinf(x.slack))
        return INFINITY;
    if (isfinite(fx) && fabs(fx) > p->limit)
        return INFINITY;
    double moved = 0;
    double reach = x.slack + row->argument * p->unit * fabs(x.value);
    if (isfinite(x.value) && reach > 0) {
        moved = row->gentle ? reach : movement(row->function, x.value, reach, fx);
        // At the edge of the domain only slack that is not negligible counts.
        if (isinf(moved))
            moved = x.slack > 0 ? movement(row->function, x.value, x.slack, fx) : 0;
        if (row->range > 0 && moved > row->range)
            moved = row->range;
    }
    if (!isfinite(fx))
        return isinf(moved) ? INFINITY : 0;
    double own = row->relative * p->unit * fabs(fx);
    if (row->absolute > 0 && isfinite(x.value))
        own += row->absolute * p->unit * fabs(x.value);
    double flushed = row->relative > 1 ? p->normal : row->relative > 0 ? p->tiny : 0;
    return moved + own + flushed;
}

// Functions of two arguments: values first. `*_slack` gives the slack of the result `r` for finite
// results of finite arguments with finite slack; `odd_slack` handles the other cases.

static double add(double a, double b)
{
    return a + b;
}

static double subtract(double a, double b)
{
    return a - b;
}

static double multiply(double a, double b)
{
    return a * b;
}

static double divide(double a, double b)
{
    return a / b;
}

static double modulo(double a, double b)
{
    return a - b * floor(a / b);
}

static double least(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

static double largest(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static double add_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    return a.slack + b.slack + p->unit * fabs(r);
}

static double multiply_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    return fabs(a.value) * b.slack + fabs(b.value) * a.slack + a.slack * b.slack +
           p->unit * fabs(r) + p->tiny;
}

static double divide_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    double least_divisor = fabs(b.value) - b.slack;
    if (least_divisor <= 0)
        return b.slack > 0 ? INFINITY : 0;
    return (a.slack + fabs(r) * b.slack) / least_divisor + p->unit * fabs(r) + p->tiny;
}

static double modulo_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    (void)r;
    double quotient = a.value / b.value;
    double reach = divide_slack(a, b, quotient, p);
    if (!(floor(quotient - reach) == floor(quotient + reach)))
        return INFINITY;
    double whole = fabs(floor(quotient));
    // In the compute type the quotient, or its product with b, may overflow.
    if (fabs(quotient) > p->largest || (whole + 1) * fabs(b.value) > p->largest)
        return INFINITY;
    return a.slack + whole * b.slack + p->unit * (fabs(a.value) + 2 * whole * fabs(b.value));
}

static double least_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    (void)p;
    if (isinf(a.slack) || isinf(b.slack)) // beside an infinite value the bounds are NaN
        return INFINITY;
    double high = least(a.value + a.slack, b.value + b.slack);
    double low = least(a.value - a.slack, b.value - b.slack);
    return fmax(high - r, r - low);
}

static double largest_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    (void)p;
    if (isinf(a.slack) || isinf(b.slack))
        return INFINITY;
    double high = largest(a.value + a.slack, b.value + b.slack);
    double low = largest(a.value - a.slack, b.value - b.slack);
    return fmax(high - r, r - low);
}

static double power_slack(struct near a, struct near b, double r, const struct kg_precision *p)
{
    if ((a.slack > 0 && fabs(a.value) <= a.slack) || (b.slack > 0 && a.value < 0))
        return INFINITY;
    double logarithm = a.value == 0 ? 0 : fabs(log(fabs(a.value)));
    double slope = a.value == 0 ? 0 : fabs(b.value / a.value);
    return fabs(r) *
               (slope * a.slack + logarithm * b.slack + p->unit * (4 + fabs(b.value) * logarithm)) +
           p->normal;
}

// Finite arguments gave infinity or NaN: by rule (1/0, pow(-1, 0.5)), or because f64 overflowed. An
// intermediate overflow may not occur in a kernel that fuses operations.
static double overflow_slack(enum kg_function function, struct near a, struct near b, double r,
                             const struct kg_precision *p)
{
    bool by_rule = isnan(r) || (function == KG_FN_DIV && b.value == 0) ||
                   (function == KG_FN_POW && a.value <= 0);
    if (by_rule)
        return 0;
    return function == KG_FN_MOD || isfinite(p->limit) ? INFINITY : 0;
}

// Slack if a value is infinite, NaN, or beyond the range of the compute type.
static double odd_slack(enum kg_function function, struct near a, struct near b, double r,
                        double usual, const struct kg_precision *p)
{
    bool finite = isfinite(a.value) && isfinite(b.value);
    if (isinf(a.slack) || isinf(b.slack))
        return INFINITY;
    if (isfinite(r)) {
        bool unknown = fabs(r) > p->limit || isnan(usual);
        return !unknown ? usual : finite ? INFINITY : 0;
    }
    if (isnan(a.value) || isnan(b.value))
        return 0;
    // Infinity times or over a value that may be zero, or zero over such a value.
    bool zero_a = a.slack > 0 && fabs(a.value) <= a.slack;
    bool zero_b = b.slack > 0 && fabs(b.value) <= b.slack;
    bool scales = function == KG_FN_MUL || function == KG_FN_DIV || function == KG_FN_POW ||
                  function == KG_FN_MOD;
    if (scales && (zero_a || zero_b))
        return INFINITY;
    return finite ? overflow_slack(function, a, b, r, p) : 0;
}

#define LANES_OF_TWO(name, function_id)                                                            \
    static void name##_lanes(double *restrict result, const double *a, const double *b, int lanes) \
    {                                                                                              \
        for (int i = 0; i < lanes; i++)                                                            \
            result[i] = name(a[i], b[i]);                                                          \
    }                                                                                              \
    static void name##_slacks(double *restrict slack, const double *result, const double *a,       \
                              const double *b, const double *slack_a, const double *slack_b,       \
                              int lanes, const struct kg_precision *p)                             \
    {                                                                                              \
        for (int i = 0; i < lanes; i++) {                                                          \
            struct near x = {a[i], slack_a[i]}, y = {b[i], slack_b[i]};                            \
            double r = result[i];                                                                  \
            double s = name##_slack(x, y, r, p);                                                   \
            if (!(fabs(r) <= p->limit) || !(s <= DBL_MAX))                                         \
                s = odd_slack(function_id, x, y, r, s, p);                                         \
            slack[i] = s;                                                                          \
        }                                                                                          \
    }

#define subtract_slack add_slack
#define power pow
LANES_OF_TWO(add, KG_FN_ADD)
LANES_OF_TWO(subtract, KG_FN_SUB)
LANES_OF_TWO(multiply, KG_FN_MUL)
LANES_OF_TWO(divide, KG_FN_DIV)
LANES_OF_TWO(modulo, KG_FN_MOD)
LANES_OF_TWO(least, KG_FN_MIN)
LANES_OF_TWO(largest, KG_FN_MAX)
LANES_OF_TWO(power, KG_FN_POW)

struct binary {
    void (*values)(double *restrict result, const double *a, const double *b, int lanes);
    void (*slacks)(double *restrict slack, const double *result, const double *a, const double *b,
                   const double *slack_a, const double *slack_b, int lanes,
                   const struct kg_precision *p);
};

static const struct binary binaries[KG_FUNCTION_COUNT] = {
    [KG_FN_ADD] = {add_lanes, add_slacks},
    [KG_FN_SUB] = {subtract_lanes, subtract_slacks},
    [KG_FN_MUL] = {multiply_lanes, multiply_slacks},
    [KG_FN_DIV] = {divide_lanes, divide_slacks},
    [KG_FN_MOD] = {modulo_lanes, modulo_slacks},
    [KG_FN_MIN] = {least_lanes, least_slacks},
    [KG_FN_MAX] = {largest_lanes, largest_slacks},
    [KG_FN_POW] = {power_lanes, power_slacks},
};

bool kg_reals_exact(enum kg_function function)
{
    if (function == KG_FN_MIN || function == KG_FN_MAX)
        return true;
    return unaries[function].function && unaries[function].relative == 0;
}

bool kg_reals_known(enum kg_function function)
{
    return unaries[function].function || binaries[function].values;
}

void kg_reals_apply(const struct kg_step *step, double *result, double *slack,
                    const double *const *arguments, const double *const *slacks, int lanes)
{
    const struct unary *unary = &unaries[step->function];
    const struct binary *binary = &binaries[step->function];
    if (unary->function) {
        for (int i = 0; i < lanes; i++)
            result[i] = unary->function(arguments[0][i]);
        for (int i = 0; slack && i < lanes; i++) {
            struct near x = {arguments[0][i], slacks[0][i]};
            slack[i] = unary_slack(unary, x, result[i], step->precision);
        }
        return;
    }
    binary->values(result, arguments[0], arguments[1], lanes);
    if (slack)
        binary->slacks(slack, result, arguments[0], arguments[1], slacks[0], slacks[1], lanes,
                       step->precision);
}

static int64_t compare(enum kg_function function, double a, double b)
{
    switch (function) {
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
    default:
        return isnan(a);
    }
}

void kg_reals_compare(enum kg_function function, int64_t *result, double *slack,
                      const double *const *arguments, const double *const *slacks, int lanes)
{
    for (int i = 0; i < lanes; i++)
        result[i] = compare(function, arguments[0][i], arguments[1][i]);
    for (int i = 0; slack && i < lanes; i++) {
        double reach = slacks[0][i] + slacks[1][i];
        bool close = reach > 0 && fabs(arguments[0][i] - arguments[1][i]) <= reach;
        slack[i] = isinf(reach) || (close && function != KG_FN_ISNAN) ? INFINITY : 0;
    }
}

void kg_reals_choose(double *result, double *slack, const int64_t *condition,
                     const double *undecided, const double *const *arguments,
                     const double *const *slacks, int lanes)
{
    for (int i = 0; i < lanes; i++)
        result[i] = condition[i] ? arguments[0][i] : arguments[1][i];
    for (int i = 0; slack && i < lanes; i++) {
        int taken = condition[i] ? 0 : 1;
        slack[i] = slacks[taken][i];
        if (undecided[i] == 0)
            continue;
        // Either value is correct: the slack must cover the other one.
        double other = arguments[!taken][i];
        if (same(result[i], other))
            slack[i] = fmax(slack[i], slacks[!taken][i]);
        else if (isfinite(result[i]) && isfinite(other))
            slack[i] = fmax(slack[i], fabs(result[i] - other) + slacks[!taken][i]);
        else
            slack[i] = INFINITY;
    }
}

// Rounds toward zero; NaN is 0, and values outside int64 become its limits.
static int64_t truncated(double x)
{
    if (isnan(x))
        return 0;
    if (x >= 0x1p63)
        return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

void kg_reals_truncate(int64_t *result, double *slack, const double *argument,
                       const double *argument_slack, int lanes)
{
    for (int i = 0; i < lanes; i++) {
        double x = argument[i], s = argument_slack[i];
        result[i] = truncated(x);
        if (slack)
            slack[i] = isfinite(s) && truncated(x - s) == result[i] && truncated(x + s) == result[i]
                           ? 0
                           : INFINITY;
    }
}

void kg_reals_round(enum kg_dtype dtype, double *result, double *slack, const double *argument,
                    const double *argument_slack, int lanes)
{
    for (int i = 0; i < lanes; i++) {
        double x = argument[i], s = argument_slack[i];
        result[i] = kg_dtype_round(dtype, x);
        if (!slack)
            continue;
        double up = kg_dtype_round(dtype, x + s), down = kg_dtype_round(dtype, x - s);
        if (s == 0 || (isfinite(s) && same(up, result[i]) && same(down, result[i])))
            slack[i] = 0;
        else if (isfinite(up) && isfinite(down))
            slack[i] = fmax(up - result[i], result[i] - down);
        else
            slack[i] = INFINITY;
    }
}
