// The parameters of a function, as its PTX declares them, against the arguments it is to get.

#include "gen/cuda/declared.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parameter {
    int bytes;
    bool is_whole; // an integer or untyped bits, and no array
};

// Skips blanks and comments.
static const char *skip(const char *at)
{
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return length;
}

// The text behind ".entry NAME", for the next one; NULL: there is none.
static const char *next_entry(const char *at, const char **name, size_t *length)
{
    for (at = skip(at); *at; at = skip(at)) {
        size_t word = word_length(at);
        bool is_entry = word == 6 && strncmp(at, ".entry", 6) == 0;
        at += word > 0 ? word : 1;
        if (!is_entry)
            continue;
        *name = skip(at);
        *length = word_length(*name);
        return *name + *length;
    }
    return NULL;
}

static int type_bytes(const char *type, size_t length, bool *is_whole)
{
    if (length < 3 || type[0] != '.' || !strchr("usbf", type[1]) ||
        !isdigit((unsigned char)type[2]))
        return 0;
    *is_whole = type[1] != 'f';
    return (int)strtol(type + 2, NULL, 10) / 8;
}

// ".param .u64 .ptr .align 1 name[16]", up to the comma or parenthesis behind it.
static const char *read_parameter(const char *at, struct parameter *parameter)
{
    *parameter = (struct parameter){0};
    for (at = skip(at); *at && *at != ',' && *at != ')'; at = skip(at)) {
        size_t length = word_length(at);
        int bytes = parameter->bytes ? 0 : type_bytes(at, length, &parameter->is_whole);
        if (bytes > 0)
            parameter->bytes = bytes;
        if (*at == '[') {
            parameter->bytes *= (int)strtol(at + 1, NULL, 10);
            parameter->is_whole = false;
        }
        at += length > 0 ? length : 1;
    }
    return at;
}

static int read_parameters(const char *at, struct parameter *parameters)
{
    int count = 0;
    at = skip(at);
    if (*at != '(' || *skip(at + 1) == ')')
        return 0;
    do {
        struct parameter one;
        at = read_parameter(at + 1, &one);
        if (count < KG_MAX_ARGUMENTS)
            parameters[count] = one;
        count++;
    } while (*at == ',');
    return count;
}

static void print_argument(const struct kg_op *op, const struct kg_argument *argument,
                           struct kg_text *text)
{
    if (argument->kind == KG_ARGUMENT_TENSOR)
        kg_text_format(text, "the pointer %s",
                       argument->id < op->tensor_count ? op->tensors[argument->id]->name : "");
    else if (argument->kind == KG_ARGUMENT_SIZE)
        kg_text_format(text, "the size %s", op->sizes[argument->id]->name);
    else if (argument->kind == KG_ARGUMENT_STRIDE)
        kg_text_format(text, "a stride");
    else if (argument->kind == KG_ARGUMENT_MAP)
        kg_text_format(text, "the tensor map map_%d, of %zu bytes", argument->id,
                       sizeof(struct kg_encoded_map));
    else
        kg_text_add(text, "the pointer scratch");
}

static enum kg_status refuse_parameter(const char *function, const struct kg_op *op,
                                       const struct kg_argument *argument, int position,
                                       const struct parameter *parameter, struct kg_error *error)
{
    struct kg_text what = {0};
    print_argument(op, argument, &what);
    enum kg_status status = kg_error_set(
        error, KG_ERROR_ARGUMENT, "parameter %d of %s is %s of %d bytes, and is given %s%s",
        position + 1, function, parameter->is_whole ? "a number" : "no integer or pointer, but",
        parameter->bytes, kg_text_string(&what),
        argument->kind == KG_ARGUMENT_SIZE ? ": int64_t, or int" : "");
    kg_text_free(&what);
    return status;
}

static enum kg_status compare(const char *function, const struct kg_op *op,
                              const struct parameter *parameters, int taken,
                              const struct kg_argument *arguments, int count, int *widths,
                              struct kg_error *error)
{
    while (count > taken && arguments[count - 1].kind == KG_ARGUMENT_MAP)
        count--; // it does without
    if (taken != count)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s takes %d parameters, and is given %d: say which in a line "
                            "'//          with ...' below its launch",
                            function, taken, count);
    for (int i = 0; i < count; i++) {
        const struct parameter *parameter = &parameters[i];
        bool number =
            arguments[i].kind == KG_ARGUMENT_SIZE || arguments[i].kind == KG_ARGUMENT_STRIDE;
        bool fits = arguments[i].kind == KG_ARGUMENT_MAP
                        ? parameter->bytes == sizeof(struct kg_encoded_map)
                        : parameter->is_whole &&
                              (parameter->bytes == 8 || (number && parameter->bytes == 4));
        if (!fits)
            return refuse_parameter(function, op, &arguments[i], i, parameter, error);
        if (widths)
            widths[i] = parameter->bytes;
    }
    return KG_OK;
}

static enum kg_status refuse_function(const char *ptx, const char *function, struct kg_error *error)
{
    struct kg_text names = {0};
    const char *name;
    size_t length;
    for (const char *at = ptx; (at = next_entry(at, &name, &length)) && names.length < 400;)
        kg_text_format(&names, "%s%.*s", names.length ? ", " : "", (int)length, name);
    enum kg_status status =
        kg_error_set(error, KG_ERROR_ARGUMENT,
                     "there is no kernel called %s, but %s (kernels are extern \"C\" __global__)",
                     function, names.length ? kg_text_string(&names) : "none at all");
    kg_text_free(&names);
    return status;
}

enum kg_status kg_declared_check(const char *ptx, const char *function, const struct kg_op *op,
                                 const struct kg_argument *arguments, int count, int *widths,
                                 struct kg_error *error)
{
    const char *name;
    size_t length;
    for (const char *at = ptx; (at = next_entry(at, &name, &length));) {
        if (strlen(function) != length || strncmp(function, name, length) != 0)
            continue;
        struct parameter *parameters = calloc(KG_MAX_ARGUMENTS, sizeof *parameters);
        if (!parameters)
            return kg_error_memory(error, "the parameters of a kernel");
        int taken = read_parameters(at, parameters);
        enum kg_status status =
            compare(function, op, parameters, taken, arguments, count, widths, error);
        free(parameters);
        return status;
    }
    return refuse_function(ptx, function, error);
}
