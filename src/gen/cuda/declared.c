// Reading what a CUDA file says of itself: see declared.h.

#include "gen/cuda/declared.h"

#include "gen/cuda/terms.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A comment of its own line: what stands behind the slashes.
struct line {
    const char *text;
    size_t length;
    int number;
};

struct reader {
    const char *path;
    const char *at; // of the next line
    int number;
    struct kg_declared *declared;
    struct kg_error *error;
};

static enum kg_status complain(const struct reader *reader, int line, const char *why)
{
    return kg_error_set(reader->error, KG_ERROR_ARGUMENT, "%s:%d: %s", reader->path, line, why);
}

static enum kg_status no_memory(const struct reader *reader)
{
    return kg_error_memory(reader->error, "the launches of a file");
}

static bool next_line(struct reader *reader, struct line *line)
{
    if (!*reader->at)
        return false;
    size_t length = strcspn(reader->at, "\n");
    *line = (struct line){reader->at, length, ++reader->number};
    reader->at += length + (reader->at[length] == '\n');
    while (line->length > 0 && isspace((unsigned char)line->text[line->length - 1]))
        line->length--;
    while (line->length > 0 && isspace((unsigned char)*line->text))
        line->text++, line->length--;
    return true;
}

// "// KEY REST": leaves the rest.
static bool is_about(const struct line *line, const char *key, struct line *rest)
{
    size_t length = strlen(key), skip = 2;
    if (line->length < 2 || strncmp(line->text, "//", 2) != 0)
        return false;
    while (skip < line->length && isspace((unsigned char)line->text[skip]))
        skip++;
    if (line->length - skip < length || strncmp(line->text + skip, key, length) != 0)
        return false;
    skip += length;
    while (skip < line->length && isspace((unsigned char)line->text[skip]))
        skip++;
    *rest = (struct line){line->text + skip, line->length - skip, line->number};
    return true;
}

// A choice has one line for each kernel.
static enum kg_status take_choice(struct reader *reader, const struct line *line)
{
    struct kg_text text = {0};
    struct kg_declared *declared = reader->declared;
    if (declared->choice)
        kg_text_format(&text, "%s; ", declared->choice);
    kg_text_add_bytes(&text, line->text, line->length);
    free(declared->choice);
    declared->choice = text.data;
    if (text.failed)
        return no_memory(reader);
    return line->length > 0 ? KG_OK : complain(reader, line->number, "an empty choice");
}

static enum kg_status take_launch(struct reader *reader, const struct line *line)
{
    struct kg_declared *declared = reader->declared;
    if (declared->count == KG_MOST_DECLARED)
        return complain(reader, line->number, "more launches than a file may have (16)");
    struct kg_declared_launch *launch = &declared->launches[declared->count++];
    const char *comma = memchr(line->text, ',', line->length);
    size_t length = kg_terms_name(line->text);
    launch->line = line->number;
    if (!comma || length == 0 || line->text + length != comma)
        return complain(reader, line->number,
                        "expected 'Launch: FUNCTION, BLOCKS blocks of THREADS threads'");
    launch->function = strndup(line->text, length);
    launch->shape = strndup(comma + 1, line->length - length - 1);
    return launch->function && launch->shape ? KG_OK : no_memory(reader);
}

static int find_tensor(const struct kg_op *op, const char *name, size_t length)
{
    for (int i = 0; i < op->input_count + op->output_count; i++)
        if (strlen(op->tensors[i]->name) == length &&
            strncmp(op->tensors[i]->name, name, length) == 0)
            return i;
    return -1;
}

// "stride 1 of x"
static bool read_stride(const struct kg_op *op, const char *word, size_t length,
                        struct kg_argument *argument)
{
    char name[128];
    int dim = -1, used = 0;
    if (length >= sizeof name)
        return false;
    memcpy(name, word, length);
    name[length] = '\0';
    if (sscanf(name, "stride %d of %n", &dim, &used) < 1 || used == 0)
        return false;
    int tensor = find_tensor(op, name + used, strlen(name + used));
    if (tensor < 0 || dim < 0 || dim >= op->tensors[tensor]->rank)
        return false;
    *argument = (struct kg_argument){KG_ARGUMENT_STRIDE, tensor, dim};
    return true;
}

