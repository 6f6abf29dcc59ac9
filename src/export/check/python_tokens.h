// Python source as tokens, for programs that read files which people edited by hand. Any bytes may
// come: nothing outside the text is read, and what is no Python is said with its place.

#ifndef KG_EXPORT_CHECK_PYTHON_TOKENS_H
#define KG_EXPORT_CHECK_PYTHON_TOKENS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

enum kg_python_kind {
    KG_PYTHON_NAME, // keywords among them
    KG_PYTHON_NUMBER,
    KG_PYTHON_STRING, // with its prefix and quotes
    KG_PYTHON_SIGN,   // an operator or a bracket
    KG_PYTHON_NEWLINE,
    KG_PYTHON_INDENT,
    KG_PYTHON_DEDENT,
    KG_PYTHON_END,
};

// A stretch of the text.
struct kg_python_place {
    size_t at;
    size_t length;
};

struct kg_python_token {
    enum kg_python_kind kind;
    struct kg_python_place place;
};

struct kg_python_tokens {
    const char *text;
    int count; // the last one is an END
    struct kg_python_token *tokens;
    const char *problem; // why the text ends early: an unfinished string, ...; NULL: it does not
    struct kg_python_place where;
};

// The whole of a text, or a stretch of it that is an expression: without INDENT and NEWLINE. The
// arena's `failed` tells whether memory sufficed.
void kg_python_scan(struct kg_arena *arena, const char *text, size_t length,
                    struct kg_python_tokens *tokens);
void kg_python_scan_part(struct kg_arena *arena, const char *text, struct kg_python_place part,
                         struct kg_python_tokens *tokens);

bool kg_python_is(const struct kg_python_tokens *tokens, int token, const char *word);
// Bytes between the quotes of a STRING.
struct kg_python_place kg_python_inside(const struct kg_python_tokens *tokens, int token);

#endif
