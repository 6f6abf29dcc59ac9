// Operators and functions of expressions, in PyTorch.

#include "export/torch_writer.h"

#include <math.h>
#include <string.h>

static bool is_float(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

// Functions of one float: PyTorch's, and Python's of a number.
static const struct {
    enum kg_function function;
    const char *tensor, *number;
} float_functions[] = {
    {KG_FN_SIGMOID, "torch.sigmoid(%s)", NULL},
    {KG_FN_TANH, "torch.tanh(%s)", "math.tanh(%s)"},
    {KG_FN_EXP, "torch.exp(%s)", "math.exp(%s)"},
    {KG_FN_EXP2, "torch.exp2(%s)", "math.exp2(%s)"},
    {KG_FN_EXPM1, "torch.expm1(%s)", "math.expm1(%s)"},
    {KG_FN_LOG, "torch.log(%s)", "math.log(%s)"},
    {KG_FN_LOG2, "torch.log2(%s)", "math.log2(%s)"},
    {KG_FN_LOG1P, "torch.log1p(%s)", "math.log1p(%s)"},
    {KG_FN_SQRT, "torch.sqrt(%s)", "math.sqrt(%s)"},
    {KG_FN_RSQRT, "torch.rsqrt(%s)", NULL},
    {KG_FN_ERF, "torch.erf(%s)", "math.erf(%s)"},
    {KG_FN_SIN, "torch.sin(%s)", "math.sin(%s)"},
    {KG_FN_COS, "torch.cos(%s)", "math.cos(%s)"},
    {KG_FN_SILU, "torch.nn.functional.silu(%s)", NULL},
    {KG_FN_GELU, "torch.nn.functional.gelu(%s)", NULL},
    {KG_FN_GELU_TANH, "torch.nn.functional.gelu(%s, approximate=\"tanh\")", NULL},
    {KG_FN_SOFTPLUS, "torch.nn.functional.softplus(%s)", NULL},
};

// Functions of one value that keep its type; of integers the last four are the value itself.
static const struct {
    enum kg_function function;
    const char *tensor;
    bool of_floats;
} exact_functions[] = {
    {KG_FN_RELU, "torch.relu(%s)", false}, {KG_FN_ABS, "torch.abs(%s)", false},
    {KG_FN_SIGN, "torch.sign(%s)", false}, {KG_FN_FLOOR, "torch.floor(%s)", true},
    {KG_FN_CEIL, "torch.ceil(%s)", true},  {KG_FN_ROUND, "torch.round(%s)", true},
};

static const struct {
    enum kg_function function;
    const char *sign;
    enum kg_python_level level;
} operators[] = {
    {KG_FN_ADD, "+", PYTHON_SUM},           {KG_FN_SUB, "-", PYTHON_SUM},
    {KG_FN_MUL, "*", PYTHON_PRODUCT},       {KG_FN_LT, "<", PYTHON_COMPARE},
    {KG_FN_LE, "<=", PYTHON_COMPARE},       {KG_FN_GT, ">", PYTHON_COMPARE},
    {KG_FN_GE, ">=", PYTHON_COMPARE},       {KG_FN_EQ, "==", PYTHON_COMPARE},
    {KG_FN_NE, "!=", PYTHON_COMPARE},       {KG_FN_AND, "&", PYTHON_BIT_AND},
    {KG_FN_OR, "|", PYTHON_BIT_OR},         {KG_FN_BIT_AND, "&", PYTHON_BIT_AND},
    {KG_FN_BIT_OR, "|", PYTHON_BIT_OR},     {KG_FN_BIT_XOR, "^", PYTHON_BIT_XOR},
    {KG_FN_SHIFT_LEFT, "<<", PYTHON_SHIFT}, {KG_FN_SHIFT_RIGHT, ">>", PYTHON_SHIFT},
};

// A format of a table with one "%s" around the value.
static struct kg_torch_value wrap(struct kg_torch_writer *writer, const char *format,
                                  struct kg_torch_value value, enum kg_type type)
{
    const char *at = strstr(format, "%s");
    value.text =
        kg_torch_format(writer, "%.*s%s%s", (int)(at - format), format, value.text, at + 2);
    value.level = PYTHON_PRIMARY;
    value.type = type;
    value.is_view = value.is_exact = false;
    return value;
}

// In the reference, a number from which floats are computed is a tensor: it is rounded to the
// compute type by a kernel, and so may be disturbed where errors are looked for.
static void make_real(struct kg_torch_writer *writer, struct kg_torch_value *value)
{
    if (!writer->is_reference || !value->scalar)
        return;
    *value = wrap(writer, "_real(%s)", *value, KG_TYPE_F64);
    value->scalar = false;
}

static enum kg_type wider(enum kg_type a, enum kg_type b)
{
    return a > b ? a : b;
}

// Both values in one type. Narrow floats stay as they are where nothing is computed: both of one
// dtype, or one with a number that every dtype has.
static void unify(struct kg_torch_writer *writer, struct kg_torch_value *a,
                  struct kg_torch_value *b, enum kg_type type)
{
    bool both_raw = a->raw && b->raw &&
                    strcmp(kg_torch_dtype_text(writer, a->raw->id),
                           kg_torch_dtype_text(writer, b->raw->id)) == 0;
    bool with_number = (a->raw && b->scalar && b->is_exact) || (b->raw && a->scalar && a->is_exact);
    if (both_raw || with_number)
        return;
    kg_torch_convert(writer, a, type);
    kg_torch_convert(writer, b, type);
}

static const struct kg_tensor *common_raw(const struct kg_torch_value *a,
                                          const struct kg_torch_value *b)
{
    return a->raw ? a->raw : b->raw;
}

static struct kg_torch_value where(struct kg_torch_writer *writer, struct kg_torch_value *arguments,
                                   enum kg_type type)
{
    struct kg_torch_value *a = &arguments[1], *b = &arguments[2];
    if (arguments[0].scalar) {
        struct kg_torch_value chosen = kg_torch_scalar("", PYTHON_ANY, type);
        kg_torch_convert(writer, a, type);
        kg_torch_convert(writer, b, type);
        kg_torch_join(a, &chosen.axis_count, chosen.axes);
        kg_torch_join(b, &chosen.axis_count, chosen.axes);
        kg_torch_align(writer, a, chosen.axis_count, chosen.axes);
        kg_torch_align(writer, b, chosen.axis_count, chosen.axes);
        chosen.text =
            kg_torch_format(writer, "(%s if %s else %s)", a->text, arguments[0].text, b->text);
        chosen.level = PYTHON_PRIMARY;
        chosen.scalar = a->scalar && b->scalar;
        return chosen;
    }
    if (a->scalar && b->scalar && is_float(type)) {
        make_real(writer, a);
        if (!writer->is_reference)
            *a = wrap(writer,
                      type == KG_TYPE_F64 ? "torch.tensor(%s, dtype=torch.float64)"
                                          : "torch.tensor(%s, dtype=torch.float32)",
                      *a, type);
        a->scalar = false;
        a->type = type;
    } else {
        unify(writer, a, b, type);
    }
    struct kg_torch_value result = kg_torch_call(writer, "torch.where", 3, arguments, type);
    result.raw = common_raw(a, b);
    return result;
}

static struct kg_torch_value extreme(struct kg_torch_writer *writer,
                                     struct kg_torch_value *arguments, bool is_max,
                                     enum kg_type type)
{
    struct kg_torch_value *a = &arguments[0], *b = &arguments[1];
    unify(writer, a, b, type);
    const struct kg_tensor *raw = common_raw(a, b);
    if (a->scalar && !b->scalar) {
        struct kg_torch_value swapped = *a;
        *a = *b;
        *b = swapped;
    }
    struct kg_torch_value result;
    if (b->scalar && !a->scalar) {
        result = *a;
        result.text =
            kg_torch_format(writer, "%s.clamp(%s=%s)", kg_torch_at(writer, a, PYTHON_PRIMARY),
                            is_max ? "min" : "max", b->text);
        result.level = PYTHON_PRIMARY;
        result.is_view = false;
    } else if (a->scalar) {
        result = kg_torch_call(writer, is_max ? "max" : "min", 2, arguments, type);
    } else {
        result =
            kg_torch_call(writer, is_max ? "torch.maximum" : "torch.minimum", 2, arguments, type);
    }
    result.raw = raw;
    result.type = type;
    return result;
}

// Integers round down, and give 0 for divisions by 0; a divisor of sizes and numbers is none.
static struct kg_torch_value divide(struct kg_torch_writer *writer,
                                    struct kg_torch_value *arguments, bool is_rest,
                                    enum kg_type type)
{
    struct kg_torch_value a = arguments[0], b = arguments[1];
    if (!is_float(type)) {
        if (b.scalar)
            return kg_torch_binary(writer, a, is_rest ? "%" : "//", b, PYTHON_PRODUCT, type);
        kg_torch_use(writer, is_rest ? HELPER_REMAINDER : HELPER_QUOTIENT);
        return kg_torch_call(writer, is_rest ? "_remainder" : "_quotient", 2, arguments, type);
    }
    if (a.scalar && b.scalar) {
        make_real(writer, &a);
        return kg_torch_binary(writer, a, is_rest ? "%" : "/", b, PYTHON_PRODUCT, type);
    }
    if (!is_rest)
        return kg_torch_binary(writer, a, "/", b, PYTHON_PRODUCT, type);
    // torch.remainder has another result for infinite divisors.
    struct kg_torch_value whole = wrap(
        writer, "torch.floor(%s)", kg_torch_binary(writer, a, "/", b, PYTHON_PRODUCT, type), type);
    return kg_torch_binary(writer, a, "-",
                           kg_torch_binary(writer, b, "*", whole, PYTHON_PRODUCT, type), PYTHON_SUM,
                           type);
}

static bool reads_tensors(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reads_tensors(expr->arguments[i]))
            return true;
    return false;
}

