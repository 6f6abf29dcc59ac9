// The checker, first half: signatures, `where` and `param` clauses, size expressions, goals.

#include "lang/check.h"

#include "lang/words.h"

#include <string.h>

#define MAX_SIZE ((int64_t)1 << 48)

struct kg_size *kg_lang_find_size(const struct kg_op *op, const char *name)
{
    for (int i = 0; i < op->size_count; i++)
        if (strcmp(op->sizes[i]->name, name) == 0)
            return op->sizes[i];
    return NULL;
}

struct kg_tensor *kg_lang_find_tensor(const struct kg_op *op, const char *name)
{
    for (int i = 0; i < op->tensor_count; i++)
        if (strcmp(op->tensors[i]->name, name) == 0)
            return op->tensors[i];
    return NULL;
}

struct kg_typevar *kg_lang_find_typevar(const struct kg_op *op, const char *name)
{
    for (int i = 0; i < op->typevar_count; i++)
        if (strcmp(op->typevars[i]->name, name) == 0)
            return op->typevars[i];
    return NULL;
}

void kg_lang_check_name(struct kg_lang_job *job, const struct kg_token *name, const char *what)
{
    const char *reason = kg_lang_reserved(name->text);
    if (reason)
        kg_lang_fail(job, name->span, "help: choose another name", "%s cannot be called \"%s\": %s",
                     what, name->text, reason);
}

// Sizes, params, type variables and tensors share one space of names.
static void declare(struct kg_check *check, const struct kg_token *name, const char *what)
{
    const struct kg_op *op = check->op;
    kg_lang_check_name(check->job, name, what);
    const char *other = kg_lang_find_typevar(op, name->text)  ? "a type variable"
                        : kg_lang_find_tensor(op, name->text) ? "a tensor"
                                                              : NULL;
    const struct kg_size *size = kg_lang_find_size(op, name->text);
    if (size)
        other = size->is_param ? "a param" : "a size";
    if (other)
        kg_lang_fail(check->job, name->span, "help: choose another name",
                     "\"%s\" is already the name of %s", name->text, other);
}

static void check_typevars(struct kg_check *check)
{
    struct kg_op *op = check->op;
    const struct kg_syntax_typevar *from = check->syntax->typevars;
    for (; from; from = from->next) {
        declare(check, from->name, "a type variable");
        if (op->typevar_count == KG_DTYPE_COUNT)
            kg_lang_fail(check->job, from->name->span, NULL, "more than %d type variables",
                         KG_DTYPE_COUNT);
        struct kg_typevar *variable = KG_LANG_NEW(check->job, struct kg_typevar);
        variable->name = from->name->text;
        variable->span = from->name->span;
        variable->id = op->typevar_count;
        for (int i = 0; i < from->count; i++) {
            const struct kg_token *token = from->allowed[i];
            struct kg_type_name type = kg_lang_check_type(check, token);
            if (type.variable)
                kg_lang_fail(check->job, token->span, "expected a dtype such as f16",
                             "\"%s\" is a type variable", token->text);
            for (int j = 0; j < i; j++)
                if (variable->allowed[j] == type.dtype)
                    kg_lang_fail(check->job, token->span, NULL, "\"%s\" twice", token->text);
            variable->allowed[variable->count++] = type.dtype;
        }
        op->typevars[op->typevar_count++] = variable;
    }
}

struct kg_type_name kg_lang_check_type(struct kg_check *check, const struct kg_token *token)
{
    enum kg_dtype dtype = kg_dtype_find(token->text, strlen(token->text));
    if (dtype != KG_DTYPE_COUNT)
        return (struct kg_type_name){NULL, dtype};
    const struct kg_typevar *variable = kg_lang_find_typevar(check->op, token->text);
    if (variable)
        return (struct kg_type_name){variable, variable->allowed[0]};
    const char *names[2 * KG_DTYPE_COUNT];
    size_t count = 0;
    for (int i = 0; i < KG_DTYPE_COUNT; i++)
        names[count++] = kg_dtypes[i].name;
    for (int i = 0; i < check->op->typevar_count; i++)
        names[count++] = check->op->typevars[i]->name;
    const char *otherwise = kg_lang_format(
        check->job, "expected a dtype, or a variable declared by \"where %s in f16 bf16 f32\"",
        token->text);
    const char *here =
        kg_lang_foreign_type(check->job, token->text, "help: it is called ", " here");
    if (strcmp(token->text, "packed") == 0)
        here = "expected a dtype behind it, as in packed u4[K, N]";
    kg_lang_fail(check->job, token->span,
                 here ? here : kg_lang_suggest(check->job, token->text, names, count, otherwise),
                 "unknown type \"%s\"", token->text);
}