// A size may be followed by an example of its value.
static bool read_argument(const struct kg_op *op, const char *word, size_t length,
                          struct kg_argument *argument)
{
    if (read_stride(op, word, length, argument))
        return true;
    size_t name = kg_terms_name(word);
    bool whole = name == length;
    int tensor = find_tensor(op, word, name);
    const struct kg_size *size = kg_terms_size(op, word, name);
    if (whole && tensor >= 0)
        *argument = (struct kg_argument){KG_ARGUMENT_TENSOR, tensor, 0};
    else if (size && !size->is_real && (whole || word[name + strspn(word + name, " ")] == '='))
        *argument = (struct kg_argument){KG_ARGUMENT_SIZE, size->id, 0};
    else if (whole && name == 7 && strncmp(word, "scratch", 7) == 0)
        *argument = (struct kg_argument){KG_ARGUMENT_SCRATCH, 0, 0};
    else
        return false;
    return true;
}

static bool make_room(struct kg_declared_launch *launch)
{
    launch->argument_count = 0;
    launch->arguments = calloc(KG_MAX_ARGUMENTS, sizeof *launch->arguments);
    launch->widths = calloc(KG_MAX_ARGUMENTS, sizeof *launch->widths);
    return launch->arguments && launch->widths;
}

// The arguments of every launch since the last such line.
static enum kg_status take_arguments(struct reader *reader, struct kg_declared_launch *launch,
                                     const struct line *line)
{
    const char *at = line->text, *end = line->text + line->length;
    if (!make_room(launch))
        return no_memory(reader);
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t length = (size_t)((comma ? comma : end) - at);
        while (length > 0 && *at == ' ')
            at++, length--;
        while (length > 0 && at[length - 1] == ' ')
            length--;
        char why[256];
        snprintf(why, sizeof why, "'%.*s' is no input, output or size of %.64s, nor its scratch",
                 (int)(length < 64 ? length : 64), at, reader->declared->op->name);
        if (launch->argument_count == KG_MAX_ARGUMENTS ||
            !read_argument(reader->declared->op, at, length,
                           &launch->arguments[launch->argument_count]))
            return complain(reader, line->number, why);
        launch->argument_count++;
        at = comma ? comma + 1 : end;
    }
    return KG_OK;
}

// The order of the plain signature: tensors, then sizes that are no params.
static enum kg_status take_usual_arguments(struct reader *reader, struct kg_declared_launch *launch)
{
    const struct kg_op *op = reader->declared->op;
    if (!make_room(launch))
        return no_memory(reader);
    for (int i = 0; i < op->input_count + op->output_count; i++)
        launch->arguments[launch->argument_count++] =
            (struct kg_argument){KG_ARGUMENT_TENSOR, i, 0};
    for (int i = 0; i < op->size_count; i++)
        if (!op->sizes[i]->is_param)
            launch->arguments[launch->argument_count++] =
                (struct kg_argument){KG_ARGUMENT_SIZE, i, 0};
    return KG_OK;
}

static enum kg_status read_lines(struct reader *reader)
{
    struct kg_declared *declared = reader->declared;
    struct line line, rest;
    enum kg_status status = KG_OK;
    int open = 0; // the first launch that has no arguments yet
    while (!status && next_line(reader, &line)) {
        if (is_about(&line, "Choice:", &rest)) {
            status = take_choice(reader, &rest);
        } else if (declared->choice) {
            continue; // launches are examples
        } else if (is_about(&line, "Launch:", &rest)) {
            status = take_launch(reader, &rest);
        } else if (open < declared->count && is_about(&line, "with ", &rest)) {
            for (; open < declared->count && !status; open++)
                status = take_arguments(reader, &declared->launches[open], &rest);
        } else if (declared->count > 0 && is_about(&line, "scratch:", &rest)) {
            free(declared->scratch);
            declared->scratch = strndup(rest.text, rest.length);
            status = declared->scratch ? KG_OK : no_memory(reader);
        }
    }
    for (; open < declared->count && !status; open++)
        status = take_usual_arguments(reader, &declared->launches[open]);
    return status;
}

// What a launch says of its shape, word by word.
struct shape {
    const char *at;
    const struct kg_declared *declared;
    const int64_t *sizes;
    struct kg_error *error;
    enum kg_status status;
};

static int64_t read_value(struct shape *shape)
{
    int64_t value = 0;
    if (!shape->status)
        shape->status = kg_terms_value(shape->at, shape->declared->op, shape->sizes, &value,
                                       &shape->at, shape->error);
    return value;
}

static bool take_words(struct shape *shape, const char *words)
{
    size_t length = strlen(words);
    while (*shape->at == ' ')
        shape->at++;
    if (strncmp(shape->at, words, length) != 0 || isalnum((unsigned char)shape->at[length]))
        return false;
    shape->at += length;
    return true;
}

