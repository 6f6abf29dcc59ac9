// Diagnostics: the text of an error, and the way out when one was found.

#include "lang/diagnostics.h"

#include "base/names.h"
#include "base/text.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_BYTES 120 // of a source line; longer ones are cut around the caret
#define SHOWN_BEFORE 60 // bytes kept before the caret when a line is cut
#define SHOWN_ORIGINS 3 // calls of functions, from the inside
#define MESSAGE_BYTES 512

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t kg_lang_character(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80)
        return at[0] == '\t' || at[0] == '\n' || at[0] == '\r' || (at[0] >= 0x20 && at[0] < 0x7F);
    size_t length = at[0] >= 0xC2 && at[0] <= 0xDF   ? 2
                    : at[0] >= 0xE0 && at[0] <= 0xEF ? 3
                    : at[0] >= 0xF0 && at[0] <= 0xF4 ? 4
                                                     : 0;
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!is_continuation(text[i]))
            return 0;
    // Overlong forms, surrogates, what lies beyond U+10FFFF, and the controls of U+0080 to U+009F.
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F) ||
        (at[0] == 0xC2 && at[1] < 0xA0))
        return 0;
    return length;
}

// Where the line of a span begins in the source, and which column of the file that is.
static size_t find_line(const struct kg_source *source, struct kg_span span, int *column)
{
    const struct kg_piece *piece = source->pieces;
    for (int i = 1; i < source->piece_count; i++) {
        const struct kg_piece *next = &source->pieces[i];
        if (next->line < span.line || (next->line == span.line && next->column <= span.column))
            piece = next;
    }
    size_t at = piece->offset;
    for (int line = piece->line; line < span.line && at < source->length; line++) {
        const char *newline = memchr(source->text + at, '\n', source->length - at);
        at = newline ? (size_t)(newline - source->text) + 1 : source->length;
    }
    *column = span.line == piece->line ? piece->column : 1;
    return at;
}

// What is not text must not reach the terminal.
static void add_shown(struct kg_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t step = kg_lang_character(bytes + i, length - i);
        kg_text_add_bytes(text, step ? bytes + i : "?", step ? step : 1);
        i += step ? step : 1;
    }
}

// Columns of a terminal taken by the character at `text`. East Asian scripts, whose characters are
// two columns wide, begin at U+3000: three bytes from E3 on. Emoji have four.
static int width_of(const char *text, size_t length)
{
    return length > 1 && (unsigned char)text[0] >= 0xE3 ? 2 : 1;
}

static void add_carets(struct kg_text *text, const char *line, size_t begin, size_t at, size_t end)
{
    int width = 0;
    for (size_t i = begin; i < end;) {
        size_t length = kg_lang_character(line + i, end - i);
        int columns = width_of(line + i, length);
        if (i < at && line[i] == '\t')
            kg_text_add(text, "\t");
        else if (i < at)
            kg_text_add(text, columns == 2 ? "  " : " ");
        else
            width += columns;
        i += length ? length : 1;
    }
    kg_text_add(text, "^");
    for (int w = 1; w < width; w++)
        kg_text_add(text, "~");
    kg_text_add(text, "\n");
}

struct kg_source kg_lang_source_of(const struct kg_op *op)
{
    return (struct kg_source){op->file, op->source, strlen(op->source), op->pieces,
                              op->piece_count};
}

void kg_lang_show_line(struct kg_text *text, const struct kg_source *source, struct kg_span span)
{
    int first;
    size_t start = find_line(source, span, &first);
    const char *line = source->text + start;
    const char *newline = memchr(line, '\n', source->length - start);
    size_t length = newline ? (size_t)(newline - line) : source->length - start;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    size_t at = span.column > first ? (size_t)(span.column - first) : 0;
    at = at < length ? at : length;
    size_t begin = 0, end = length;
    if (length > SHOWN_BYTES) {
        begin = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0;
        while (begin < at && is_continuation(line[begin]))
            begin++;
        end = begin + SHOWN_BYTES < length ? begin + SHOWN_BYTES : length;
        while (end > at && end < length && is_continuation(line[end]))
            end--;
    }
    size_t last = at + (size_t)span.length < end ? at + (size_t)span.length : end;
    kg_text_add(text, begin > 0 ? " ..." : "    ");
    add_shown(text, line + begin, end - begin);
    kg_text_add(text, end < length ? "...\n    " : "\n    ");
    add_carets(text, line, begin, at, last);
}