static struct kg_size *new_size(struct kg_check *check, const struct kg_token *name)
{
    struct kg_op *op = check->op;
    if (op->size_count == KG_MAX_SIZES)
        kg_lang_fail(check->job, name->span, NULL, "more than %d sizes and params in one op",
                     KG_MAX_SIZES);
    struct kg_size *size = KG_LANG_NEW(check->job, struct kg_size);
    size->name = name->text;
    size->span = name->span;
    size->id = op->size_count;
    op->sizes[op->size_count++] = size;
    return size;
}

static const struct kg_syntax_param *find_param(const struct kg_check *check, const char *name)
{
    for (const struct kg_syntax_param *p = check->syntax->params; p; p = p->next)
        if (strcmp(p->name->text, name) == 0)
            return p;
    return NULL;
}

static void new_param(struct kg_check *check, const struct kg_syntax_param *from)
{
    declare(check, from->name, "a param");
    struct kg_size *size = new_size(check, from->name);
    const struct kg_token *value = from->value;
    size->is_param = true;
    size->is_real = value->kind == KG_TOKEN_REAL;
    size->value = from->is_negative ? -value->integer : value->integer;
    size->real = from->is_negative ? -value->number : value->number;
    if (!size->is_real && value->integer > MAX_SIZE)
        kg_lang_fail(check->job, value->span, NULL, "a param is at most 2^48");
}

// Makes the sizes (and the params) a dimension mentions, in order of appearance.
static void declare_sizes(struct kg_check *check, const struct kg_node *node)
{
    for (const struct kg_node *child = node->arguments; child; child = child->next)
        declare_sizes(check, child);
    if (node->kind != KG_NODE_NAME || kg_lang_find_size(check->op, node->token->text))
        return;
    const struct kg_syntax_param *param = find_param(check, node->token->text);
    if (param) {
        new_param(check, param);
    } else {
        declare(check, node->token, "a size");
        new_size(check, node->token);
    }
}

static void check_params(struct kg_check *check)
{
    for (const struct kg_syntax_param *p = check->syntax->params; p; p = p->next) {
        if (find_param(check, p->name->text) != p)
            kg_lang_fail(check->job, p->name->span, NULL, "a second param \"%s\"", p->name->text);
        if (!kg_lang_find_size(check->op, p->name->text))
            new_param(check, p);
    }
}

static struct kg_expr *new_size_expr(struct kg_check *check, const struct kg_node *node,
                                     enum kg_expr_kind kind)
{
    struct kg_expr *expr = KG_LANG_NEW(check->job, struct kg_expr);
    expr->kind = kind;
    expr->span = node->span;
    return expr;
}

static const struct kg_expr *check_size_call(struct kg_check *check, const struct kg_node *node,
                                             enum kg_function function, const struct kg_node *from)
{
    struct kg_expr *expr = new_size_expr(check, node, KG_EXPR_CALL);
    expr->function = function;
    expr->argument_count = 2;
    expr->arguments = KG_LANG_NEW_ARRAY(check->job, 2, const struct kg_expr *);
    expr->arguments[0] = kg_lang_check_size(check, from->arguments);
    expr->arguments[1] = kg_lang_check_size(check, from->arguments->next);
    const struct kg_expr *divisor = expr->arguments[1];
    bool divides = function == KG_FN_DIV || function == KG_FN_MOD || function == KG_FN_CEILDIV;
    if (divides && divisor->kind == KG_EXPR_NUMBER && divisor->integer == 0)
        kg_lang_fail(check->job, divisor->span, NULL, "division by zero");
    return expr;
}

static const struct kg_expr *check_size_name(struct kg_check *check, const struct kg_node *node)
{
    const struct kg_op *op = check->op;
    const char *name = node->token->text;
    const struct kg_size *size = kg_lang_find_size(op, name);
    if (!size) {
        const char *names[KG_MAX_SIZES];
        for (int i = 0; i < op->size_count; i++)
            names[i] = op->sizes[i]->name;
        kg_lang_fail(check->job, node->span,
                     kg_lang_suggest(check->job, name, names, (size_t)op->size_count,
                                     "expected a size of the signature, a param or an integer"),
                     "unknown size \"%s\"", name);
    }
    if (size->is_real)
        kg_lang_fail(check->job, node->span, "expected an integer param",
                     "\"%s\" is a real param and cannot be part of a size", name);
    struct kg_expr *expr = new_size_expr(check, node, KG_EXPR_SIZE);
    expr->size = size;
    return expr;
}

