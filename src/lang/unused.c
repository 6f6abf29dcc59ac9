// Walks what the checker has made; nothing here can refuse a definition.

#include "lang/unused.h"

#include "base/text.h"

#include <string.h>

struct uses {
    bool tensors[KG_MAX_TENSORS];
    bool sizes[KG_MAX_SIZES];
    bool variables[KG_DTYPE_COUNT];
};

static void add_uses(struct uses *uses, const struct kg_expr *expr)
{
    if (!expr)
        return;
    if (expr->kind == KG_EXPR_READ)
        uses->tensors[expr->tensor->id] = true;
    if (expr->kind == KG_EXPR_SIZE)
        uses->sizes[expr->size->id] = true;
    if (expr->kind == KG_EXPR_CAST && expr->cast.variable)
        uses->variables[expr->cast.variable->id] = true;
    for (int i = 0; i < expr->index_count; i++) {
        add_uses(uses, expr->indices[i]->begin);
        add_uses(uses, expr->indices[i]->end);
        add_uses(uses, expr->indices[i]->bound);
    }
    add_uses(uses, expr->pad);
    for (int i = 0; i < expr->argument_count; i++)
        add_uses(uses, expr->arguments[i]);
}

static struct uses find_uses(const struct kg_op *op)
{
    struct uses uses = {.tensors = {false}};
    for (int i = 0; i < op->statement_count; i++) {
        const struct kg_statement *statement = op->statements[i];
        add_uses(&uses, statement->value);
        for (int d = 0; d < statement->index_count; d++)
            add_uses(&uses, statement->indices[d]->end);
    }
    for (int i = 0; i < op->tensor_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        for (int d = 0; d < tensor->rank; d++)
            add_uses(&uses, tensor->dims[d]);
        if (tensor->type.variable)
            uses.variables[tensor->type.variable->id] = true;
    }
    return uses;
}

// Does this input alone tell a size?
static bool tells_size(const struct kg_op *op, const struct kg_tensor *tensor)
{
    for (int d = 0; d < tensor->rank; d++) {
        bool told = tensor->dims[d]->kind != KG_EXPR_SIZE || tensor->dims[d]->size->is_param;
        for (int i = 0; i < op->input_count && !told; i++)
            for (int e = 0; e < op->tensors[i]->rank; e++) {
                const struct kg_expr *dim = op->tensors[i]->dims[e];
                told |= op->tensors[i] != tensor && dim->kind == KG_EXPR_SIZE &&
                        dim->size == tensor->dims[d]->size;
            }
        if (!told)
            return true;
    }
    return false;
}

static void warn(struct kg_lang_job *job, struct kg_text *text, struct kg_span span,
                 const char *what, const char *name, const char *why)
{
    kg_text_format(text, "%s:%d:%d: warning: %s \"%s\" is never %s\n", job->source.name, span.line,
                   span.column, what, name, why);
    kg_lang_show_line(text, &job->source, span);
}

static const char *keep(struct kg_lang_job *job, struct kg_text *text)
{
    size_t length = text->length > 0 ? text->length - 1 : 0; // without the last newline
    char *copy = kg_arena_copy(job->arena, kg_text_string(text), length);
    bool failed = text->failed || !copy;
    kg_text_free(text);
    if (failed)
        kg_lang_fail_plain(job, KG_ERROR_MEMORY, "out of memory: a diagnostic");
    return copy;
}

const char *kg_lang_unused_of_op(struct kg_lang_job *job, const struct kg_op *op)
{
    struct uses uses = find_uses(op);
    struct kg_text text = {0};
    for (int i = 0; i < op->tensor_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        if (uses.tensors[i] || tensor->role == KG_ROLE_OUTPUT)
            continue;
        if (tensor->role == KG_ROLE_LOCAL)
            warn(job, &text, tensor->span, "the intermediate", tensor->name, "read");
        else if (!tells_size(op, tensor))
            warn(job, &text, tensor->span, "the input", tensor->name, "read");
    }
    for (int i = 0; i < op->size_count; i++)
        if (!uses.sizes[i] && op->sizes[i]->is_param)
            warn(job, &text, op->sizes[i]->span, "the param", op->sizes[i]->name, "used");
    for (int i = 0; i < op->typevar_count; i++)
        if (!uses.variables[i])
            warn(job, &text, op->typevars[i]->span, "the type variable", op->typevars[i]->name,
                 "used");
    return keep(job, &text);
}

static bool is_named(const struct kg_node *node, const char *name)
{
    if (node->kind == KG_NODE_NAME && strcmp(node->token->text, name) == 0)
        return true;
    for (const struct kg_node *n = node->arguments; n; n = n->next)
        if (is_named(n, name))
            return true;
    return false;
}

const char *kg_lang_unused_functions(struct kg_lang_job *job, const struct kg_syntax_file *file)
{
    struct kg_text text = {0};
    for (const struct kg_syntax_function *f = file->functions; f; f = f->next) {
        if (!f->user)
            warn(job, &text, f->name->span, "the function", f->name->text, "called by an op");
        for (int i = 0; i < f->parameter_count; i++)
            if (!is_named(f->body, f->parameters[i]->text))
                warn(job, &text, f->parameters[i]->span, "the parameter", f->parameters[i]->text,
                     "used");
    }
    return keep(job, &text);
}
