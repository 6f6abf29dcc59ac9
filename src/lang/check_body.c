// The checker, second half: statements and their expressions. Ranges of indices are inferred here:
// an index used bare as a subscript runs over that dimension; the first such use counts. Whether
// every read stays inside its tensor is known only when sizes are, and checked then.

#include "lang/check.h"
#include "lang/lang.h"
#include "lang/panels.h"
#include "lang/words.h"

#include <string.h>

// One statement: all its indices, and those visible at the current place (inner ones last).
struct scope {
    struct kg_check *check;
    const struct kg_syntax_statement *statement;
    int index_count;
    struct kg_index *indices[KG_MAX_INDICES];
    int visible_count;
    struct kg_index *visible[KG_MAX_INDICES];
    int subscripts; // nesting of subscripts and bounds, where quotients are meant to be rounded
    const struct kg_node *read;      // whose subscripts are being read; NULL: none
    const struct kg_binder *opening; // indices of the reduction whose bounds are being read
};

static struct kg_expr *build(struct scope *scope, const struct kg_node *node);

static struct kg_expr *new_expr(struct scope *scope, const struct kg_node *node,
                                enum kg_expr_kind kind)
{
    struct kg_expr *expr = KG_LANG_NEW(scope->check->job, struct kg_expr);
    expr->kind = kind;
    expr->span = node->span;
    return expr;
}

// Gives `expr` the nodes from `first` on as arguments.
static void build_arguments(struct scope *scope, struct kg_expr *expr, const struct kg_node *first,
                            int count)
{
    expr->argument_count = count;
    expr->arguments = KG_LANG_NEW_ARRAY(scope->check->job, count, const struct kg_expr *);
    for (int i = 0; i < count; i++, first = first->next)
        expr->arguments[i] = build(scope, first);
}

static struct kg_index *find_index(const struct scope *scope, const char *name)
{
    for (int i = scope->visible_count - 1; i >= 0; i--)
        if (strcmp(scope->visible[i]->name, name) == 0)
            return scope->visible[i];
    return NULL;
}

static struct kg_index *new_index(struct scope *scope, const struct kg_binder *binder)
{
    struct kg_lang_job *job = scope->check->job;
    const struct kg_token *name = binder->name;
    kg_lang_check_name(job, name, "an index");
    if (kg_lang_find_size(scope->check->op, name->text) ||
        kg_lang_find_typevar(scope->check->op, name->text))
        kg_lang_fail(job, name->span, "help: choose another name",
                     "an index cannot be called \"%s\": it is a size, a param or a type variable",
                     name->text);
    if (scope->index_count == KG_MAX_INDICES)
        kg_lang_fail(job, name->span, "help: compute a part of it in a statement of its own",
                     "more than %d indices in one statement", KG_MAX_INDICES);
    struct kg_index *index = KG_LANG_NEW(job, struct kg_index);
    index->name = name->text;
    index->span = name->span;
    index->id = scope->index_count;
    if (binder->end) {
        index->written = true;
        index->begin = kg_lang_check_size(scope->check, binder->begin);
        index->end = kg_lang_check_size(scope->check, binder->end);
        if (index->begin->kind == KG_EXPR_NUMBER && index->begin->integer == 0)
            index->begin = NULL;
    }
    scope->indices[scope->index_count++] = index;
    return index;
}

static const char *shape_text(struct scope *scope, const struct kg_tensor *tensor)
{
    struct kg_text text = {0};
    kg_text_format(&text, "help: it is %s[", tensor->name);
    for (int i = 0; i < kg_lang_declared_rank(tensor); i++) {
        kg_text_add(&text, i ? ", " : "");
        kg_lang_print_expr(&text, kg_lang_declared_dim(tensor, i));
    }
    kg_text_add(&text, "]");
    const char *copy = kg_lang_format(scope->check->job, "%s", kg_text_string(&text));
    kg_text_free(&text);
    return copy;
}

