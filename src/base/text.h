// A growing string. Failure is sticky, so an emitter appends freely and checks `failed` once.

#ifndef KG_BASE_TEXT_H
#define KG_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

// Zero-initialised is an empty string. `data` is NULL until the first append; afterwards it is
// always terminated.
struct kg_text {
    char *data;
    size_t length;
    size_t capacity;
    bool failed; // an allocation failed; appends do nothing from then on
};

void kg_text_add(struct kg_text *text, const char *string);
void kg_text_add_bytes(struct kg_text *text, const char *bytes, size_t length);
void kg_text_format(struct kg_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void kg_text_vformat(struct kg_text *text, const char *format, va_list arguments);
// "12.3 us", "4.56 ms": three significant digits and a unit, from ns to s.
void kg_text_seconds(struct kg_text *text, double seconds);
// Shortens to `length` bytes; does nothing when it is shorter already.
void kg_text_cut(struct kg_text *text, size_t length);
// The string so far, "" when empty. Borrowed.
const char *kg_text_string(const struct kg_text *text);
void kg_text_free(struct kg_text *text);

#endif
