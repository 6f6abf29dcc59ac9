// Operators, functions and reductions: the tables.

#include "lang/function.h"

#include <string.h>

#define OPERATOR true
#define NAMED false
#define PLAIN false
#define COSTLY true // transcendental

// Operations of a composite function are those of its formula, its exp or erf counted as one.
const struct kg_function_info kg_functions[KG_FUNCTION_COUNT] = {
    [KG_FN_ADD] = {"+", 2, KG_RULE_ARITHMETIC, OPERATOR, 1, PLAIN, "sum"},
    [KG_FN_SUB] = {"-", 2, KG_RULE_ARITHMETIC, OPERATOR, 1, PLAIN, "difference"},
    [KG_FN_MUL] = {"*", 2, KG_RULE_ARITHMETIC, OPERATOR, 1, PLAIN, "product"},
    [KG_FN_DIV] = {"/", 2, KG_RULE_ARITHMETIC, OPERATOR, 1, PLAIN,
                   "quotient; of two integers rounded down"},
    [KG_FN_MOD] = {"%", 2, KG_RULE_ARITHMETIC, OPERATOR, 1, PLAIN,
                   "remainder with the sign of the divisor: x - y*floor(x/y)"},
    [KG_FN_NEG] = {"-", 1, KG_RULE_ARITHMETIC, OPERATOR, 1, PLAIN, "negation"},
    [KG_FN_LT] = {"<", 2, KG_RULE_COMPARE, OPERATOR, 1, PLAIN, "less; false with NaN"},
    [KG_FN_LE] = {"<=", 2, KG_RULE_COMPARE, OPERATOR, 1, PLAIN, "less or equal; false with NaN"},
    [KG_FN_GT] = {">", 2, KG_RULE_COMPARE, OPERATOR, 1, PLAIN, "greater; false with NaN"},
    [KG_FN_GE] = {">=", 2, KG_RULE_COMPARE, OPERATOR, 1, PLAIN, "greater or equal; false with NaN"},
    [KG_FN_EQ] = {"==", 2, KG_RULE_COMPARE, OPERATOR, 1, PLAIN, "equal; false with NaN"},
    [KG_FN_NE] = {"!=", 2, KG_RULE_COMPARE, OPERATOR, 1, PLAIN, "not equal; true with NaN"},
    [KG_FN_AND] = {"&&", 2, KG_RULE_LOGIC, OPERATOR, 0, PLAIN, "both"},
    [KG_FN_OR] = {"||", 2, KG_RULE_LOGIC, OPERATOR, 0, PLAIN, "either"},
    [KG_FN_NOT] = {"!", 1, KG_RULE_LOGIC, OPERATOR, 0, PLAIN, "not"},
    [KG_FN_BIT_AND] = {"&", 2, KG_RULE_INTEGER, OPERATOR, 1, PLAIN, "bits that both have"},
    [KG_FN_BIT_OR] = {"|", 2, KG_RULE_INTEGER, OPERATOR, 1, PLAIN, "bits that either has"},
    [KG_FN_BIT_XOR] = {"^", 2, KG_RULE_INTEGER, OPERATOR, 1, PLAIN, "bits that one of them has"},
    [KG_FN_BIT_NOT] = {"~", 1, KG_RULE_INTEGER, OPERATOR, 1, PLAIN, "every bit inverted: -1 - x"},
    [KG_FN_SHIFT_LEFT] = {"<<", 2, KG_RULE_INTEGER, OPERATOR, 1, PLAIN,
                          "bits moved up; 0 for counts below 0 or above 63"},
    [KG_FN_SHIFT_RIGHT] = {">>", 2, KG_RULE_INTEGER, OPERATOR, 1, PLAIN,
                           "bits moved down, the sign copied; 0 or -1 for counts below 0 or above "
                           "63"},
    [KG_FN_WHERE] = {"where", 3, KG_RULE_WHERE, NAMED, 0, PLAIN, "c ? a : b for where(c, a, b)"},
    [KG_FN_CEILDIV] = {"ceil", 2, KG_RULE_ARITHMETIC, OPERATOR, 0, PLAIN,
                       "quotient rounded up, in sizes: ceil(a/b)"},
    [KG_FN_RELU] = {"relu", 1, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "x < 0 ? 0 : x"},
    [KG_FN_GELU] = {"gelu", 1, KG_RULE_FLOAT, NAMED, 5, COSTLY, "x/2 * (1 + erf(x/sqrt(2)))"},
    [KG_FN_GELU_TANH] = {"gelu_tanh", 1, KG_RULE_FLOAT, NAMED, 8, COSTLY,
                         "x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715*x*x*x)))"},
    [KG_FN_SIGMOID] = {"sigmoid", 1, KG_RULE_FLOAT, NAMED, 4, COSTLY, "1 / (1 + exp(-x))"},
    [KG_FN_SILU] = {"silu", 1, KG_RULE_FLOAT, NAMED, 5, COSTLY, "x / (1 + exp(-x))"},
    [KG_FN_TANH] = {"tanh", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "hyperbolic tangent"},
    [KG_FN_EXP] = {"exp", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "e to the power x"},
    [KG_FN_EXP2] = {"exp2", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "2 to the power x"},
    [KG_FN_EXPM1] = {"expm1", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "exp(x) - 1, exact near 0"},
    [KG_FN_LOG] = {"log", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "natural logarithm"},
    [KG_FN_LOG2] = {"log2", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "logarithm to the base 2"},
    [KG_FN_LOG1P] = {"log1p", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "log(1 + x), exact near 0"},
    [KG_FN_SQRT] = {"sqrt", 1, KG_RULE_FLOAT, NAMED, 1, PLAIN, "square root; NaN below 0"},
    [KG_FN_RSQRT] = {"rsqrt", 1, KG_RULE_FLOAT, NAMED, 2, PLAIN, "1 / sqrt(x)"},
    [KG_FN_ABS] = {"abs", 1, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "absolute value"},
    [KG_FN_FLOOR] = {"floor", 1, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "rounded down"},
    [KG_FN_CEIL] = {"ceil", 1, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "rounded up"},
    [KG_FN_ROUND] = {"round", 1, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN,
                     "rounded to the nearest, halves to even"},
    [KG_FN_MIN] = {"min", 2, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "the smaller; NaN if either is"},
    [KG_FN_MAX] = {"max", 2, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "the larger; NaN if either is"},
    [KG_FN_POW] = {"pow", 2, KG_RULE_FLOAT, NAMED, 1, COSTLY, "x to the power y, as C's pow"},
    [KG_FN_ERF] = {"erf", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "error function"},
    [KG_FN_SIN] = {"sin", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "sine of radians"},
    [KG_FN_COS] = {"cos", 1, KG_RULE_FLOAT, NAMED, 1, COSTLY, "cosine of radians"},
    [KG_FN_SOFTPLUS] = {"softplus", 1, KG_RULE_FLOAT, NAMED, 5, COSTLY,
                        "log(1 + exp(x)), as max(x, 0) + log1p(exp(-abs(x)))"},
    [KG_FN_SIGN] = {"sign", 1, KG_RULE_ARITHMETIC, NAMED, 1, PLAIN, "-1, 0 or 1; 0 for NaN"},
    [KG_FN_ISNAN] = {"isnan", 1, KG_RULE_COMPARE, NAMED, 1, PLAIN, "true for NaN"},
};