const struct kg_expr *kg_lang_check_size(struct kg_check *check, const struct kg_node *node)
{
    static const enum kg_function allowed[] = {KG_FN_ADD, KG_FN_SUB, KG_FN_MUL, KG_FN_DIV,
                                               KG_FN_MOD};
    if (node->kind == KG_NODE_NAME)
        return check_size_name(check, node);
    if (node->kind == KG_NODE_NUMBER && node->token->kind == KG_TOKEN_INTEGER) {
        struct kg_expr *expr = new_size_expr(check, node, KG_EXPR_NUMBER);
        expr->is_integer = true;
        expr->integer = node->token->integer;
        expr->number = node->token->number;
        return expr;
    }
    const struct kg_node *inner = node->arguments;
    if (node->kind == KG_NODE_CALL && strcmp(node->token->text, "ceil") == 0 &&
        node->argument_count == 1 && inner->kind == KG_NODE_BINARY && inner->function == KG_FN_DIV)
        return check_size_call(check, node, KG_FN_CEILDIV, inner);
    for (size_t i = 0; node->kind == KG_NODE_BINARY && i < sizeof allowed / sizeof allowed[0]; i++)
        if (node->function == allowed[i])
            return check_size_call(check, node, node->function, node);
    kg_lang_fail(check->job, node->span, NULL,
                 "a size is made of integers, sizes and params with + - * / %% and ceil(a/b)");
}

static void check_tensors(struct kg_check *check)
{
    struct kg_op *op = check->op;
    const struct kg_syntax_tensor *from = check->syntax->tensors;
    for (; from; from = from->next) {
        declare(check, from->name, "a tensor");
        if (op->tensor_count == KG_MAX_TENSORS)
            kg_lang_fail(check->job, from->name->span, NULL, "more than %d tensors in one op",
                         KG_MAX_TENSORS);
        struct kg_tensor *tensor = KG_LANG_NEW(check->job, struct kg_tensor);
        tensor->name = from->name->text;
        tensor->span = from->name->span;
        tensor->id = op->tensor_count;
        tensor->role = from->is_output ? KG_ROLE_OUTPUT : KG_ROLE_INPUT;
        tensor->type = kg_lang_check_type(check, from->type);
        for (const struct kg_node *dim = from->dims; dim; dim = dim->next)
            tensor->dims[tensor->rank++] = kg_lang_check_size(check, dim);
        if (from->packed)
            kg_lang_declare_panels(check, from, tensor);
        op->input_count += !from->is_output;
        op->output_count += from->is_output;
        op->tensors[op->tensor_count++] = tensor;
    }
}

static bool is_alone(const struct kg_expr *dim, const struct kg_size *size)
{
    return dim && dim->kind == KG_EXPR_SIZE && dim->size == size;
}

// Is it told by a shape? Rows and columns of a packed input are given with it where no other input
// tells them, like the sizes of a tensor of u4 that is handed over as bytes.
static bool is_bound(const struct kg_op *op, const struct kg_size *size)
{
    for (int i = 0; i < op->input_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        if (is_alone(tensor->panel_rows, size) || is_alone(tensor->panel_columns, size))
            return true;
        for (int d = 0; d < tensor->rank; d++)
            if (is_alone(tensor->dims[d], size))
                return true;
    }
    return size->is_param;
}

static void check_signature(struct kg_check *check)
{
    check_typevars(check);
    for (const struct kg_syntax_tensor *t = check->syntax->tensors; t; t = t->next)
        for (const struct kg_node *dim = t->dims; dim; dim = dim->next)
            declare_sizes(check, dim);
    check_params(check);
    check_tensors(check);
    for (int i = 0; i < check->op->size_count; i++) {
        const struct kg_size *size = check->op->sizes[i];
        if (!is_bound(check->op, size))
            kg_lang_fail(check->job, size->span,
                         kg_lang_format(check->job,
                                        "help: make it a param, \"param %s = 1\", or use it alone "
                                        "as a dimension of an input",
                                        size->name),
                         "nothing tells the size \"%s\"", size->name);
    }
}

