// Expressions as Triton: operators where they mean the same as the language's, else a function of
// Triton or a helper of kernels/triton/values.py, whose names begin with "_".

#include "gen/triton/triton_kernel.h"
#include "gen/triton/triton_range.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Python's precedence, as far as it is used here.
enum level {
    LEVEL_ANY,
    LEVEL_COMPARE,
    LEVEL_OR,
    LEVEL_XOR,
    LEVEL_AND,
    LEVEL_ADD,
    LEVEL_MULTIPLY,
    LEVEL_UNARY,
    LEVEL_PRIMARY
};

struct spelling {
    const char *infix; // NULL: a function
    enum level level;
    const char *call;    // of floats: "tl.exp"
    const char *integer; // of integers, where it differs; "": the argument itself
    bool needs_tensor;   // it does not take Python's numbers
};

static const struct spelling spellings[KG_FUNCTION_COUNT] = {
    [KG_FN_ADD] = {.infix = "+", .level = LEVEL_ADD},
    [KG_FN_SUB] = {.infix = "-", .level = LEVEL_ADD},
    [KG_FN_MUL] = {.infix = "*", .level = LEVEL_MULTIPLY},
    [KG_FN_DIV] = {.infix = "/", .level = LEVEL_MULTIPLY, .integer = "_floor_div"},
    [KG_FN_MOD] = {.call = "_modulo", .integer = "_floor_mod", .needs_tensor = true},
    [KG_FN_NEG] = {.infix = "-", .level = LEVEL_UNARY},
    [KG_FN_LT] = {.infix = "<", .level = LEVEL_COMPARE},
    [KG_FN_LE] = {.infix = "<=", .level = LEVEL_COMPARE},
    [KG_FN_GT] = {.infix = ">", .level = LEVEL_COMPARE},
    [KG_FN_GE] = {.infix = ">=", .level = LEVEL_COMPARE},
    [KG_FN_EQ] = {.infix = "==", .level = LEVEL_COMPARE},
    [KG_FN_NE] = {.infix = "!=", .level = LEVEL_COMPARE},
    [KG_FN_AND] = {.infix = "&", .level = LEVEL_AND},
    [KG_FN_OR] = {.infix = "|", .level = LEVEL_OR},
    [KG_FN_NOT] = {.call = "_not", .needs_tensor = true},
    [KG_FN_BIT_AND] = {.infix = "&", .level = LEVEL_AND},
    [KG_FN_BIT_OR] = {.infix = "|", .level = LEVEL_OR},
    [KG_FN_BIT_XOR] = {.infix = "^", .level = LEVEL_XOR},
    [KG_FN_BIT_NOT] = {.call = "_bit_not", .needs_tensor = true},
    [KG_FN_SHIFT_LEFT] = {.call = "_shift_left", .needs_tensor = true},
    [KG_FN_SHIFT_RIGHT] = {.call = "_shift_right", .needs_tensor = true},
    [KG_FN_WHERE] = {.call = "tl.where"},
    [KG_FN_CEILDIV] = {.call = "_ceil_div", .integer = "_ceil_div", .needs_tensor = true},
    [KG_FN_RELU] = {.call = "_relu", .needs_tensor = true},
    [KG_FN_GELU] = {.call = "_gelu", .needs_tensor = true},
    [KG_FN_GELU_TANH] = {.call = "_gelu_tanh", .needs_tensor = true},
    [KG_FN_SIGMOID] = {.call = "_sigmoid", .needs_tensor = true},
    [KG_FN_SILU] = {.call = "_silu", .needs_tensor = true},
    [KG_FN_TANH] = {.call = "_tanh", .needs_tensor = true},
    [KG_FN_EXP] = {.call = "tl.exp", .needs_tensor = true},
    [KG_FN_EXP2] = {.call = "tl.exp2", .needs_tensor = true},
    [KG_FN_EXPM1] = {.call = "_expm1", .needs_tensor = true},
    [KG_FN_LOG] = {.call = "tl.log", .needs_tensor = true},
    [KG_FN_LOG2] = {.call = "tl.log2", .needs_tensor = true},
    [KG_FN_LOG1P] = {.call = "_log1p", .needs_tensor = true},
    [KG_FN_SQRT] = {.call = "_sqrt", .needs_tensor = true},
    [KG_FN_RSQRT] = {.call = "_rsqrt", .needs_tensor = true},
    [KG_FN_ABS] = {.call = "tl.abs", .needs_tensor = true},
    [KG_FN_FLOOR] = {.call = "_floor", .integer = "", .needs_tensor = true},
    [KG_FN_CEIL] = {.call = "_ceil", .integer = "", .needs_tensor = true},
    [KG_FN_ROUND] = {.call = "_round", .integer = "", .needs_tensor = true},
    [KG_FN_MIN] = {.call = "_minimum", .integer = "tl.minimum"},
    [KG_FN_MAX] = {.call = "_maximum", .integer = "tl.maximum"},
    [KG_FN_POW] = {.call = "_pow", .needs_tensor = true},
    [KG_FN_ERF] = {.call = "tl.erf", .needs_tensor = true},
    [KG_FN_SIN] = {.call = "tl.sin", .needs_tensor = true},
    [KG_FN_COS] = {.call = "tl.cos", .needs_tensor = true},
    [KG_FN_SOFTPLUS] = {.call = "_softplus", .needs_tensor = true},
    [KG_FN_SIGN] = {.call = "_sign", .needs_tensor = true},
    [KG_FN_ISNAN] = {.call = "_is_nan", .needs_tensor = true},
};

