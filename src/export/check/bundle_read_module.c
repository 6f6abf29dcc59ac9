// What the module around the function states: the formula in its docstring, params as constants.

#include "export/check/bundle_readers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- Numbers

// -1, 1e-05, 65504.0, tl.constexpr(128), float("-inf")
bool kg_bundle_number(struct kg_arena *arena, const struct kg_python_tokens *tokens,
                      struct kg_python_range range, double *number)
{
    struct kg_python_range callee, inside;
    bool is_negative = kg_python_is(tokens, range.first, "-");
    range.first += is_negative;
    range = kg_python_bare(tokens, range);
    if (kg_python_call(tokens, range, &callee, &inside) &&
        (kg_python_is(tokens, callee.end - 1, "constexpr") ||
         kg_python_is(tokens, callee.end - 1, "float") ||
         kg_python_is(tokens, callee.end - 1, "int")))
        return kg_bundle_number(arena, tokens, inside, number) &&
               (*number = is_negative ? -*number : *number, true);
    if (range.end != range.first + 1)
        return false;
    struct kg_python_place place = tokens->tokens[range.first].place;
    if (tokens->tokens[range.first].kind == KG_PYTHON_STRING)
        place = kg_python_inside(tokens, range.first);
    else if (tokens->tokens[range.first].kind != KG_PYTHON_NUMBER)
        return false;
    char *word = kg_arena_copy(arena, tokens->text + place.at, place.length), *end;
    if (!word)
        return false;
    for (char *from = word, *to = word;; from++) { // digits may be grouped by "_"
        if (*from != '_')
            *to++ = *from;
        if (!*from)
            break;
    }
    *number = strtod(word, &end);
    *number = is_negative ? -*number : *number;
    return end != word && *end == '\0';
}

void kg_bundle_read_constants(struct kg_bundle_facts *facts, int role,
                              const struct kg_bundle_source *source)
{
    const struct kg_python_lines *lines = &source->lines;
    for (int i = 0; i < lines->count; i++) {
        struct kg_python_range target, value;
        double number;
        if (lines->lines[i].depth > 0 ||
            !kg_python_assigns(&lines->tokens, lines->lines[i].range, &target, &value) ||
            target.end != target.first + 1 ||
            !kg_bundle_number(facts->arena, &lines->tokens, value, &number))
            continue;
        kg_bundle_state(facts,
                        (struct kg_bundle_statement){
                            .fact = KG_FACT_CONSTANT,
                            .subject = kg_python_word(facts->arena, &lines->tokens, target.first),
                            .value = kg_arena_format(facts->arena, "%.17g", number),
                            .shown = kg_bundle_shown_range(facts, source, value),
                            .role = role,
                            .is_code = true,
                            .place = kg_python_place_of(&lines->tokens, value),
                        });
    }
}

// ---- Lines of a docstring

bool kg_bundle_docstring(const struct kg_python_lines *lines, int line,
                         struct kg_python_place *place)
{
    if (line >= lines->count)
        return false;
    struct kg_python_range range = lines->lines[line].range;
    if (range.end != range.first + 1 || lines->tokens.tokens[range.first].kind != KG_PYTHON_STRING)
        return false;
    *place = kg_python_inside(&lines->tokens, range.first);
    return true;
}

bool kg_bundle_next_line(const char *text, struct kg_python_place *rest,
                         struct kg_python_place *line)
{
    if (rest->length == 0)
        return false;
    const char *newline = memchr(text + rest->at, '\n', rest->length);
    size_t length = newline ? (size_t)(newline - (text + rest->at)) : rest->length;
    size_t step = newline ? length + 1 : length;
    *line = (struct kg_python_place){rest->at, length};
    rest->at += step;
    rest->length -= step;
    while (line->length && strchr(" \t\r", text[line->at + line->length - 1]))
        line->length--;
    return true;
}

static size_t indent_of(const char *text, struct kg_python_place line)
{
    size_t indent = 0;
    while (indent < line.length &&
           (text[line.at + indent] == ' ' || text[line.at + indent] == '\t'))
        indent++;
    return indent;
}

static bool begins(const char *text, struct kg_python_place line, const char *words)
{
    size_t length = strlen(words);
    return line.length >= length && memcmp(text + line.at, words, length) == 0;
}

// Blanks say nothing, nor do backslashes, which docstrings need before some signs.
static const char *without_blanks(struct kg_arena *arena, const char *text,
                                  struct kg_python_place place)
{
    char *copy = kg_arena_copy(arena, text + place.at, place.length);
    size_t used = 0;
    for (size_t i = 0; copy && i < place.length; i++)
        if (!strchr(" \t\r\n\\", copy[i]))
            copy[used++] = copy[i];
    if (copy)
        copy[used] = '\0';
    return copy;
}

// Indented lines behind the one that announces them, up to an empty one.
void kg_bundle_read_formula(struct kg_bundle_facts *facts, int role,
                            const struct kg_bundle_source *source)
{
    static const char *const headings[] = {
        "The definition:", "Baseline:", "Accuracy:", "Performance:"};
    struct kg_python_place rest, line, formula = {0};
    bool is_announced = false;
    if (!kg_bundle_docstring(&source->lines, 0, &rest))
        return;
    while (kg_bundle_next_line(source->text, &rest, &line)) {
        size_t indent = indent_of(source->text, line);
        for (size_t i = 0; i < sizeof headings / sizeof headings[0] && formula.length == 0; i++)
            is_announced |= begins(source->text, line, headings[i]);
        if (is_announced && line.length > indent && indent > 0) {
            size_t at = formula.length ? formula.at : line.at + indent;
            formula = (struct kg_python_place){at, line.at + line.length - at};
        } else if (formula.length) {
            break;
        }
    }
    if (formula.length)
        kg_bundle_state(facts, (struct kg_bundle_statement){
                                   .fact = KG_FACT_FORMULA,
                                   .value = without_blanks(facts->arena, source->text, formula),
                                   .shown = kg_bundle_shown(facts, source, formula),
                                   .role = role,
                                   .is_code = true,
                                   .place = formula,
                               });
}
