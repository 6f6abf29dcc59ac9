// Docstrings of emitted Python: see docstring.h.

#include "gen/shared/docstring.h"

#include <string.h>

enum { COLUMNS = 100 };

static void escape(struct kg_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool ends = bytes[i] == '"' && (bytes[i + 1] == '"' || !bytes[i + 1]);
        kg_text_format(text, bytes[i] == '\\' || ends ? "\\%c" : "%c", bytes[i]);
    }
}

void kg_docstring_escape(struct kg_text *text, const char *lines)
{
    escape(text, lines, strlen(lines));
}

// Of UTF-8, a column for each character.
static int columns_of(const char *bytes, size_t length)
{
    int columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return columns;
}

static int column_of(const struct kg_text *text)
{
    size_t begin = text->length;
    while (begin > 0 && text->data[begin - 1] != '\n')
        begin--;
    return columns_of(kg_text_string(text) + begin, text->length - begin);
}

struct prose {
    struct kg_text *text;
    int indent;
    int column;     // where the current line ends
    bool has_words; // of the current line: another one follows after a blank
};

static void begin_line(struct prose *prose)
{
    kg_text_format(prose->text, "\n%*s", prose->indent, "");
    prose->column = prose->indent;
    prose->has_words = false;
}

static void add_word(struct prose *prose, const char *word, size_t length)
{
    int columns = columns_of(word, length);
    if (prose->has_words && prose->column + 1 + columns > COLUMNS)
        begin_line(prose);
    if (prose->has_words)
        kg_text_add(prose->text, " ");
    prose->column += columns + prose->has_words;
    escape(prose->text, word, length);
    prose->has_words = true;
}

static void add_words(struct prose *prose, const char *line, size_t length)
{
    for (const char *end = line + length; line < end;) {
        size_t word = strcspn(line, " \t\n");
        if (word)
            add_word(prose, line, word);
        line += word + 1;
    }
}

static bool begins_item(const char *line)
{
    return (*line == '-' || *line == '*') && line[1] == ' ';
}

void kg_docstring_prose(struct kg_text *text, const char *lines, int indent)
{
    struct prose prose = {text, indent, column_of(text), false};
    bool any = false, after_empty = false, after_kept = false;
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n"), blanks = strspn(line, " \t");
        bool is_kept = blanks > 0;
        if (blanks == length) {
            after_empty = true;
        } else {
            if (any && after_empty)
                kg_text_add(text, "\n");
            if (any && (after_empty || after_kept || is_kept || begins_item(line)))
                begin_line(&prose);
            if (is_kept)
                escape(text, line, length);
            else
                add_words(&prose, line, length);
            any = true;
            after_empty = false;
            after_kept = is_kept;
        }
        line += length + (line[length] == '\n');
    }
}
