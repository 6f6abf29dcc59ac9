// Breaking long lines of generated Python, inside parentheses, where a line may end anywhere.

#include "gen/triton/triton_lines.h"

#include <stdbool.h>
#include <string.h>

enum { COLUMNS = 100 };

// Where to break [line, end): the last blank inside parentheses that leaves a first part of at most
// `room` columns, else the first such blank; NULL: there is none. `depth` is that at the line's
// beginning.
static const char *place_to_break(const char *line, const char *end, int depth, size_t room)
{
    const char *best = NULL;
    bool quoted = false;
    const char *first = line + strspn(line, " ");
    for (const char *at = line; at < end; at++) {
        quoted ^= *at == '"';
        if (quoted)
            continue;
        depth +=
            (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
        if (*at != ' ' || at <= first || depth <= 0)
            continue;
        if ((size_t)(at - line) > room)
            return best ? best : at;
        best = at;
    }
    return best;
}

static int depth_after(const char *line, const char *end, int depth)
{
    bool quoted = false;
    for (; line < end; line++) {
        quoted ^= *line == '"';
        if (!quoted)
            depth += (*line == '(' || *line == '[' || *line == '{') -
                     (*line == ')' || *line == ']' || *line == '}');
    }
    return depth;
}

void kg_triton_add_lines(struct kg_text *text, const char *lines)
{
    while (*lines) {
        const char *end = lines + strcspn(lines, "\n");
        size_t indent = strspn(lines, " ");
        bool is_comment = lines[indent] == '#';
        int depth = 0;
        size_t extra = 0; // of the continued line
        const char *at = lines;
        while ((size_t)(end - at) + extra > COLUMNS && !is_comment) {
            const char *stop = place_to_break(at, end, depth, COLUMNS - extra);
            if (!stop)
                break;
            kg_text_format(text, "%*s", (int)extra, "");
            kg_text_add_bytes(text, at, (size_t)(stop - at));
            kg_text_add(text, "\n");
            depth = depth_after(at, stop, depth);
            extra = indent + 8;
            at = stop + 1;
        }
        kg_text_format(text, "%*s", (int)extra, "");
        kg_text_add_bytes(text, at, (size_t)(end - at));
        kg_text_add(text, "\n");
        lines = *end ? end + 1 : end;
    }
}

void kg_triton_add_prose(struct kg_text *text, const char *lines)
{
    while (*lines) {
        const char *end = lines + strcspn(lines, "\n");
        size_t indent = strspn(lines, " "), extra = 0;
        while ((size_t)(end - lines) + extra > COLUMNS) {
            const char *stop = NULL;
            for (const char *at = lines + (extra ? 1 : indent + 1); at < end; at++) {
                if (*at == ' ' && (!stop || (size_t)(at - lines) + extra <= COLUMNS))
                    stop = at;
            }
            if (!stop)
                break;
            kg_text_format(text, "%*s%.*s\n", (int)extra, "", (int)(stop - lines), lines);
            extra = indent + 4;
            lines = stop + 1;
        }
        kg_text_format(text, "%*s%.*s", (int)extra, "", (int)(end - lines), lines);
        if (*end)
            kg_text_add(text, "\n");
        lines = *end ? end + 1 : end;
    }
}
