// The lexer of PTX, one token ahead of the parser, and the error exit for malformed text.

#include "asm/ptx_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 40 // of a token, in a message

// START and PART: of a name.
enum { BLANK = 1, START = 2, PART = 4, DIGIT = 8 };

static const unsigned char classes[256] = {
    [' '] = BLANK,
    ['\t'] = BLANK,
    ['\r'] = BLANK,
    ['\f'] = BLANK,
    ['\v'] = BLANK,
    ['%'] = START,
    ['_'] = START | PART,
    ['$'] = START | PART,
    ['0' ... '9'] = DIGIT | PART,
    ['a' ... 'z'] = START | PART,
    ['A' ... 'Z'] = START | PART,
};

static bool is(const struct kg_ptx_job *job, size_t at, int class)
{
    return at < job->length && (classes[(unsigned char)job->text[at]] & class);
}

static size_t skip(const struct kg_ptx_job *job, size_t at, int class)
{
    while (is(job, at, class))
        at++;
    return at;
}

static char peek(const struct kg_ptx_job *job, size_t at)
{
    return at < job->length ? job->text[at] : '\0';
}

void kg_ptx_fail(struct kg_ptx_job *job, const char *at, int32_t line, const char *format, ...)
{
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    for (char *c = message; *c; c++) // control characters must not reach a terminal
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    size_t column = 1;
    for (const char *c = at; c > job->text && c[-1] != '\n'; c--)
        column++;
    job->status = kg_error_set(job->error, KG_ERROR_CORRUPT, "%d:%zu: error: %s (offset %zu)", line,
                               column, message, (size_t)(at - job->text));
    longjmp(job->bail, 1);
}

void kg_ptx_fail_memory(struct kg_ptx_job *job)
{
    job->status = kg_error_memory(job->error, "the facts of a PTX file");
    longjmp(job->bail, 1);
}

void kg_ptx_fail_expected(struct kg_ptx_job *job, const char *what)
{
    const struct kg_ptx_token *token = &job->token;
    if (token->kind == KG_PTX_END)
        kg_ptx_fail(job, token->text, token->line, "expected %s, found the end of the text", what);
    int shown = token->length < SHOWN_BYTES ? (int)token->length : SHOWN_BYTES;
    kg_ptx_fail(job, token->text, token->line, "expected %s, found \"%.*s\"", what, shown,
                token->text);
}

void *kg_ptx_room(struct kg_ptx_job *job, void *items, int32_t count, int32_t *capacity,
                  size_t size)
{
    if (count < *capacity)
        return items;
    if (count > INT32_MAX / 2)
        kg_ptx_fail_memory(job);
    int32_t wanted = count < 64 ? 64 : count + count / 2;
    void *moved = realloc(items, (size_t)wanted * size);
    if (!moved)
        kg_ptx_fail_memory(job);
    *capacity = wanted;
    return moved;
}

static void skip_line(struct kg_ptx_job *job)
{
    const char *from = job->text + job->at;
    const char *newline = memchr(from, '\n', job->length - job->at);
    job->at = newline ? (size_t)(newline - job->text) : job->length;
}

static void skip_comment(struct kg_ptx_job *job)
{
    const char *begin = job->text + job->at;
    int32_t line = job->line;
    for (job->at += 2; peek(job, job->at) != '*' || peek(job, job->at + 1) != '/'; job->at++) {
        if (job->at >= job->length)
            kg_ptx_fail(job, begin, line, "a comment without its end");
        job->line += peek(job, job->at) == '\n';
    }
    job->at += 2;
}

// `# 12 "file"` or `#line 12 "file"`, as preprocessors leave them.
static bool is_line_marker(const struct kg_ptx_job *job, size_t at)
{
    static const char word[] = "line";
    if (peek(job, at) != '#')
        return false;
    at = skip(job, at + 1, BLANK);
    if (job->length - at > sizeof word && memcmp(job->text + at, word, sizeof word - 1) == 0)
        at = skip(job, at + sizeof word - 1, BLANK);
    return is(job, at, DIGIT);
}

// "@@" begins a line of debugging data in old files.
static void skip_blank(struct kg_ptx_job *job)
{
    while (job->at < job->length) {
        char c = job->text[job->at], next = peek(job, job->at + 1);
        if (classes[(unsigned char)c] & BLANK) {
            job->at++;
        } else if (c == '\n') {
            job->at++;
            job->line++;
        } else if ((c == '/' && next == '/') || (c == '@' && next == '@') ||
                   is_line_marker(job, job->at)) {
            skip_line(job);
        } else if (c == '/' && next == '*') {
            skip_comment(job);
        } else {
            return;
        }
    }
}

// A modifier that begins with '.': .word and a following ::word.
static size_t end_of_modifier(const struct kg_ptx_job *job, size_t at)
{
    at = skip(job, at + 1, PART);
    while (peek(job, at) == ':' && peek(job, at + 1) == ':' && is(job, at + 2, PART))
        at = skip(job, at + 2, PART);
    return at;
}

