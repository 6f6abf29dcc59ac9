// Operators, functions and reductions of the language. One table row each: everything that is true
// of a function whatever the target. How a target spells it stands in src/gen.

#ifndef KG_LANG_FUNCTION_H
#define KG_LANG_FUNCTION_H

#include "lang/dtype.h"

enum kg_function {
    KG_FN_ADD,
    KG_FN_SUB,
    KG_FN_MUL,
    KG_FN_DIV, // floats: quotient; integers: floor
    KG_FN_MOD, // integers: floor remainder (sign of the divisor); floats: x - y*floor(x/y)
    KG_FN_NEG,
    KG_FN_LT,
    KG_FN_LE,
    KG_FN_GT,
    KG_FN_GE,
    KG_FN_EQ,
    KG_FN_NE,
    KG_FN_AND, // &&, both sides may be evaluated
    KG_FN_OR,
    KG_FN_NOT,
    KG_FN_BIT_AND, // integers; two's complement of 64 bits
    KG_FN_BIT_OR,
    KG_FN_BIT_XOR,
    KG_FN_BIT_NOT,
    KG_FN_SHIFT_LEFT,  // a count below 0 or above 63 leaves 0
    KG_FN_SHIFT_RIGHT, // copies the sign; such a count leaves nothing but it: 0 or -1
    KG_FN_WHERE,
    KG_FN_CEILDIV, // sizes only: ceil(a/b)
    KG_FN_RELU,    // x < 0 ? 0 : x, so NaN stays NaN
    KG_FN_GELU,    // with erf
    KG_FN_GELU_TANH,
    KG_FN_SIGMOID,
    KG_FN_SILU,
    KG_FN_TANH,
    KG_FN_EXP,
    KG_FN_EXP2,
    KG_FN_EXPM1,
    KG_FN_LOG,
    KG_FN_LOG2,
    KG_FN_LOG1P,
    KG_FN_SQRT,
    KG_FN_RSQRT,
    KG_FN_ABS,
    KG_FN_FLOOR,
    KG_FN_CEIL,
    KG_FN_ROUND, // half to even
    KG_FN_MIN,   // two values; NaN if either is NaN
    KG_FN_MAX,
    KG_FN_POW,
    KG_FN_ERF,
    KG_FN_SIN,
    KG_FN_COS,
    KG_FN_SOFTPLUS, // max(x, 0) + log1p(exp(-|x|))
    KG_FN_SIGN,     // -1, 0 or 1; 0 for NaN
    KG_FN_ISNAN,
    KG_FUNCTION_COUNT
};

// How the type of a call follows from its arguments.
enum kg_rule {
    KG_RULE_ARITHMETIC, // the wider of the arguments; bool counts as I64
    KG_RULE_FLOAT,      // F64 if an argument is, else F32
    KG_RULE_INTEGER,    // integers and bools; gives I64
    KG_RULE_COMPARE,    // arguments of any type; gives BOOL
    KG_RULE_LOGIC,      // BOOL to BOOL
    KG_RULE_WHERE,      // first BOOL, the others as in ARITHMETIC (two BOOLs stay BOOL)
};

struct kg_function_info {
    const char *name; // "relu"; operators: "+"
    int arity;
    enum kg_rule rule;
    bool is_operator;    // written infix or prefix, not name(...)
    double operations;   // FLOPs charged per call: 1 for arithmetic, 0 for moves and selects
    bool transcendental; // counted apart in the definition document
    const char *meaning; // one line for the documentation: "x < 0 ? 0 : x"
};

extern const struct kg_function_info kg_functions[KG_FUNCTION_COUNT];

enum kg_reduce {
    KG_REDUCE_SUM,
    KG_REDUCE_PROD,
    KG_REDUCE_MAX, // NaN if any element is NaN; -inf over nothing
    KG_REDUCE_MIN,
    KG_REDUCE_MEAN, // sum / count; NaN over nothing
    // The place of the first of the largest; a NaN counts as largest; -1 over nothing. Of one index
    // its value; of several the position in row-major order, from the beginnings of their ranges.
    KG_REDUCE_ARGMAX,
    KG_REDUCE_ARGMIN, // the same of the smallest; a NaN counts as smallest
    KG_REDUCE_ANY,
    KG_REDUCE_ALL,
    KG_REDUCE_COUNT
};

struct kg_reduce_info {
    const char *name;
    bool is_argument; // argmax, argmin: gives a place, as I64
};

extern const struct kg_reduce_info kg_reduces[KG_REDUCE_COUNT];

// Functions called by name only; KG_FUNCTION_COUNT when there is none.
enum kg_function kg_function_find(const char *name, size_t length);
enum kg_reduce kg_reduce_find(const char *name, size_t length);

#endif