_Noreturn static void fail_name(struct scope *scope, const struct kg_node *node)
{
    struct kg_check *check = scope->check;
    const char *name = node->token->text;
    const struct kg_tensor *tensor = kg_lang_find_tensor(check->op, name);
    if (tensor)
        kg_lang_fail(check->job, node->span, shape_text(scope, tensor),
                     "\"%s\" is a tensor; its elements are read with subscripts", name);
    for (int i = 0; i < scope->index_count; i++)
        if (strcmp(scope->indices[i]->name, name) == 0)
            kg_lang_fail(check->job, node->span,
                         "help: a reduction binds the product behind it; put parentheses around "
                         "all that belongs to it",
                         "\"%s\" is not known here: its reduction has ended", name);
    const char *names[KG_MAX_SIZES + KG_MAX_INDICES + KG_MAX_TENSORS + 8];
    size_t count = 0;
    for (int i = 0; i < scope->visible_count; i++)
        names[count++] = scope->visible[i]->name;
    if (scope->read)
        kg_lang_fail(
            check->job, node->span,
            kg_lang_suggest(check->job, name, names, count,
                            kg_lang_advise_reduction(check, scope->statement, scope->read, name)),
            "\"%s\" is not an index of the left side, nor of a reduction", name);
    for (int i = 0; i < check->op->size_count; i++)
        names[count++] = check->op->sizes[i]->name;
    for (int i = 0; i < check->op->tensor_count; i++)
        names[count++] = check->op->tensors[i]->name;
    for (const struct kg_constant *constant = kg_constants; constant->name; constant++)
        names[count++] = constant->name;
    const char *foreign = kg_lang_foreign(check->job, KG_FOREIGN_VALUE, name, NULL);
    kg_lang_fail(check->job, node->span,
                 foreign
                     ? foreign
                     : kg_lang_suggest(check->job, name, names, count,
                                       "expected an index in scope, a size, a param or a number"),
                 "unknown name \"%s\"", name);
}

static struct kg_expr *build_name(struct scope *scope, const struct kg_node *node)
{
    const char *name = node->token->text;
    for (const struct kg_constant *constant = kg_constants; constant->name; constant++)
        if (strcmp(constant->name, name) == 0) {
            struct kg_expr *expr = new_expr(scope, node, KG_EXPR_NUMBER);
            expr->number = constant->value;
            expr->is_integer = constant->is_bool;
            expr->integer = constant->is_bool && constant->value != 0;
            expr->type = constant->is_bool ? KG_TYPE_BOOL : KG_TYPE_NONE;
            return expr;
        }
    for (const struct kg_binder *b = scope->opening; b; b = b->next)
        if (strcmp(b->name->text, name) == 0)
            kg_lang_fail(scope->check->job, node->span,
                         "help: nest two reductions, as in sum(i) sum(j <= i) x[i, j]",
                         "\"%s\" is bound by the same reduction", name);
    const struct kg_index *index = find_index(scope, name);
    const struct kg_size *size = kg_lang_find_size(scope->check->op, name);
    if (!index && !size)
        fail_name(scope, node);
    struct kg_expr *expr = new_expr(scope, node, index ? KG_EXPR_INDEX : KG_EXPR_SIZE);
    expr->index = index;
    expr->size = index ? NULL : size;
    return expr;
}

static struct kg_expr *build_number(struct scope *scope, const struct kg_node *node)
{
    struct kg_expr *expr = new_expr(scope, node, KG_EXPR_NUMBER);
    expr->is_integer = node->token->kind == KG_TOKEN_INTEGER;
    expr->integer = node->token->integer;
    expr->number = node->token->number;
    return expr;
}

// True when nothing in it varies from element to element.
static bool is_constant(const struct kg_expr *expr)
{
    if (expr->kind != KG_EXPR_NUMBER && expr->kind != KG_EXPR_SIZE && expr->kind != KG_EXPR_CALL)
        return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!is_constant(expr->arguments[i]))
            return false;
    return true;
}

_Noreturn static void fail_subscript(struct scope *scope, const struct kg_expr *expr)
{
    kg_lang_fail(scope->check->job, expr->span,
                 "expected indices, sizes and integers with + - * / %, or an element of an integer "
                 "tensor",
                 "this cannot stand in a subscript");
}

