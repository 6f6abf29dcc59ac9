// The growing string that emitters, tables and reports use. Its capacity doubles; it is terminated
// once anything was added.

#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reserves room for `more` bytes and the terminator.
static bool reserve(struct kg_text *text, size_t more)
{
    if (text->failed)
        return false;
    size_t need;
    if (__builtin_add_overflow(text->length, more, &need) || need > SIZE_MAX / 2 - 1) {
        text->failed = true;
        return false;
    }
    need++;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void kg_text_add_bytes(struct kg_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void kg_text_add(struct kg_text *text, const char *string)
{
    kg_text_add_bytes(text, string, strlen(string));
}

void kg_text_vformat(struct kg_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void kg_text_format(struct kg_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kg_text_vformat(text, format, arguments);
    va_end(arguments);
}

void kg_text_seconds(struct kg_text *text, double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof units[0] && seconds / units[i].unit >= 999.5)
        i++;
    double value = seconds / units[i].unit;
    if (value >= 1e6) { // no time that anything took
        kg_text_format(text, "%.3g %s", value, units[i].name);
        return;
    }
    kg_text_format(text, "%.*f %s",
                   value < 9.995   ? 2
                   : value < 99.95 ? 1
                                   : 0,
                   value, units[i].name);
}

void kg_text_cut(struct kg_text *text, size_t length)
{
    if (length >= text->length)
        return;
    text->length = length;
    text->data[length] = '\0';
}

const char *kg_text_string(const struct kg_text *text)
{
    return text->data ? text->data : "";
}

void kg_text_free(struct kg_text *text)
{
    if (!text)
        return;
    free(text->data);
    *text = (struct kg_text){0};
}
