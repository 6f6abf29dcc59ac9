// Queries about expressions that several files of this layer use.

#include "analyze/analyze.h"

#include <string.h>

static void mark(const struct kg_expr *expr, bool used[KG_MAX_INDICES], bool bound[KG_MAX_INDICES])
{
    if (expr->kind == KG_EXPR_INDEX)
        used[expr->index->id] = true;
    for (int i = 0; i < expr->argument_count; i++)
        mark(expr->arguments[i], used, bound);
    if (expr->kind == KG_EXPR_READ && expr->pad)
        mark(expr->pad, used, bound);
    if (expr->kind != KG_EXPR_REDUCE)
        return;
    for (int i = 0; i < expr->index_count; i++) {
        bound[expr->indices[i]->id] = true;
        if (expr->indices[i]->bound)
            mark(expr->indices[i]->bound, used, bound);
    }
}

// Are two optional expressions both absent, or both present and equal?
static bool equal_or_null(const struct kg_expr *a, const struct kg_expr *b)
{
    return a && b ? kg_analyze_equal(a, b) : a == b;
}

static bool equal_index(const struct kg_index *a, const struct kg_index *b)
{
    return a->id == b->id && a->relation == b->relation && equal_or_null(a->begin, b->begin) &&
           equal_or_null(a->end, b->end) && equal_or_null(a->bound, b->bound);
}

static bool equal_node(const struct kg_expr *a, const struct kg_expr *b)
{
    switch (a->kind) {
    case KG_EXPR_NUMBER: // bitwise, so that nan equals nan and 0 differs from -0
        return a->is_integer == b->is_integer && a->integer == b->integer &&
               memcmp(&a->number, &b->number, sizeof a->number) == 0;
    case KG_EXPR_SIZE:
        return a->size == b->size;
    case KG_EXPR_INDEX:
        return a->index->id == b->index->id;
    case KG_EXPR_READ:
        return a->tensor == b->tensor && equal_or_null(a->pad, b->pad);
    case KG_EXPR_CALL:
        return a->function == b->function;
    case KG_EXPR_CAST:
        return a->cast.variable == b->cast.variable && a->cast.dtype == b->cast.dtype;
    case KG_EXPR_REDUCE:
        if (a->reduce != b->reduce || a->index_count != b->index_count)
            return false;
        for (int i = 0; i < a->index_count; i++)
            if (!equal_index(a->indices[i], b->indices[i]))
                return false;
        return true;
    }
    return false;
}

void kg_analyze_used(const struct kg_expr *expr, bool used[KG_MAX_INDICES])
{
    bool bound[KG_MAX_INDICES] = {false};
    mark(expr, used, bound);
    for (int i = 0; i < KG_MAX_INDICES; i++)
        used[i] = used[i] && !bound[i];
}

bool kg_analyze_reads(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ || expr->kind == KG_EXPR_REDUCE)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (kg_analyze_reads(expr->arguments[i]))
            return true;
    return false;
}

bool kg_analyze_equal(const struct kg_expr *a, const struct kg_expr *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->type != b->type || a->argument_count != b->argument_count ||
        !equal_node(a, b))
        return false;
    for (int i = 0; i < a->argument_count; i++)
        if (!kg_analyze_equal(a->arguments[i], b->arguments[i]))
            return false;
    return true;
}

void kg_nest_print(struct kg_text *text, const struct kg_nest *nest)
{
    struct kg_statement statement = {.tensor = nest->output, .index_count = nest->output_axes};
    memcpy(statement.indices, nest->axes, (size_t)nest->output_axes * sizeof *nest->axes);
    const struct kg_index *reduced[KG_MAX_INDICES];
    memcpy(reduced, nest->axes + nest->output_axes,
           (size_t)(nest->axis_count - nest->output_axes) * sizeof *reduced);
    const struct kg_expr *body = nest->body;
    struct kg_expr reduce = {.kind = KG_EXPR_REDUCE,
                             .type = body->type,
                             .reduce = nest->reduce,
                             .indices = reduced,
                             .index_count = nest->axis_count - nest->output_axes,
                             .arguments = &body,
                             .argument_count = 1};
    statement.value = nest->has_reduce ? &reduce : body;
    kg_lang_print_statement(text, &statement);
}
