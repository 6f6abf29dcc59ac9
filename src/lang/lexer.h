// The lexer: a definition's text to an array of tokens.

#ifndef KG_LANG_LEXER_H
#define KG_LANG_LEXER_H

#include "lang/diagnostics.h"

#define KG_MAX_TEXT (1 << 20) // bytes of one file
#define KG_MAX_NAME 63        // bytes of one name

enum kg_token_kind {
    KG_TOKEN_END,
    KG_TOKEN_NAME,
    KG_TOKEN_INTEGER,
    KG_TOKEN_REAL,
    KG_TOKEN_STRING,
    KG_TOKEN_ARROW, // ->
    KG_TOKEN_RANGE, // ..
    KG_TOKEN_LE,
    KG_TOKEN_GE,
    KG_TOKEN_EQ,
    KG_TOKEN_NE,
    KG_TOKEN_AND,
    KG_TOKEN_OR,
    KG_TOKEN_SHIFT_LEFT,
    KG_TOKEN_SHIFT_RIGHT,
    KG_TOKEN_OPEN_PAREN,
    KG_TOKEN_CLOSE_PAREN,
    KG_TOKEN_OPEN_BRACKET,
    KG_TOKEN_CLOSE_BRACKET,
    KG_TOKEN_OPEN_BRACE,
    KG_TOKEN_CLOSE_BRACE,
    KG_TOKEN_COMMA,
    KG_TOKEN_COLON,
    KG_TOKEN_ASSIGN,
    KG_TOKEN_PLUS,
    KG_TOKEN_MINUS,
    KG_TOKEN_STAR,
    KG_TOKEN_SLASH,
    KG_TOKEN_PERCENT,
    KG_TOKEN_LT,
    KG_TOKEN_GT,
    KG_TOKEN_NOT,
    KG_TOKEN_AMPERSAND,
    KG_TOKEN_BAR,
    KG_TOKEN_CARET,
    KG_TOKEN_TILDE,
    KG_TOKEN_COUNT
};

struct kg_token {
    enum kg_token_kind kind;
    struct kg_span span;
    size_t offset;    // of its first byte in the text
    const char *text; // terminated; a string's without quotes and escapes
    int64_t integer;  // INTEGER
    double number;    // INTEGER and REAL
};

// The tokens of job->source, ending with KG_TOKEN_END. The array and its texts live in the arena.
const struct kg_token *kg_lang_lex(struct kg_lang_job *job);

// As shown in messages: `"->"`, `a name`, `the end of the file`.
const char *kg_token_kind_text(enum kg_token_kind kind);

#endif
