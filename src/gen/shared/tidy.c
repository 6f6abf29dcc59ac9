// Removing unused code from a generated file, and breaking its long lines. Works on the text: blank
// lines separate the blocks of the prelude, and generated declarations have lines of their own, so
// only names and line ends matter.

#include "gen/shared/tidy.h"

#include "gen/skeleton.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS ((size_t)100)
#define GONE '\1' // marks removed bytes until they are squeezed out

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// Whether `at` is inside a "//" comment that begins on its line, at `from` or later.
static bool is_comment(const char *from, const char *at)
{
    const char *line = at;
    while (line > from && line[-1] != '\n')
        line--;
    return memmem(line, (size_t)(at - line), "//", 2) != NULL;
}

// Whether `at` is the name of a member: "call->size", "extents.k".
static bool is_member(const char *from, const char *at)
{
    return (at > from && at[-1] == '.') || (at > from + 1 && at[-1] == '>' && at[-2] == '-');
}

// Whether the name occurs as a whole word of code in [from, to).
static bool occurs(const char *from, const char *to, const char *name, size_t length)
{
    for (const char *at = from; (at = memmem(at, (size_t)(to - at), name, length)); at++) {
        bool begins = at == from || !is_name(at[-1]);
        bool ends = at + length == to || !is_name(at[length]);
        if (begins && ends && !is_comment(from, at) && !is_member(from, at))
            return true;
    }
    return false;
}

// Whether a macro builds names that begin like this one: "kg_fold_##NAME".
static bool is_pasted(const char *from, const char *to, const char *name, size_t length)
{
    for (const char *at = from; (at = memmem(at, (size_t)(to - at), "##", 2)); at += 2) {
        const char *prefix = at;
        while (prefix > from && is_name(prefix[-1]))
            prefix--;
        size_t known = (size_t)(at - prefix);
        if (known > 2 && known <= length && memcmp(prefix, name, known) == 0)
            return true;
    }
    return false;
}

static void remove_bytes(char *from, char *to)
{
    memset(from, GONE, (size_t)(to - from));
}

static void squeeze(struct kg_text *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < text->length; i++) {
        char c = text->data[i];
        bool gap =
            c == '\n' && kept > 1 && text->data[kept - 1] == '\n' && text->data[kept - 2] == '\n';
        if (c != GONE && !gap) // at most one blank line
            text->data[kept++] = c;
    }
    kg_text_cut(text, kept);
}

static char *line_end(char *from, char *end)
{
    char *found = memchr(from, '\n', (size_t)(end - from));
    return found ? found + 1 : end;
}

// Declarations

static bool starts_with(const char *from, const char *to, const char *prefix)
{
    size_t length = strlen(prefix);
    return (size_t)(to - from) >= length && memcmp(from, prefix, length) == 0;
}

static size_t indentation(const char *from, const char *to)
{
    size_t spaces = 0;
    while (from + spaces < to && from[spaces] == ' ')
        spaces++;
    return spaces;
}

// The end of the block that a line belongs to: the next line that is indented less.
static const char *block_end(const char *from, const char *to, const char *end)
{
    size_t depth = indentation(from, to);
    while (to < end) {
        size_t spaces = indentation(to, end);
        if (spaces < depth && to[spaces] != '\n' && to[spaces] != '#' && to[spaces] != GONE)
            return to;
        to = line_end((char *)to, (char *)end);
    }
    return end;
}

// More than one variable: a comma outside parentheses.
static bool has_list(const char *from, const char *to)
{
    int depth = 0;
    for (; from < to; from++) {
        depth += (*from == '(' || *from == '[') - (*from == ')' || *from == ']');
        if (*from == ',' && depth == 0)
            return true;
    }
    return false;
}

// The name that this line declares with a value and no other effect: "const int64_t P = ...;", or a
// pointer binding. NULL when the line is something else.
static const char *declared_name(const char *from, const char *to, size_t *length)
{
    static const char scratch[] = "    char *scratch = call->";
    const char *name = NULL, *at = from + indentation(from, to);
    const char *pointer = memmem(from, (size_t)(to - from), " *restrict ", 11);
    if (pointer && memmem(pointer, (size_t)(to - pointer), " = call->tensor[", 16)) {
        name = pointer + 11;
    } else if (starts_with(from, to, scratch)) {
        name = from + sizeof "    char *" - 1;
    } else if (starts_with(at, to, "const ")) {
        for (at += 6; at < to && (is_name(*at) || *at == ':'); at++)
            ;
        name = at < to && *at == ' ' ? at + 1 : NULL;
    }
    bool acts = memmem(from, (size_t)(to - from), "++", 2) ||
                memmem(from, (size_t)(to - from), "--", 2) ||
                memmem(from, (size_t)(to - from), "(&", 2); // kg_take(&rest, size)
    bool whole = to - from >= 2 && to[-2] == ';';           // not continued on the next line
    if (!name || acts || !whole || has_list(from, to))
        return NULL;
    *length = 0;
    while (name + *length < to && is_name(name[*length]))
        (*length)++;
    return *length > 0 && starts_with(name + *length, to, " = ") ? name : NULL;
}

