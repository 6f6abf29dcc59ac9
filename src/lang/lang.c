// The front door: a text to checked ops, and finding one of them.

#include "lang/lang.h"

#include "base/names.h"
#include "lang/check.h"
#include "lang/functions.h"
#include "lang/unused.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SOURCE (16 << 20) // bytes of the ops of one file, each with the functions it calls

struct parse {
    struct kg_file *file;
};

// Where the comment block directly above an op begins, or where its line begins when there is
// none, or the op itself when something stands before it on its line.
static size_t find_comment(const char *text, size_t op)
{
    size_t begin = op;
    while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t'))
        begin--;
    if (begin > 0 && text[begin - 1] != '\n')
        return op;
    while (begin > 0) {
        size_t line = begin - 1;
        while (line > 0 && text[line - 1] != '\n')
            line--;
        if (text[line + strspn(text + line, " \t")] != '#')
            break;
        begin = line;
    }
    return begin;
}

// The comment lines from `begin` to the op, without their marks.
static char *read_description(struct kg_lang_job *job, const char *text, size_t begin, size_t op)
{
    char *description = kg_lang_alloc(job, op - begin + 1, 1);
    size_t length = 0;
    while (begin < op) {
        const char *line = text + begin + strspn(text + begin, " \t");
        if (*line != '#')
            break;
        line += 1 + (line[1] == ' ');
        size_t width = strcspn(line, "\r\n");
        if (length > 0)
            description[length++] = '\n';
        memcpy(description + length, line, width);
        length += width;
        begin = (size_t)(line - text) + width;
        begin += text[begin] == '\r';
        begin += text[begin] == '\n';
    }
    return description;
}

// From the comment above a keyword to `end`.
static struct kg_piece add_piece(struct kg_text *source, const char *text,
                                 const struct kg_token *keyword, size_t end)
{
    size_t begin = find_comment(text, keyword->offset);
    struct kg_piece piece = {source->length, keyword->span.line, keyword->span.column};
    if (begin < keyword->offset)
        piece.column = 1;
    for (size_t i = begin; i < keyword->offset; i++)
        piece.line -= text[i] == '\n';
    kg_text_add_bytes(source, text + begin, end - begin);
    return piece;
}

static void add_source(struct kg_lang_job *job, const struct kg_syntax_file *syntax,
                       const struct kg_syntax_op *from, struct kg_op *op)
{
    const char *text = job->source.text;
    struct kg_text source = {0};
    struct kg_piece pieces[KG_MAX_FUNCTIONS + 1];
    for (const struct kg_syntax_function *f = syntax->functions; f; f = f->next)
        if (f->user == from) {
            pieces[op->piece_count++] = add_piece(&source, text, f->keyword, f->end);
            kg_text_add(&source, "\n\n");
        }
    pieces[op->piece_count++] = add_piece(&source, text, from->keyword, from->end);
    op->source = kg_arena_copy(job->arena, kg_text_string(&source), source.length);
    bool failed = source.failed || !op->source;
    kg_text_free(&source);
    if (failed)
        kg_lang_fail_plain(job, KG_ERROR_MEMORY, "out of memory: a definition");
    struct kg_piece *kept = KG_LANG_NEW_ARRAY(job, op->piece_count, struct kg_piece);
    memcpy(kept, pieces, (size_t)op->piece_count * sizeof *kept);
    op->pieces = kept;
    op->file = job->source.name;
    size_t begin = find_comment(text, from->keyword->offset);
    op->description = read_description(job, text, begin, from->keyword->offset);
}

static void check_unique(struct kg_lang_job *job, const struct kg_file *file,
                         const struct kg_op *op)
{
    for (int i = 0; i < file->op_count; i++)
        if (strcmp(file->ops[i]->name, op->name) == 0)
            kg_lang_fail(job, op->span, "help: choose another name",
                         "a second op \"%s\"; the first is on line %d", op->name,
                         file->ops[i]->span.line);
}

