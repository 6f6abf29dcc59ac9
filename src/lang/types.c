// Typing. Types widen BOOL < I64 < F32 < F64, as the enum is ordered.

#include "lang/types.h"

#include <string.h>

static enum kg_type wider(enum kg_type a, enum kg_type b)
{
    return a > b ? a : b;
}

static enum kg_type as_number(enum kg_type type)
{
    return wider(type, KG_TYPE_I64);
}

static bool is_float(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

static struct kg_expr *argument(const struct kg_expr *expr, int i)
{
    return (struct kg_expr *)expr->arguments[i]; // the instance under construction owns it
}

// A condition decides which value is taken, not what type it has.
static int first_value(const struct kg_expr *expr)
{
    return expr->kind == KG_EXPR_CALL && kg_functions[expr->function].rule == KG_RULE_WHERE;
}

// Made of literals, sizes and indices only: nothing stored says how precise it is.
static bool is_weak(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ || expr->kind == KG_EXPR_CAST)
        return false;
    for (int i = first_value(expr); i < expr->argument_count; i++)
        if (!is_weak(expr->arguments[i]))
            return false;
    return true;
}

static void widen(struct kg_expr *expr)
{
    if (expr->type != KG_TYPE_F32)
        return;
    expr->type = KG_TYPE_F64;
    for (int i = first_value(expr); i < expr->argument_count; i++)
        widen(argument(expr, i));
}

void kg_lang_adapt(struct kg_expr *expr, enum kg_type type)
{
    if (!is_float(type))
        return;
    if (expr->kind == KG_EXPR_NUMBER && expr->type != KG_TYPE_BOOL)
        expr->type = type;
    else if (type == KG_TYPE_F64 && expr->type == KG_TYPE_F32 && is_weak(expr))
        widen(expr);
}

static void adapt_arguments(struct kg_expr *expr, enum kg_type type)
{
    for (int i = first_value(expr); i < expr->argument_count; i++)
        kg_lang_adapt(argument(expr, i), type);
}

static const char *advice_for_bool(const struct kg_expr *expr)
{
    bool joins = expr->kind == KG_EXPR_CALL && expr->argument_count == 2 &&
                 expr->arguments[0]->type == KG_TYPE_BOOL &&
                 expr->arguments[1]->type == KG_TYPE_BOOL;
    if (joins && expr->function == KG_FN_BIT_AND)
        return "help: write && between truth values";
    if (joins && expr->function == KG_FN_BIT_OR)
        return "help: write || between truth values";
    return "help: compare it, as in x != 0";
}

static void want_bool(struct kg_lang_job *job, const struct kg_expr *expr, const char *who)
{
    if (expr->type != KG_TYPE_BOOL)
        kg_lang_fail(job, expr->span, advice_for_bool(expr),
                     "%s needs true or false, and this is %s", who, kg_type_name_of(expr->type));
}

static void type_call(struct kg_lang_job *job, struct kg_expr *expr)
{
    const struct kg_function_info *info = &kg_functions[expr->function];
    enum kg_type common = KG_TYPE_BOOL;
    for (int i = first_value(expr); i < expr->argument_count; i++)
        common = wider(common, expr->arguments[i]->type);
    switch (info->rule) {
    case KG_RULE_ARITHMETIC:
        expr->type = as_number(common);
        break;
    case KG_RULE_FLOAT:
        expr->type = common = wider(common, KG_TYPE_F32);
        break;
    case KG_RULE_INTEGER:
        for (int i = 0; i < expr->argument_count; i++)
            if (is_float(expr->arguments[i]->type))
                kg_lang_fail(job, expr->arguments[i]->span,
                             strcmp(info->name, "^") == 0
                                 ? "help: a power is pow(x, y), and a square x * x"
                                 : "help: write cast(i64, ...)",
                             "\"%s\" works on the bits of integers, and this is %s", info->name,
                             kg_type_name_of(expr->arguments[i]->type));
        expr->type = KG_TYPE_I64;
        break;
    case KG_RULE_COMPARE:
        expr->type = KG_TYPE_BOOL;
        break;
    case KG_RULE_LOGIC:
        for (int i = 0; i < expr->argument_count; i++)
            want_bool(job, expr->arguments[i], kg_lang_format(job, "\"%s\"", info->name));
        expr->type = KG_TYPE_BOOL;
        break;
    case KG_RULE_WHERE:
        want_bool(job, expr->arguments[0], "the condition of where()");
        expr->type = common;
        break;
    }
    adapt_arguments(expr, common);
    const struct kg_expr *first = expr->arguments[0];
    if (expr->function == KG_FN_CEIL && first->kind == KG_EXPR_CALL &&
        first->function == KG_FN_DIV && first->type == KG_TYPE_I64)
        kg_lang_fail(job, expr->span, "help: write (a + b - 1)/b",
                     "the quotient of two integers is rounded down before ceil() sees it");
}

static void type_reduce(struct kg_lang_job *job, struct kg_expr *expr)
{
    enum kg_type body = expr->arguments[0]->type;
    switch (expr->reduce) {
    case KG_REDUCE_MEAN:
        expr->type = wider(body, KG_TYPE_F32);
        adapt_arguments(expr, expr->type);
        break;
    case KG_REDUCE_ARGMAX:
    case KG_REDUCE_ARGMIN:
        expr->type = KG_TYPE_I64;
        break;
    case KG_REDUCE_ANY:
    case KG_REDUCE_ALL:
        want_bool(job, expr->arguments[0],
                  kg_lang_format(job, "%s()", kg_reduces[expr->reduce].name));
        expr->type = KG_TYPE_BOOL;
        break;
    default:
        expr->type = as_number(body);
        break;
    }
}

void kg_lang_type_expr(struct kg_lang_job *job, struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CALL) {
        type_call(job, expr);
    } else if (expr->kind == KG_EXPR_REDUCE) {
        type_reduce(job, expr);
    } else if (expr->kind == KG_EXPR_CAST) {
        expr->type = kg_dtypes[expr->cast.dtype].compute;
        adapt_arguments(expr, expr->type);
    }
}

void kg_lang_check_store(struct kg_lang_job *job, const struct kg_tensor *tensor,
                         struct kg_expr *value)
{
    const char *name = kg_dtypes[tensor->type.dtype].name;
    if (tensor->compute == KG_TYPE_BOOL && value->type != KG_TYPE_BOOL)
        kg_lang_fail(job, value->span, advice_for_bool(value), "\"%s\" is bool and its value is %s",
                     tensor->name, kg_type_name_of(value->type));
    if (tensor->compute == KG_TYPE_I64 && is_float(value->type))
        kg_lang_fail(job, value->span, kg_lang_format(job, "help: write cast(%s, ...)", name),
                     "\"%s\" is %s and its value is %s", tensor->name, name,
                     kg_type_name_of(value->type));
    kg_lang_adapt(value, tensor->compute);
}

void kg_lang_check_integer(struct kg_lang_job *job, const struct kg_expr *subscript)
{
    if (subscript->type != KG_TYPE_I64)
        kg_lang_fail(job, subscript->span, "expected an element of an integer tensor",
                     "a subscript is an integer, and this is %s", kg_type_name_of(subscript->type));
}

void kg_lang_check_pad(struct kg_lang_job *job, const struct kg_expr *read, struct kg_expr *pad)
{
    if (pad->type > read->type)
        kg_lang_fail(job, pad->span, "help: cast() the value, or pad with another one",
                     "\"%s\" is read as %s, and its pad value is %s", read->tensor->name,
                     kg_type_name_of(read->type), kg_type_name_of(pad->type));
    kg_lang_adapt(pad, read->type);
}
