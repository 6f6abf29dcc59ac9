// Expressions of nests as C: infix where C has the same meaning as the language, else a function of
// the prelude, named by function and type: kg_exp_f32.

#include "gen/shared/emit.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Precedence of C operators, as far as they are used here. A lower level needs parentheses inside
// a higher one.
enum level {
    LEVEL_ANY,
    LEVEL_EQUAL,
    LEVEL_ORDER,
    LEVEL_ADD,
    LEVEL_MULTIPLY,
    LEVEL_UNARY,
    LEVEL_PRIMARY
};

struct spelling {
    const char *name;  // in the prelude: kg_NAME_TYPE
    const char *infix; // for floats; NULL: always a function
    enum level level;
    bool integers; // the infix form holds for integers too
};

static const struct spelling spellings[KG_FUNCTION_COUNT] = {
    [KG_FN_ADD] = {"add", "+", LEVEL_ADD, false},
    [KG_FN_SUB] = {"sub", "-", LEVEL_ADD, false},
    [KG_FN_MUL] = {"mul", "*", LEVEL_MULTIPLY, false},
    [KG_FN_DIV] = {"div", "/", LEVEL_MULTIPLY, false},
    [KG_FN_MOD] = {"mod", NULL, LEVEL_PRIMARY, false},
    [KG_FN_NEG] = {"neg", "-", LEVEL_UNARY, false},
    [KG_FN_LT] = {"lt", "<", LEVEL_ORDER, true},
    [KG_FN_LE] = {"le", "<=", LEVEL_ORDER, true},
    [KG_FN_GT] = {"gt", ">", LEVEL_ORDER, true},
    [KG_FN_GE] = {"ge", ">=", LEVEL_ORDER, true},
    [KG_FN_EQ] = {"eq", "==", LEVEL_EQUAL, true},
    [KG_FN_NE] = {"ne", "!=", LEVEL_EQUAL, true},
    [KG_FN_AND] = {"and", NULL, LEVEL_PRIMARY, false},
    [KG_FN_OR] = {"or", NULL, LEVEL_PRIMARY, false},
    [KG_FN_NOT] = {"not", "!", LEVEL_UNARY, true},
    [KG_FN_BIT_AND] = {"bit_and", NULL, LEVEL_PRIMARY, false},
    [KG_FN_BIT_OR] = {"bit_or", NULL, LEVEL_PRIMARY, false},
    [KG_FN_BIT_XOR] = {"bit_xor", NULL, LEVEL_PRIMARY, false},
    [KG_FN_BIT_NOT] = {"bit_not", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SHIFT_LEFT] = {"shift_left", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SHIFT_RIGHT] = {"shift_right", NULL, LEVEL_PRIMARY, false},
    [KG_FN_WHERE] = {"where", NULL, LEVEL_PRIMARY, false},
    [KG_FN_CEILDIV] = {"ceildiv", NULL, LEVEL_PRIMARY, false},
    [KG_FN_RELU] = {"relu", NULL, LEVEL_PRIMARY, false},
    [KG_FN_GELU] = {"gelu", NULL, LEVEL_PRIMARY, false},
    [KG_FN_GELU_TANH] = {"gelu_tanh", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SIGMOID] = {"sigmoid", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SILU] = {"silu", NULL, LEVEL_PRIMARY, false},
    [KG_FN_TANH] = {"tanh", NULL, LEVEL_PRIMARY, false},
    [KG_FN_EXP] = {"exp", NULL, LEVEL_PRIMARY, false},
    [KG_FN_EXP2] = {"exp2", NULL, LEVEL_PRIMARY, false},
    [KG_FN_EXPM1] = {"expm1", NULL, LEVEL_PRIMARY, false},
    [KG_FN_LOG] = {"log", NULL, LEVEL_PRIMARY, false},
    [KG_FN_LOG2] = {"log2", NULL, LEVEL_PRIMARY, false},
    [KG_FN_LOG1P] = {"log1p", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SQRT] = {"sqrt", NULL, LEVEL_PRIMARY, false},
    [KG_FN_RSQRT] = {"rsqrt", NULL, LEVEL_PRIMARY, false},
    [KG_FN_ABS] = {"abs", NULL, LEVEL_PRIMARY, false},
    [KG_FN_FLOOR] = {"floor", NULL, LEVEL_PRIMARY, false},
    [KG_FN_CEIL] = {"ceil", NULL, LEVEL_PRIMARY, false},
    [KG_FN_ROUND] = {"round", NULL, LEVEL_PRIMARY, false},
    [KG_FN_MIN] = {"min", NULL, LEVEL_PRIMARY, false},
    [KG_FN_MAX] = {"max", NULL, LEVEL_PRIMARY, false},
    [KG_FN_POW] = {"pow", NULL, LEVEL_PRIMARY, false},
    [KG_FN_ERF] = {"erf", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SIN] = {"sin", NULL, LEVEL_PRIMARY, false},
    [KG_FN_COS] = {"cos", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SOFTPLUS] = {"softplus", NULL, LEVEL_PRIMARY, false},
    [KG_FN_SIGN] = {"sign", NULL, LEVEL_PRIMARY, false},
    [KG_FN_ISNAN] = {"isnan", NULL, LEVEL_PRIMARY, false},
};

