// Python's lexical structure: names, numbers, strings, brackets that join lines, indentation.

#include "export/check/python_tokens.h"

#include <string.h>

#define MOST_BRACKETS 200
#define MOST_INDENTS 100
#define MOST_NESTED 8    // strings in the braces of f-strings
#define MOST_FIELDS 4096 // bytes of an f-string whose braces are followed

struct scanner {
    struct kg_arena *arena;
    struct kg_python_tokens *out;
    const char *text;
    size_t at, end;
    int capacity;
    bool is_part; // an expression: lines mean nothing
    int bracket_count;
    size_t brackets[MOST_BRACKETS];
    int indent_count;
    int indents[MOST_INDENTS];
};

static void add(struct scanner *scanner, enum kg_python_kind kind, size_t at, size_t length)
{
    struct kg_python_tokens *out = scanner->out;
    if (out->count == scanner->capacity) {
        int capacity = scanner->capacity ? scanner->capacity * 2 : 256;
        struct kg_python_token *more =
            KG_NEW_ARRAY(scanner->arena, capacity, struct kg_python_token);
        if (!more)
            return;
        if (out->count)
            memcpy(more, out->tokens, (size_t)out->count * sizeof *more);
        out->tokens = more;
        scanner->capacity = capacity;
    }
    out->tokens[out->count++] = (struct kg_python_token){kind, {at, length}};
}

static bool fail(struct scanner *scanner, size_t at, size_t length, const char *problem)
{
    if (!scanner->out->problem) {
        scanner->out->problem = problem;
        scanner->out->where = (struct kg_python_place){at, length ? length : 1};
    }
    return false;
}

static char peek(const struct scanner *scanner, size_t ahead)
{
    return scanner->end - scanner->at > ahead ? scanner->text[scanner->at + ahead] : '\0';
}

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// ---- Strings

// Where the string that begins with a quote at `at` ends: behind its last quote; 0: nowhere.
static size_t end_of_string(const struct scanner *scanner, size_t at, bool has_fields, int depth)
{
    const char *text = scanner->text;
    char quote = text[at];
    bool is_long = scanner->end - at >= 3 && text[at + 1] == quote && text[at + 2] == quote;
    int braces = 0;
    for (size_t i = at + (is_long ? 3 : 1); i < scanner->end; i++) {
        char c = text[i];
        if ((c == '\n' && !is_long) || (has_fields && i - at > MOST_FIELDS))
            return 0;
        if (c == '\\' && i + 1 < scanner->end) {
            i++;
        } else if (braces > 0 && (c == '"' || c == '\'') && depth < MOST_NESTED) {
            // A string in a field, but for quotes in a format.
            size_t inner = end_of_string(scanner, i, true, depth + 1);
            if (!inner)
                return 0;
            i = inner - 1;
        } else if (c == quote && !is_long) {
            return i + 1;
        } else if (c == quote && scanner->end - i >= 3 && text[i + 1] == quote &&
                   text[i + 2] == quote) {
            return i + 3;
        } else if (has_fields && c == '{') {
            if (braces == 0 && i + 1 < scanner->end && text[i + 1] == '{')
                i++;
            else
                braces++;
        } else if (has_fields && c == '}' && braces > 0) {
            braces--;
        }
    }
    return 0;
}

static bool scan_string(struct scanner *scanner, size_t begin, size_t quote)
{
    bool has_fields = false;
    for (size_t i = begin; i < quote; i++)
        has_fields |= scanner->text[i] == 'f' || scanner->text[i] == 'F' ||
                      scanner->text[i] == 't' || scanner->text[i] == 'T';
    size_t end = has_fields ? end_of_string(scanner, quote, true, 0) : 0;
    if (!end) // braces that match nothing: as any string
        end = end_of_string(scanner, quote, false, 0);
    if (!end) {
        const char *newline = memchr(scanner->text + begin, '\n', scanner->end - begin);
        size_t stop = newline ? (size_t)(newline - scanner->text) : scanner->end;
        return fail(scanner, begin, stop - begin, "this string does not end");
    }
    add(scanner, KG_PYTHON_STRING, begin, end - begin);
    scanner->at = end;
    return true;
}

// ---- Names and numbers

