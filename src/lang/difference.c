// From two files to a list of ops and what became of each.

#include "lang/difference_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 84   // of an excerpt
#define SHOWN_BEFORE 24  // bytes kept before the place where long excerpts become different
#define MOST_RENAMES 256 // pairs of ops that are compared in search of renamed ones

const char *const kg_difference_names[KG_DIFFERENCE_COUNT] = {
    [KG_DIFFERENCE_INTERFACE] = "interface", [KG_DIFFERENCE_FORMULA] = "formula",
    [KG_DIFFERENCE_PARAMETER] = "parameter", [KG_DIFFERENCE_GOAL] = "goal",
    [KG_DIFFERENCE_TEXT] = "text",
};

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static const char *excerpt(struct kg_lang_job *job, const char *text, size_t common)
{
    if (!text || strlen(text) <= SHOWN_BYTES)
        return text;
    size_t begin = common > SHOWN_BEFORE ? common - SHOWN_BEFORE : 0;
    while (begin > 0 && is_inside_character(text[begin]))
        begin--;
    size_t length = strlen(text + begin);
    bool is_cut = length > SHOWN_BYTES;
    length = is_cut ? SHOWN_BYTES : length;
    while (is_cut && length > 0 && is_inside_character(text[begin + length]))
        length--;
    return kg_lang_format(job, "%s%.*s%s", begin ? "..." : "", (int)length, text + begin,
                          is_cut ? "..." : "");
}

void kg_difference_add(struct kg_comparison *comparison, enum kg_difference_kind kind,
                       struct kg_difference_side before, struct kg_difference_side after,
                       const char *format, ...)
{
    struct kg_lang_job *job = comparison->job;
    struct kg_difference *difference = KG_LANG_NEW(job, struct kg_difference);
    char what[256]; // the longest names have 63 characters
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    size_t common = 0;
    while (before.text && after.text && before.text[common] &&
           before.text[common] == after.text[common])
        common++;
    before.text = excerpt(job, before.text, common);
    after.text = excerpt(job, after.text, common);
    difference->what = kg_lang_copy(job, what, strlen(what));
    difference->before = before;
    difference->after = after;
    *comparison->ends[kind] = difference;
    comparison->ends[kind] = &difference->next;
}

const char *kg_difference_keep(struct kg_comparison *comparison, struct kg_text *text)
{
    const char *string = kg_text_string(text);
    char *kept =
        text->failed ? NULL : kg_arena_copy(comparison->job->arena, string, strlen(string));
    kg_text_free(text);
    if (!kept)
        kg_lang_fail_plain(comparison->job, KG_ERROR_MEMORY, "out of memory: a comparison");
    return kept;
}

const char *kg_difference_print(struct kg_comparison *comparison, const struct kg_expr *expr)
{
    struct kg_text text = {0};
    kg_lang_print_expr(&text, expr);
    return kg_difference_keep(comparison, &text);
}

bool kg_difference_has_meaning(const struct kg_op_difference *op)
{
    bool differs = !op->before || !op->after;
    for (int kind = 0; kind < KG_DIFFERENCE_TEXT; kind++)
        differs |= op->differences[kind] != NULL;
    return differs;
}

static struct kg_difference_side side_of(const struct kg_op *op, const char *text)
{
    return (struct kg_difference_side){op->span, text};
}

static void compare_names(struct kg_comparison *comparison)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    if (strcmp(before->name, after->name) != 0)
        kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side_of(before, before->name),
                          side_of(after, after->name), "name of the op");
}

// What has no other reason is layout, or a comment inside.
static void compare_texts(struct kg_comparison *comparison)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    bool differs = false;
    if (strcmp(before->description, after->description) != 0)
        kg_difference_add(comparison, KG_DIFFERENCE_TEXT,
                          side_of(before, before->description[0] ? before->description : NULL),
                          side_of(after, after->description[0] ? after->description : NULL),
                          "comment above the op");
    for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
        differs |= comparison->ends[kind] != &comparison->result->differences[kind];
    if (!differs && strcmp(before->source, after->source) != 0)
        kg_difference_add(comparison, KG_DIFFERENCE_TEXT, side_of(before, before->name),
                          side_of(after, after->name), "layout or comments inside");
}