static size_t end_of_word(struct kg_ptx_job *job, size_t at)
{
    at = skip(job, at + 1, PART);
    job->token.stem = (uint32_t)(at - job->at);
    while (peek(job, at) == '.' && is(job, at + 1, PART))
        at = end_of_modifier(job, at);
    return at;
}

// e5, E-5; returns `at` when there is none.
static size_t end_of_exponent(const struct kg_ptx_job *job, size_t at)
{
    if (peek(job, at) != 'e' && peek(job, at) != 'E')
        return at;
    size_t digits = at + 1 + (peek(job, at + 1) == '+' || peek(job, at + 1) == '-');
    return is(job, digits, DIGIT) ? skip(job, digits, DIGIT) : at;
}

// 12, 0x1F, 0b101, 12U, 0f3F800000, 0d…, 1.5, 1., 1e-5; following letters belong to the number,
// following modifiers do not.
static size_t end_of_number(const struct kg_ptx_job *job, size_t at)
{
    if (job->text[at] == '0' && strchr("xXfFdDbB", peek(job, at + 1)) && is(job, at + 1, START))
        return skip(job, at + 2, PART);
    at = skip(job, at, DIGIT);
    if (peek(job, at) == '.') {
        size_t end = end_of_exponent(job, skip(job, at + 1, DIGIT));
        if (end > at + 1 || !is(job, end, PART))
            at = end;
    }
    return skip(job, end_of_exponent(job, at), PART);
}

// .5, .5e3; 0: a modifier such as .2d or .16x64b.
static size_t end_of_fraction(const struct kg_ptx_job *job, size_t at)
{
    size_t end = end_of_exponent(job, skip(job, at + 1, DIGIT));
    return end > at + 1 && !is(job, end, PART) ? end : 0;
}

// A backslash has no special meaning, as for ptxas.
static size_t end_of_string(struct kg_ptx_job *job, size_t at)
{
    for (at++; peek(job, at) != '"'; at++) {
        if (at >= job->length || job->text[at] == '\n')
            kg_ptx_fail(job, job->text + job->at, job->line, "a string without its end");
    }
    return at + 1;
}

void kg_ptx_advance(struct kg_ptx_job *job)
{
    skip_blank(job);
    struct kg_ptx_token *token = &job->token;
    *token = (struct kg_ptx_token){.text = job->text + job->at, .line = job->line};
    if (job->at >= job->length)
        return;
    size_t end = job->at + 1;
    if (is(job, job->at, START)) {
        token->kind = KG_PTX_WORD;
        end = end_of_word(job, job->at);
    } else if (is(job, job->at, DIGIT)) {
        token->kind = KG_PTX_NUMBER;
        end = end_of_number(job, job->at);
    } else if (*token->text == '.' && end_of_fraction(job, job->at)) {
        token->kind = KG_PTX_NUMBER;
        end = end_of_fraction(job, job->at);
    } else if (*token->text == '.' && is(job, end, PART)) {
        token->kind = KG_PTX_DIRECTIVE;
        end = end_of_modifier(job, job->at);
    } else if (*token->text == '"') {
        token->kind = KG_PTX_STRING;
        end = end_of_string(job, job->at);
    } else {
        token->kind = KG_PTX_MARK;
    }
    token->length = (uint32_t)(end - job->at);
    job->at = end;
}

bool kg_ptx_is_mark(const struct kg_ptx_job *job, char mark)
{
    return job->token.kind == KG_PTX_MARK && *job->token.text == mark;
}

bool kg_ptx_accept(struct kg_ptx_job *job, char mark)
{
    if (!kg_ptx_is_mark(job, mark))
        return false;
    kg_ptx_advance(job);
    return true;
}

void kg_ptx_expect(struct kg_ptx_job *job, char mark, const char *where)
{
    char what[64];
    snprintf(what, sizeof what, "\"%c\" %s", mark, where);
    if (!kg_ptx_accept(job, mark))
        kg_ptx_fail_expected(job, what);
}

bool kg_ptx_reads(const struct kg_ptx_job *job, const char *text)
{
    size_t length = strlen(text);
    return job->token.length == length && memcmp(job->token.text, text, length) == 0;
}

bool kg_ptx_integer(const struct kg_ptx_token *token, int64_t *value)
{
    const char *text = token->text;
    uint32_t length = token->length, at = 0;
    *value = 0;
    if (token->kind != KG_PTX_NUMBER)
        return false;
    if (text[length - 1] == 'U' && length > 1)
        length--;
    unsigned base = 10;
    if (length > 1 && text[0] == '0') {
        char mark = (char)(text[1] | ('a' - 'A'));
        base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
        at = base == 8 ? 1 : 2;
    }
    uint64_t sum = 0;
    for (; at < length; at++) {
        char c = (char)(text[at] | ('a' - 'A'));
        unsigned digit = text[at] >= '0' && text[at] <= '9' ? (unsigned)(text[at] - '0')
                         : c >= 'a' && c <= 'f'             ? (unsigned)(c - 'a' + 10)
                                                            : base;
        if (digit >= base)
            return false;
        sum = sum * base + digit;
    }
    *value = (int64_t)sum;
    return true;
}