// A subscript, or with `reads` false the bound of a relation.
static void check_subscript(struct scope *scope, const struct kg_expr *expr, bool reads)
{
    struct kg_lang_job *job = scope->check->job;
    if (expr->kind == KG_EXPR_READ && reads)
        return; // its own subscripts were checked when it was built
    if (expr->kind == KG_EXPR_INDEX || (expr->kind == KG_EXPR_SIZE && !expr->size->is_real) ||
        (expr->kind == KG_EXPR_NUMBER && expr->is_integer && expr->type != KG_TYPE_BOOL))
        return;
    if (expr->kind != KG_EXPR_CALL)
        fail_subscript(scope, expr);
    for (int i = 0; i < expr->argument_count; i++)
        check_subscript(scope, expr->arguments[i], reads);
    const struct kg_expr *last = expr->arguments[expr->argument_count - 1];
    switch (expr->function) {
    case KG_FN_ADD:
    case KG_FN_SUB:
    case KG_FN_NEG:
        return;
    case KG_FN_MUL:
        if (!is_constant(expr->arguments[0]) && !is_constant(last))
            kg_lang_fail(job, expr->span, "expected a size, a param or an integer on one side",
                         "a subscript multiplies two things that vary");
        return;
    case KG_FN_DIV:
    case KG_FN_MOD:
        if (!is_constant(last))
            kg_lang_fail(job, last->span, "expected a size, a param or an integer",
                         "a subscript divides by something that varies");
        return;
    default:
        fail_subscript(scope, expr);
    }
}

_Noreturn static void fail_tensor(struct scope *scope, const struct kg_node *node)
{
    struct kg_check *check = scope->check;
    const char *name = node->token->text;
    if (strcmp(name, scope->statement->name->text) == 0)
        kg_lang_fail(check->job, node->span,
                     "help: running results are scans, as in y[i] = sum(j <= i) x[j]",
                     "\"%s\" is read by the statement that defines it", name);
    const struct kg_syntax_statement *later = scope->statement->next;
    for (; later; later = later->next)
        if (strcmp(later->name->text, name) == 0)
            kg_lang_fail(check->job, node->span, "help: move its definition up",
                         "\"%s\" is read before it is defined, on line %d", name,
                         later->name->span.line);
    const char *names[KG_MAX_TENSORS];
    size_t count = 0;
    for (int i = 0; i < check->op->tensor_count; i++)
        if (check->op->tensors[i]->role == KG_ROLE_INPUT || check->defined[i])
            names[count++] = check->op->tensors[i]->name;
    kg_lang_fail(check->job, node->token->span,
                 kg_lang_suggest(check->job, name, names, count,
                                 "expected an input or a tensor defined above"),
                 "unknown tensor \"%s\"", name);
}

static struct kg_expr *build_read(struct scope *scope, const struct kg_node *node)
{
    struct kg_check *check = scope->check;
    const struct kg_tensor *tensor = kg_lang_find_tensor(check->op, node->token->text);
    if (!tensor || (tensor->role != KG_ROLE_INPUT && !check->defined[tensor->id]))
        fail_tensor(scope, node);
    int rank = kg_lang_declared_rank(tensor);
    if (node->argument_count != rank)
        kg_lang_fail(check->job, node->span, shape_text(scope, tensor),
                     "\"%s\" has %d dimension%s and is read with %d subscript%s", tensor->name,
                     rank, rank == 1 ? "" : "s", node->argument_count,
                     node->argument_count == 1 ? "" : "s");
    struct kg_expr *expr = new_expr(scope, node, KG_EXPR_READ);
    expr->tensor = tensor;
    const struct kg_node *outer = scope->read;
    scope->subscripts++;
    scope->read = node;
    build_arguments(scope, expr, node->arguments, node->argument_count);
    scope->subscripts--;
    scope->read = outer;
    for (int i = 0; i < rank; i++) {
        const struct kg_expr *subscript = expr->arguments[i];
        check_subscript(scope, subscript, true);
        if (subscript->kind == KG_EXPR_INDEX && !subscript->index->end)
            scope->indices[subscript->index->id]->end = kg_lang_declared_dim(tensor, i);
    }
    if (tensor->panel_rows)
        kg_lang_read_panels(check->job, expr);
    return expr;
}

static struct kg_expr *build_cast(struct scope *scope, const struct kg_node *node)
{
    const struct kg_node *type = node->arguments;
    if (node->argument_count != 2 || type->kind != KG_NODE_NAME)
        kg_lang_fail(scope->check->job, node->span, "expected cast(f32, value)",
                     "cast() takes a dtype and a value");
    struct kg_expr *expr = new_expr(scope, node, KG_EXPR_CAST);
    expr->cast = kg_lang_check_type(scope->check, type->token);
    build_arguments(scope, expr, type->next, 1);
    return expr;
}