static struct kg_torch_value shift(struct kg_torch_writer *writer, const struct kg_expr *expr,
                                   struct kg_torch_value *arguments)
{
    bool is_left = expr->function == KG_FN_SHIFT_LEFT;
    if (!reads_tensors(expr->arguments[1]))
        return kg_torch_binary(writer, arguments[0], is_left ? "<<" : ">>", arguments[1],
                               PYTHON_SHIFT, KG_TYPE_I64);
    kg_torch_use(writer, is_left ? HELPER_SHIFT_LEFT : HELPER_SHIFT_RIGHT);
    if (arguments[0].scalar)
        arguments[0] = wrap(writer, "torch.tensor(%s)", arguments[0], KG_TYPE_I64);
    arguments[0].scalar = false;
    return kg_torch_call(writer, is_left ? "_shift_left" : "_shift_right", 2, arguments,
                         KG_TYPE_I64);
}

static struct kg_torch_value power(struct kg_torch_writer *writer, struct kg_torch_value *arguments,
                                   enum kg_type type)
{
    if (arguments[0].scalar && arguments[1].scalar) {
        if (!writer->is_reference)
            return kg_torch_call(writer, "math.pow", 2, arguments, type);
        make_real(writer, &arguments[0]);
    }
    return kg_torch_call(writer, "torch.pow", 2, arguments, type);
}

