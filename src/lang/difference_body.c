// Statements, as trees. Indices and intermediates are the same by where they stand, whatever their
// names are.

#include "lang/difference_job.h"

#include "lang/panels.h"

#include <string.h>

// Two statements.
struct match {
    const struct kg_comparison *comparison;
    const struct kg_index *indices[KG_MAX_INDICES]; // of the new statement, by ids of the old one
    const struct kg_expr *before_at, *after_at;     // where they differ; NULL: as a whole
    bool renamed;                                   // an index has another name
};

static bool same(struct match *match, const struct kg_expr *one, const struct kg_expr *other);

static bool same_end(struct match *match, const struct kg_expr *one, const struct kg_expr *other)
{
    return one && other ? same(match, one, other) : one == other;
}

// A range that was not written follows from the shapes; these are compared elsewhere.
static bool bind(struct match *match, const struct kg_index *one, const struct kg_index *other)
{
    if (one->relation != other->relation)
        return false;
    if (one->relation != KG_RELATION_NONE && !same(match, one->bound, other->bound))
        return false;
    if ((one->written || other->written) &&
        (!same_end(match, one->begin, other->begin) || !same_end(match, one->end, other->end)))
        return false;
    match->indices[one->id] = other;
    match->renamed |= strcmp(one->name, other->name) != 0;
    return true;
}

static bool same_number(const struct kg_expr *one, const struct kg_expr *other)
{
    if (one->is_integer != other->is_integer || one->type != other->type)
        return false;
    return one->is_integer ? one->integer == other->integer
                           : memcmp(&one->number, &other->number, sizeof one->number) == 0;
}

static bool same_node(struct match *match, const struct kg_expr *one, const struct kg_expr *other)
{
    const struct kg_comparison *comparison = match->comparison;
    switch (one->kind) {
    case KG_EXPR_NUMBER:
        return same_number(one, other);
    case KG_EXPR_SIZE:
        return comparison->sizes[one->size->id] == other->size;
    case KG_EXPR_INDEX:
        return match->indices[one->index->id] == other->index;
    case KG_EXPR_READ:
        return comparison->tensors[one->tensor->id] == other->tensor && !one->pad == !other->pad;
    case KG_EXPR_CALL:
        return one->function == other->function;
    case KG_EXPR_CAST:
        return kg_difference_same_type(comparison, &one->cast, &other->cast);
    case KG_EXPR_REDUCE:
        if (one->reduce != other->reduce || one->index_count != other->index_count)
            return false;
        for (int i = 0; i < one->index_count; i++)
            if (!bind(match, one->indices[i], other->indices[i]))
                return false;
        return true;
    }
    return false;
}

// Whether an input is packed shows in the signature: its reads are compared as written.
static bool same_arguments(struct match *match, const struct kg_expr *one,
                           const struct kg_expr *other)
{
    const struct kg_expr *declared[2][KG_MAX_RANK];
    const struct kg_expr **left = one->arguments, **right = other->arguments;
    int count = one->argument_count, other_count = other->argument_count;
    if (one->kind == KG_EXPR_READ && kg_lang_declared_subscripts(one, declared[0]) &&
        kg_lang_declared_subscripts(other, declared[1])) {
        left = declared[0];
        right = declared[1];
        count = kg_lang_declared_rank(one->tensor);
        other_count = kg_lang_declared_rank(other->tensor);
    }
    bool equal = count == other_count;
    for (int i = 0; equal && i < count; i++)
        equal = same(match, left[i], right[i]);
    return equal;
}

// Remembers the innermost place where they differ.
static bool same(struct match *match, const struct kg_expr *one, const struct kg_expr *other)
{
    bool equal = one->kind == other->kind && same_node(match, one, other) &&
                 same_arguments(match, one, other);
    if (equal && one->kind == KG_EXPR_READ && one->pad)
        equal = same(match, one->pad, other->pad);
    if (!equal && !match->before_at) {
        match->before_at = one;
        match->after_at = other;
    }
    return equal;
}

bool kg_difference_same_size(const struct kg_comparison *comparison, const struct kg_expr *before,
                             const struct kg_expr *after)
{
    struct match match = {.comparison = comparison};
    return same(&match, before, after);
}

static bool same_statement(struct match *match, const struct kg_statement *one,
                           const struct kg_statement *other)
{
    if (match->comparison->tensors[one->tensor->id] != other->tensor ||
        one->index_count != other->index_count)
        return false;
    for (int i = 0; i < one->index_count; i++)
        if (!bind(match, one->indices[i], other->indices[i]))
            return false;
    return same(match, one->value, other->value);
}

// ---- Which statement is compared with which

