// The lexer. Refuses whatever is not clean text first (length, UTF-8, control characters), so that
// nothing behind it has to.

#include "lang/lexer.h"

#include "lang/foreign_words.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
    struct kg_lang_job *job;
    const char *text; // the job's source
    size_t length;
    size_t at;
    size_t line_start;
    int line;
    struct kg_token *tokens;
    size_t count;
    size_t capacity;
};

static const struct punctuation {
    const char *text;
    const char *shown;
    enum kg_token_kind kind;
} punctuation[] = {
    // Two characters before one, so that the first match is the longest.
    {"->", "\"->\"", KG_TOKEN_ARROW},      {"..", "\"..\"", KG_TOKEN_RANGE},
    {"<=", "\"<=\"", KG_TOKEN_LE},         {">=", "\">=\"", KG_TOKEN_GE},
    {"==", "\"==\"", KG_TOKEN_EQ},         {"!=", "\"!=\"", KG_TOKEN_NE},
    {"&&", "\"&&\"", KG_TOKEN_AND},        {"||", "\"||\"", KG_TOKEN_OR},
    {"<<", "\"<<\"", KG_TOKEN_SHIFT_LEFT}, {">>", "\">>\"", KG_TOKEN_SHIFT_RIGHT},
    {"(", "\"(\"", KG_TOKEN_OPEN_PAREN},   {")", "\")\"", KG_TOKEN_CLOSE_PAREN},
    {"[", "\"[\"", KG_TOKEN_OPEN_BRACKET}, {"]", "\"]\"", KG_TOKEN_CLOSE_BRACKET},
    {"{", "\"{\"", KG_TOKEN_OPEN_BRACE},   {"}", "\"}\"", KG_TOKEN_CLOSE_BRACE},
    {",", "\",\"", KG_TOKEN_COMMA},        {":", "\":\"", KG_TOKEN_COLON},
    {"=", "\"=\"", KG_TOKEN_ASSIGN},       {"+", "\"+\"", KG_TOKEN_PLUS},
    {"-", "\"-\"", KG_TOKEN_MINUS},        {"*", "\"*\"", KG_TOKEN_STAR},
    {"/", "\"/\"", KG_TOKEN_SLASH},        {"%", "\"%\"", KG_TOKEN_PERCENT},
    {"<", "\"<\"", KG_TOKEN_LT},           {">", "\">\"", KG_TOKEN_GT},
    {"!", "\"!\"", KG_TOKEN_NOT},          {"&", "\"&\"", KG_TOKEN_AMPERSAND},
    {"|", "\"|\"", KG_TOKEN_BAR},          {"^", "\"^\"", KG_TOKEN_CARET},
    {"~", "\"~\"", KG_TOKEN_TILDE},
};

// What people paste from papers and type with a Chinese keyboard, and what they mean by it.
static const struct lookalike {
    const char *text;
    const char *meant;
} lookalikes[] = {
    {"≤", "<="},  {"≥", ">="}, {"≠", "!="},  {"×", "*"},   {"·", "*"},
    {"÷", "/"},   {"−", "-"},  {"–", "-"},   {"→", "->"},  {"，", ","},
    {"：", ":"},  {"（", "("}, {"）", ")"},  {"“", "\""},  {"”", "\""},
    {"∞", "inf"}, {"π", "pi"}, {"∑", "sum"}, {"Σ", "sum"}, {"；", "a new line"},
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const struct lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->length ? lexer->text[lexer->at + ahead] : '\0';
}

static struct kg_span span_at(const struct lexer *lexer, size_t begin, size_t end)
{
    size_t length = end > begin ? end - begin : 1;
    return (struct kg_span){
        .line = lexer->line,
        .column = (int)(begin - lexer->line_start) + 1,
        .length = (int)length,
    };
}

static void check_text(struct lexer *lexer)
{
    while (lexer->at < lexer->length) {
        const char *at = lexer->text + lexer->at;
        size_t length = kg_lang_character(at, lexer->length - lexer->at);
        if (length == 0)
            kg_lang_fail(lexer->job, span_at(lexer, lexer->at, lexer->at + 1),
                         "expected UTF-8 text without control characters",
                         "byte 0x%02x is not text", (unsigned char)*at);
        lexer->at += length;
        if (*at == '\n') {
            lexer->line++;
            lexer->line_start = lexer->at;
        }
    }
    lexer->at = lexer->line_start = 0;
    lexer->line = 1;
}

