// Mutations of JSON lines that know what the readers of samples look for: a member is given another
// value, taken from another line, doubled, renamed or removed; a line is repeated with small
// differences, as measurements are, so that there is something to fit. Byte mutations remain in the
// mix.
//
// Linked to a fuzz target, it defines libFuzzer's hook for mutations.

#include "fuzz/mutator.h"

#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define MAX_LINES 64

struct lines {
    struct mutator *mutator;
    int count;
    json_t *list[MAX_LINES]; // objects
};

static int pick(struct lines *lines, int count)
{
    return mutator_below(lines->mutator, count);
}

#define PICK(lines, list) ((list)[pick(lines, (int)(sizeof(list) / sizeof((list)[0])))])

static void read_lines(struct lines *lines, const char *text, size_t size)
{
    for (size_t at = 0; at < size && lines->count < MAX_LINES;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - (text + at)) : size - at;
        json_t *line = json_loadb(text + at, length, 0, NULL);
        if (json_is_object(line))
            lines->list[lines->count++] = line;
        else
            json_decref(line);
        at += length + 1;
    }
}

// The limits of the readers, their neighbours, and what arithmetic gets wrong.
static double make_number(struct lines *lines, double now)
{
    static const double values[] = {0,   -0.0,   1,     -1,     0.5,   1e-12,  0.9e-12,
                                    1e9, 1e10,   1e6,   -1e6,   1.1e6, 1e15,   -1e15,
                                    1e3, 1e-300, 1e308, 5e-324, 1e-5,  1.5e-5, 4294967296.0};
    switch (pick(lines, 4)) {
    case 0:
        return now * (1 + (pick(lines, 201) - 100) / 1000.0);
    case 1:
        return now + (pick(lines, 21) - 10);
    case 2:
        return pick(lines, 10001) / 10000.0;
    default:
        return PICK(lines, values);
    }
}

static json_t *make_value(struct lines *lines, const json_t *now)
{
    static const char *const texts[] = {"",       "NVIDIA H100 80GB HBM3", "a\nb", "\"\\", "h100",
                                        "matmul", "contract/wgmma",        "%s%n", "\x01"};
    static const json_int_t integers[] = {0,       1,  2,     1024,    1025,      1048576,
                                          1048577, -1, 65536, 1 << 30, INT64_MAX, INT64_MIN};
    switch (pick(lines, 10)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(pick(lines, 2));
    case 2:
        return json_string(PICK(lines, texts));
    case 3:
        return json_integer(PICK(lines, integers));
    case 4:
        return json_object();
    default: // its own kind
        if (json_is_string(now))
            return json_string(PICK(lines, texts));
        if (json_is_boolean(now))
            return json_boolean(pick(lines, 2));
        if (json_is_integer(now) && pick(lines, 2))
            return json_integer(pick(lines, 3) ? pick(lines, 2000) : PICK(lines, integers));
        return json_real(make_number(lines, json_number_value(now)));
    }
}

// A random member of an object or of an object inside it; NULL: it is empty.
static const char *find_member(struct lines *lines, json_t **object)
{
    const char *name = NULL;
    json_t *value = NULL;
    for (int depth = 0; depth < 3; depth++) {
        int at = pick(lines, (int)json_object_size(*object)), n = 0;
        const char *key;
        json_t *member;
        name = NULL;
        json_object_foreach(*object, key, member) if (n++ == at)
        {
            name = key;
            value = member;
        }
        if (!name || !json_is_object(value) || json_object_size(value) == 0 || pick(lines, 4) == 0)
            return name;
        *object = value;
    }
    return name;
}

static void change_member(struct lines *lines, json_t *object)
{
    const char *name = find_member(lines, &object);
    if (!name)
        return;
    json_t *now = json_object_get(object, name);
    json_t *other = lines->list[pick(lines, lines->count)];
    switch (pick(lines, 8)) {
    case 0:
        json_object_del(object, name);
        return;
    case 1:
        json_object_set_new(object, "schema", json_integer(pick(lines, 4)));
        return;
    case 2: {
        const char *from = find_member(lines, &other);
        if (from)
            json_object_set_new(object, name, json_deep_copy(json_object_get(other, from)));
        return;
    }
    default:
        json_object_set_new(object, name, make_value(lines, now));
    }
}

// Every number of an object moves a little, as those of another measurement would.
static void vary(struct lines *lines, json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        if (json_is_object(value))
            vary(lines, value);
        else if (json_is_real(value))
            json_real_set(value, json_real_value(value) * (0.5 + pick(lines, 1000) / 1000.0));
        else if (json_is_integer(value) && strcmp(name, "schema") != 0 && pick(lines, 3) == 0)
            json_integer_set(value, json_integer_value(value) % (1 << 30) + pick(lines, 5));
    }
}

static void repeat_line(struct lines *lines)
{
    const json_t *from = lines->list[pick(lines, lines->count)];
    for (int more = 1 + pick(lines, 8); more > 0 && lines->count < MAX_LINES; more--) {
        json_t *copy = json_deep_copy(from);
        vary(lines, copy);
        lines->list[lines->count++] = copy;
    }
}

static void remove_line(struct lines *lines)
{
    int at = pick(lines, lines->count);
    json_decref(lines->list[at]);
    lines->list[at] = lines->list[--lines->count];
}

static size_t write_lines(struct lines *lines, uint8_t *data, size_t size, size_t max_size)
{
    struct kg_text text = {0};
    for (int i = 0; i < lines->count; i++) {
        char *line = json_dumps(lines->list[i], 0);
        kg_text_add(&text, line ? line : "");
        kg_text_add(&text, "\n");
        free(line);
        json_decref(lines->list[i]);
    }
    if (!text.failed && text.length > 0 && text.length <= max_size) {
        memcpy(data, text.data, text.length);
        size = text.length;
    }
    kg_text_free(&text);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct mutator mutator = mutator_begin(seed);
    struct lines lines = {.mutator = &mutator};
    if (mutator_below(&mutator, 6) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    read_lines(&lines, (const char *)data, size);
    if (lines.count == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    for (int steps = 1 + pick(&lines, 4); steps > 0; steps--) {
        int kind = pick(&lines, 8);
        if (kind == 0 && lines.count > 1)
            remove_line(&lines);
        else if (kind <= 2)
            repeat_line(&lines);
        else
            change_member(&lines, lines.list[pick(&lines, lines.count)]);
    }
    return write_lines(&lines, data, size, max_size);
}
