// A reader for just enough of Python's syntax: texts, True and False, a tuple of sizes.

#include "npy_header.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const char *at, *end;
    char *error;
};

static char peek(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
                                        *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool accept(struct reader *reader, char c)
{
    if (c == '\0' || peek(reader) != c)
        return false;
    reader->at++;
    return true;
}

static bool read_text(struct reader *reader, char *out, size_t size)
{
    char quote = peek(reader);
    if (quote != '\'' && quote != '"')
        return npy_fail(reader->error, "the header lacks a string");
    const char *begin = ++reader->at;
    while (reader->at < reader->end && *reader->at != quote && *reader->at >= ' ' &&
           *reader->at <= '~')
        reader->at++;
    size_t length = (size_t)(reader->at - begin);
    if (reader->at == reader->end || *reader->at != quote || length >= size)
        return npy_fail(reader->error,
                        "the header has a string that is too long or not terminated");
    memcpy(out, begin, length);
    out[length] = '\0';
    reader->at++;
    return true;
}

static bool read_word(struct reader *reader, const char *word)
{
    peek(reader);
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool read_size(struct reader *reader, int64_t *size)
{
    *size = 0;
    char c = peek(reader);
    if (c < '0' || c > '9')
        return npy_fail(reader->error, "the header's shape is not a tuple of sizes");
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++)
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *reader->at - '0', size))
            return npy_fail(reader->error, "the header's shape has a size beyond 64 bits");
    accept(reader, 'L'); // as Python 2 wrote them
    return true;
}

static bool read_shape(struct reader *reader, struct npy_header *header)
{
    if (!accept(reader, '('))
        return npy_fail(reader->error, "the header's shape is not a tuple");
    header->rank = 0;
    while (!accept(reader, ')')) {
        if (header->rank == KG_MAX_RANK)
            return npy_fail(reader->error, "the array has more than %d dimensions", KG_MAX_RANK);
        if (!read_size(reader, &header->shape[header->rank++]))
            return false;
        if (!accept(reader, ',') && peek(reader) != ')')
            return npy_fail(reader->error, "the header's shape is not a tuple of sizes");
    }
    return true;
}

static bool read_entry(struct reader *reader, struct npy_header *header)
{
    char key[16];
    if (!read_text(reader, key, sizeof key))
        return false;
    if (!accept(reader, ':'))
        return npy_fail(reader->error, "the header has a key without a value");
    bool *seen;
    if (strcmp(key, "descr") == 0) {
        seen = &header->has_descr;
        if (peek(reader) == '[')
            return npy_fail(reader->error, "records of several fields cannot be read");
        if (!read_text(reader, header->descr, sizeof header->descr))
            return false;
    } else if (strcmp(key, "fortran_order") == 0) {
        seen = &header->has_order;
        header->fortran = read_word(reader, "True");
        if (!header->fortran && !read_word(reader, "False"))
            return npy_fail(reader->error, "the header's fortran_order is neither True nor False");
    } else if (strcmp(key, "shape") == 0) {
        seen = &header->has_shape;
        if (!read_shape(reader, header))
            return false;
    } else
        return npy_fail(reader->error, "the header has an unknown key");
    if (*seen)
        return npy_fail(reader->error, "the header has a key twice");
    *seen = true;
    return true;
}

bool npy_fail(char error[NPY_ERROR], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, NPY_ERROR, format, arguments);
    va_end(arguments);
    return false;
}

bool npy_header_read(const char *text, size_t length, struct npy_header *header,
                     char error[NPY_ERROR])
{
    *header = (struct npy_header){0};
    struct reader reader = {.at = text, .end = text + length, .error = error};
    if (!accept(&reader, '{'))
        return npy_fail(reader.error, "the header is not a dict");
    while (!accept(&reader, '}')) {
        if (!read_entry(&reader, header))
            return false;
        if (!accept(&reader, ',') && peek(&reader) != '}')
            return npy_fail(reader.error, "the header is not a dict");
    }
    if (peek(&reader) != '\0' || reader.at != reader.end)
        return npy_fail(reader.error, "the header does not end with its dict");
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return npy_fail(reader.error, "the header lacks descr, fortran_order or shape");
    return true;
}