static struct kg_token *add_token(struct lexer *lexer, enum kg_token_kind kind, size_t begin)
{
    if (lexer->count == lexer->capacity) {
        size_t capacity = lexer->capacity ? 2 * lexer->capacity : 256;
        struct kg_token *tokens = KG_LANG_NEW_ARRAY(lexer->job, capacity, struct kg_token);
        if (lexer->count > 0)
            memcpy(tokens, lexer->tokens, lexer->count * sizeof *tokens);
        lexer->tokens = tokens;
        lexer->capacity = capacity;
    }
    struct kg_token *token = &lexer->tokens[lexer->count++];
    *token = (struct kg_token){.kind = kind, .offset = begin};
    token->span = span_at(lexer, begin, lexer->at);
    return token;
}

static void skip_blank(struct lexer *lexer)
{
    for (; lexer->at < lexer->length; lexer->at++) {
        char c = peek(lexer, 0);
        if (c == '#') {
            while (lexer->at + 1 < lexer->length && peek(lexer, 1) != '\n')
                lexer->at++;
        } else if (c == '\n') {
            lexer->line++;
            lexer->line_start = lexer->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static void lex_name(struct lexer *lexer)
{
    size_t begin = lexer->at;
    while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)))
        lexer->at++;
    size_t length = lexer->at - begin;
    if (length > KG_MAX_NAME)
        kg_lang_fail(lexer->job, span_at(lexer, begin, lexer->at), NULL,
                     "a name of %zu characters; at most %d are allowed", length, KG_MAX_NAME);
    char *text = kg_lang_copy(lexer->job, lexer->text + begin, length);
    add_token(lexer, KG_TOKEN_NAME, begin)->text = text;
}

static bool skip_digits(struct lexer *lexer)
{
    size_t begin = lexer->at;
    while (is_digit(peek(lexer, 0)))
        lexer->at++;
    return lexer->at > begin;
}

// The value of a number's text; the decimal point is a point whatever the process's locale says.
static double read_real(struct lexer *lexer, const char *text, struct kg_span span)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (locale == (locale_t)0)
        kg_lang_fail_plain(lexer->job, KG_ERROR_MEMORY, "out of memory: a number");
    double number = strtod_l(text, NULL, locale);
    freelocale(locale);
    if (isinf(number))
        kg_lang_fail(lexer->job, span, "help: write inf for infinity", "%s is too large", text);
    bool is_zero = text[strspn(text, "0.")] == '\0' || text[strspn(text, "0.")] == 'e' ||
                   text[strspn(text, "0.")] == 'E';
    if (number == 0 && !is_zero)
        kg_lang_fail(lexer->job, span, NULL, "%s is too small: it would be 0", text);
    return number;
}

static int64_t read_integer(struct lexer *lexer, const char *text, struct kg_span span)
{
    errno = 0;
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    long long value = strtoll(text, NULL, hexadecimal ? 16 : 10);
    if (errno == ERANGE)
        kg_lang_fail(lexer->job, span,
                     hexadecimal ? "help: integers have 63 bits and a sign; all bits set is ~0"
                                 : "help: write it with a point for a real number",
                     "%s is too large for an integer", text);
    return value;
}

// At "0x": skips it and the digits behind it.
static bool skip_hexadecimal(struct lexer *lexer)
{
    lexer->at += 2;
    size_t begin = lexer->at;
    while (isxdigit((unsigned char)peek(lexer, 0)))
        lexer->at++;
    return lexer->at > begin;
}

static void lex_number(struct lexer *lexer)
{
    size_t begin = lexer->at;
    bool real = false, complete = true;
    bool hexadecimal = peek(lexer, 0) == '0' && (peek(lexer, 1) == 'x' || peek(lexer, 1) == 'X');
    if (hexadecimal)
        complete = skip_hexadecimal(lexer);
    else
        skip_digits(lexer);
    if (!hexadecimal && peek(lexer, 0) == '.' && peek(lexer, 1) != '.') {
        real = true;
        lexer->at++;
        skip_digits(lexer);
    }
    if (!hexadecimal && (peek(lexer, 0) == 'e' || peek(lexer, 0) == 'E')) {
        real = true;
        lexer->at++;
        if (peek(lexer, 0) == '+' || peek(lexer, 0) == '-')
            lexer->at++;
        complete = skip_digits(lexer);
    }
    while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0))) {
        complete = false;
        lexer->at++;
    }
    struct kg_span span = span_at(lexer, begin, lexer->at);
    char *text = kg_lang_copy(lexer->job, lexer->text + begin, lexer->at - begin);
    if (!complete)
        kg_lang_fail(lexer->job, span, "expected a number such as 2, 0.5, 1e-5 or 0xff",
                     "malformed number \"%s\"", text);
    if (lexer->at - begin > KG_MAX_NAME)
        kg_lang_fail(lexer->job, span, NULL, "a number of %zu characters; at most %d are allowed",
                     lexer->at - begin, KG_MAX_NAME);
    struct kg_token *token = add_token(lexer, real ? KG_TOKEN_REAL : KG_TOKEN_INTEGER, begin);
    token->text = text;
    token->integer = real ? 0 : read_integer(lexer, text, span);
    token->number = real ? read_real(lexer, text, span) : (double)token->integer;
}

