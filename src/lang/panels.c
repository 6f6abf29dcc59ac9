// See panels.h. The formulas are written once, in `terms`: the checker builds expressions from that
// table, and reads are recognised by it.

#include "lang/panels.h"

#include "lang/check.h"

#include <string.h>

// Place of a code in its panel: a sum of terms, each of the row or of the column, in this order.
struct term {
    bool of_column;
    int count;
    struct {
        enum kg_function function;
        int64_t number;
    } steps[3];
};

// Lane n%16/2*4 + k%8/2 of the warp, word k%64/16 of its four, and the nibble of the word.
static const struct term terms[] = {
    {true, 3, {{KG_FN_MOD, KG_PANEL_COLUMNS}, {KG_FN_DIV, 2}, {KG_FN_MUL, 128}}},
    {false, 3, {{KG_FN_MOD, 8}, {KG_FN_DIV, 2}, {KG_FN_MUL, 32}}},
    {false, 3, {{KG_FN_MOD, KG_PANEL_ROWS}, {KG_FN_DIV, 16}, {KG_FN_MUL, 8}}},
    {false, 2, {{KG_FN_MOD, 2}, {KG_FN_MUL, 4}}},
    {false, 3, {{KG_FN_MOD, 16}, {KG_FN_DIV, 8}, {KG_FN_MUL, 2}}},
    {true, 1, {{KG_FN_MOD, 2}}},
};
#define TERMS ((int)(sizeof terms / sizeof terms[0]))

int kg_lang_declared_rank(const struct kg_tensor *tensor)
{
    return tensor->panel_rows ? tensor->rank - 1 : tensor->rank;
}

const struct kg_expr *kg_lang_declared_dim(const struct kg_tensor *tensor, int dimension)
{
    int rows = tensor->rank - 3;
    if (!tensor->panel_rows || dimension < rows)
        return tensor->dims[dimension];
    return dimension == rows ? tensor->panel_rows : tensor->panel_columns;
}

// ---- Building

static const struct kg_expr *number(struct kg_lang_job *job, struct kg_span span, int64_t value)
{
    struct kg_expr *expr = KG_LANG_NEW(job, struct kg_expr);
    expr->kind = KG_EXPR_NUMBER;
    expr->span = span;
    expr->is_integer = true;
    expr->integer = value;
    expr->number = (double)value;
    return expr;
}

static const struct kg_expr *call(struct kg_lang_job *job, enum kg_function function,
                                  const struct kg_expr *left, const struct kg_expr *right)
{
    struct kg_expr *expr = KG_LANG_NEW(job, struct kg_expr);
    expr->kind = KG_EXPR_CALL;
    expr->span = left->span;
    expr->function = function;
    expr->argument_count = 2;
    expr->arguments = KG_LANG_NEW_ARRAY(job, 2, const struct kg_expr *);
    expr->arguments[0] = left;
    expr->arguments[1] = right;
    return expr;
}

static const struct kg_expr *by_number(struct kg_lang_job *job, enum kg_function function,
                                       const struct kg_expr *left, int64_t value)
{
    return call(job, function, left, number(job, left->span, value));
}

static const struct kg_expr *place_in_panel(struct kg_lang_job *job, const struct kg_expr *row,
                                            const struct kg_expr *column)
{
    const struct kg_expr *sum = NULL;
    for (int t = 0; t < TERMS; t++) {
        const struct kg_expr *term = terms[t].of_column ? column : row;
        for (int s = 0; s < terms[t].count; s++)
            term = by_number(job, terms[t].steps[s].function, term, terms[t].steps[s].number);
        sum = sum ? call(job, KG_FN_ADD, sum, term) : term;
    }
    return sum;
}

// ---- Declarations

static void check_dtype(struct kg_check *check, const struct kg_syntax_tensor *from,
                        const struct kg_tensor *tensor)
{
    const struct kg_typevar *variable = tensor->type.variable;
    int count = variable ? variable->count : 1;
    for (int i = 0; i < count; i++) {
        enum kg_dtype dtype = variable ? variable->allowed[i] : tensor->type.dtype;
        if (!kg_dtype_is_packed(dtype))
            kg_lang_fail(check->job, from->type->span,
                         "expected u4 or i4, or a variable of these: panels hold integers of four "
                         "bits",
                         "\"%s\" is packed and %s %s", tensor->name, variable ? "may be" : "is",
                         kg_dtypes[dtype].name);
    }
}

void kg_lang_declare_panels(struct kg_check *check, const struct kg_syntax_tensor *from,
                            struct kg_tensor *tensor)
{
    struct kg_lang_job *job = check->job;
    if (tensor->role != KG_ROLE_INPUT)
        kg_lang_fail(job, from->packed->span,
                     "help: write the panels out as a tensor of their own, as pack_weights of "
                     "ops/quantised.kg does",
                     "\"%s\" is an output; only an input can be packed", tensor->name);
    check_dtype(check, from, tensor);
    int rank = tensor->rank;
    if (rank < 2)
        kg_lang_fail(job, from->packed->span,
                     "expected rows and columns as the last dimensions, as in packed u4[K, N]",
                     "\"%s\" is packed and has %d dimension%s", tensor->name, rank,
                     rank == 1 ? "" : "s");
    if (rank == KG_MAX_RANK)
        kg_lang_fail(job, from->packed->span, NULL,
                     "\"%s\" is packed and has more than %d dimensions: in memory it has one more",
                     tensor->name, KG_MAX_RANK - 1);
    const struct kg_expr *rows = tensor->dims[rank - 2], *columns = tensor->dims[rank - 1];
    tensor->panel_rows = rows;
    tensor->panel_columns = columns;
    tensor->dims[rank - 2] = by_number(job, KG_FN_CEILDIV, rows, KG_PANEL_ROWS);
    tensor->dims[rank - 1] = by_number(job, KG_FN_CEILDIV, columns, KG_PANEL_COLUMNS);
    tensor->dims[rank] = number(job, columns->span, KG_PANEL_CODES);
    tensor->rank++;
}

