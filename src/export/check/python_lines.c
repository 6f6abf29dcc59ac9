// From tokens to statements.

#include "export/check/python_lines.h"

#include "base/text.h"

#include <string.h>

static int step_of(const struct kg_python_tokens *tokens, int token)
{
    const struct kg_python_token *found = &tokens->tokens[token];
    if (found->kind != KG_PYTHON_SIGN || found->place.length != 1)
        return 0;
    char c = tokens->text[found->place.at];
    return strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
}

int kg_python_close(const struct kg_python_tokens *tokens, int open, int end)
{
    int depth = 0;
    for (int i = open; i < end; i++) {
        depth += step_of(tokens, i);
        if (depth == 0)
            return i + 1;
    }
    return end;
}

int kg_python_find(const struct kg_python_tokens *tokens, struct kg_python_range range,
                   const char *word)
{
    int depth = 0;
    for (int i = range.first; i < range.end; i++) {
        if (depth == 0 && kg_python_is(tokens, i, word))
            return i;
        depth += step_of(tokens, i);
    }
    return -1;
}

int kg_python_split(const struct kg_python_tokens *tokens, struct kg_python_range range, int most,
                    struct kg_python_range *parts)
{
    int count = 0, depth = 0, first = range.first, lambdas = 0;
    for (int i = range.first; i <= range.end; i++) {
        bool is_end = i == range.end;
        if (!is_end && depth == 0 && kg_python_is(tokens, i, "lambda"))
            lambdas++;
        else if (!is_end && depth == 0 && lambdas > 0 && kg_python_is(tokens, i, ":"))
            lambdas--;
        if (is_end ? i > first : depth == 0 && lambdas == 0 && kg_python_is(tokens, i, ",")) {
            if (count == most)
                return -1;
            parts[count++] = (struct kg_python_range){first, i};
            first = i + 1;
        }
        if (!is_end)
            depth += step_of(tokens, i);
    }
    return count;
}

struct kg_python_range kg_python_bare(const struct kg_python_tokens *tokens,
                                      struct kg_python_range range)
{
    while (range.end - range.first >= 2 && kg_python_is(tokens, range.first, "(") &&
           kg_python_close(tokens, range.first, range.end) == range.end) {
        range.first++;
        range.end--;
    }
    return range;
}

bool kg_python_call(const struct kg_python_tokens *tokens, struct kg_python_range range,
                    struct kg_python_range *callee, struct kg_python_range *arguments)
{
    int open = kg_python_find(tokens, range, "(");
    if (open <= range.first || kg_python_close(tokens, open, range.end) != range.end)
        return false;
    for (int i = range.first; i < open; i++)
        if (tokens->tokens[i].kind != KG_PYTHON_NAME && !kg_python_is(tokens, i, "."))
            return false;
    *callee = (struct kg_python_range){range.first, open};
    *arguments = (struct kg_python_range){open + 1, range.end - 1};
    return true;
}

bool kg_python_assigns(const struct kg_python_tokens *tokens, struct kg_python_range range,
                       struct kg_python_range *target, struct kg_python_range *value)
{
    int sign = kg_python_find(tokens, range, "=");
    if (sign <= range.first || sign + 1 >= range.end)
        return false;
    int colon = kg_python_find(tokens, (struct kg_python_range){range.first, sign}, ":");
    *target = (struct kg_python_range){range.first, colon > range.first ? colon : sign};
    *value = (struct kg_python_range){sign + 1, range.end};
    return true;
}

struct kg_python_place kg_python_place_of(const struct kg_python_tokens *tokens,
                                          struct kg_python_range range)
{
    struct kg_python_place first = tokens->tokens[range.first].place;
    if (range.end <= range.first)
        return first;
    struct kg_python_place last = tokens->tokens[range.end - 1].place;
    return (struct kg_python_place){first.at, last.at + last.length - first.at};
}

char *kg_python_word(struct kg_arena *arena, const struct kg_python_tokens *tokens, int token)
{
    struct kg_python_place place = tokens->tokens[token].place;
    return kg_arena_copy(arena, tokens->text + place.at, place.length);
}