static struct kg_torch_value float_function(struct kg_torch_writer *writer, enum kg_function name,
                                            struct kg_torch_value value, enum kg_type type)
{
    kg_torch_convert(writer, &value, type);
    if (value.scalar && writer->is_reference)
        make_real(writer, &value);
    if (name == KG_FN_SOFTPLUS && writer->is_reference) { // F.softplus is linear beyond 20
        const char *x = kg_torch_at(writer, &value, PYTHON_PRIMARY);
        value.text =
            kg_torch_format(writer, "%s.clamp(min=0) + torch.log1p(torch.exp(-%s.abs()))", x, x);
        value.level = PYTHON_SUM;
        value.is_view = false;
        return value;
    }
    for (size_t i = 0; i < sizeof float_functions / sizeof float_functions[0]; i++) {
        if (float_functions[i].function != name)
            continue;
        if (value.scalar && float_functions[i].number)
            return wrap(writer, float_functions[i].number, value, type);
        if (value.scalar && name == KG_FN_RSQRT)
            return wrap(writer, "torch.tensor(%s).rsqrt()", value, type); // inf for 0
        if (value.scalar) {
            value = wrap(writer, "torch.tensor(float(%s))", value, type);
            value.scalar = false;
        }
        return wrap(writer, float_functions[i].tensor, value, type);
    }
    writer->failed = true;
    return value;
}

// Functions that give one of few values, or the value without computing with it.
static bool exact_function(struct kg_torch_writer *writer, enum kg_function name,
                           struct kg_torch_value *value, enum kg_type type)
{
    const struct kg_tensor *raw = value->raw;
    for (size_t i = 0; i < sizeof exact_functions / sizeof exact_functions[0]; i++) {
        if (exact_functions[i].function != name)
            continue;
        if (!raw)
            kg_torch_convert(writer, value, type);
        if (value->scalar) {
            *value = wrap(writer, "torch.tensor(%s)", *value, type);
            value->scalar = false;
        }
        if (!exact_functions[i].of_floats || is_float(type))
            *value = wrap(writer, exact_functions[i].tensor, *value, type);
        value->raw = raw;
        return true;
    }
    return false;
}