struct printer {
    struct kg_text *text;
    const struct kg_nest *nest;
    const struct kg_emit_names *names;
};

static void print(const struct printer *printer, const struct kg_expr *expr, enum kg_type type,
                  enum level level);

// The fewest digits that read back as the same value.
static void print_real(struct kg_text *text, double number, bool single)
{
    char digits[40];
    if (single)
        number = (double)(float)number;
    if (isnan(number) || isinf(number)) {
        kg_text_format(text, "%s%s", single ? "" : "(double)",
                       isnan(number)    ? "NAN"
                       : (number < 0.0) ? "-INFINITY"
                                        : "INFINITY");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        double back = strtod(digits, NULL);
        if (single ? (float)back == (float)number : back == number)
            break;
    }
    for (char *at = digits; *at; at++) // some locales have another decimal point
        if (!strchr("0123456789+-e", *at))
            *at = '.';
    kg_text_format(text, "%s%s%s", digits, strpbrk(digits, ".e") ? "" : ".0", single ? "f" : "");
}

static void print_number(struct kg_text *text, const struct kg_expr *expr, enum kg_type type)
{
    double number = expr->is_integer ? (double)expr->integer : expr->number;
    bool negative = number < 0.0 || (number == 0.0 && signbit(number));
    if (negative)
        kg_text_add(text, "(");
    if (type == KG_TYPE_F32 || type == KG_TYPE_F64)
        print_real(text, number, type == KG_TYPE_F32);
    else if (type == KG_TYPE_BOOL)
        kg_text_add(text, number != 0.0 ? "true" : "false");
    else if (expr->integer == INT64_MIN)
        kg_text_add(text, "INT64_MIN");
    else
        kg_text_format(
            text, expr->integer > INT32_MAX || expr->integer < INT32_MIN ? "INT64_C(%lld)" : "%lld",
            (long long)expr->integer);
    if (negative)
        kg_text_add(text, ")");
}

static void open_parenthesis(struct kg_text *text, bool needed)
{
    if (needed)
        kg_text_add(text, "(");
}

static void close_parenthesis(struct kg_text *text, bool needed)
{
    if (needed)
        kg_text_add(text, ")");
}

// "kg_exp_f32" and its arguments.
static void print_function(const struct printer *printer, const struct kg_expr *expr,
                           enum kg_type operands)
{
    const struct spelling *spelling = &spellings[expr->function];
    int axis = printer->names ? printer->names->vector_axis : 0;
    bool is_vector = axis > 0 && kg_expr_uses(expr, axis, true);
    bool is_narrow = printer->names && printer->names->narrow >> expr->function & 1;
    if (expr->function == KG_FN_AND || expr->function == KG_FN_OR)
        kg_text_format(printer->text, "kg_%s(", spelling->name);
    else
        kg_text_format(printer->text, "kg_%s%s_%s(", spelling->name, is_narrow ? "_narrow" : "",
                       is_vector ? "floats" : kg_emit_suffix(operands));
    for (int i = 0; i < expr->argument_count; i++) {
        bool condition = expr->function == KG_FN_WHERE && i == 0;
        kg_text_add(printer->text, i > 0 ? ", " : "");
        print(printer, expr->arguments[i], condition ? KG_TYPE_BOOL : operands, LEVEL_ANY);
    }
    kg_text_add(printer->text, ")");
}

// The type that the arguments of a call are converted to before it; kg_rule gives the type of the
// result from those of the arguments.
static enum kg_type operand_type(const struct kg_expr *expr)
{
    enum kg_rule rule = kg_functions[expr->function].rule;
    if (rule == KG_RULE_LOGIC)
        return KG_TYPE_BOOL;
    if (rule != KG_RULE_COMPARE)
        return expr->type;
    enum kg_type widest = KG_TYPE_BOOL;
    for (int i = 0; i < expr->argument_count; i++)
        if (expr->arguments[i]->type > widest)
            widest = expr->arguments[i]->type;
    return widest;
}

