// Expressions and statements back in the language's own syntax, with the fewest parentheses that
// parse to the same tree.

#include "lang/lang.h"
#include "lang/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum level {
    LEVEL_OR = 1,
    LEVEL_AND,
    LEVEL_COMPARE,
    LEVEL_BIT_OR,
    LEVEL_BIT_XOR,
    LEVEL_BIT_AND,
    LEVEL_SHIFT,
    LEVEL_SUM,
    LEVEL_REDUCE, // swallows the product behind it
    LEVEL_PRODUCT,
    LEVEL_UNARY,
    LEVEL_PRIMARY
};

static void print_at(struct kg_text *text, const struct kg_expr *expr, enum level lowest);

static enum level level_of(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_REDUCE)
        return LEVEL_REDUCE;
    if (expr->kind == KG_EXPR_NUMBER)
        return signbit(expr->number) || expr->integer < 0 ? LEVEL_UNARY : LEVEL_PRIMARY;
    if (expr->kind != KG_EXPR_CALL || !kg_functions[expr->function].is_operator)
        return LEVEL_PRIMARY;
    switch (expr->function) {
    case KG_FN_OR:
        return LEVEL_OR;
    case KG_FN_AND:
        return LEVEL_AND;
    case KG_FN_BIT_OR:
        return LEVEL_BIT_OR;
    case KG_FN_BIT_XOR:
        return LEVEL_BIT_XOR;
    case KG_FN_BIT_AND:
        return LEVEL_BIT_AND;
    case KG_FN_SHIFT_LEFT:
    case KG_FN_SHIFT_RIGHT:
        return LEVEL_SHIFT;
    case KG_FN_ADD:
    case KG_FN_SUB:
        return LEVEL_SUM;
    case KG_FN_MUL:
    case KG_FN_DIV:
    case KG_FN_MOD:
        return LEVEL_PRODUCT;
    case KG_FN_NEG:
    case KG_FN_NOT:
    case KG_FN_BIT_NOT:
        return LEVEL_UNARY;
    case KG_FN_CEILDIV:
        return LEVEL_PRIMARY;
    default:
        return LEVEL_COMPARE;
    }
}

static void print_number(struct kg_text *text, const struct kg_expr *expr)
{
    if (expr->type == KG_TYPE_BOOL) {
        kg_text_add(text, expr->integer ? "true" : "false");
        return;
    }
    if (expr->is_integer) {
        kg_text_format(text, "%lld", (long long)expr->integer);
        return;
    }
    if (!isfinite(expr->number)) {
        kg_text_add(text, isnan(expr->number) ? "nan" : expr->number < 0 ? "-inf" : "inf");
        return;
    }
    // The shortest text that reads back as the same number.
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, expr->number);
        if (strtod(digits, NULL) == expr->number)
            break;
    }
    char *comma = strchr(digits, ','); // some locales' decimal point
    if (comma)
        *comma = '.';
    kg_text_add(text, digits);
    if (!strpbrk(digits, ".e"))
        kg_text_add(text, ".0");
}

static void print_list(struct kg_text *text, const struct kg_expr *expr)
{
    for (int i = 0; i < expr->argument_count; i++) {
        kg_text_add(text, i ? ", " : "");
        print_at(text, expr->arguments[i], LEVEL_OR);
    }
}

static void print_read(struct kg_text *text, const struct kg_expr *expr)
{
    const struct kg_expr *subscripts[KG_MAX_RANK];
    struct kg_expr declared = *expr;
    if (kg_lang_declared_subscripts(expr, subscripts)) {
        declared.arguments = subscripts;
        declared.argument_count = kg_lang_declared_rank(expr->tensor);
    }
    kg_text_format(text, expr->pad ? "pad(%s[" : "%s[", expr->tensor->name);
    print_list(text, &declared);
    kg_text_add(text, "]");
    if (expr->pad) {
        kg_text_add(text, ", ");
        print_at(text, expr->pad, LEVEL_OR);
        kg_text_add(text, ")");
    }
}

// Products of sizes and indices are set tight: h*S + r - Q, K/G.
static bool is_small(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CALL && level_of(expr) == LEVEL_PRODUCT)
        return is_small(expr->arguments[0]) && is_small(expr->arguments[1]);
    return expr->kind == KG_EXPR_NUMBER || expr->kind == KG_EXPR_SIZE ||
           expr->kind == KG_EXPR_INDEX;
}

