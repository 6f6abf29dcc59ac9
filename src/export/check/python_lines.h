// The statements of a Python file as far as a reader of interfaces needs them: logical lines with
// what they stand in, functions with their parameters.

#ifndef KG_EXPORT_CHECK_PYTHON_LINES_H
#define KG_EXPORT_CHECK_PYTHON_LINES_H

#include "export/check/python_tokens.h"

// Tokens [first, end).
struct kg_python_range {
    int first;
    int end;
};

struct kg_python_line {
    struct kg_python_range range; // without the NEWLINE
    int depth;                    // of its indentation; 0: the module's
    int end;                      // the first line behind what is indented below it
};

struct kg_python_lines {
    struct kg_python_tokens tokens;
    int count;
    struct kg_python_line *lines;
};

// A text that is no Python has a problem in its tokens, and no lines.
void kg_python_read(struct kg_arena *arena, const char *text, size_t length,
                    struct kg_python_lines *lines);

enum kg_python_passing {
    KG_PYTHON_POSITIONAL,
    KG_PYTHON_KEYWORD,
    KG_PYTHON_STAR, // *args or **kwargs
};

struct kg_python_parameter {
    enum kg_python_passing passing;
    int name;                          // the token
    struct kg_python_range annotation; // empty: none
    struct kg_python_range preset;     // the default
};

#define KG_PYTHON_PARAMETERS 64

struct kg_python_function {
    int line;
    int name;                    // the token
    struct kg_python_range body; // lines
    int count;
    struct kg_python_parameter parameters[KG_PYTHON_PARAMETERS];
    struct kg_python_range result; // of the annotation; empty: none
};

// Reads the `def` of a line; false: it is none, or has more parameters than fit.
bool kg_python_function(const struct kg_python_lines *lines, int line,
                        struct kg_python_function *function);

// The parts of a range between the commas outside of brackets, up to `most`; a comma at the end
// adds none. More parts than that give -1.
int kg_python_split(const struct kg_python_tokens *tokens, struct kg_python_range range, int most,
                    struct kg_python_range *parts);
// The first token of the range, outside of brackets, that is this sign or word; -1: none.
int kg_python_find(const struct kg_python_tokens *tokens, struct kg_python_range range,
                   const char *word);
// Behind the bracket that closes the one at `open`; the range's end if none does.
int kg_python_close(const struct kg_python_tokens *tokens, int open, int end);
// Without brackets around the whole, and whether they made it a tuple.
struct kg_python_range kg_python_bare(const struct kg_python_tokens *tokens,
                                      struct kg_python_range range);

// "callee(arguments)" as the whole of the range: the arguments' tokens; false: it is something
// else.
bool kg_python_call(const struct kg_python_tokens *tokens, struct kg_python_range range,
                    struct kg_python_range *callee, struct kg_python_range *arguments);
// NAME = value; `value` gets what follows. Annotated assignments, too.
bool kg_python_assigns(const struct kg_python_tokens *tokens, struct kg_python_range range,
                       struct kg_python_range *target, struct kg_python_range *value);

// The place from the first to the last token; of an empty range that of the token there.
struct kg_python_place kg_python_place_of(const struct kg_python_tokens *tokens,
                                          struct kg_python_range range);
// The tokens with single blanks where two words meet, strings by single quotes: equal texts mean
// the same. NULL: out of memory.
char *kg_python_plain(struct kg_arena *arena, const struct kg_python_tokens *tokens,
                      struct kg_python_range range);
char *kg_python_word(struct kg_arena *arena, const struct kg_python_tokens *tokens, int token);

#endif
