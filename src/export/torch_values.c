// Values of the emitted Python: conversions, and dimensions that fit one another.

#include "export/torch_writer.h"

#include <stdarg.h>
#include <string.h>

const char *kg_torch_format(struct kg_torch_writer *writer, const char *format, ...)
{
    struct kg_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    kg_text_vformat(&text, format, arguments);
    va_end(arguments);
    const char *copy = kg_arena_copy(&writer->arena, kg_text_string(&text), text.length);
    writer->failed |= text.failed || !copy;
    kg_text_free(&text);
    return copy ? copy : "";
}

const char *kg_torch_size_text(struct kg_torch_writer *writer, const struct kg_expr *size)
{
    struct kg_text text = {0};
    kg_python_size(&text, writer->op, size);
    const char *copy = kg_torch_format(writer, "%s", kg_text_string(&text));
    writer->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

const char *kg_torch_name(struct kg_torch_writer *writer, const char *name)
{
    struct kg_text text = {0};
    kg_python_name(&text, name);
    const char *copy = kg_torch_format(writer, "%s", kg_text_string(&text));
    writer->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

void kg_torch_use(struct kg_torch_writer *writer, enum kg_torch_helper helper)
{
    writer->helpers |= 1u << helper;
}

const char *kg_torch_dtype_text(struct kg_torch_writer *writer, int tensor)
{
    struct kg_dtype_set set;
    kg_torch_dtypes(writer->generic, writer->op, tensor, &set);
    if (!set.variable)
        return kg_torch_dtype(set.dtypes[0]);
    if (!set.shown_by)
        return set.variable->name;
    const char *name = kg_torch_name(writer, set.shown_by->name);
    if (!writer->is_reference)
        return kg_torch_format(writer, "%s.dtype", name);
    writer->dtypes |= 1u << set.shown_by->id;
    return kg_torch_format(writer, "%s_dtype", name);
}

bool kg_torch_may_be_raw(const struct kg_torch_writer *writer, const struct kg_tensor *tensor)
{
    struct kg_dtype_set set;
    bool is_narrow = false;
    kg_torch_dtypes(writer->generic, writer->op, tensor->id, &set);
    for (int i = 0; i < set.count; i++) {
        enum kg_dtype dtype = set.dtypes[i];
        if (!kg_dtype_is_half(dtype) && dtype != KG_F32)
            return false;
        is_narrow |= dtype != KG_F32;
    }
    return is_narrow && !writer->is_reference;
}

const char *kg_torch_at(struct kg_torch_writer *writer, const struct kg_torch_value *value,
                        enum kg_python_level level)
{
    return value->level < level ? kg_torch_format(writer, "(%s)", value->text) : value->text;
}

struct kg_torch_value kg_torch_scalar(const char *text, enum kg_python_level level,
                                      enum kg_type type)
{
    return (struct kg_torch_value){.text = text, .level = level, .scalar = true, .type = type};
}

static void apply_method(struct kg_torch_writer *writer, struct kg_torch_value *value,
                         const char *method)
{
    value->text =
        kg_torch_format(writer, "%s%s", kg_torch_at(writer, value, PYTHON_PRIMARY), method);
    value->level = PYTHON_PRIMARY;
    value->is_view = false;
}

void kg_torch_convert(struct kg_torch_writer *writer, struct kg_torch_value *value,
                      enum kg_type type)
{
    bool is_float = type == KG_TYPE_F32 || type == KG_TYPE_F64;
    bool was_float = value->type == KG_TYPE_F32 || value->type == KG_TYPE_F64;
    bool same = value->type == type && !value->raw;
    if (!value->scalar && !same) {
        if (is_float && !(writer->is_reference && was_float))
            apply_method(writer, value,
                         writer->is_reference || type == KG_TYPE_F64 ? ".double()" : ".float()");
        else if (type == KG_TYPE_I64 && value->type == KG_TYPE_BOOL)
            apply_method(writer, value, ".long()");
    }
    value->type = type;
    value->raw = NULL;
}

void kg_torch_join(const struct kg_torch_value *value, int *count, int *axes)
{
    for (int i = 0; i < value->axis_count; i++) {
        int at = 0;
        while (at < *count && axes[at] < value->axes[i])
            at++;
        if (at < *count && axes[at] == value->axes[i])
            continue;
        memmove(axes + at + 1, axes + at, (size_t)(*count - at) * sizeof *axes);
        axes[at] = value->axes[i];
        (*count)++;
    }
}

static bool has_axis(const struct kg_torch_value *value, int axis)
{
    for (int i = 0; i < value->axis_count; i++)
        if (value->axes[i] == axis)
            return true;
    return false;
}

void kg_torch_align(struct kg_torch_writer *writer, struct kg_torch_value *value, int count,
                    const int *axes)
{
    struct kg_text subscript = {0};
    bool inside = false, lacks = false;
    if (value->scalar || value->axis_count == 0)
        return;
    for (int i = 0; i < count; i++) {
        bool has = has_axis(value, axes[i]);
        if (!inside && !has)
            continue; // broadcasting adds dimensions in front
        kg_text_format(&subscript, "%s%s", inside ? ", " : "", has ? ":" : "None");
        lacks |= !has;
        inside = true;
    }
    if (lacks) {
        apply_method(writer, value, kg_torch_format(writer, "[%s]", kg_text_string(&subscript)));
        value->is_view = true;
    }
    writer->failed |= subscript.failed;
    kg_text_free(&subscript);
}

const char *kg_torch_extent(struct kg_torch_writer *writer, const struct kg_index *index)
{
    if (!index->begin || (index->begin->kind == KG_EXPR_NUMBER && index->begin->integer == 0))
        return kg_torch_size_text(writer, index->end);
    return kg_torch_format(writer, "%s - (%s)", kg_torch_size_text(writer, index->end),
                           kg_torch_size_text(writer, index->begin));
}

const char *kg_torch_extents(struct kg_torch_writer *writer, const struct kg_torch_frame *frame,
                             int count, const int *axes)
{
    struct kg_text text = {0};
    for (int i = 0; i < count; i++)
        kg_text_format(&text, "%s%s", i ? ", " : "",
                       kg_torch_extent(writer, frame->indices[axes[i]]));
    const char *copy =
        kg_torch_format(writer, count == 1 ? "(%s,)" : "(%s)", kg_text_string(&text));
    writer->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

static const char *device_text(struct kg_torch_writer *writer)
{
    return writer->op->input_count
               ? kg_torch_format(writer, "%s.device",
                                 kg_torch_name(writer, writer->op->tensors[0]->name))
               : "device";
}

void kg_torch_expand(struct kg_torch_writer *writer, const struct kg_torch_frame *frame,
                     struct kg_torch_value *value, int count, const int *axes)
{
    bool complete = true;
    for (int i = 0; i < count; i++)
        complete &= has_axis(value, axes[i]);
    if (value->scalar) {
        const char *dtype = value->type == KG_TYPE_BOOL                          ? "torch.bool"
                            : value->type == KG_TYPE_I64                         ? "torch.int64"
                            : writer->is_reference || value->type == KG_TYPE_F64 ? "torch.float64"
                                                                                 : "torch.float32";
        value->text = kg_torch_format(writer, "torch.full(%s, %s, dtype=%s, device=%s)",
                                      kg_torch_extents(writer, frame, count, axes), value->text,
                                      dtype, device_text(writer));
        value->level = PYTHON_PRIMARY;
        value->scalar = false;
    } else if (!complete) {
        kg_torch_align(writer, value, count, axes);
        apply_method(
            writer, value,
            kg_torch_format(writer, ".expand%s", kg_torch_extents(writer, frame, count, axes)));
        value->is_view = true;
    }
    value->axis_count = count;
    memcpy(value->axes, axes, (size_t)count * sizeof *axes);
}

void kg_torch_sort(struct kg_torch_writer *writer, struct kg_torch_value *value)
{
    struct kg_text order = {0};
    int sorted[KG_MAX_INDICES], count = 0;
    bool moved = false;
    kg_torch_join(value, &count, sorted);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < count; d++)
            if (value->axes[d] == sorted[i]) {
                kg_text_format(&order, "%s%d", i ? ", " : "", d);
                moved |= d != i;
            }
    if (moved) {
        apply_method(writer, value,
                     count == 2 ? ".t()"
                                : kg_torch_format(writer, ".permute(%s)", kg_text_string(&order)));
        value->is_view = true;
        memcpy(value->axes, sorted, (size_t)count * sizeof *sorted);
    }
    writer->failed |= order.failed;
    kg_text_free(&order);
}

int kg_torch_slot(const struct kg_torch_frame *frame, const struct kg_index *index)
{
    for (int i = 0; i < frame->count; i++)
        if (frame->indices[i] == index)
            return i;
    return -1;
}

static bool is_taken(const struct kg_torch_writer *writer, const char *name)
{
    for (int t = 0; t < writer->op->tensor_count; t++)
        if (strcmp(writer->op->tensors[t]->name, name) == 0)
            return true;
    for (int i = 0; i < writer->range_count; i++)
        if (strcmp(writer->ranges[i].name, name) == 0)
            return true;
    return false;
}

static const char *range_variable(struct kg_torch_writer *writer, const struct kg_index *index)
{
    const char *extent = kg_torch_extent(writer, index);
    const char *end = kg_torch_size_text(writer, index->end);
    for (int i = 0; i < writer->range_count; i++) {
        const struct kg_index *other = writer->ranges[i].index;
        if (strcmp(other->name, index->name) == 0 &&
            strcmp(kg_torch_extent(writer, other), extent) == 0 &&
            strcmp(kg_torch_size_text(writer, other->end), end) == 0)
            return writer->ranges[i].name;
    }
    const char *name = kg_torch_name(writer, index->name);
    for (int i = 2; is_taken(writer, name); i++)
        name = kg_torch_format(writer, "%s_%d", index->name, i);
    if (writer->range_count == (int)(sizeof writer->ranges / sizeof writer->ranges[0])) {
        writer->failed = true;
        return name;
    }
    writer->ranges[writer->range_count++] = (struct kg_torch_range){index, name};
    const char *begin =
        strcmp(extent, end) == 0
            ? ""
            : kg_torch_format(writer, "%s, ", kg_torch_size_text(writer, index->begin));
    kg_text_format(&writer->body, "    %s = torch.arange(%s%s, device=%s)\n", name, begin, end,
                   device_text(writer));
    return name;
}

struct kg_torch_value kg_torch_index(struct kg_torch_writer *writer,
                                     const struct kg_torch_frame *frame,
                                     const struct kg_index *index)
{
    int slot = kg_torch_slot(frame, index);
    writer->failed |= slot < 0;
    return (struct kg_torch_value){.text = range_variable(writer, index),
                                   .level = PYTHON_PRIMARY,
                                   .axis_count = 1,
                                   .axes = {slot},
                                   .type = KG_TYPE_I64,
                                   .is_view = true};
}

static void align_all(struct kg_torch_writer *writer, int count, struct kg_torch_value *values,
                      struct kg_torch_value *result)
{
    result->axis_count = 0;
    result->scalar = true;
    for (int i = 0; i < count; i++) {
        kg_torch_join(&values[i], &result->axis_count, result->axes);
        result->scalar &= values[i].scalar;
    }
    for (int i = 0; i < count; i++)
        kg_torch_align(writer, &values[i], result->axis_count, result->axes);
}

struct kg_torch_value kg_torch_binary(struct kg_torch_writer *writer, struct kg_torch_value a,
                                      const char *sign, struct kg_torch_value b,
                                      enum kg_python_level level, enum kg_type type)
{
    struct kg_torch_value both[2] = {a, b}, result = {.level = level, .type = type};
    align_all(writer, 2, both, &result);
    // Comparisons do not chain here: Python's do.
    enum kg_python_level left = level == PYTHON_COMPARE ? PYTHON_BIT_OR : level;
    result.text = kg_torch_format(writer, "%s %s %s", kg_torch_at(writer, &both[0], left), sign,
                                  kg_torch_at(writer, &both[1], level + 1));
    return result;
}

struct kg_torch_value kg_torch_call(struct kg_torch_writer *writer, const char *name, int count,
                                    struct kg_torch_value *arguments, enum kg_type type)
{
    struct kg_torch_value result = {.level = PYTHON_PRIMARY, .type = type};
    struct kg_text list = {0};
    align_all(writer, count, arguments, &result);
    for (int i = 0; i < count; i++)
        kg_text_format(&list, "%s%s", i ? ", " : "", arguments[i].text);
    result.text = kg_torch_format(writer, "%s(%s)", name, kg_text_string(&list));
    writer->failed |= list.failed;
    kg_text_free(&list);
    return result;
}
