// Error messages. The text is formatted into a separate buffer first, so that a message may quote
// the error that it replaces: kg_error_set(error, status, "x: %s", error->text).

#include "base/error.h"

#include "base/printable.h"

#include <stdio.h>
#include <string.h>

// Ends a text that is too long with "...", at the start of a UTF-8 character.
static void mark_cut(char text[KG_ERROR_TEXT])
{
    size_t end = KG_ERROR_TEXT - sizeof "...";
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(text + end, "...", sizeof "...");
}

// Formats into `text`; text that does not fit is cut and marked.
__attribute__((format(printf, 2, 0))) static void format_text(char text[KG_ERROR_TEXT],
                                                              const char *format, va_list arguments)
{
    int length = vsnprintf(text, KG_ERROR_TEXT, format, arguments);
    if (length < 0)
        text[0] = '\0';
    else if (length >= KG_ERROR_TEXT)
        mark_cut(text);
    kg_printable_text(text, strlen(text)); // it may quote names from anywhere
}

enum kg_status kg_error_set(struct kg_error *error, enum kg_status status, const char *format, ...)
{
    if (!error)
        return status;
    char text[KG_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    format_text(text, format, arguments);
    va_end(arguments);
    error->status = status;
    memcpy(error->text, text, strlen(text) + 1);
    return status;
}

enum kg_status kg_error_memory(struct kg_error *error, const char *what)
{
    return kg_error_set(error, KG_ERROR_MEMORY, "out of memory: %s", what);
}

void kg_error_prefix(struct kg_error *error, const char *format, ...)
{
    if (!error)
        return;
    char context[KG_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    format_text(context, format, arguments);
    va_end(arguments);
    kg_error_set(error, error->status, "%s: %s", context, error->text);
}

void kg_error_clear(struct kg_error *error)
{
    if (!error)
        return;
    error->status = KG_OK;
    error->text[0] = '\0';
}

const char *kg_status_name(enum kg_status status)
{
    static const char *const names[KG_STATUS_COUNT] = {
        [KG_OK] = "ok",
        [KG_ERROR_ARGUMENT] = "bad argument",
        [KG_ERROR_DEFINITION] = "bad definition",
        [KG_ERROR_SHAPE] = "shapes contradict the definition",
        [KG_ERROR_MEMORY] = "out of memory",
        [KG_ERROR_IO] = "file error",
        [KG_ERROR_CORRUPT] = "corrupt file",
        [KG_ERROR_UNSUPPORTED] = "unsupported",
        [KG_ERROR_MISSING] = "missing on this machine",
        [KG_ERROR_COMPILE] = "compile error",
        [KG_ERROR_TIMEOUT] = "timeout",
        [KG_ERROR_FAULT] = "crash",
        [KG_ERROR_WRONG] = "wrong result",
        [KG_ERROR_NO_WISDOM] = "nothing is known",
        [KG_ERROR_CANCELLED] = "cancelled",
    };
    return (unsigned)status < KG_STATUS_COUNT ? names[status] : "unknown status";
}