static void compare_ops(struct kg_lang_job *job, const struct kg_op *before,
                        const struct kg_op *after, struct kg_op_difference *result)
{
    struct kg_comparison comparison = {
        .job = job, .before = before, .after = after, .result = result};
    *result = (struct kg_op_difference){.before = before, .after = after};
    for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
        comparison.ends[kind] = &result->differences[kind];
    kg_difference_match_names(&comparison);
    compare_names(&comparison);
    kg_difference_of_signatures(&comparison);
    kg_difference_of_bodies(&comparison);
    kg_difference_of_goals(&comparison);
    compare_texts(&comparison);
}

// ---- Files

struct pairing {
    const struct kg_file *before, *after;
    struct kg_file_difference *result;
};

static int compare_by_name(const void *a, const void *b)
{
    const struct kg_op *const *one = a, *const *other = b;
    return strcmp((*one)->name, (*other)->name);
}

// Copies of the ops in the order of their names, for bsearch.
static const struct kg_op **sort(struct kg_lang_job *job, const struct kg_file *file)
{
    const struct kg_op **sorted = KG_LANG_NEW_ARRAY(job, file->op_count, const struct kg_op *);
    memcpy(sorted, file->ops, (size_t)file->op_count * sizeof *sorted);
    qsort(sorted, (size_t)file->op_count, sizeof *sorted, compare_by_name);
    return sorted;
}

static const struct kg_op *find(const struct kg_op **sorted, int count, const struct kg_op *op)
{
    const struct kg_op **found =
        bsearch(&op, sorted, (size_t)count, sizeof *sorted, compare_by_name);
    return found ? *found : NULL;
}

// Do the two mean the same but for the name?
static bool is_renamed(const struct kg_op_difference *op)
{
    const struct kg_difference *first = op->differences[KG_DIFFERENCE_INTERFACE];
    return first && !first->next && !op->differences[KG_DIFFERENCE_FORMULA] &&
           !op->differences[KG_DIFFERENCE_PARAMETER];
}

static void find_renamed(struct kg_lang_job *job, struct kg_op_difference *ops, int *count)
{
    int added = 0, removed = 0;
    for (int i = 0; i < *count; i++) {
        added += !ops[i].before;
        removed += !ops[i].after;
    }
    if ((int64_t)added * removed > MOST_RENAMES)
        return;
    for (int i = 0; i < *count; i++)
        for (int j = 0; j < *count && !ops[i].before; j++) {
            struct kg_op_difference tried;
            if (ops[j].after)
                continue;
            compare_ops(job, ops[j].before, ops[i].after, &tried);
            if (!is_renamed(&tried))
                continue;
            ops[i] = tried;
            memmove(ops + j, ops + j + 1, (size_t)(--*count - j) * sizeof *ops);
        }
}

static void compare_files(struct kg_lang_job *job, void *user)
{
    const struct pairing *pairing = user;
    const struct kg_file *before = pairing->before, *after = pairing->after;
    struct kg_op_difference *ops =
        KG_LANG_NEW_ARRAY(job, before->op_count + after->op_count, struct kg_op_difference);
    const struct kg_op **old = sort(job, before), **new = sort(job, after);
    int count = 0;
    for (int i = 0; i < after->op_count; i++) {
        const struct kg_op *op = find(old, before->op_count, after->ops[i]);
        if (op)
            compare_ops(job, op, after->ops[i], &ops[count++]);
        else
            ops[count++].after = after->ops[i];
    }
    for (int i = 0; i < before->op_count; i++)
        if (!find(new, after->op_count, before->ops[i]))
            ops[count++].before = before->ops[i];
    find_renamed(job, ops, &count);
    *pairing->result = (struct kg_file_difference){count, ops};
}

enum kg_status kg_lang_compare(struct kg_arena *arena, const struct kg_file *before,
                               const struct kg_file *after, struct kg_file_difference *difference,
                               struct kg_error *error)
{
    struct kg_lang_job job = {.arena = arena, .error = error, .remark = ""};
    struct pairing pairing = {before, after, difference};
    *difference = (struct kg_file_difference){0};
    return kg_lang_run(&job, compare_files, &pairing);
}
