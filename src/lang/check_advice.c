// What the checker advises, in the names at hand.

#include "lang/check.h"

#include "base/text.h"

#include <string.h>

#define MOST_SHOWN 60 // bytes of a value in advice

// The text of a node if it is short and on one line, or NULL.
static const char *text_of(struct kg_lang_job *job, const struct kg_node *node)
{
    const char *text = kg_lang_slice(job, node->span);
    return text && strlen(text) <= MOST_SHOWN ? text : NULL;
}

static void add_name(struct kg_text *text, const char *name)
{
    kg_text_format(text, "%s%s", text->length > 0 ? ", " : "", name);
}

static const char *keep(struct kg_lang_job *job, struct kg_text *text)
{
    const char *copy = kg_lang_copy(job, kg_text_string(text), strlen(kg_text_string(text)));
    kg_text_free(text);
    return copy;
}

void kg_lang_names_at_hand(struct kg_check *check, const struct kg_syntax_statement *statement,
                           const struct kg_node *call, struct kg_foreign_names *names)
{
    struct kg_lang_job *job = check->job;
    struct kg_text indices = {0}, rows = {0};
    *names = (struct kg_foreign_names){.last = NULL};
    for (const struct kg_binder *b = statement->indices; b; b = b->next) {
        add_name(&indices, b->name->text);
        if (b->next)
            add_name(&rows, b->name->text);
        names->last = b->name->text;
    }
    names->indices = keep(job, &indices);
    names->rows = keep(job, &rows);
    names->result = kg_lang_format(job, "%s[%s]", statement->name->text, names->indices);
    const struct kg_node *argument = call->arguments;
    for (int i = 0; i < 3 && argument; i++, argument = argument->next) {
        bool named = argument->kind == KG_NODE_NAME || argument->kind == KG_NODE_READ;
        const struct kg_tensor *tensor =
            named ? kg_lang_find_tensor(check->op, argument->token->text) : NULL;
        names->arguments[i] = text_of(job, argument);
        if (tensor && i < 2)
            names->tensors[i] = tensor->name;
        if (tensor && argument->kind == KG_NODE_NAME && names->indices[0]) // a whole tensor
            names->arguments[i] = kg_lang_format(job, "%s[%s]", tensor->name, names->indices);
    }
}

// A reduction binds a product: what else stands on the right needs parentheses.
static bool is_product(const struct kg_node *node)
{
    return node->kind == KG_NODE_READ || node->kind == KG_NODE_CALL ||
           (node->kind == KG_NODE_BINARY &&
            (node->function == KG_FN_MUL || node->function == KG_FN_DIV));
}

const char *kg_lang_advise_reduction(struct kg_check *check,
                                     const struct kg_syntax_statement *statement,
                                     const struct kg_node *read, const char *index)
{
    const struct kg_node *value = is_product(statement->value) ? statement->value : read;
    const char *text = text_of(check->job, value);
    struct kg_text left = {0};
    for (const struct kg_binder *b = statement->indices; b; b = b->next)
        add_name(&left, b->name->text);
    add_name(&left, index);
    const char *indices = keep(check->job, &left);
    return kg_lang_format(check->job,
                          "help: name it in a reduction, as in sum(%s) %s, or on the left, as in "
                          "%s[%s]",
                          index, text ? text : "...", statement->name->text, indices);
}