static void parse(struct kg_lang_job *job, void *user)
{
    struct parse *result = user;
    char *text = kg_lang_copy(job, job->source.text, job->source.length);
    job->source.text = text;
    job->source.name = kg_lang_copy(job, job->source.name, strlen(job->source.name));
    struct kg_syntax_file *syntax = kg_lang_parse_syntax(job);
    struct kg_file *file = KG_LANG_NEW(job, struct kg_file);
    int count = 0, terms = 0;
    size_t bytes = 0;
    for (struct kg_syntax_op *op = syntax->ops; op; op = op->next)
        count++;
    if (count == 0)
        kg_lang_fail(job, (struct kg_span){.line = 1, .column = 1, .length = 1}, "expected \"op\"",
                     "no op in this file");
    file->name = job->source.name;
    file->ops = KG_LANG_NEW_ARRAY(job, count, struct kg_op *);
    kg_lang_check_functions(job, syntax);
    for (struct kg_syntax_op *from = syntax->ops; from; from = from->next) {
        kg_lang_expand_functions(job, syntax, from, &terms);
        struct kg_op *op = kg_lang_check_op(job, syntax, from);
        check_unique(job, file, op);
        add_source(job, syntax, from, op);
        op->warnings = kg_lang_unused_of_op(job, op);
        bytes += strlen(op->source);
        if (bytes > MOST_SOURCE)
            kg_lang_fail(job, op->span, "help: make it several files",
                         "the ops of a file hold more than %d MiB with the functions they call",
                         MOST_SOURCE >> 20);
        file->ops[file->op_count++] = op;
    }
    file->warnings = kg_lang_unused_functions(job, syntax);
    result->file = file;
}

// Instantiates the op once and throws the result away: types are checked there.
static enum kg_status try_bindings(const struct kg_op *op, const struct kg_bindings *bindings,
                                   struct kg_error *error)
{
    struct kg_arena scratch = {0};
    struct kg_op *instance;
    enum kg_status status = kg_lang_instantiate(&scratch, op, bindings, &instance, error);
    kg_arena_free(&scratch);
    return status;
}

// Types follow from the compute types of the dtypes: one dtype of each will do.
static enum kg_status check_types(const struct kg_op *op, struct kg_error *error)
{
    struct kg_bindings bindings;
    kg_lang_default_bindings(op, &bindings);
    enum kg_status status = try_bindings(op, &bindings, error);
    for (int i = 0; i < op->typevar_count; i++) {
        const struct kg_typevar *variable = op->typevars[i];
        unsigned seen = 1u << kg_dtypes[variable->allowed[0]].compute;
        for (int j = 1; j < variable->count && status == KG_OK; j++) {
            enum kg_dtype dtype = variable->allowed[j];
            if (seen & 1u << kg_dtypes[dtype].compute)
                continue;
            seen |= 1u << kg_dtypes[dtype].compute;
            bindings.dtypes[i] = dtype;
            status = try_bindings(op, &bindings, error);
        }
        bindings.dtypes[i] = variable->allowed[0];
    }
    return status;
}

enum kg_status kg_lang_parse(struct kg_arena *arena, const char *name, const char *text,
                             size_t length, struct kg_file **file, struct kg_error *error)
{
    struct kg_lang_job job = {.arena = arena, .error = error, .remark = ""};
    struct parse result = {0};
    const struct kg_piece whole = {0, 1, 1};
    job.source = (struct kg_source){name, text, length, &whole, 1};
    *file = NULL;
    enum kg_status status = kg_lang_run(&job, parse, &result);
    for (int i = 0; status == KG_OK && i < result.file->op_count; i++)
        status = check_types(result.file->ops[i], error);
    if (status == KG_OK)
        *file = result.file;
    return status;
}

enum kg_status kg_lang_select(const struct kg_file *file, const char *name, struct kg_op **op,
                              struct kg_error *error)
{
    *op = NULL;
    if (!name && file->op_count == 1) {
        *op = file->ops[0];
        return KG_OK;
    }
    struct kg_text list = {0};
    const char **names = calloc((size_t)file->op_count, sizeof *names);
    if (!names)
        return kg_error_memory(error, "a list of ops");
    for (int i = 0; i < file->op_count; i++) {
        names[i] = file->ops[i]->name;
        kg_text_format(&list, "%s%s", i ? ", " : "", names[i]);
        if (name && strcmp(names[i], name) == 0)
            *op = file->ops[i];
    }
    const char *nearest = name ? kg_names_nearest(name, names, (size_t)file->op_count) : NULL;
    enum kg_status status = KG_OK;
    if (!name)
        status = kg_error_set(error, KG_ERROR_ARGUMENT, "%s has several ops; name one of: %.2000s",
                              file->name, kg_text_string(&list));
    else if (!*op && nearest)
        status = kg_error_set(error, KG_ERROR_ARGUMENT,
                              "%s has no op \"%.100s\"; did you mean \"%s\"? It has: %.2000s",
                              file->name, name, nearest, kg_text_string(&list));
    else if (!*op)
        status = kg_error_set(error, KG_ERROR_ARGUMENT, "%s has no op \"%.100s\"; it has: %.2000s",
                              file->name, name, kg_text_string(&list));
    kg_text_free(&list);
    free(names);
    return status;
}