static void expect_words(struct shape *shape, const char *words)
{
    if (!shape->status && !take_words(shape, words))
        shape->status = kg_error_set(shape->error, KG_ERROR_ARGUMENT, "expected '%s' at '%.40s'",
                                     words, shape->at);
}

// "512 x 4 x 1"; what is not said is 1.
static void read_extents(struct shape *shape, int64_t extents[3])
{
    for (int i = 0; i < 3; i++)
        extents[i] = i == 0 || take_words(shape, "x") ? read_value(shape) : 1;
}

static int small(struct shape *shape, int64_t value)
{
    if (!shape->status && (value < 0 || value > INT_MAX))
        shape->status =
            kg_error_set(shape->error, KG_ERROR_SHAPE, "%lld is out of range", (long long)value);
    return shape->status ? 0 : (int)value;
}

static void read_shape(struct shape *shape, struct kg_grid *grid)
{
    int64_t threads[3];
    read_extents(shape, grid->blocks);
    expect_words(shape, "blocks of");
    read_extents(shape, threads);
    expect_words(shape, "threads");
    for (int i = 0; i < 3; i++)
        grid->threads[i] = small(shape, threads[i]);
    bool runs = true;
    while (!shape->status && take_words(shape, ",")) {
        if (take_words(shape, "clusters of")) {
            grid->cluster = small(shape, read_value(shape));
        } else if (take_words(shape, "where")) {
            runs = read_value(shape) != 0;
        } else {
            grid->shared = small(shape, read_value(shape));
            expect_words(shape, "bytes of dynamic shared memory");
        }
    }
    if (!shape->status && *shape->at)
        expect_words(shape, ",");
    if (!runs)
        grid->blocks[0] = 0;
}

enum kg_status kg_declared_grid(const struct kg_declared *declared, int launch,
                                const int64_t *sizes, struct kg_grid *grid, struct kg_error *error)
{
    const struct kg_declared_launch *from = &declared->launches[launch];
    struct shape shape = {from->shape, declared, sizes, error, KG_OK};
    *grid = (struct kg_grid){0};
    read_shape(&shape, grid);
    if (shape.status)
        kg_error_prefix(error, "the launch of %s (line %d)", from->function, from->line);
    return shape.status;
}

enum kg_status kg_declared_scratch(const struct kg_declared *declared, const int64_t *sizes,
                                   size_t *bytes, struct kg_error *error)
{
    *bytes = 0;
    if (!declared->scratch)
        return KG_OK;
    struct shape shape = {declared->scratch, declared, sizes, error, KG_OK};
    int64_t value = read_value(&shape);
    expect_words(&shape, "bytes");
    if (!shape.status && value < 0)
        shape.status = kg_error_set(error, KG_ERROR_SHAPE, "less than nothing");
    if (shape.status)
        kg_error_prefix(error, "the scratch of the launches");
    else
        *bytes = (size_t)value;
    return shape.status;
}

// Every launch is read once, with sizes of one: what is wrong shows before anything runs.
static enum kg_status try_launches(struct reader *reader)
{
    struct kg_declared *declared = reader->declared;
    int64_t ones[KG_MAX_SIZES];
    for (int i = 0; i < KG_MAX_SIZES; i++)
        ones[i] = 1;
    enum kg_status status = KG_OK;
    for (int i = 0; i < declared->count && status != KG_ERROR_ARGUMENT; i++) {
        struct kg_grid grid;
        status = kg_declared_grid(declared, i, ones, &grid, reader->error);
    }
    size_t bytes;
    if (status != KG_ERROR_ARGUMENT)
        status = kg_declared_scratch(declared, ones, &bytes, reader->error);
    if (status != KG_ERROR_ARGUMENT)
        return KG_OK;
    kg_error_prefix(reader->error, "%s", reader->path);
    return status;
}

enum kg_status kg_declared_read(const struct kg_op *op, const char *path, const char *text,
                                struct kg_declared *declared, struct kg_error *error)
{
    *declared = (struct kg_declared){.op = op};
    struct reader reader = {.path = path, .at = text, .declared = declared, .error = error};
    enum kg_status status = read_lines(&reader);
    if (!status && !declared->choice)
        status = try_launches(&reader);
    if (status)
        kg_declared_free(declared);
    else
        kg_error_clear(error);
    return status;
}

void kg_declared_free(struct kg_declared *declared)
{
    for (int i = 0; i < declared->count; i++) {
        free(declared->launches[i].function);
        free(declared->launches[i].shape);
        free(declared->launches[i].arguments);
        free(declared->launches[i].widths);
    }
    free(declared->choice);
    free(declared->scratch);
    *declared = (struct kg_declared){0};
}