static struct kg_expr *build_pad(struct scope *scope, const struct kg_node *node)
{
    const struct kg_node *read = node->arguments;
    if (node->argument_count != 2 || read->kind != KG_NODE_READ)
        kg_lang_fail(scope->check->job, node->span,
                     "expected pad(x[...], value): a read, and what it gives outside its tensor",
                     "pad() takes a read and a value");
    struct kg_expr *expr = build_read(scope, read);
    if (expr->tensor->panel_rows)
        kg_lang_fail(
            scope->check->job, node->span,
            "help: let the indices stay inside its rows and columns, or declare it without "
            "\"packed\"",
            "\"%s\" is packed and cannot be read with pad(): its last panels reach beyond "
            "its rows and columns",
            expr->tensor->name);
    expr->pad = build(scope, read->next);
    expr->span = node->span;
    return expr;
}

// 1/D of two integers is 0 for every D above 1: never what was meant.
static void check_fraction(struct scope *scope, const struct kg_expr *expr)
{
    const struct kg_expr *top = expr->arguments[0], *bottom = expr->arguments[1];
    if (top->kind == KG_EXPR_CALL && top->function == KG_FN_NEG)
        top = top->arguments[0];
    if (top->kind != KG_EXPR_NUMBER || !top->is_integer)
        return;
    bool exact = bottom->kind == KG_EXPR_NUMBER && bottom->integer != 0 &&
                 top->integer % bottom->integer == 0;
    bool integers = (bottom->kind == KG_EXPR_NUMBER && bottom->is_integer) ||
                    (bottom->kind == KG_EXPR_SIZE && !bottom->size->is_real);
    if (integers && !exact)
        kg_lang_fail(scope->check->job, expr->span,
                     kg_lang_format(scope->check->job, "help: write %lld.0 for a fraction",
                                    (long long)top->integer),
                     "the quotient of two integers is rounded down");
}

_Noreturn static void fail_function(struct scope *scope, const struct kg_node *node)
{
    struct kg_lang_job *job = scope->check->job;
    const char *name = node->token->text;
    struct kg_foreign_names at_hand;
    kg_lang_names_at_hand(scope->check, scope->statement, node, &at_hand);
    const char *advice = kg_lang_foreign(job, KG_FOREIGN_FUNCTION, name, &at_hand);
    if (!advice && node->argument_count == 1 && at_hand.arguments[0])
        advice = kg_lang_foreign_type(job, name, "help: write cast(",
                                      kg_lang_format(job, ", %s)", at_hand.arguments[0]));
    const char *names[KG_FUNCTION_COUNT + KG_REDUCE_COUNT + KG_MAX_FUNCTIONS + 2] = {"cast", "pad"};
    size_t count = 2;
    for (const struct kg_syntax_function *f = scope->check->file->functions; f; f = f->next)
        names[count++] = f->name->text;
    for (int i = 0; i < KG_FUNCTION_COUNT; i++)
        if (!kg_functions[i].is_operator)
            names[count++] = kg_functions[i].name;
    for (int i = 0; i < KG_REDUCE_COUNT; i++)
        names[count++] = kg_reduces[i].name;
    const char *otherwise = kg_lang_find_tensor(scope->check->op, name)
                                ? "help: a tensor is read with brackets, as in x[i]"
                                : NULL;
    kg_lang_fail(job, node->token->span,
                 advice ? advice : kg_lang_suggest(job, name, names, count, otherwise),
                 "unknown function \"%s\"", name);
}

void kg_lang_check_arity(struct kg_lang_job *job, const struct kg_node *call,
                         enum kg_function function)
{
    int arity = kg_functions[function].arity;
    if (call->argument_count != arity)
        kg_lang_fail(job, call->span, NULL, "%s() takes %d argument%s, not %d",
                     kg_functions[function].name, arity, arity == 1 ? "" : "s",
                     call->argument_count);
}

static struct kg_expr *build_call(struct scope *scope, const struct kg_node *node)
{
    const char *name = node->token->text;
    if (strcmp(name, "cast") == 0)
        return build_cast(scope, node);
    if (strcmp(name, "pad") == 0)
        return build_pad(scope, node);
    enum kg_function function = kg_function_find(name, strlen(name));
    if (function == KG_FUNCTION_COUNT)
        fail_function(scope, node);
    kg_lang_check_arity(scope->check->job, node, function);
    struct kg_expr *expr = new_expr(scope, node, KG_EXPR_CALL);
    expr->function = function;
    build_arguments(scope, expr, node->arguments, node->argument_count);
    return expr;
}