static void print_call(struct kg_text *text, const struct kg_expr *expr)
{
    const struct kg_function_info *info = &kg_functions[expr->function];
    enum level level = level_of(expr);
    if (expr->function == KG_FN_CEILDIV) {
        kg_text_add(text, "ceil(");
        print_at(text, expr->arguments[0], LEVEL_PRODUCT);
        kg_text_add(text, "/");
        print_at(text, expr->arguments[1], LEVEL_UNARY);
        kg_text_add(text, ")");
    } else if (!info->is_operator) {
        kg_text_format(text, "%s(", info->name);
        print_list(text, expr);
        kg_text_add(text, ")");
    } else if (info->arity == 1) {
        kg_text_add(text, info->name);
        print_at(text, expr->arguments[0], LEVEL_UNARY);
    } else {
        // Comparisons do not chain: both sides bind tighter.
        print_at(text, expr->arguments[0], level == LEVEL_COMPARE ? LEVEL_BIT_OR : level);
        bool tight =
            level == LEVEL_PRODUCT && is_small(expr->arguments[0]) && is_small(expr->arguments[1]);
        kg_text_format(text, tight ? "%s" : " %s ", info->name);
        print_at(text, expr->arguments[1], level + 1);
    }
}

static void print_index(struct kg_text *text, const struct kg_index *index)
{
    static const char *const relations[] = {"", " <= ", " < ", " >= ", " > "};
    kg_text_add(text, index->name);
    if (index->relation != KG_RELATION_NONE) {
        kg_text_add(text, relations[index->relation]);
        print_at(text, index->bound, LEVEL_SUM);
    } else if (index->written) {
        kg_text_add(text, " in ");
        if (index->begin)
            print_at(text, index->begin, LEVEL_SUM);
        else
            kg_text_add(text, "0");
        kg_text_add(text, "..");
        print_at(text, index->end, LEVEL_SUM);
    }
}

static void print_reduction(struct kg_text *text, const struct kg_expr *expr)
{
    kg_text_format(text, "%s(", kg_reduces[expr->reduce].name);
    for (int i = 0; i < expr->index_count; i++) {
        kg_text_add(text, i ? ", " : "");
        print_index(text, expr->indices[i]);
    }
    kg_text_add(text, ") ");
    const struct kg_expr *body = expr->arguments[0];
    // max(i, j) -x would be a difference; see is_reduction in parse_expression.c.
    bool simple = level_of(body) == LEVEL_PRIMARY;
    bool ambiguous =
        expr->index_count == 2 && (expr->reduce == KG_REDUCE_MAX || expr->reduce == KG_REDUCE_MIN);
    if (body->kind == KG_EXPR_REDUCE)
        print_at(text, body, LEVEL_REDUCE);
    else
        print_at(text, body, ambiguous && !simple ? LEVEL_PRIMARY : LEVEL_PRODUCT);
}

static void print_at(struct kg_text *text, const struct kg_expr *expr, enum level lowest)
{
    bool parentheses = level_of(expr) < lowest;
    if (parentheses)
        kg_text_add(text, "(");
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        print_number(text, expr);
        break;
    case KG_EXPR_SIZE:
        kg_text_add(text, expr->size->name);
        break;
    case KG_EXPR_INDEX:
        kg_text_add(text, expr->index->name);
        break;
    case KG_EXPR_READ:
        print_read(text, expr);
        break;
    case KG_EXPR_CALL:
        print_call(text, expr);
        break;
    case KG_EXPR_CAST:
        kg_text_format(text, "cast(%s, ",
                       expr->cast.variable ? expr->cast.variable->name
                                           : kg_dtypes[expr->cast.dtype].name);
        print_list(text, expr);
        kg_text_add(text, ")");
        break;
    case KG_EXPR_REDUCE:
        print_reduction(text, expr);
        break;
    }
    if (parentheses)
        kg_text_add(text, ")");
}

void kg_lang_print_expr(struct kg_text *text, const struct kg_expr *expr)
{
    print_at(text, expr, LEVEL_OR);
}

void kg_lang_print_statement(struct kg_text *text, const struct kg_statement *statement)
{
    kg_text_format(text, "%s[", statement->tensor->name);
    for (int i = 0; i < statement->index_count; i++) {
        kg_text_add(text, i ? ", " : "");
        print_index(text, statement->indices[i]);
    }
    kg_text_add(text, "] = ");
    kg_lang_print_expr(text, statement->value);
}

void kg_lang_print_tensor(struct kg_text *text, const struct kg_tensor *tensor)
{
    const struct kg_typevar *variable = tensor->type.variable;
    kg_text_format(text, "%s: %s%s[", tensor->name, tensor->panel_rows ? "packed " : "",
                   variable ? variable->name : kg_dtypes[tensor->type.dtype].name);
    for (int d = 0; d < kg_lang_declared_rank(tensor); d++) {
        kg_text_add(text, d ? ", " : "");
        kg_lang_print_expr(text, kg_lang_declared_dim(tensor, d));
    }
    kg_text_add(text, "]");
}