static const struct kg_statement *statement_of(const struct kg_op *op,
                                               const struct kg_tensor *tensor)
{
    for (int i = 0; tensor && i < op->statement_count; i++)
        if (op->statements[i]->tensor == tensor)
            return op->statements[i];
    return NULL;
}

// Are they the same one after the other? Then intermediates may have any names.
static bool match_in_order(struct kg_comparison *comparison, bool *renamed)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    if (before->statement_count != after->statement_count)
        return false;
    for (int i = 0; i < before->statement_count; i++) {
        const struct kg_tensor *old = before->statements[i]->tensor;
        const struct kg_tensor *new = after->statements[i]->tensor;
        if (old->role != new->role)
            return false;
        if (old->role == KG_ROLE_LOCAL) {
            comparison->tensors[old->id] = new;
            *renamed |= strcmp(old->name, new->name) != 0;
        }
    }
    for (int i = 0; i < before->statement_count; i++) {
        struct match match = {.comparison = comparison};
        if (!same_statement(&match, before->statements[i], after->statements[i]))
            return false;
        *renamed |= match.renamed;
    }
    return true;
}

static const struct kg_tensor *find_local(const struct kg_op *op, const char *name)
{
    for (int i = op->input_count + op->output_count; i < op->tensor_count; i++)
        if (strcmp(op->tensors[i]->name, name) == 0)
            return op->tensors[i];
    return NULL;
}

// Intermediates by their names, and those whose names are gone in their order.
static void match_by_name(struct kg_comparison *comparison, bool *renamed)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    int next = after->input_count + after->output_count;
    for (int i = before->input_count + before->output_count; i < before->tensor_count; i++) {
        const struct kg_tensor *new = find_local(after, before->tensors[i]->name);
        while (!new &&next < after->tensor_count) {
            const struct kg_tensor *free = after->tensors[next++];
            new = find_local(before, free->name) ? NULL : free;
            *renamed |= new != NULL;
        }
        comparison->tensors[i] = new;
    }
}

static struct kg_difference_side side_of(struct kg_comparison *comparison,
                                         const struct kg_statement *statement,
                                         const struct kg_expr *at)
{
    struct kg_text text = {0};
    if (!statement)
        return (struct kg_difference_side){0};
    kg_lang_print_statement(&text, statement);
    return (struct kg_difference_side){at ? at->span : statement->span,
                                       kg_difference_keep(comparison, &text)};
}

static bool was_matched(const struct kg_comparison *comparison, const struct kg_tensor *new)
{
    for (int i = 0; i < comparison->before->tensor_count; i++)
        if (comparison->tensors[i] == new)
            return true;
    return false;
}

// Statement by statement; gives whether all are the same.
static bool compare_matched(struct kg_comparison *comparison, bool *renamed)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    bool equal = true;
    for (int i = 0; i < before->statement_count; i++) {
        struct match match = {.comparison = comparison};
        const struct kg_statement *old = before->statements[i];
        const struct kg_statement *new = statement_of(after, comparison->tensors[old->tensor->id]);
        bool is_same = new &&same_statement(&match, old, new);
        *renamed |= is_same && match.renamed;
        equal &= is_same;
        if (is_same)
            continue;
        kg_difference_add(comparison, KG_DIFFERENCE_FORMULA,
                          side_of(comparison, old, match.before_at),
                          side_of(comparison, new, match.after_at),
                          new ? "statement of %s" : "statement of %s is gone", old->tensor->name);
    }
    for (int i = 0; i < after->statement_count; i++) {
        const struct kg_statement *new = after->statements[i];
        if (was_matched(comparison, new->tensor))
            continue;
        equal = false;
        kg_difference_add(comparison, KG_DIFFERENCE_FORMULA, (struct kg_difference_side){0},
                          side_of(comparison, new, NULL), "statement of %s is new",
                          new->tensor->name);
    }
    return equal;
}

static void add_text_difference(struct kg_comparison *comparison, const char *what)
{
    kg_difference_add(comparison, KG_DIFFERENCE_TEXT,
                      side_of(comparison, comparison->before->statements[0], NULL),
                      side_of(comparison, comparison->after->statements[0], NULL), "%s", what);
}

void kg_difference_of_bodies(struct kg_comparison *comparison)
{
    bool renamed = false, reordered = false;
    if (!match_in_order(comparison, &renamed)) {
        renamed = false;
        match_by_name(comparison, &renamed);
        reordered = compare_matched(comparison, &renamed);
    }
    if (reordered)
        add_text_difference(comparison, "order of the statements");
    if (renamed)
        add_text_difference(comparison, "names of indices or intermediates");
}