static void lex_string(struct lexer *lexer)
{
    size_t begin = lexer->at++;
    char *text = NULL;
    size_t length = 0;
    for (int pass = 0; pass < 2; pass++) { // measure, then copy
        lexer->at = begin + 1;
        length = 0;
        while (peek(lexer, 0) != '"') {
            bool escape = peek(lexer, 0) == '\\';
            lexer->at += escape;
            char c = peek(lexer, 0);
            if (lexer->at >= lexer->length || c == '\n' || c == '\r')
                kg_lang_fail(lexer->job, span_at(lexer, begin, begin + 1),
                             "expected a closing quote on the same line", "unfinished string");
            if (escape && c != '"' && c != '\\')
                kg_lang_fail(lexer->job, span_at(lexer, lexer->at - 1, lexer->at + 1),
                             "expected \\\" or \\\\", "unknown escape in a string");
            if (text)
                text[length] = c;
            length++;
            lexer->at++;
        }
        lexer->at++;
        if (!text)
            text = KG_LANG_NEW_ARRAY(lexer->job, length + 1, char);
    }
    add_token(lexer, KG_TOKEN_STRING, begin)->text = text;
}

// Of what no token begins with, or of signs of another language.
_Noreturn static void fail_characters(struct lexer *lexer)
{
    const char *at = lexer->text + lexer->at;
    size_t length = kg_lang_foreign_sign(at, lexer->length - lexer->at);
    if (length > 0) {
        const char *sign = kg_lang_copy(lexer->job, at, length);
        kg_lang_fail(lexer->job, span_at(lexer, lexer->at, lexer->at + length),
                     kg_lang_foreign(lexer->job, KG_FOREIGN_SIGN, sign, NULL), "unexpected \"%s\"",
                     sign);
    }
    length = kg_lang_character(at, lexer->length - lexer->at);
    struct kg_span span = span_at(lexer, lexer->at, lexer->at + length);
    const char *advice = NULL;
    for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++)
        if (strlen(lookalikes[i].text) == length && memcmp(at, lookalikes[i].text, length) == 0)
            advice = kg_lang_format(lexer->job, "help: write %s", lookalikes[i].meant);
    kg_lang_fail(lexer->job, span, advice, "unexpected character \"%.*s\"", (int)length, at);
}

static void lex_punctuation(struct lexer *lexer)
{
    if (kg_lang_foreign_sign(lexer->text + lexer->at, lexer->length - lexer->at) > 1)
        fail_characters(lexer);
    for (size_t i = 0; i < sizeof punctuation / sizeof punctuation[0]; i++) {
        const struct punctuation *row = &punctuation[i];
        if (peek(lexer, 0) != row->text[0] || (row->text[1] && peek(lexer, 1) != row->text[1]))
            continue;
        size_t begin = lexer->at;
        lexer->at += strlen(row->text);
        add_token(lexer, row->kind, begin)->text = row->text;
        return;
    }
    fail_characters(lexer);
}

const char *kg_token_kind_text(enum kg_token_kind kind)
{
    static const char *const named[] = {"the end of the file", "a name", "an integer", "a number",
                                        "a string"};
    if (kind <= KG_TOKEN_STRING)
        return named[kind];
    for (size_t i = 0; i < sizeof punctuation / sizeof punctuation[0]; i++)
        if (punctuation[i].kind == kind)
            return punctuation[i].shown;
    return "?";
}

const struct kg_token *kg_lang_lex(struct kg_lang_job *job)
{
    struct lexer lexer = {.job = job, .text = job->source.text, .line = 1};
    lexer.length = job->source.length;
    if (lexer.length > KG_MAX_TEXT)
        kg_lang_fail_plain(job, KG_ERROR_DEFINITION,
                           "%s: error: a definition of %zu bytes; at most %d are allowed",
                           job->source.name, lexer.length, KG_MAX_TEXT);
    check_text(&lexer);
    if (lexer.length >= 3 && memcmp(lexer.text, "\xEF\xBB\xBF", 3) == 0)
        lexer.at = 3; // a byte order mark
    for (skip_blank(&lexer); lexer.at < lexer.length; skip_blank(&lexer)) {
        char c = peek(&lexer, 0);
        if (is_letter(c))
            lex_name(&lexer);
        else if (is_digit(c) || (c == '.' && is_digit(peek(&lexer, 1))))
            lex_number(&lexer);
        else if (c == '"')
            lex_string(&lexer);
        else
            lex_punctuation(&lexer);
    }
    add_token(&lexer, KG_TOKEN_END, lexer.at)->text = "";
    return lexer.tokens;
}
