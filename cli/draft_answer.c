// Answers of language models. The bytes are hostile: the size is bounded by who received them,
// nesting and encoding by Jansson, and no control character survives. The text is free in form:
// definitions are found in fenced blocks, or else by their first line and their last brace.

#include "draft.h"
#include "kernelgen.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of a text that is no longer than it was.
static void make_plain(char *text)
{
    char *end = text;
    for (const char *c = text; *c; c++)
        if (!(*c == '\r' && c[1] == '\n'))
            *end++ = *c;
    *end = '\0';
    kg_text_make_printable(text);
}

// The content is a text or, of some servers, an array of parts.
static char *copy_content(const json_t *content)
{
    if (json_is_string(content))
        return strdup(json_string_value(content));
    size_t length = 0, room = 1;
    for (size_t i = 0; i < json_array_size(content); i++)
        room += json_string_length(json_object_get(json_array_get(content, i), "text"));
    char *text = json_is_array(content) ? calloc(1, room) : NULL;
    for (size_t i = 0; text && i < json_array_size(content); i++) {
        const json_t *part = json_object_get(json_array_get(content, i), "text");
        if (json_is_string(part)) {
            memcpy(text + length, json_string_value(part), json_string_length(part));
            length += json_string_length(part);
        }
    }
    return text;
}

char *draft_read_answer(const char *bytes, size_t length, char why[DRAFT_WHY])
{
    json_error_t error;
    json_t *answer = json_loadb(bytes, length, 0, &error);
    if (!answer) {
        snprintf(why, DRAFT_WHY, "the answer is not JSON (line %d, column %d)", error.line,
                 error.column);
        return NULL;
    }
    const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    const json_t *content = json_object_get(json_object_get(choice, "message"), "content");
    char *text = copy_content(content);
    json_decref(answer);
    if (text)
        make_plain(text);
    else
        snprintf(why, DRAFT_WHY, "the answer has no text at choices[0].message.content");
    return text;
}

void draft_read_failure(const char *bytes, size_t length, char message[DRAFT_WHY])
{
    json_t *answer = json_loadb(bytes, length, 0, NULL);
    const json_t *error = json_object_get(answer, "error");
    const json_t *text = json_is_object(error) ? json_object_get(error, "message") : error;
    if (!json_is_string(text))
        text = json_object_get(answer, "message");
    snprintf(message, DRAFT_WHY, "%s", json_is_string(text) ? json_string_value(text) : "");
    json_decref(answer);
    kg_text_make_printable(message);
    for (char *c = message; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

static const char *skip_blanks(const char *line)
{
    return line + strspn(line, " \t");
}

static bool is_fence(const char *line)
{
    line = skip_blanks(line);
    return strncmp(line, "```", 3) == 0 || strncmp(line, "~~~", 3) == 0;
}

static bool begins_definition(const char *line)
{
    line = skip_blanks(line);
    return (strncmp(line, "op", 2) == 0 || strncmp(line, "fn", 2) == 0) &&
           (line[2] == ' ' || line[2] == '\t');
}

static bool has_definition(const char *begin, const char *end)
{
    for (const char *line = begin; line < end; line = next_line(line))
        if (begins_definition(line))
            return true;
    return false;
}

// The last fenced block with a definition: before it may stand what was wrong. One that is not
// closed ends with the text.
static bool find_block(const char *text, const char **begin, const char **end)
{
    bool found = false;
    for (const char *line = text; *line; line = next_line(line)) {
        if (!is_fence(line))
            continue;
        const char *first = next_line(line);
        for (line = first; *line && !is_fence(line);)
            line = next_line(line);
        if (has_definition(first, line)) {
            *begin = first;
            *end = line;
            found = true;
        }
        if (!*line)
            break;
    }
    return found;
}

// Without fences: from the first op or function, with the comment above it, to the line of the last
// brace.
static bool find_bare(const char *text, const char **begin, const char **end)
{
    const char *comment = NULL;
    for (const char *line = text; *line; line = next_line(line)) {
        if (begins_definition(line)) {
            const char *brace = strrchr(line, '}');
            *begin = comment ? comment : line;
            *end = brace ? next_line(brace) : line + strlen(line);
            return true;
        }
        if (*skip_blanks(line) != '#')
            comment = NULL;
        else if (!comment)
            comment = line;
    }
    return false;
}

char *draft_find_definition(const char *text)
{
    static const char thought[] = "</think>";
    const char *begin, *end;
    for (const char *next = strstr(text, thought); next; next = strstr(text, thought))
        text = next + strlen(thought);
    if (!find_block(text, &begin, &end) && !find_bare(text, &begin, &end))
        return NULL;
    while (end > begin && (end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    char *definition;
    if (asprintf(&definition, "%.*s\n", (int)(end - begin), begin) < 0)
        return NULL;
    return definition;
}