const struct kg_reduce_info kg_reduces[KG_REDUCE_COUNT] = {
    [KG_REDUCE_SUM] = {"sum", false},      [KG_REDUCE_PROD] = {"prod", false},
    [KG_REDUCE_MAX] = {"max", false},      [KG_REDUCE_MIN] = {"min", false},
    [KG_REDUCE_MEAN] = {"mean", false},    [KG_REDUCE_ARGMAX] = {"argmax", true},
    [KG_REDUCE_ARGMIN] = {"argmin", true}, [KG_REDUCE_ANY] = {"any", false},
    [KG_REDUCE_ALL] = {"all", false},
};

enum kg_function kg_function_find(const char *name, size_t length)
{
    for (int i = 0; i < KG_FUNCTION_COUNT; i++)
        if (!kg_functions[i].is_operator && strlen(kg_functions[i].name) == length &&
            memcmp(kg_functions[i].name, name, length) == 0)
            return (enum kg_function)i;
    return KG_FUNCTION_COUNT;
}

enum kg_reduce kg_reduce_find(const char *name, size_t length)
{
    for (int i = 0; i < KG_REDUCE_COUNT; i++)
        if (strlen(kg_reduces[i].name) == length && memcmp(kg_reduces[i].name, name, length) == 0)
            return (enum kg_reduce)i;
    return KG_REDUCE_COUNT;
}