// Division by a value whose inverse has been computed.
static bool print_over(const struct printer *printer, const struct kg_expr *expr)
{
    const struct kg_emit_names *names = printer->names;
    if (expr->function != KG_FN_DIV || expr->type != KG_TYPE_F32 || !names || !names->divisor ||
        expr->arguments[1]->kind != KG_EXPR_READ || expr->arguments[1]->type != KG_TYPE_F32)
        return false;
    const char *by = names->divisor(names->user, kg_nest_access(printer->nest, expr->arguments[1]));
    if (!by)
        return false;
    kg_text_add(printer->text, names->vector_axis ? "kg_over_floats(" : "kg_over_f32(");
    print(printer, expr->arguments[0], KG_TYPE_F32, LEVEL_ANY);
    kg_text_format(printer->text, ", %s)", by);
    return true;
}

static void print_call(const struct printer *printer, const struct kg_expr *expr, enum level level)
{
    const struct spelling *spelling = &spellings[expr->function];
    enum kg_type operands = operand_type(expr);
    if (print_over(printer, expr))
        return;
    if (!spelling->infix || (operands == KG_TYPE_I64 && !spelling->integers)) {
        print_function(printer, expr, operands);
        return;
    }
    bool enclosed = spelling->level < level;
    open_parenthesis(printer->text, enclosed);
    if (expr->argument_count == 1) {
        kg_text_add(printer->text, spelling->infix);
        print(printer, expr->arguments[0], operands, LEVEL_PRIMARY);
    } else {
        // Comparisons do not chain: both operands bind tighter.
        enum level left = spelling->level <= LEVEL_ORDER ? LEVEL_ADD : spelling->level;
        print(printer, expr->arguments[0], operands, left);
        kg_text_format(printer->text, " %s ", spelling->infix);
        print(printer, expr->arguments[1], operands, (enum level)(left + 1));
    }
    close_parenthesis(printer->text, enclosed);
}

// A cast rounds or wraps to the dtype; the result has the dtype's compute type.
static void print_cast(const struct printer *printer, const struct kg_expr *expr, enum level level)
{
    enum kg_dtype dtype = expr->cast.dtype;
    const struct kg_expr *argument = expr->arguments[0];
    if (kg_dtype_is_computed(dtype)) {
        print(printer, argument, expr->type, level); // no narrower than the compute type
        return;
    }
    // Conversion through f32 would round f64 and large integers twice.
    bool wide = kg_dtypes[dtype].is_float &&
                (argument->type == KG_TYPE_F64 || argument->type == KG_TYPE_I64);
    kg_text_format(printer->text, wide ? "kg_cast_%s_f64(" : "kg_cast_%s(", kg_dtypes[dtype].name);
    print(printer, argument, wide ? KG_TYPE_F64 : expr->type, LEVEL_ANY);
    kg_text_add(printer->text, ")");
}

static void print_read(const struct printer *printer, const struct kg_expr *expr)
{
    const struct kg_access *access = kg_nest_access(printer->nest, expr);
    assert(access);
    const struct kg_emit_names *names = printer->names;
    if (!names || !names->read || !names->read(names->user, printer->text, access))
        kg_emit_load(printer->text, printer->nest, access, names);
}

static void print_axis(const struct printer *printer, int axis)
{
    const struct kg_emit_names *names = printer->names;
    if (names && names->axis)
        names->axis(names->user, printer->text, axis);
    else
        kg_text_format(printer->text, "i%d", axis);
}

// Prints the expression in its own type.
static void print_plain(const struct printer *printer, const struct kg_expr *expr, enum level level)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        print_number(printer->text, expr, expr->type);
        return;
    case KG_EXPR_SIZE:
        kg_emit_name(printer->text, expr->size->name);
        return;
    case KG_EXPR_INDEX:
        print_axis(printer, expr->index->id);
        return;
    case KG_EXPR_READ:
        print_read(printer, expr);
        return;
    case KG_EXPR_CALL:
        if (!kg_emit_split(printer->text, expr, printer->names))
            print_call(printer, expr, level);
        return;
    case KG_EXPR_CAST:
        print_cast(printer, expr, level);
        return;
    case KG_EXPR_REDUCE:
        break;
    }
    assert(!"reductions are hoisted out of bodies");
}