static bool scan_name(struct scanner *scanner)
{
    size_t begin = scanner->at, at = begin;
    while (at < scanner->end && (starts_name(scanner->text[at]) || is_digit(scanner->text[at])))
        at++;
    if (at - begin <= 2 && at < scanner->end &&
        (scanner->text[at] == '"' || scanner->text[at] == '\'')) {
        bool is_prefix = true;
        for (size_t i = begin; i < at; i++)
            is_prefix &= strchr("rRbBuUfFtT", scanner->text[i]) != NULL;
        if (is_prefix)
            return scan_string(scanner, begin, at);
    }
    add(scanner, KG_PYTHON_NAME, begin, at - begin);
    scanner->at = at;
    return true;
}

static bool scan_number(struct scanner *scanner)
{
    size_t begin = scanner->at, at = begin;
    bool is_hex = peek(scanner, 0) == '0' && (peek(scanner, 1) == 'x' || peek(scanner, 1) == 'X');
    while (at < scanner->end) {
        char c = scanner->text[at];
        bool is_exponent = !is_hex && at > begin && (c == '+' || c == '-') &&
                           (scanner->text[at - 1] == 'e' || scanner->text[at - 1] == 'E');
        if (!is_exponent && !is_digit(c) && c != '.' && !starts_name(c))
            break;
        at++;
    }
    add(scanner, KG_PYTHON_NUMBER, begin, at - begin);
    scanner->at = at;
    return true;
}

// ---- Signs

static bool open_bracket(struct scanner *scanner)
{
    if (scanner->bracket_count == MOST_BRACKETS)
        return fail(scanner, scanner->at, 1, "brackets are nested too deeply");
    scanner->brackets[scanner->bracket_count++] = scanner->at;
    return true;
}

static bool close_bracket(struct scanner *scanner, char c)
{
    char open = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (scanner->bracket_count == 0)
        return fail(scanner, scanner->at, 1, "this bracket closes none");
    if (scanner->text[scanner->brackets[scanner->bracket_count - 1]] != open)
        return fail(scanner, scanner->at, 1, "this bracket does not fit the one that is open");
    scanner->bracket_count--;
    return true;
}

static bool scan_sign(struct scanner *scanner)
{
    static const char *const longer[] = {
        "**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "**",
        "//",  "<<",  ">>",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@="};
    char c = peek(scanner, 0);
    size_t length = 1;
    for (size_t i = 0; i < sizeof longer / sizeof longer[0] && length == 1; i++) {
        size_t size = strlen(longer[i]);
        if (scanner->end - scanner->at >= size &&
            memcmp(scanner->text + scanner->at, longer[i], size) == 0)
            length = size;
    }
    if (c == '\0' || !strchr("()[]{}+-*/%@&|^~<>=.,:;!", c))
        return fail(scanner, scanner->at, 1, "this character is no Python");
    if (c == '!' && length == 1)
        return fail(scanner, scanner->at, 1, "this character is no Python");
    if (strchr("([{", c) && !open_bracket(scanner))
        return false;
    if (strchr(")]}", c) && !close_bracket(scanner, c))
        return false;
    add(scanner, KG_PYTHON_SIGN, scanner->at, length);
    scanner->at += length;
    return true;
}

// ---- Lines

static void skip_comment(struct scanner *scanner)
{
    while (scanner->at < scanner->end && scanner->text[scanner->at] != '\n')
        scanner->at++;
}

// At the beginning of a line: INDENT and DEDENT, unless the line is empty.
static bool scan_indent(struct scanner *scanner)
{
    int width = 0;
    for (; scanner->at < scanner->end; scanner->at++) {
        char c = scanner->text[scanner->at];
        if (c == ' ')
            width += width < 1 << 20;
        else if (c == '\t')
            width = width < 1 << 20 ? (width / 8 + 1) * 8 : width;
        else if (c == '\f')
            width = 0;
        else if (c != '\r')
            break;
    }
    if (peek(scanner, 0) == '#')
        skip_comment(scanner);
    if (scanner->at == scanner->end || peek(scanner, 0) == '\n')
        return true;
    int *count = &scanner->indent_count;
    if (width > scanner->indents[*count]) {
        if (*count + 1 == MOST_INDENTS)
            return fail(scanner, scanner->at, 1, "lines are indented too deeply");
        scanner->indents[++*count] = width;
        add(scanner, KG_PYTHON_INDENT, scanner->at, 0);
    }
    while (width < scanner->indents[*count]) {
        --*count;
        add(scanner, KG_PYTHON_DEDENT, scanner->at, 0);
    }
    if (width != scanner->indents[*count])
        return fail(scanner, scanner->at, 1, "the indentation fits no line before");
    return true;
}

static bool ends_line(const struct scanner *scanner)
{
    return !scanner->is_part && scanner->bracket_count == 0;
}

static bool scan_newline(struct scanner *scanner)
{
    const struct kg_python_tokens *out = scanner->out;
    bool is_line = out->count && out->tokens[out->count - 1].kind <= KG_PYTHON_SIGN;
    if (ends_line(scanner) && is_line)
        add(scanner, KG_PYTHON_NEWLINE, scanner->at, 0);
    scanner->at++;
    return !ends_line(scanner) || scan_indent(scanner);
}

static bool scan_next(struct scanner *scanner)
{
    char c = peek(scanner, 0);
    if (c == '\n')
        return scan_newline(scanner);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        scanner->at++;
        return true;
    }
    if (c == '#') {
        skip_comment(scanner);
        return true;
    }
    if (c == '\\') {
        size_t ahead = peek(scanner, 1) == '\r' ? 2 : 1;
        if (peek(scanner, ahead) != '\n')
            return fail(scanner, scanner->at, 1, "behind a backslash the line must end");
        scanner->at += ahead + 1;
        return true;
    }
    if (starts_name(c))
        return scan_name(scanner);
    if (is_digit(c) || (c == '.' && is_digit(peek(scanner, 1))))
        return scan_number(scanner);
    if (c == '"' || c == '\'')
        return scan_string(scanner, scanner->at, scanner->at);
    return scan_sign(scanner);
}

