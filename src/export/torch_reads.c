// Reads: a tensor as it is where its subscripts are its own indices in order, slices, and tensors
// of places otherwise.

#include "export/torch_writer.h"

#include <string.h>

enum part_kind {
    PART_WHOLE, // an index that runs over all of the dimension
    PART_SLICE, // an index over a part of it
    PART_POINT, // a number
    PART_PLACES // a tensor of places
};

struct part {
    enum part_kind kind;
    int slot; // WHOLE, SLICE
    const char *text;
    struct kg_torch_value places;
};

struct read {
    struct kg_torch_writer *writer;
    const struct kg_torch_frame *frame;
    const struct kg_expr *expr;
    struct part parts[KG_MAX_RANK];
    int count;
};

// Places that are computed: what leaves the tensor is clamped to it, as in the language. Those that
// callers give are theirs to keep inside.
static bool is_computed_place(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ)
        return expr->tensor->role != KG_ROLE_INPUT;
    for (int i = 0; i < expr->argument_count; i++)
        if (is_computed_place(expr->arguments[i]))
            return true;
    return false;
}

static void classify(struct read *read, int dimension)
{
    struct kg_torch_writer *writer = read->writer;
    const struct kg_expr *subscript = read->expr->arguments[dimension];
    struct part *part = &read->parts[dimension];
    if (subscript->kind == KG_EXPR_INDEX) {
        const struct kg_index *index = subscript->index;
        part->slot = kg_torch_slot(read->frame, index);
        // A scan's index stands in the slot of the one that bounds it.
        const char *end = kg_torch_size_text(writer, index->end);
        const char *extent = kg_torch_size_text(writer, read->expr->tensor->dims[dimension]);
        bool from_start = strcmp(kg_torch_extent(writer, index), end) == 0;
        bool repeated = false;
        for (int d = 0; d < dimension; d++)
            repeated |= read->parts[d].kind <= PART_SLICE && read->parts[d].slot == part->slot;
        if (part->slot >= 0 && !repeated && from_start && strcmp(end, extent) == 0) {
            part->kind = PART_WHOLE;
            part->text = ":";
            return;
        }
        if (part->slot >= 0 && !repeated && !read->expr->pad) {
            part->kind = PART_SLICE;
            part->text = from_start
                             ? kg_torch_format(writer, ":%s", end)
                             : kg_torch_format(writer, "%s:%s",
                                               kg_torch_size_text(writer, index->begin), end);
            return;
        }
    }
    part->places = kg_torch_expression(writer, read->frame, subscript);
    kg_torch_sort(writer, &part->places);
    part->kind = part->places.scalar ? PART_POINT : PART_PLACES;
    if (!read->expr->pad && !part->places.scalar && is_computed_place(subscript)) {
        part->places.text = kg_torch_format(
            writer, "%s.clamp(0, %s - 1)", kg_torch_at(writer, &part->places, PYTHON_PRIMARY),
            kg_torch_size_text(writer, read->expr->tensor->dims[dimension]));
        part->places.level = PYTHON_PRIMARY;
    }
    part->text = part->places.text;
}

// Every subscript as a tensor of places; those of the tensor's own indices become ranges.
static void spell_out(struct read *read)
{
    for (int d = 0; d < read->count; d++) {
        struct part *part = &read->parts[d];
        if (part->kind > PART_SLICE)
            continue;
        part->places = kg_torch_index(read->writer, read->frame, read->frame->indices[part->slot]);
        part->kind = PART_PLACES;
    }
}

static void join_places(const struct read *read, int *count, int *axes)
{
    for (int d = 0; d < read->count; d++)
        if (read->parts[d].kind == PART_PLACES)
            kg_torch_join(&read->parts[d].places, count, axes);
}

// Adds to `axes` what the places depend on.
static void align_places(struct read *read, int *count, int *axes)
{
    join_places(read, count, axes);
    for (int d = 0; d < read->count; d++)
        if (read->parts[d].kind == PART_PLACES) {
            kg_torch_align(read->writer, &read->parts[d].places, *count, axes);
            read->parts[d].text = read->parts[d].places.text;
        }
}

// PyTorch puts the dimensions of places where they stand, if they stand together, and ours must not
// be those of another subscript.
static bool stand_together(const struct read *read, int count, const int *axes)
{
    int first = -1, last = -1;
    for (int d = 0; d < read->count; d++) {
        if (read->parts[d].kind >= PART_POINT) {
            first = first < 0 ? d : first;
            last = d;
        }
        for (int i = 0; i < count && read->parts[d].kind <= PART_SLICE; i++)
            if (axes[i] == read->parts[d].slot)
                return false;
    }
    for (int d = first; d >= 0 && d <= last; d++)
        if (read->parts[d].kind < PART_POINT)
            return false;
    return true;
}