const char *kg_triton_type(enum kg_type type)
{
    static const char *const names[] = {"tl.float32", "tl.int1", "tl.int64", "tl.float32",
                                        "tl.float64"};
    return names[type];
}

// The type that the kernel has now for values of a type.
static const char *type_now(const struct kg_triton_kernel *kernel, enum kg_type type)
{
    return kernel->narrow && type == KG_TYPE_I64 ? "tl.int32" : kg_triton_type(type);
}

const char *kg_triton_dtype(enum kg_dtype dtype)
{
    static const char *const names[KG_DTYPE_COUNT] = {
        [KG_F16] = "float16", [KG_BF16] = "bfloat16", [KG_F32] = "float32",  [KG_F64] = "float64",
        [KG_I8] = "int8",     [KG_U8] = "uint8",      [KG_I16] = "int16",    [KG_U16] = "uint16",
        [KG_I32] = "int32",   [KG_U32] = "uint32",    [KG_I64] = "int64",    [KG_BOOL] = "int1",
        [KG_U4] = "uint8",    [KG_I4] = "uint8",      [KG_F8E4M3] = "uint8", [KG_F8E5M2] = "uint8",
    };
    return names[dtype];
}

// The fewest digits that read back as the same value.
void kg_triton_real(struct kg_text *text, double number, bool single)
{
    char digits[40];
    if (isnan(number) || isinf(number)) {
        kg_text_format(text, "float(\"%s\")",
                       isnan(number)  ? "nan"
                       : number < 0.0 ? "-inf"
                                      : "inf");
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
    kg_text_format(text, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static bool is_real(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

// Made of numbers alone: Python computes it.
static bool is_constant(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_NUMBER)
        return true;
    if (expr->kind != KG_EXPR_CALL || expr->argument_count == 0)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!is_constant(expr->arguments[i]))
            return false;
    return true;
}

static void print(struct kg_triton_kernel *kernel, struct kg_text *text, const struct kg_expr *expr,
                  enum kg_type type, enum level level);

static void print_number(struct kg_triton_kernel *kernel, struct kg_text *text,
                         const struct kg_expr *expr, enum kg_type type, enum level level)
{
    double number = expr->is_integer ? (double)expr->integer : expr->number;
    if (expr->size) { // a param
        kg_text_add(text, kernel->sizes[expr->size->id]);
        kernel->uses_size[expr->size->id] = true;
        return;
    }
    bool enclosed = level > LEVEL_ADD && (number < 0.0 || (number == 0.0 && signbit(number)));
    kg_text_add(text, enclosed ? "(" : "");
    if (is_real(type))
        kg_triton_real(text, number, type == KG_TYPE_F32);
    else if (type == KG_TYPE_BOOL)
        kg_text_add(text, number != 0.0 ? "True" : "False");
    else
        kg_text_format(text, "%lld", (long long)expr->integer);
    kg_text_add(text, enclosed ? ")" : "");
}

// An argument of a function, which may need a tensor.
static void print_argument(struct kg_triton_kernel *kernel, struct kg_text *text,
                           const struct kg_expr *expr, enum kg_type type, bool needs_tensor)
{
    bool wrapped = needs_tensor && is_constant(expr);
    kg_text_add(text, wrapped ? "tl.full((), " : "");
    print(kernel, text, expr, type, LEVEL_ANY);
    if (wrapped)
        kg_text_format(text, ", %s)", type_now(kernel, type));
}

// The type that arguments are converted to.
static enum kg_type operand_type(const struct kg_expr *expr)
{
    switch (kg_functions[expr->function].rule) {
    case KG_RULE_COMPARE: {
        enum kg_type type = KG_TYPE_BOOL;
        for (int i = 0; i < expr->argument_count; i++)
            if (expr->arguments[i]->type > type)
                type = expr->arguments[i]->type;
        return type;
    }
    case KG_RULE_LOGIC:
        return KG_TYPE_BOOL;
    default:
        return expr->type;
    }
}

static void print_infix(struct kg_triton_kernel *kernel, struct kg_text *text,
                        const struct kg_expr *expr, const struct spelling *spelling,
                        enum kg_type operands, enum level level)
{
    bool enclosed = spelling->level < level || level == LEVEL_COMPARE ||
                    (spelling->level == LEVEL_COMPARE && level > LEVEL_ANY);
    // Python's numbers know no wrapping, and comparisons of them are no tensors.
    bool needs_tensor = spelling->level == LEVEL_COMPARE && is_constant(expr->arguments[0]);
    if (spelling->level == LEVEL_COMPARE && operands == KG_TYPE_I64)
        kernel->narrow =
            kg_triton_is_narrow(expr->arguments[0]) && kg_triton_is_narrow(expr->arguments[1]);
    kg_text_add(text, enclosed ? "(" : "");
    if (expr->argument_count == 1) {
        kg_text_add(text, spelling->infix);
        print(kernel, text, expr->arguments[0], operands, LEVEL_UNARY);
    } else {
        if (needs_tensor)
            print_argument(kernel, text, expr->arguments[0], operands, true);
        else
            print(kernel, text, expr->arguments[0], operands,
                  spelling->level == LEVEL_COMPARE ? LEVEL_OR : spelling->level);
        kg_text_format(text, " %s ", spelling->infix);
        print(kernel, text, expr->arguments[1], operands,
              spelling->level == LEVEL_COMPARE ? LEVEL_OR : spelling->level + 1);
    }
    kg_text_add(text, enclosed ? ")" : "");
}

// The operator in place of the helper for what the operator does not do: counts of shifts that are
// too large, and quotients of what may be negative or by what may be 0. NULL: the helper is needed.
static const char *plain_infix(const struct kg_expr *expr)
{
    const struct kg_expr *right = expr->argument_count == 2 ? expr->arguments[1] : NULL;
    if (expr->type != KG_TYPE_I64 || !right)
        return NULL;
    bool divides = kg_triton_is_within(expr->arguments[0], 0, INT32_MAX) &&
                   kg_triton_is_within(right, 1, INT32_MAX);
    bool shifts = kg_triton_is_within(right, 0, kg_triton_is_narrow(expr) ? 31 : 63);
    switch (expr->function) {
    case KG_FN_SHIFT_LEFT:
        return shifts ? "<<" : NULL;
    case KG_FN_SHIFT_RIGHT:
        return shifts ? ">>" : NULL;
    case KG_FN_DIV:
        return divides ? "//" : NULL;
    case KG_FN_MOD:
        return divides ? "%" : NULL;
    default:
        return NULL;
    }
}

static void print_plain_infix(struct kg_triton_kernel *kernel, struct kg_text *text,
                              const struct kg_expr *expr, const char *infix)
{
    kg_text_add(text, "(");
    if (is_constant(expr->arguments[0]))
        print_argument(kernel, text, expr->arguments[0], expr->type, true);
    else
        print(kernel, text, expr->arguments[0], expr->type, LEVEL_UNARY);
    kg_text_format(text, " %s ", infix);
    print(kernel, text, expr->arguments[1], expr->type, LEVEL_UNARY);
    kg_text_add(text, ")");
}

// A quotient or remainder in the type of offsets.
static void print_digit(struct kg_triton_kernel *kernel, struct kg_text *text,
                        const struct kg_expr *expr)
{
    const char *index = kg_triton_index(kernel, expr); // in parentheses
    kg_text_format(text, "tl.cast(%.*s, %s)", (int)strlen(index) - 2, index + 1,
                   type_now(kernel, expr->type));
}

static void print_call(struct kg_triton_kernel *kernel, struct kg_text *text,
                       const struct kg_expr *expr, enum level level)
{
    const char *infix = plain_infix(expr);
    if (expr->type == KG_TYPE_I64 && kg_triton_is_digit(expr)) {
        print_digit(kernel, text, expr);
        return;
    }
    if (infix) {
        print_plain_infix(kernel, text, expr, infix);
        return;
    }
    const struct spelling *spelling = &spellings[expr->function];
    enum kg_type operands = operand_type(expr);
    const char *name = is_real(operands) || !spelling->integer ? spelling->call : spelling->integer;
    if (spelling->infix && !(spelling->integer && !is_real(operands))) {
        print_infix(kernel, text, expr, spelling, operands, level);
        return;
    }
    if (!*name) { // floor of an integer
        print(kernel, text, expr->arguments[0], operands, level);
        return;
    }
    bool is_where = expr->function == KG_FN_WHERE;
    kg_text_format(text, "%s(", name);
    bool all_constant = true;
    for (int i = is_where ? 1 : 0; i < expr->argument_count; i++)
        all_constant &= is_constant(expr->arguments[i]);
    for (int i = 0; i < expr->argument_count; i++) {
        bool is_condition = is_where && i == 0;
        kg_text_add(text, i > 0 ? ", " : "");
        print_argument(kernel, text, expr->arguments[i], is_condition ? KG_TYPE_BOOL : operands,
                       spelling->needs_tensor || is_condition || (all_constant && i == 1));
    }
    kg_text_add(text, ")");
}

static void print_integer_cast(struct kg_text *text, enum kg_dtype dtype, const char *value)
{
    if (dtype == KG_U4)
        kg_text_format(text, "(%s & 15)", value);
    else if (dtype == KG_I4)
        kg_text_format(text, "(((%s & 15) ^ 8) - 8)", value);
    else if (dtype == KG_I64)
        kg_text_add(text, value);
    else
        kg_text_format(text, "%s.to(tl.%s).to(tl.int64)", value, kg_triton_dtype(dtype));
}

// As if stored in the dtype and loaded again.
static void print_cast(struct kg_triton_kernel *kernel, struct kg_text *text,
                       const struct kg_expr *expr)
{
    enum kg_dtype dtype = expr->cast.dtype;
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    const struct kg_expr *from = expr->arguments[0];
    struct kg_text value = {0};
    bool constant = is_constant(from);
    if (info->is_float) {
        enum kg_type type = from->type == KG_TYPE_F64 ? KG_TYPE_F64 : info->compute;
        kg_text_add(&value, constant ? "tl.full((), " : "");
        print(kernel, &value, from, type, constant ? LEVEL_ANY : LEVEL_PRIMARY);
        if (constant)
            kg_text_format(&value, ", %s)", kg_triton_type(type));
        if (info->bits == 8)
            kg_text_format(text, "_from_%s(_to_%s(%s))", info->name, info->name,
                           kg_text_string(&value));
        else if (dtype == KG_BF16)
            kg_text_format(text, "_to_bf16(%s).to(tl.float32)", kg_text_string(&value));
        else if (info->bits == 16)
            kg_text_format(text, "%s.to(tl.%s).to(tl.float32)", kg_text_string(&value),
                           kg_triton_dtype(dtype));
        else if (type != info->compute)
            kg_text_format(text, "%s.to(%s)", kg_text_string(&value),
                           kg_triton_type(info->compute));
        else
            kg_text_add(text, kg_text_string(&value));
    } else if (info->compute == KG_TYPE_BOOL) {
        if (from->type == KG_TYPE_BOOL) {
            print(kernel, text, from, KG_TYPE_BOOL, LEVEL_PRIMARY);
        } else {
            kg_text_add(text, "(");
            print_argument(kernel, text, from, from->type, true);
            kg_text_add(text, " != 0)");
        }
    } else {
        bool real = is_real(from->type);
        kg_text_add(&value, real ? "_to_int(" : constant ? "tl.full((), " : "");
        if (real)
            print_argument(kernel, &value, from, from->type, true);
        else
            print(kernel, &value, from, KG_TYPE_I64, constant ? LEVEL_ANY : LEVEL_PRIMARY);
        kg_text_add(&value, real ? ")" : constant ? ", tl.int64)" : "");
        print_integer_cast(text, dtype, kg_text_string(&value));
    }
    text->failed |= value.failed;
    kg_text_free(&value);
}

// The expression, in a type that it can be converted from.
static void print_plain(struct kg_triton_kernel *kernel, struct kg_text *text,
                        const struct kg_expr *expr, enum level level)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        print_number(kernel, text, expr, expr->type, level);
        return;
    case KG_EXPR_READ:
        kg_text_add(text, kg_triton_read(kernel, kg_nest_access(kernel->nest, expr)));
        return;
    case KG_EXPR_CALL:
        print_call(kernel, text, expr, level);
        return;
    case KG_EXPR_CAST:
        print_cast(kernel, text, expr);
        return;
    default: // indices and sizes have types of their own: see print
        return;
    }
}