static void scan(struct scanner *scanner)
{
    bool goes_on = scanner->is_part || scan_indent(scanner);
    while (goes_on && scanner->at < scanner->end && !scanner->arena->failed)
        goes_on = scan_next(scanner);
    if (goes_on && scanner->bracket_count > 0)
        fail(scanner, scanner->brackets[scanner->bracket_count - 1], 1,
             "this bracket is never closed");
    const struct kg_python_tokens *out = scanner->out;
    if (!scanner->is_part && out->count && out->tokens[out->count - 1].kind <= KG_PYTHON_SIGN)
        add(scanner, KG_PYTHON_NEWLINE, scanner->at, 0);
    for (; scanner->indent_count > 0; scanner->indent_count--)
        add(scanner, KG_PYTHON_DEDENT, scanner->at, 0);
    add(scanner, KG_PYTHON_END, scanner->at, 0);
}

void kg_python_scan(struct kg_arena *arena, const char *text, size_t length,
                    struct kg_python_tokens *tokens)
{
    *tokens = (struct kg_python_tokens){.text = text};
    size_t mark = length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    struct scanner scanner = {
        .arena = arena, .out = tokens, .text = text, .at = mark, .end = length};
    scan(&scanner);
}

void kg_python_scan_part(struct kg_arena *arena, const char *text, struct kg_python_place part,
                         struct kg_python_tokens *tokens)
{
    *tokens = (struct kg_python_tokens){.text = text};
    struct scanner scanner = {.arena = arena,
                              .out = tokens,
                              .text = text,
                              .at = part.at,
                              .end = part.at + part.length,
                              .is_part = true};
    scan(&scanner);
}

bool kg_python_is(const struct kg_python_tokens *tokens, int token, const char *word)
{
    if (token < 0 || token >= tokens->count)
        return false;
    const struct kg_python_token *found = &tokens->tokens[token];
    return found->kind <= KG_PYTHON_SIGN && found->kind != KG_PYTHON_STRING &&
           found->place.length == strlen(word) &&
           memcmp(tokens->text + found->place.at, word, found->place.length) == 0;
}

struct kg_python_place kg_python_inside(const struct kg_python_tokens *tokens, int token)
{
    struct kg_python_place place = tokens->tokens[token].place;
    const char *text = tokens->text;
    while (place.length && text[place.at] != '"' && text[place.at] != '\'') {
        place.at++;
        place.length--;
    }
    bool is_long = place.length >= 6 && text[place.at] == text[place.at + 1] &&
                   text[place.at] == text[place.at + 2];
    size_t quotes = is_long ? 3 : 1;
    return place.length >= 2 * quotes
               ? (struct kg_python_place){place.at + quotes, place.length - 2 * quotes}
               : place;
}
