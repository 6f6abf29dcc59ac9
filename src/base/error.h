// Error messages. Each context (and each worker) has one `struct kg_error`; every layer below the
// public one receives it as its last argument.

#ifndef KG_BASE_ERROR_H
#define KG_BASE_ERROR_H

#include "kernelgen.h"

#include <stdarg.h>

#define KG_ERROR_TEXT 4096

// It has a fixed size, so that running out of memory can be reported without memory.
struct kg_error {
    enum kg_status status;
    char text[KG_ERROR_TEXT]; // one or more lines, no trailing newline
};

// Records the failure and returns `status`: `return kg_error_set(error, KG_ERROR_IO, ...)`.
// A NULL error is legal and drops the text. Overlong text ends in "...".
enum kg_status kg_error_set(struct kg_error *error, enum kg_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// "out of memory", with what was being allocated.
enum kg_status kg_error_memory(struct kg_error *error, const char *what);

// Inserts "context: " before the text.
void kg_error_prefix(struct kg_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void kg_error_clear(struct kg_error *error);

#endif