static struct kg_torch_value negate(struct kg_torch_writer *writer, struct kg_torch_value value,
                                    const char *sign, enum kg_type type)
{
    const struct kg_tensor *raw = value.raw;
    bool is_exact = value.is_exact;
    if (!raw)
        kg_torch_convert(writer, &value, type);
    value.text = kg_torch_format(writer, "%s%s", sign, kg_torch_at(writer, &value, PYTHON_UNARY));
    value.level = PYTHON_UNARY;
    value.type = type;
    value.is_view = false;
    value.raw = raw;
    value.is_exact = is_exact;
    return value;
}

static struct kg_torch_value compare(struct kg_torch_writer *writer, const char *sign,
                                     struct kg_torch_value a, struct kg_torch_value b)
{
    enum kg_type type = wider(a.type, b.type);
    bool only_raw_and_number =
        (a.raw && b.scalar && b.is_exact) || (b.raw && a.scalar && a.is_exact);
    if (!only_raw_and_number)
        unify(writer, &a, &b, type);
    return kg_torch_binary(writer, a, sign, b, PYTHON_COMPARE, KG_TYPE_BOOL);
}

static struct kg_torch_value infix(struct kg_torch_writer *writer, const struct kg_expr *expr,
                                   struct kg_torch_value *arguments)
{
    struct kg_torch_value a = arguments[0], b = arguments[1];
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (operators[i].function != expr->function)
            continue;
        if (operators[i].level == PYTHON_COMPARE)
            return compare(writer, operators[i].sign, a, b);
        bool is_logic = expr->function == KG_FN_AND || expr->function == KG_FN_OR;
        if (!is_logic) {
            kg_torch_convert(writer, &a, expr->type);
            kg_torch_convert(writer, &b, expr->type);
        }
        if (is_float(expr->type) && a.scalar && b.scalar)
            make_real(writer, &a);
        return kg_torch_binary(writer, a, operators[i].sign, b, operators[i].level, expr->type);
    }
    writer->failed = true;
    return a;
}

struct kg_torch_value kg_torch_function_call(struct kg_torch_writer *writer,
                                             const struct kg_torch_frame *frame,
                                             const struct kg_expr *expr)
{
    struct kg_torch_value arguments[3];
    for (int i = 0; i < expr->argument_count; i++) {
        arguments[i] = kg_torch_expression(writer, frame, expr->arguments[i]);
        kg_torch_sort(writer, &arguments[i]);
    }
    switch (expr->function) {
    case KG_FN_WHERE:
        return where(writer, arguments, expr->type);
    case KG_FN_MIN:
    case KG_FN_MAX:
        return extreme(writer, arguments, expr->function == KG_FN_MAX, expr->type);
    case KG_FN_DIV:
    case KG_FN_MOD:
    case KG_FN_POW:
        kg_torch_convert(writer, &arguments[0], expr->type);
        kg_torch_convert(writer, &arguments[1], expr->type);
        if (expr->function == KG_FN_POW)
            return power(writer, arguments, expr->type);
        return divide(writer, arguments, expr->function == KG_FN_MOD, expr->type);
    case KG_FN_SHIFT_LEFT:
    case KG_FN_SHIFT_RIGHT:
        kg_torch_convert(writer, &arguments[0], KG_TYPE_I64);
        kg_torch_convert(writer, &arguments[1], KG_TYPE_I64);
        return shift(writer, expr, arguments);
    case KG_FN_NEG:
        return negate(writer, arguments[0], "-", expr->type);
    case KG_FN_NOT:
        return arguments[0].scalar ? negate(writer, arguments[0], "not ", KG_TYPE_BOOL)
                                   : negate(writer, arguments[0], "~", KG_TYPE_BOOL);
    case KG_FN_BIT_NOT:
        return negate(writer, arguments[0], "~", KG_TYPE_I64);
    case KG_FN_ISNAN:
        if (!is_float(arguments[0].type))
            kg_torch_convert(writer, &arguments[0], KG_TYPE_F32);
        return wrap(writer, arguments[0].scalar ? "math.isnan(%s)" : "torch.isnan(%s)",
                    arguments[0], KG_TYPE_BOOL);
    default:
        break;
    }
    if (kg_functions[expr->function].arity == 2)
        return infix(writer, expr, arguments);
    if (exact_function(writer, expr->function, &arguments[0], expr->type))
        return arguments[0];
    return float_function(writer, expr->function, arguments[0], expr->type);
}