static void check_bound(struct scope *scope, const struct kg_node *node, struct kg_index *index,
                        const struct kg_binder *binder)
{
    scope->opening = node->binders;
    scope->subscripts++;
    struct kg_expr *bound = build(scope, binder->bound);
    scope->subscripts--;
    scope->opening = NULL;
    if (bound->kind == KG_EXPR_READ)
        kg_lang_fail(scope->check->job, bound->span,
                     "help: reduce where(j < n[b], ..., 0) over the whole range",
                     "the bound of a reduction cannot be read from a tensor");
    check_subscript(scope, bound, false);
    index->relation = binder->relation;
    index->bound = bound;
}

static struct kg_expr *build_reduction(struct scope *scope, const struct kg_node *node)
{
    struct kg_lang_job *job = scope->check->job;
    struct kg_expr *expr = new_expr(scope, node, KG_EXPR_REDUCE);
    expr->reduce = node->reduce;
    for (const struct kg_binder *b = node->binders; b; b = b->next)
        expr->index_count++;
    if (expr->index_count > KG_MAX_INDICES)
        kg_lang_fail(job, node->token->span, NULL, "more than %d indices in one statement",
                     KG_MAX_INDICES);
    expr->indices = KG_LANG_NEW_ARRAY(job, expr->index_count, const struct kg_index *);
    int outer = scope->visible_count, first = scope->index_count, count = 0;
    for (const struct kg_binder *b = node->binders; b; b = b->next) {
        for (int i = 0; i < count; i++)
            if (strcmp(expr->indices[i]->name, b->name->text) == 0)
                kg_lang_fail(job, b->name->span, NULL, "\"%s\" twice", b->name->text);
        struct kg_index *index = new_index(scope, b);
        expr->indices[count++] = index;
        if (b->relation != KG_RELATION_NONE)
            check_bound(scope, node, index, b);
    }
    for (int i = 0; i < count; i++)
        scope->visible[scope->visible_count++] = scope->indices[first + i];
    build_arguments(scope, expr, node->arguments, 1);
    scope->visible_count = outer;
    return expr;
}

static struct kg_expr *build(struct scope *scope, const struct kg_node *node)
{
    switch (node->kind) {
    case KG_NODE_NUMBER:
        return build_number(scope, node);
    case KG_NODE_NAME:
        return build_name(scope, node);
    case KG_NODE_READ:
        return build_read(scope, node);
    case KG_NODE_CALL:
        return build_call(scope, node);
    case KG_NODE_REDUCE:
        return build_reduction(scope, node);
    case KG_NODE_UNARY:
    case KG_NODE_BINARY:
        break;
    }
    struct kg_expr *expr = new_expr(scope, node, KG_EXPR_CALL);
    expr->function = node->function;
    build_arguments(scope, expr, node->arguments, node->argument_count);
    bool divides = expr->function == KG_FN_DIV || expr->function == KG_FN_MOD;
    const struct kg_expr *divisor = expr->arguments[expr->argument_count - 1];
    if (divides && divisor->kind == KG_EXPR_NUMBER && divisor->is_integer && divisor->integer == 0)
        kg_lang_fail(scope->check->job, divisor->span, NULL, "division by zero");
    if (expr->function == KG_FN_DIV && scope->subscripts == 0)
        check_fraction(scope, expr);
    return expr;
}

// The tensor a statement defines: an output, or a new intermediate.
static struct kg_tensor *open_tensor(struct kg_check *check,
                                     const struct kg_syntax_statement *statement, int rank)
{
    struct kg_op *op = check->op;
    const struct kg_token *name = statement->name;
    struct kg_tensor *tensor = kg_lang_find_tensor(op, name->text);
    if (tensor && tensor->role == KG_ROLE_INPUT)
        kg_lang_fail(check->job, name->span, "expected an output or a new name",
                     "\"%s\" is an input and cannot be defined", name->text);
    if (tensor && check->defined[tensor->id])
        kg_lang_fail(check->job, name->span, "help: choose another name",
                     "\"%s\" is already defined on line %d", name->text,
                     check->place[tensor->id].line);
    if (tensor && tensor->rank != rank)
        kg_lang_fail(check->job, statement->span, NULL,
                     "\"%s\" has %d dimension%s and is defined with %d", name->text, tensor->rank,
                     tensor->rank == 1 ? "" : "s", rank);
    if (tensor)
        return tensor;
    kg_lang_check_name(check->job, name, "a tensor");
    if (kg_lang_find_size(op, name->text) || kg_lang_find_typevar(op, name->text))
        kg_lang_fail(check->job, name->span, "help: choose another name",
                     "\"%s\" is already the name of a size, a param or a type variable",
                     name->text);
    if (op->tensor_count == KG_MAX_TENSORS)
        kg_lang_fail(check->job, name->span, NULL, "more than %d tensors in one op",
                     KG_MAX_TENSORS);
    tensor = KG_LANG_NEW(check->job, struct kg_tensor);
    tensor->name = name->text;
    tensor->span = name->span;
    tensor->role = KG_ROLE_LOCAL;
    tensor->rank = rank;
    return tensor;
}