// Whether this is "    enum { BLOCK = 64, LANES = 1 };" without a use below.
static bool is_idle_enum(const char *from, const char *to, const char *end)
{
    if (!starts_with(from, to, "    enum { "))
        return false;
    for (const char *at = from + 9; (at = memmem(at, (size_t)(to - at), " = ", 3)); at++) {
        const char *name = at;
        while (is_name(name[-1]))
            name--;
        if (occurs(to, end, name, (size_t)(at - name)))
            return false;
    }
    return true;
}

// Processes the function [from, end) from its last line up, because a declaration may be the only
// use of one above it.
static void tidy_function(char *from, char *end)
{
    for (char *to = end; to > from;) {
        char *line = to - 1;
        while (line > from && line[-1] != '\n')
            line--;
        size_t length;
        const char *name = declared_name(line, to, &length);
        if ((name && !occurs(to, block_end(line, to, end), name, length)) ||
            is_idle_enum(line, to, end))
            remove_bytes(line, to);
        to = line;
    }
}

// A function ends at a brace in the first column.
static void tidy_functions(char *from, char *end)
{
    while (from < end) {
        char *close = memmem(from, (size_t)(end - from), "\n}\n", 3);
        char *next = close ? close + 3 : end;
        tidy_function(from, next);
        from = next;
    }
}

// The prelude

// The heads of generated files, wherever they are.
static const char *const preludes[] = {
    "host/prelude.h",    "elements.h",          "values.h",
    "host/maths.h",      "host/maths_f32.h",    "host/floats.h",
    "cuda/prelude.cuh",  "cuda/maths.cuh",      "cuda/vectors.cuh",
    "cuda/index.cuh",    "cuda/predicated.cuh", "cuda/lanes.cuh",
    "cuda/running.cuh",  "cuda/arrivals.cuh",   "cuda/narrow.cuh",
    "cuda/tile.cuh",     "cuda/tensor.cuh",     "cuda/tensor_map.cuh",
    "cuda/launcher.cuh",
};
enum { PRELUDE_COUNT = sizeof preludes / sizeof preludes[0] };

struct block {
    char *from, *to; // with the blank line after it
    bool section;    // "// ---- Integers ----"
    bool comment;    // only a comment
    bool fixed;      // includes and guards
};

static bool has_line(const struct block *block, const char *prefix)
{
    for (const char *line = block->from; line < block->to; line = line_end((char *)line, block->to))
        if (starts_with(line, block->to, prefix))
            return true;
    return false;
}

// Whether code below uses something that this block defines (removed blocks are blank). A function
// block defines the name before its parameters, a struct block its structs, any other block every
// name in it.
static bool is_used(const struct block *block, const char *end)
{
    static const char function[] = "KG_INLINE ", structure[] = "struct ";
    bool functions = has_line(block, function);
    bool structs = !functions && has_line(block, structure);
    for (const char *at = block->from; at < block->to; at++) {
        bool starts = (*at == 'k' || *at == 'K') && (at == block->from || !is_name(at[-1]));
        if (!starts || (strncmp(at, "kg_", 3) != 0 && strncmp(at, "KG_", 3) != 0))
            continue;
        const char *stop = at;
        while (stop < block->to && is_name(*stop))
            stop++;
        const char *line = at;
        while (line > block->from && line[-1] != '\n')
            line--;
        bool defines = functions ? *stop == '(' && starts_with(line, block->to, function)
                                 : !structs || starts_with(line, block->to, structure);
        size_t length = (size_t)(stop - at);
        if (defines &&
            (occurs(block->to, end, at, length) || is_pasted(block->to, end, at, length)))
            return true;
        at = stop - 1;
    }
    return false;
}

static bool is_all_comment(char *from, char *to)
{
    for (char *line = from; line < to; line = line_end(line, to))
        if (*line != '\n' && !starts_with(line, to, "//"))
            return false;
    return true;
}

static size_t cut_blocks(char *from, char *to, struct block *blocks, size_t limit)
{
    size_t count = 0;
    while (from < to && count < limit) {
        char *gap = memmem(from, (size_t)(to - from), "\n\n", 2);
        char *next = gap && count + 1 < limit ? gap + 2 : to;
        blocks[count++] = (struct block){
            .from = from,
            .to = next,
            .section = starts_with(from, next, "// ----") && line_end(from, next) + 1 >= next,
            .comment = is_all_comment(from, next),
            .fixed = memmem(from, (size_t)(next - from), "#include", 8) ||
                     memmem(from, (size_t)(next - from), "#ifndef", 7) ||
                     starts_with(from, next, "#endif"),
        };
        from = next;
    }
    return count;
}