// Whether 32 bits are enough for what is computed here, and for nothing around it.
static bool turns_narrow(const struct kg_triton_kernel *kernel, const struct kg_expr *expr)
{
    return !kernel->narrow && expr->kind == KG_EXPR_CALL && !is_constant(expr) &&
           !kg_triton_is_digit(expr) && kg_triton_is_narrow(expr);
}

static void print(struct kg_triton_kernel *kernel, struct kg_text *text, const struct kg_expr *expr,
                  enum kg_type type, enum level level)
{
    bool narrow = kernel->narrow;
    kernel->narrow &= expr->type == KG_TYPE_I64;
    if (expr->kind == KG_EXPR_INDEX || expr->kind == KG_EXPR_SIZE) {
        kg_text_format(text, "tl.cast(%s, %s)", kg_triton_index(kernel, expr),
                       type_now(kernel, type));
    } else if (turns_narrow(kernel, expr)) {
        kernel->narrow = true;
        print_plain(kernel, text, expr, LEVEL_PRIMARY);
        kg_text_format(text, type == KG_TYPE_BOOL ? " != 0" : ".to(%s)", kg_triton_type(type));
    } else if (expr->kind == KG_EXPR_NUMBER) {
        print_number(kernel, text, expr, type, level);
    } else if (expr->type == type || is_constant(expr)) {
        print_plain(kernel, text, expr, level);
    } else {
        print_plain(kernel, text, expr, LEVEL_PRIMARY);
        kg_text_format(text, type == KG_TYPE_BOOL ? " != 0" : ".to(%s)", kg_triton_type(type));
    }
    kernel->narrow = narrow;
}

const char *kg_triton_stored(struct kg_triton_kernel *kernel, const struct kg_expr *expr)
{
    struct kg_text text = {0};
    if (!turns_narrow(kernel, expr))
        return kg_triton_value(kernel, expr, expr->type);
    kernel->narrow = true;
    print(kernel, &text, expr, expr->type, LEVEL_ANY);
    kernel->narrow = false;
    return kg_triton_keep(kernel, &text);
}

const char *kg_triton_value(struct kg_triton_kernel *kernel, const struct kg_expr *expr,
                            enum kg_type type)
{
    struct kg_text text = {0};
    bool narrow = kernel->narrow;
    kernel->narrow = false;
    if (is_constant(expr)) { // the caller needs a tensor
        kg_text_add(&text, "tl.full((), ");
        print(kernel, &text, expr, type, LEVEL_ANY);
        kg_text_format(&text, ", %s)", kg_triton_type(type));
    } else {
        print(kernel, &text, expr, type, LEVEL_ANY);
    }
    kernel->narrow = narrow;
    return kg_triton_keep(kernel, &text);
}