// Indices nothing was read with bare: a relation to another index tells the range as well.
static void close_ranges(struct scope *scope)
{
    for (int i = 0; i < scope->index_count; i++) {
        struct kg_index *index = scope->indices[i];
        if (!index->end && index->bound && index->bound->kind == KG_EXPR_INDEX) {
            index->begin = index->bound->index->begin;
            index->end = index->bound->index->end;
        }
        if (!index->end)
            kg_lang_fail(scope->check->job, index->span,
                         kg_lang_format(scope->check->job,
                                        "help: write the range, as in \"%s in 0..N\", or use %s "
                                        "alone as a subscript",
                                        index->name, index->name),
                         "nothing tells the range of \"%s\"", index->name);
    }
}

static void open_indices(struct scope *scope, struct kg_statement *statement,
                         struct kg_tensor *tensor)
{
    struct kg_lang_job *job = scope->check->job;
    for (const struct kg_binder *b = scope->statement->indices; b; b = b->next) {
        if (find_index(scope, b->name->text))
            kg_lang_fail(job, b->name->span, NULL, "\"%s\" twice on the left", b->name->text);
        if (b->end && tensor->role == KG_ROLE_OUTPUT)
            kg_lang_fail(job, b->name->span, "expected a plain index name",
                         "the range of \"%s\" is the output's dimension", b->name->text);
        struct kg_index *index = new_index(scope, b);
        if (index->begin)
            kg_lang_fail(job, index->begin->span, "expected 0", "a tensor begins at 0");
        if (tensor->role == KG_ROLE_OUTPUT)
            index->end = tensor->dims[statement->index_count];
        scope->visible[scope->visible_count++] = index;
        statement->indices[statement->index_count++] = index;
    }
}

static void check_statement(struct kg_check *check, const struct kg_syntax_statement *from)
{
    struct kg_op *op = check->op;
    struct scope scope = {.check = check, .statement = from};
    int rank = 0;
    for (const struct kg_binder *b = from->indices; b; b = b->next)
        if (++rank > KG_MAX_RANK)
            kg_lang_fail(check->job, b->name->span, NULL, "\"%s\" has more than %d dimensions",
                         from->name->text, KG_MAX_RANK);
    struct kg_tensor *tensor = open_tensor(check, from, rank);
    struct kg_statement *statement = KG_LANG_NEW(check->job, struct kg_statement);
    statement->span = from->span;
    statement->tensor = tensor;
    open_indices(&scope, statement, tensor);
    statement->value = build(&scope, from->value);
    close_ranges(&scope);
    if (tensor->role == KG_ROLE_LOCAL) {
        for (int i = 0; i < rank; i++)
            tensor->dims[i] = statement->indices[i]->end;
        tensor->id = op->tensor_count;
        op->tensors[op->tensor_count++] = tensor;
    }
    check->defined[tensor->id] = true;
    check->place[tensor->id] = from->name->span;
    op->statements[op->statement_count++] = statement;
}

void kg_lang_check_body(struct kg_check *check)
{
    for (const struct kg_syntax_statement *s = check->syntax->statements; s; s = s->next)
        check_statement(check, s);
    const struct kg_op *op = check->op;
    for (int i = op->input_count; i < op->input_count + op->output_count; i++)
        if (!check->defined[i])
            kg_lang_fail(check->job, op->tensors[i]->span,
                         kg_lang_format(check->job, "expected a statement %s[...] = ...",
                                        op->tensors[i]->name),
                         "the output \"%s\" is never defined", op->tensors[i]->name);
}