// Bottom up: a function is above those that call it.
static void tidy_prelude(char *from, char *to, char *end)
{
    enum { MOST = 1000 };
    struct block *blocks = calloc(MOST, sizeof *blocks);
    if (!blocks)
        return; // longer than necessary, but correct
    size_t count = cut_blocks(from, to, blocks, MOST);
    bool any = false;  // something is kept since the next section
    bool some = false; // something is kept
    for (size_t i = count; i-- > 0;) {
        struct block *block = &blocks[i];
        bool keep = block->fixed || (block->section   ? any
                                     : block->comment ? some
                                                      : is_used(block, end));
        any = !block->section && (any || keep);
        some |= keep;
        if (!keep)
            remove_bytes(block->from, block->to);
    }
    free(blocks);
}

// Finds the preludes in the text, the last one first.
static size_t find_preludes(char *text, char *found[PRELUDE_COUNT][2])
{
    size_t count = 0;
    for (size_t i = 0; i < PRELUDE_COUNT; i++) {
        const char *prelude = kg_skeleton_find(preludes[i]);
        char *from = prelude ? strstr(text, prelude) : NULL;
        if (!from)
            continue;
        size_t at = count++;
        for (; at > 0 && found[at - 1][0] < from; at--)
            memcpy(found[at], found[at - 1], sizeof found[at]);
        found[at][0] = from;
        found[at][1] = from + strlen(prelude);
    }
    return count;
}

static void drop_repeat(struct kg_text *text, size_t from, const char *skeleton)
{
    if (text->failed || text->length <= from)
        return;
    char *first = strstr(text->data, skeleton), *again = strstr(text->data + from, skeleton);
    if (!first || !again || first == again)
        return;
    size_t length = strlen(skeleton);
    memmove(again, again + length, text->length - (size_t)(again - text->data) - length);
    kg_text_cut(text, text->length - length);
}

void kg_gen_drop_repeats(struct kg_text *source, size_t from)
{
    drop_repeat(source, from, kg_skeleton_find("host/abi.h"));
    for (size_t i = 0; i < PRELUDE_COUNT; i++)
        drop_repeat(source, from, kg_skeleton_find(preludes[i]));
    // On the GPU the other skeletons are templates, which kernels share; on the host each kernel
    // needs its own copy, with its own constants.
    for (const struct kg_skeleton *skeleton = kg_skeletons; skeleton->name; skeleton++)
        if (strncmp(skeleton->name, "cuda/", 5) == 0)
            drop_repeat(source, from, skeleton->text);
}

// Lines

// Breaks long lines at blanks; continuation lines are indented by four more, and a comment goes on
// as one.
static void wrap_line(struct kg_text *out, const char *from, const char *to)
{
    size_t indent = indentation(from, to) + 4;
    const char *code = from + indent - 4;
    bool plain = code < to && *code != '#' && !starts_with(code, to, "//") && to[-1] != '\\';
    const char *comment = memmem(from, (size_t)(to - from), "//", 2), *go_on = "";
    for (size_t limit = COLUMNS; plain && (size_t)(to - from) > limit;
         limit = COLUMNS - indent - strlen(go_on)) {
        const char *blank = from + limit;
        const char *least = from + (limit == COLUMNS ? indent : 1);
        while (blank > least && *blank != ' ')
            blank--;
        if (blank <= least)
            break;
        go_on = comment && comment < blank ? "// " : "";
        kg_text_add_bytes(out, from, (size_t)(blank - from));
        kg_text_format(out, "\n%*s%s", (int)indent, "", go_on);
        from = blank + 1;
    }
    kg_text_add_bytes(out, from, (size_t)(to - from));
}

static void wrap_lines(struct kg_text *source)
{
    struct kg_text out = {0};
    char *end = source->data + source->length;
    for (char *line = source->data; line < end;) {
        char *next = line_end(line, end);
        bool ended = next[-1] == '\n';
        wrap_line(&out, line, ended ? next - 1 : next);
        kg_text_add(&out, ended ? "\n" : "");
        line = next;
    }
    out.failed |= source->failed;
    kg_text_free(source);
    *source = out;
}

void kg_gen_tidy(struct kg_text *source)
{
    if (source->failed || source->length == 0)
        return;
    char *end = source->data + source->length;
    char *found[PRELUDE_COUNT][2];
    size_t count = find_preludes(source->data, found);
    // What is between preludes belongs to kernels too, if there are several.
    for (size_t i = 0; i < count; i++)
        tidy_functions(found[i][1], i > 0 ? found[i - 1][0] : end);
    if (count == 0)
        tidy_functions(source->data, end);
    for (size_t i = 0; i < count; i++)
        tidy_prelude(found[i][0], found[i][1], end);
    squeeze(source);
    wrap_lines(source);
}