const char *kg_lang_slice(struct kg_lang_job *job, struct kg_span span)
{
    const struct kg_source *source = &job->source;
    int first;
    size_t at = find_line(source, span, &first) + (size_t)(span.column - first);
    size_t length = (size_t)span.length;
    if (at > source->length || length > source->length - at ||
        memchr(source->text + at, '\n', length))
        return NULL;
    return kg_lang_copy(job, source->text + at, length);
}

enum kg_status kg_lang_run(struct kg_lang_job *job, void (*work)(struct kg_lang_job *, void *),
                           void *user)
{
    job->status = KG_OK;
    if (setjmp(job->bail) == 0)
        work(job, user);
    return job->status;
}

void kg_lang_show_error(struct kg_text *text, const struct kg_op *op, struct kg_span span,
                        const char *message)
{
    const struct kg_source source = kg_lang_source_of(op);
    kg_text_format(text, "%s:%d:%d: error: %s\n", op->file, span.line, span.column, message);
    kg_lang_show_line(text, &source, span);
}

static void add_origin(struct kg_text *text, const struct kg_source *source,
                       const struct kg_expansion *origin)
{
    kg_text_format(text, "%s:%d:%d: note: %s\n", source->name, origin->place.line,
                   origin->place.column, origin->note);
    kg_lang_show_line(text, source, origin->place);
}

// The innermost ones, and the one outside of all functions.
static void add_origins(struct kg_text *text, const struct kg_source *source,
                        const struct kg_expansion *origin)
{
    for (int shown = 1; origin; shown++, origin = origin->place.origin)
        if (shown <= SHOWN_ORIGINS || !origin->place.origin)
            add_origin(text, source, origin);
}

void kg_lang_fail(struct kg_lang_job *job, struct kg_span span, const char *advice,
                  const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    struct kg_text text = {0};
    kg_text_format(&text, "%s:%d:%d: error: %s%s\n", job->source.name, span.line, span.column,
                   message, job->remark);
    kg_lang_show_line(&text, &job->source, span);
    if (advice)
        kg_text_format(&text, "%s\n", advice);
    add_origins(&text, &job->source, span.origin);
    if (text.length > 0)
        kg_text_cut(&text, text.length - 1); // the last newline
    job->status = text.failed
                      ? kg_error_memory(job->error, "a diagnostic")
                      : kg_error_set(job->error, KG_ERROR_DEFINITION, "%s", kg_text_string(&text));
    kg_text_free(&text);
    longjmp(job->bail, 1);
}

void kg_lang_fail_plain(struct kg_lang_job *job, enum kg_status status, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    job->status = kg_error_set(job->error, status, "%s", message);
    longjmp(job->bail, 1);
}

void *kg_lang_alloc(struct kg_lang_job *job, size_t count, size_t size)
{
    void *memory = kg_arena_array(job->arena, count, size);
    if (!memory) {
        job->status = kg_error_memory(job->error, "a definition");
        longjmp(job->bail, 1);
    }
    return memory;
}

char *kg_lang_copy(struct kg_lang_job *job, const char *text, size_t length)
{
    char *copy = kg_lang_alloc(job, length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

char *kg_lang_format(struct kg_lang_job *job, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return kg_lang_copy(job, text, strlen(text));
}

const char *kg_lang_suggest(struct kg_lang_job *job, const char *name, const char *const *names,
                            size_t count, const char *otherwise)
{
    const char *nearest = kg_names_nearest(name, names, count);
    return nearest ? kg_lang_format(job, "help: did you mean \"%s\"?", nearest) : otherwise;
}

struct kg_span kg_lang_join(struct kg_span a, struct kg_span b)
{
    if (a.line == b.line && b.column + b.length > a.column)
        a.length = b.column + b.length - a.column;
    return a;
}
