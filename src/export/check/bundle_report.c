// Findings as lines for people: the message, the line with a caret, what the other file says.

#include "export/check/bundle_check.h"

#include "base/printable.h"
#include "export/check/bundle_agree.h"
#include "export/check/bundle_report.h"

#include <string.h>

#define MOST_WIDTH 96 // of a line that is shown
#define MOST_BEFORE 60

void kg_bundle_find_line(const struct kg_bundle_source *source, struct kg_python_place place,
                         struct kg_bundle_line *line)
{
    size_t at = place.at < source->length ? place.at : source->length;
    size_t begin = at;
    while (begin > 0 && source->text[begin - 1] != '\n')
        begin--;
    const char *newline = memchr(source->text + at, '\n', source->length - at);
    line->number = 1 + source->lines_before;
    for (const char *c = source->text; c < source->text + begin; c++)
        line->number += *c == '\n';
    line->column = (int)(at - begin) + 1;
    line->begin = begin;
    line->length = (newline ? (size_t)(newline - source->text) : source->length) - begin;
    if (line->length && source->text[begin + line->length - 1] == '\r')
        line->length--;
}

// A byte that continues a character.
static bool continues(char c)
{
    return (c & 0xC0) == 0x80;
}

static void show_line(struct kg_text *text, const struct kg_bundle_source *source,
                      struct kg_python_place place)
{
    struct kg_bundle_line line;
    kg_bundle_find_line(source, place, &line);
    const char *bytes = source->text + line.begin;
    size_t column = (size_t)line.column - 1, begin = 0, end = line.length;
    if (end > MOST_WIDTH) {
        begin = column > MOST_BEFORE ? column - MOST_BEFORE : 0;
        while (begin < column && continues(bytes[begin]))
            begin++;
        end = begin + MOST_WIDTH < line.length ? begin + MOST_WIDTH : line.length;
    }
    struct kg_text copy = {0};
    kg_text_add_bytes(&copy, bytes + begin, end - begin);
    for (size_t i = 0; i < copy.length; i++)
        if (copy.data[i] == '\t')
            copy.data[i] = ' ';
    if (copy.data)
        kg_printable_text(copy.data, copy.length);
    kg_text_format(text, "    %s\n    ", kg_text_string(&copy));
    text->failed |= copy.failed;
    kg_text_free(&copy);
    size_t stop = column + place.length < end ? column + place.length : end;
    for (size_t i = begin; i < column && i < line.length; i++)
        kg_text_add(text, continues(bytes[i]) ? "" : " ");
    kg_text_add(text, "^");
    for (size_t i = column + 1; i < stop; i++)
        kg_text_add(text, continues(bytes[i]) ? "" : "~");
    kg_text_add(text, "\n");
}

static void add_path(struct kg_text *text, const char *path)
{
    kg_text_add_printable(text, path);
}

static void add_message(struct kg_text *text, const char *message)
{
    struct kg_text copy = {0};
    kg_text_add(&copy, message);
    if (copy.data)
        kg_printable_text(copy.data, copy.length);
    kg_text_add(text, kg_text_string(&copy));
    text->failed |= copy.failed;
    kg_text_free(&copy);
}

static void add_finding(const struct kg_bundle_facts *facts,
                        const struct kg_bundle_finding *finding, struct kg_text *text)
{
    const struct kg_bundle_source *source = &facts->sources[finding->role];
    struct kg_bundle_line line;
    kg_bundle_find_line(source, finding->place, &line);
    add_path(text, source->path);
    kg_text_format(text, ":%d:%d: ", line.number, line.column);
    add_message(text, finding->message);
    kg_text_add(text, "\n");
    show_line(text, source, finding->place);
    if (finding->other_role >= 0) {
        const struct kg_bundle_source *other = &facts->sources[finding->other_role];
        kg_bundle_find_line(other, finding->other_place, &line);
        kg_text_add(text, "  ");
        add_path(text, other->path);
        kg_text_format(text, ":%d:%d:\n", line.number, line.column);
        show_line(text, other, finding->other_place);
    }
    kg_text_format(text, "  help: %s\n", finding->advice);
}

void kg_bundle_add_findings(const struct kg_bundle_facts *facts, struct kg_text *text)
{
    for (int i = 0; i < facts->finding_count && i < KG_BUNDLE_MOST_SHOWN; i++)
        add_finding(facts, &facts->findings[i], text);
    if (facts->finding_count > KG_BUNDLE_MOST_SHOWN)
        kg_text_format(text, "and %d more\n", facts->finding_count - KG_BUNDLE_MOST_SHOWN);
}

// ---- JSON

static void add_place(struct kg_json *json, const struct kg_bundle_source *source,
                      struct kg_python_place place)
{
    struct kg_bundle_line line;
    kg_bundle_find_line(source, place, &line);
    kg_json_text(json, "file", source->path);
    kg_json_integer(json, "line", line.number);
    kg_json_integer(json, "column", line.column);
    struct kg_text copy = {0};
    size_t most = line.length < 400 ? line.length : 400;
    kg_text_add_bytes(&copy, source->text + line.begin, most);
    kg_json_text(json, "text", kg_text_string(&copy));
    json->text->failed |= copy.failed;
    kg_text_free(&copy);
}

void kg_bundle_add_json(const struct kg_bundle_facts *facts, struct kg_json *json)
{
    for (int i = 0; i < facts->finding_count && i < KG_BUNDLE_MOST_SHOWN; i++) {
        const struct kg_bundle_finding *finding = &facts->findings[i];
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "op", facts->op);
        add_place(json, &facts->sources[finding->role], finding->place);
        kg_json_text(json, "message", finding->message);
        kg_json_text(json, "help", finding->advice);
        if (finding->other_role >= 0) {
            kg_json_begin_object(json, "other");
            add_place(json, &facts->sources[finding->other_role], finding->other_place);
            kg_json_end_object(json);
        }
        kg_json_end_object(json);
    }
}
