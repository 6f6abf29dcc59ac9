// Reading and computing terms over sizes: see terms.h. One function for each level of precedence.

#include "gen/cuda/terms.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const char *at;
    const struct kg_op *op;
    const int64_t *sizes;
    struct kg_error *error;
    enum kg_status status; // of the first failure; what is read afterwards is 0
    int depth;
};

static int64_t read_condition(struct reader *reader);

static int64_t fail(struct reader *reader, enum kg_status status, const char *what)
{
    if (!reader->status)
        reader->status = kg_error_set(reader->error, status, "%s", what);
    return 0;
}

static void skip_blanks(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t')
        reader->at++;
}

// Takes `word` if it comes next.
static bool take(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(reader);
    if (strncmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static void expect(struct reader *reader, const char *word)
{
    char what[64];
    snprintf(what, sizeof what, "expected '%s' at '%.24s'", word, reader->at);
    if (!reader->status && !take(reader, word))
        fail(reader, KG_ERROR_ARGUMENT, what);
}

static int64_t read_number(struct reader *reader)
{
    int64_t value = 0;
    for (; isdigit((unsigned char)*reader->at); reader->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *reader->at - '0', &value))
            return fail(reader, KG_ERROR_ARGUMENT, "a number beyond 64 bits");
    return value;
}

static int64_t divide(struct reader *reader, int64_t a, int64_t b, bool up)
{
    if (b == 0 || (b == -1 && a == INT64_MIN))
        return fail(reader, KG_ERROR_SHAPE, "a division by zero");
    bool inexact = a % b != 0, negative = (a < 0) != (b < 0);
    return a / b + (inexact && up && !negative) - (inexact && !up && negative);
}

static int64_t remainder_of(struct reader *reader, int64_t a, int64_t b)
{
    int64_t quotient = divide(reader, a, b, false);
    return reader->status ? 0 : a - quotient * b;
}

static int64_t multiply(struct reader *reader, int64_t a, int64_t b)
{
    int64_t value;
    if (__builtin_mul_overflow(a, b, &value))
        return fail(reader, KG_ERROR_SHAPE, "a product beyond 64 bits");
    return value;
}

static int64_t add(struct reader *reader, int64_t a, int64_t b, bool subtract)
{
    int64_t value;
    if (subtract ? __builtin_sub_overflow(a, b, &value) : __builtin_add_overflow(a, b, &value))
        return fail(reader, KG_ERROR_SHAPE, "a sum beyond 64 bits");
    return value;
}

static int64_t read_size(struct reader *reader, size_t length)
{
    char what[128];
    const struct kg_size *size = kg_terms_size(reader->op, reader->at, length);
    snprintf(what, sizeof what, "'%.*s' is no size of %.64s", (int)length, reader->at,
             reader->op->name);
    reader->at += length;
    if (!size || size->is_real)
        return fail(reader, KG_ERROR_ARGUMENT, what);
    return size->is_param ? size->value : reader->sizes[size->id];
}

static int64_t read_product(struct reader *reader, bool up);

static int64_t read_pair(struct reader *reader, bool least)
{
    expect(reader, "(");
    int64_t a = read_condition(reader);
    expect(reader, ",");
    int64_t b = read_condition(reader);
    expect(reader, ")");
    return (a < b) == least ? a : b;
}

static int64_t read_ceil(struct reader *reader)
{
    expect(reader, "(");
    int64_t value = read_product(reader, true);
    expect(reader, ")");
    return value;
}

static int64_t read_simple(struct reader *reader)
{
    skip_blanks(reader);
    size_t length = kg_terms_name(reader->at);
    const char *name = reader->at;
    if (isdigit((unsigned char)*name))
        return read_number(reader);
    if (take(reader, "(")) {
        int64_t value = read_condition(reader);
        expect(reader, ")");
        return value;
    }
    bool is_call = length > 0 && name[length + strspn(name + length, " ")] == '(';
    bool least = length == 3 && strncmp(name, "min", 3) == 0;
    if (is_call && (least || (length == 3 && strncmp(name, "max", 3) == 0))) {
        reader->at += length;
        return read_pair(reader, least);
    }
    if (is_call && length == 4 && strncmp(name, "ceil", 4) == 0) {
        reader->at += length;
        return read_ceil(reader);
    }
    char what[96];
    snprintf(what, sizeof what, "expected a number or a size at '%.32s'", name);
    return length > 0 ? read_size(reader, length) : fail(reader, KG_ERROR_ARGUMENT, what);
}

// `up`: divisions round up.
static int64_t read_product(struct reader *reader, bool up)
{
    int64_t value = read_simple(reader);
    while (!reader->status) {
        if (take(reader, "*"))
            value = multiply(reader, value, read_simple(reader));
        else if (take(reader, "/"))
            value = divide(reader, value, read_simple(reader), up);
        else if (take(reader, "%"))
            value = remainder_of(reader, value, read_simple(reader));
        else
            break;
    }
    return value;
}

static int64_t read_sum(struct reader *reader)
{
    int64_t value = read_product(reader, false);
    while (!reader->status) {
        if (take(reader, "+"))
            value = add(reader, value, read_product(reader, false), false);
        else if (take(reader, "-"))
            value = add(reader, value, read_product(reader, false), true);
        else
            break;
    }
    return value;
}

static int64_t read_comparison(struct reader *reader)
{
    int64_t a = read_sum(reader);
    if (take(reader, "=="))
        return a == read_sum(reader);
    if (take(reader, "!="))
        return a != read_sum(reader);
    if (take(reader, "<="))
        return a <= read_sum(reader);
    if (take(reader, ">="))
        return a >= read_sum(reader);
    if (take(reader, "<"))
        return a < read_sum(reader);
    if (take(reader, ">"))
        return a > read_sum(reader);
    return a;
}

static int64_t read_condition(struct reader *reader)
{
    if (reader->depth++ >= KG_MAX_DEPTH)
        return fail(reader, KG_ERROR_ARGUMENT, "parentheses nested too deeply");
    int64_t value = read_comparison(reader);
    while (!reader->status && take(reader, "&&")) {
        bool other = read_comparison(reader) != 0;
        value = value != 0 && other;
    }
    reader->depth--;
    return value;
}

enum kg_status kg_terms_value(const char *text, const struct kg_op *op, const int64_t *sizes,
                              int64_t *value, const char **end, struct kg_error *error)
{
    struct reader reader = {.at = text, .op = op, .sizes = sizes, .error = error};
    *value = read_condition(&reader);
    skip_blanks(&reader);
    *end = reader.at;
    if (reader.status)
        *value = 0;
    return reader.status;
}

size_t kg_terms_name(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return isdigit((unsigned char)text[0]) ? 0 : length;
}

const struct kg_size *kg_terms_size(const struct kg_op *op, const char *name, size_t length)
{
    for (int i = 0; i < op->size_count; i++)
        if (strlen(op->sizes[i]->name) == length && strncmp(op->sizes[i]->name, name, length) == 0)
            return op->sizes[i];
    return NULL;
}