static const char *list_of(struct read *read)
{
    struct kg_text text = {0};
    for (int d = 0; d < read->count; d++)
        kg_text_format(&text, "%s%s", d ? ", " : "", read->parts[d].text);
    const char *copy = kg_torch_format(read->writer, "%s", kg_text_string(&text));
    read->writer->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

static void read_padded(struct read *read, struct kg_torch_value *value)
{
    struct kg_torch_writer *writer = read->writer;
    int count, axes[KG_MAX_INDICES];
    struct kg_torch_value outside = kg_torch_expression(writer, read->frame, read->expr->pad);
    kg_torch_sort(writer, &outside);
    if (!outside.scalar) {
        kg_torch_convert(writer, value, read->expr->type);
        kg_torch_convert(writer, &outside, read->expr->type);
    } else if (!outside.is_exact) {
        kg_torch_convert(writer, value, read->expr->type);
    }
    spell_out(read);
    count = 0;
    kg_torch_join(&outside, &count, axes);
    align_places(read, &count, axes);
    kg_torch_align(writer, &outside, count, axes);
    kg_torch_use(writer, HELPER_READ_PADDED);
    value->text = kg_torch_format(writer, "_read_padded(%s, (%s%s), %s)", value->text,
                                  list_of(read), read->count == 1 ? "," : "", outside.text);
    value->axis_count = count;
    memcpy(value->axes, axes, sizeof axes);
    value->is_view = false;
}

static void read_places(struct read *read, struct kg_torch_value *value)
{
    int count = 0, axes[KG_MAX_INDICES];
    bool placed = false;
    join_places(read, &count, axes);
    if (!stand_together(read, count, axes))
        spell_out(read);
    align_places(read, &count, axes);
    for (int d = 0; d < read->count; d++) {
        if (read->parts[d].kind <= PART_SLICE)
            value->axes[value->axis_count++] = read->parts[d].slot;
        else if (!placed) {
            for (int i = 0; i < count; i++)
                value->axes[value->axis_count++] = axes[i];
            placed = true;
        }
    }
    value->text = kg_torch_format(read->writer, "%s[%s]",
                                  kg_torch_at(read->writer, value, PYTHON_PRIMARY), list_of(read));
    value->level = PYTHON_PRIMARY;
}

// The tensor's elements as they are read: floats narrower than 16 bits and integers at once in
// their compute type.
static struct kg_torch_value elements_of(struct kg_torch_writer *writer,
                                         const struct kg_tensor *tensor, enum kg_type type)
{
    struct kg_torch_value value = {.text = kg_torch_name(writer, tensor->name),
                                   .level = PYTHON_PRIMARY,
                                   .type = type,
                                   .is_view = true};
    if (tensor->role != KG_ROLE_INPUT) {
        value.raw = writer->local_raw[tensor->id];
        return value;
    }
    if (writer->is_reference || kg_dtype_is_packed(tensor->type.dtype))
        return value; // converted when the function begins
    if (kg_torch_may_be_raw(writer, tensor)) {
        value.raw = tensor;
        return value;
    }
    struct kg_dtype_set set;
    bool is_computed = true;
    kg_torch_dtypes(writer->generic, writer->op, tensor->id, &set);
    for (int i = 0; i < set.count; i++)
        is_computed &= kg_dtype_is_computed(set.dtypes[i]);
    if (!is_computed && !kg_dtype_is_truth(tensor->type.dtype))
        value.text = kg_torch_format(writer, "%s%s", value.text,
                                     type == KG_TYPE_I64 ? ".long()" : ".float()");
    return value;
}

struct kg_torch_value kg_torch_read(struct kg_torch_writer *writer,
                                    const struct kg_torch_frame *frame, const struct kg_expr *expr)
{
    struct read read = {
        .writer = writer, .frame = frame, .expr = expr, .count = expr->argument_count};
    struct kg_torch_value value = elements_of(writer, expr->tensor, expr->type);
    bool all_whole = true;
    for (int d = 0; d < read.count; d++) {
        classify(&read, d);
        all_whole &= read.parts[d].kind == PART_WHOLE;
    }
    if (all_whole) {
        for (int d = 0; d < read.count; d++)
            value.axes[value.axis_count++] = read.parts[d].slot;
        return value;
    }
    if (expr->pad)
        read_padded(&read, &value);
    else
        read_places(&read, &value);
    return value;
}