static void check_row_sizes(struct kg_check *check, const struct kg_syntax_shapes *from,
                            struct kg_shapes *shapes)
{
    const struct kg_op *op = check->op;
    for (int i = 0; i < from->size_count; i++) {
        const struct kg_token *token = from->sizes[i];
        const struct kg_size *size = kg_lang_find_size(op, token->text);
        const char *names[KG_MAX_SIZES];
        size_t count = 0;
        for (int s = 0; s < op->size_count; s++)
            if (!op->sizes[s]->is_param)
                names[count++] = op->sizes[s]->name;
        if (!size)
            kg_lang_fail(check->job, token->span,
                         kg_lang_suggest(check->job, token->text, names, count,
                                         "expected a size of the signature"),
                         "unknown size \"%s\"", token->text);
        if (size->is_param)
            kg_lang_fail(check->job, token->span, "expected a size of the signature",
                         "\"%s\" is a param: it is bound when the op is built", token->text);
        for (int j = 0; j < i; j++)
            if (shapes->sizes[j] == size)
                kg_lang_fail(check->job, token->span, NULL, "\"%s\" twice", token->text);
        shapes->sizes[shapes->size_count++] = size;
    }
}

static void check_shapes(struct kg_check *check, const struct kg_syntax_shapes *from,
                         struct kg_shapes *shapes)
{
    if (!from->keyword)
        return;
    shapes->span = from->keyword->span;
    check_row_sizes(check, from, shapes);
    for (int s = 0; s < check->op->size_count; s++) {
        bool listed = check->op->sizes[s]->is_param;
        for (int i = 0; i < shapes->size_count; i++)
            listed |= shapes->sizes[i] == check->op->sizes[s];
        if (!listed)
            kg_lang_fail(check->job, from->keyword->span, NULL,
                         "\"%s\" gives no value for the size \"%s\"", from->keyword->text,
                         check->op->sizes[s]->name);
    }
    int count = from->row_count * from->size_count;
    shapes->row_count = from->row_count;
    shapes->rows = KG_LANG_NEW_ARRAY(check->job, count, int64_t);
    for (int i = 0; i < count; i++) {
        shapes->rows[i] = from->values[i]->integer;
        if (shapes->rows[i] > MAX_SIZE)
            kg_lang_fail(check->job, from->values[i]->span, NULL, "a size is at most 2^48");
    }
}

static void check_goal(struct kg_check *check)
{
    const struct kg_syntax_goal *from = &check->syntax->goal;
    struct kg_goal *goal = &check->op->goal;
    goal->given = from->keyword != NULL;
    goal->speedup = from->speedup ? from->speedup->number : 1.0;
    goal->rounds = 5;
    if (from->baseline) {
        goal->baseline_kind = from->baseline_kind->text;
        goal->baseline = from->baseline->text;
        goal->baseline_span = from->baseline->span;
    }
    if (from->speedup)
        goal->speedup_span = from->speedup->span;
    if (from->speedup && !(goal->speedup > 0))
        kg_lang_fail(check->job, from->speedup->span, NULL, "a speedup is more than 0");
    if (from->rounds) {
        if (from->rounds->integer > 1000)
            kg_lang_fail(check->job, from->rounds->span, NULL, "at most 1000 rounds");
        goal->rounds = (int)from->rounds->integer;
        goal->rounds_span = from->rounds->span;
    }
    for (int i = 0; i < KG_DTYPE_COUNT; i++)
        if (from->tolerance[i][0])
            goal->tolerance[i] =
                (struct kg_tolerance){true, from->tolerance[i][0]->number,
                                      from->tolerance[i][1]->number, from->tolerance[i][0]->span};
    check_shapes(check, &from->verify, &goal->verify);
    check_shapes(check, &from->tune, &goal->tune);
    kg_lang_check_ranges(check);
}

struct kg_op *kg_lang_check_op(struct kg_lang_job *job, const struct kg_syntax_file *file,
                               const struct kg_syntax_op *syntax)
{
    struct kg_check check = {.job = job, .file = file, .syntax = syntax};
    check.op = KG_LANG_NEW(job, struct kg_op);
    check.op->name = syntax->name->text;
    check.op->span = syntax->name->span;
    kg_lang_check_name(job, syntax->name, "an op");
    check_signature(&check);
    kg_lang_check_body(&check);
    check_goal(&check);
    return check.op;
}