// ---- Reads

// A gather is clamped to its dimension, which cannot be said of a part of a row's number.
static void refuse_gather(struct kg_lang_job *job, const struct kg_tensor *tensor,
                          const struct kg_expr *subscript, const struct kg_expr *part)
{
    if (part->kind == KG_EXPR_READ)
        kg_lang_fail(job, subscript->span,
                     "help: gather along the dimensions before them, or declare it without "
                     "\"packed\"",
                     "the rows and columns of \"%s\" cannot be gathered: it is packed",
                     tensor->name);
    for (int i = 0; i < part->argument_count; i++)
        refuse_gather(job, tensor, subscript, part->arguments[i]);
}

void kg_lang_read_panels(struct kg_lang_job *job, struct kg_expr *read)
{
    int count = read->argument_count;
    const struct kg_expr **arguments = KG_LANG_NEW_ARRAY(job, count + 1, const struct kg_expr *);
    const struct kg_expr *row = read->arguments[count - 2], *column = read->arguments[count - 1];
    refuse_gather(job, read->tensor, row, row);
    refuse_gather(job, read->tensor, column, column);
    memcpy(arguments, read->arguments, (size_t)count * sizeof *arguments);
    arguments[count - 2] = by_number(job, KG_FN_DIV, row, KG_PANEL_ROWS);
    arguments[count - 1] = by_number(job, KG_FN_DIV, column, KG_PANEL_COLUMNS);
    arguments[count] = place_in_panel(job, row, column);
    read->arguments = arguments;
    read->argument_count = count + 1;
}

// The left side of a call with this number on the right; NULL: it is another expression.
static const struct kg_expr *left_of(const struct kg_expr *expr, enum kg_function function,
                                     int64_t value)
{
    if (expr->kind != KG_EXPR_CALL || expr->function != function || expr->argument_count != 2)
        return NULL;
    const struct kg_expr *right = expr->arguments[1];
    bool is_value = right->kind == KG_EXPR_NUMBER && right->is_integer && right->integer == value;
    return is_value ? expr->arguments[0] : NULL;
}

static bool same_subscript(const struct kg_expr *one, const struct kg_expr *other)
{
    if (one == other)
        return true;
    if (one->kind != other->kind || one->argument_count != other->argument_count ||
        one->size != other->size || one->index != other->index)
        return false;
    if (one->kind == KG_EXPR_NUMBER)
        return one->integer == other->integer;
    if (one->kind != KG_EXPR_CALL)
        return one->kind == KG_EXPR_SIZE || one->kind == KG_EXPR_INDEX;
    if (one->function != other->function)
        return false;
    for (int i = 0; i < one->argument_count; i++)
        if (!same_subscript(one->arguments[i], other->arguments[i]))
            return false;
    return true;
}

static bool is_term(const struct term *term, const struct kg_expr *expr, const struct kg_expr *row,
                    const struct kg_expr *column)
{
    for (int s = term->count - 1; s >= 0 && expr; s--)
        expr = left_of(expr, term->steps[s].function, term->steps[s].number);
    return expr && same_subscript(expr, term->of_column ? column : row);
}

static bool is_place(const struct kg_expr *sum, const struct kg_expr *row,
                     const struct kg_expr *column)
{
    for (int t = TERMS - 1; t > 0; t--) {
        if (sum->kind != KG_EXPR_CALL || sum->function != KG_FN_ADD ||
            !is_term(&terms[t], sum->arguments[1], row, column))
            return false;
        sum = sum->arguments[0];
    }
    return is_term(&terms[0], sum, row, column);
}

bool kg_lang_reads_panels(const struct kg_expr *read, const struct kg_expr **row,
                          const struct kg_expr **column)
{
    const struct kg_expr *const *last = read->arguments + read->argument_count - 1;
    if (read->argument_count < 3)
        return false;
    *row = left_of(last[-2], KG_FN_DIV, KG_PANEL_ROWS);
    *column = left_of(last[-1], KG_FN_DIV, KG_PANEL_COLUMNS);
    return *row && *column && is_place(*last, *row, *column);
}

bool kg_lang_declared_subscripts(const struct kg_expr *read,
                                 const struct kg_expr *subscripts[KG_MAX_RANK])
{
    int last = read->argument_count - 1;
    memcpy(subscripts, read->arguments, (size_t)read->argument_count * sizeof *subscripts);
    return !read->tensor->panel_rows ||
           kg_lang_reads_panels(read, &subscripts[last - 2], &subscripts[last - 1]);
}