static void print(const struct printer *printer, const struct kg_expr *expr, enum kg_type type,
                  enum level level)
{
    if (expr->kind == KG_EXPR_NUMBER && (type != KG_TYPE_I64 || expr->is_integer)) {
        print_number(printer->text, expr, type);
    } else if (expr->type == type) {
        print_plain(printer, expr, level);
    } else {
        struct kg_text inner = {0};
        struct printer within = {&inner, printer->nest, printer->names};
        bool bare = type == KG_TYPE_I64 && expr->type > KG_TYPE_I64; // becomes an argument
        print_plain(&within, expr, bare ? LEVEL_ANY : LEVEL_PRIMARY);
        open_parenthesis(printer->text, level > LEVEL_UNARY && !bare);
        kg_emit_convert(printer->text, expr->type, type, kg_text_string(&inner));
        close_parenthesis(printer->text, level > LEVEL_UNARY && !bare);
        printer->text->failed |= inner.failed;
        kg_text_free(&inner);
    }
}

void kg_emit_convert(struct kg_text *text, enum kg_type from, enum kg_type to, const char *value)
{
    if (from == to)
        kg_text_add(text, value);
    else if (to == KG_TYPE_I64 && from > KG_TYPE_I64)
        kg_text_format(text, "kg_truncate_%s(%s)", kg_emit_suffix(from), value);
    else
        kg_text_format(text, "(%s)%s", kg_emit_type(to), value);
}

void kg_emit_expr(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                  const struct kg_emit_names *names)
{
    struct printer printer = {text, nest, names};
    print(&printer, expr, expr->type, LEVEL_PRIMARY);
}

void kg_emit_value(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                   enum kg_type type, const struct kg_emit_names *names)
{
    struct printer printer = {text, nest, names};
    print(&printer, expr, type, LEVEL_ANY);
}

enum kg_type kg_emit_nest_type(const struct kg_nest *nest)
{
    enum kg_type body = nest->body->type;
    if (!nest->has_reduce)
        return body;
    switch (nest->reduce) {
    case KG_REDUCE_ANY:
    case KG_REDUCE_ALL:
        return KG_TYPE_BOOL;
    case KG_REDUCE_ARGMAX:
    case KG_REDUCE_ARGMIN:
        return KG_TYPE_I64;
    case KG_REDUCE_MEAN:
        return body == KG_TYPE_F64 ? KG_TYPE_F64 : KG_TYPE_F32;
    default:
        return body == KG_TYPE_BOOL ? KG_TYPE_I64 : body;
    }
}

void kg_emit_neutral(struct kg_text *text, enum kg_reduce reduce, enum kg_type type)
{
    bool real = type == KG_TYPE_F32 || type == KG_TYPE_F64;
    switch (reduce) {
    case KG_REDUCE_PROD:
        kg_text_add(text, type == KG_TYPE_F32 ? "1.0f" : real ? "1.0" : "1");
        return;
    case KG_REDUCE_MAX:
        kg_text_add(text, real ? "-INFINITY" : "INT64_MIN");
        return;
    case KG_REDUCE_MIN:
        kg_text_add(text, real ? "INFINITY" : "INT64_MAX");
        return;
    case KG_REDUCE_ANY:
        kg_text_add(text, "false");
        return;
    case KG_REDUCE_ALL:
        kg_text_add(text, "true");
        return;
    default:
        kg_text_add(text, type == KG_TYPE_F32 ? "0.0f" : real ? "0.0" : "0");
        return;
    }
}

void kg_emit_combine(struct kg_text *text, enum kg_reduce reduce, enum kg_type type, const char *a,
                     const char *b)
{
    const char *suffix = kg_emit_suffix(type);
    bool real = type == KG_TYPE_F32 || type == KG_TYPE_F64;
    switch (reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_MEAN:
        kg_text_format(text, real ? "%s + %s" : "kg_add_i64(%s, %s)", a, b);
        return;
    case KG_REDUCE_PROD:
        kg_text_format(text, real ? "%s * %s" : "kg_mul_i64(%s, %s)", a, b);
        return;
    case KG_REDUCE_MAX:
    case KG_REDUCE_MIN:
        kg_text_format(text, "kg_%s_%s(%s, %s)", reduce == KG_REDUCE_MAX ? "max" : "min", suffix, a,
                       b);
        return;
    case KG_REDUCE_ANY:
        kg_text_format(text, "kg_or(%s, %s)", a, b);
        return;
    case KG_REDUCE_ALL:
        kg_text_format(text, "kg_and(%s, %s)", a, b);
        return;
    default:
        assert(!"argmax and argmin take two values a step");
    }
}