static bool is_word(const struct kg_python_tokens *tokens, int token)
{
    return tokens->tokens[token].kind <= KG_PYTHON_STRING;
}

char *kg_python_plain(struct kg_arena *arena, const struct kg_python_tokens *tokens,
                      struct kg_python_range range)
{
    struct kg_text text = {0};
    for (int i = range.first; i < range.end; i++) {
        struct kg_python_place place = tokens->tokens[i].place;
        // A comma before a bracket adds nothing, but for tuples of one, which readers split.
        if (kg_python_is(tokens, i, ",") && i + 1 < range.end && step_of(tokens, i + 1) < 0)
            continue;
        if (i > range.first && is_word(tokens, i) && is_word(tokens, i - 1))
            kg_text_add(&text, " ");
        if (tokens->tokens[i].kind == KG_PYTHON_STRING) {
            struct kg_python_place inside = kg_python_inside(tokens, i);
            kg_text_add(&text, "'");
            kg_text_add_bytes(&text, tokens->text + inside.at, inside.length);
            kg_text_add(&text, "'");
        } else {
            kg_text_add_bytes(&text, tokens->text + place.at, place.length);
        }
    }
    char *copy = text.failed ? NULL : kg_arena_copy(arena, kg_text_string(&text), text.length);
    arena->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

// ---- Lines

static void fail(struct kg_python_tokens *tokens, int token, const char *problem)
{
    if (tokens->problem)
        return;
    tokens->problem = problem;
    tokens->where = tokens->tokens[token].place;
    if (tokens->where.length == 0)
        tokens->where.length = 1;
}

static bool needs_colon(const struct kg_python_tokens *tokens, int first)
{
    static const char *const words[] = {"def", "class", "if",   "elif",   "else",  "for",
                                        "try", "while", "with", "except", "async", "finally"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (kg_python_is(tokens, first, words[i]))
            return true;
    return false;
}

static bool opens_block(const struct kg_python_tokens *tokens, struct kg_python_range range)
{
    return range.end > range.first && kg_python_is(tokens, range.end - 1, ":");
}

static void check_line(struct kg_python_tokens *tokens, struct kg_python_range range)
{
    if (!needs_colon(tokens, range.first))
        return;
    if (kg_python_find(tokens, range, ":") < 0)
        fail(tokens, range.end - 1, "this statement lacks its colon");
    bool is_def = kg_python_is(tokens, range.first, "def");
    if (is_def &&
        (range.end - range.first < 4 || tokens->tokens[range.first + 1].kind != KG_PYTHON_NAME ||
         !kg_python_is(tokens, range.first + 2, "(")))
        fail(tokens, range.first, "a function needs a name and its parameters in brackets");
}

static void add_line(struct kg_arena *arena, struct kg_python_lines *lines, int *capacity,
                     struct kg_python_range range, int depth)
{
    if (lines->count == *capacity) {
        int more = *capacity ? *capacity * 2 : 128;
        struct kg_python_line *grown = KG_NEW_ARRAY(arena, more, struct kg_python_line);
        if (!grown)
            return;
        if (lines->count)
            memcpy(grown, lines->lines, (size_t)lines->count * sizeof *grown);
        lines->lines = grown;
        *capacity = more;
    }
    lines->lines[lines->count++] = (struct kg_python_line){.range = range, .depth = depth};
    check_line(&lines->tokens, range);
}

// Statements between semicolons are lines of their own.
static void add_statements(struct kg_arena *arena, struct kg_python_lines *lines, int *capacity,
                           struct kg_python_range range, int depth)
{
    while (range.first < range.end) {
        int semicolon = kg_python_find(&lines->tokens, range, ";");
        int end = semicolon >= 0 ? semicolon : range.end;
        if (end > range.first)
            add_line(arena, lines, capacity, (struct kg_python_range){range.first, end}, depth);
        range.first = end + 1;
    }
}

static void find_ends(struct kg_python_lines *lines)
{
    // Lines of the same depth end at the next one that is not deeper.
    for (int i = lines->count - 1; i >= 0; i--) {
        int end = i + 1;
        while (end < lines->count && lines->lines[end].depth > lines->lines[i].depth)
            end = lines->lines[end].end;
        lines->lines[i].end = end;
    }
}

void kg_python_read(struct kg_arena *arena, const char *text, size_t length,
                    struct kg_python_lines *lines)
{
    *lines = (struct kg_python_lines){0};
    struct kg_python_tokens *tokens = &lines->tokens;
    int depth = 0, first = 0, capacity = 0;
    bool awaits = false; // the line before ended with a colon
    kg_python_scan(arena, text, length, tokens);
    if (arena->failed)
        return;
    for (int i = 0; i < tokens->count && !tokens->problem && !arena->failed; i++) {
        enum kg_python_kind kind = tokens->tokens[i].kind;
        if (i == first && kind != KG_PYTHON_NEWLINE) {
            if (awaits != (kind == KG_PYTHON_INDENT))
                fail(tokens, i,
                     awaits ? "behind a colon an indented line must follow"
                            : "this line is indented, and the one before has no colon");
            awaits = false;
        }
        depth += kind == KG_PYTHON_INDENT ? 1 : kind == KG_PYTHON_DEDENT ? -1 : 0;
        if (kind == KG_PYTHON_NEWLINE) {
            struct kg_python_range range = {first, i};
            awaits = opens_block(tokens, range);
            add_statements(arena, lines, &capacity, range, depth);
        }
        if (kind >= KG_PYTHON_NEWLINE)
            first = i + 1;
    }
    if (tokens->problem || arena->failed)
        lines->count = 0;
    find_ends(lines);
}

// ---- Functions

static bool read_parameter(const struct kg_python_tokens *tokens, struct kg_python_range part,
                           enum kg_python_passing *passing, struct kg_python_function *out)
{
    if (kg_python_is(tokens, part.first, "/") || part.end <= part.first)
        return true;
    bool is_star = kg_python_is(tokens, part.first, "*") || kg_python_is(tokens, part.first, "**");
    if (is_star) {
        *passing = KG_PYTHON_KEYWORD;
        part.first++;
        if (part.first == part.end)
            return true;
    }
    if (out->count == KG_PYTHON_PARAMETERS || tokens->tokens[part.first].kind != KG_PYTHON_NAME)
        return false;
    struct kg_python_parameter *parameter = &out->parameters[out->count++];
    int sign = kg_python_find(tokens, part, "=");
    int end = sign >= 0 ? sign : part.end;
    int colon = kg_python_find(tokens, (struct kg_python_range){part.first, end}, ":");
    *parameter = (struct kg_python_parameter){.passing = is_star ? KG_PYTHON_STAR : *passing,
                                              .name = part.first};
    if (colon >= 0)
        parameter->annotation = (struct kg_python_range){colon + 1, end};
    if (sign >= 0)
        parameter->preset = (struct kg_python_range){sign + 1, part.end};
    return true;
}

bool kg_python_function(const struct kg_python_lines *lines, int line,
                        struct kg_python_function *function)
{
    const struct kg_python_tokens *tokens = &lines->tokens;
    struct kg_python_range range = lines->lines[line].range;
    struct kg_python_range parts[KG_PYTHON_PARAMETERS + 4];
    *function = (struct kg_python_function){.line = line};
    range.first += kg_python_is(tokens, range.first, "async");
    if (!kg_python_is(tokens, range.first, "def") || range.end - range.first < 4)
        return false;
    int close = kg_python_close(tokens, range.first + 2, range.end);
    function->name = range.first + 1;
    function->body = (struct kg_python_range){line + 1, lines->lines[line].end};
    struct kg_python_range inside = {range.first + 3, close - 1};
    int count = kg_python_split(tokens, inside, KG_PYTHON_PARAMETERS + 4, parts);
    enum kg_python_passing passing = KG_PYTHON_POSITIONAL;
    for (int i = 0; i < count; i++)
        if (!read_parameter(tokens, parts[i], &passing, function))
            return false;
    if (kg_python_is(tokens, close, "->")) {
        struct kg_python_range rest = {close + 1, range.end};
        int colon = kg_python_find(tokens, rest, ":");
        function->result = (struct kg_python_range){close + 1, colon >= 0 ? colon : range.end};
    }
    return count >= 0;
}
