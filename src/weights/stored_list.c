// See stored_list.h.

#include "weights/stored_list.h"

#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_SHOWN ((size_t)200) // of a name: the reason behind it must fit, too

static enum kg_status grow(struct kg_stored_list *list, const struct kg_weight_file *file,
                           struct kg_error *error)
{
    if (list->count == KG_MAX_STORED)
        return kg_error_set(error, KG_ERROR_CORRUPT, "%s: more than %zu tensors", file->path,
                            KG_MAX_STORED);
    if (list->count < list->capacity)
        return KG_OK;
    size_t capacity = list->capacity ? list->capacity * 2 : 64;
    struct kg_stored *items = realloc(list->items, capacity * sizeof *items);
    if (!items)
        return kg_error_memory(error, "a list of tensors");
    list->items = items;
    list->capacity = capacity;
    return KG_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct kg_stored *one = *(const struct kg_stored *const *)a;
    const struct kg_stored *other = *(const struct kg_stored *const *)b;
    return (one->offset > other->offset) - (one->offset < other->offset);
}

static enum kg_status find_overlap(const struct kg_stored **tensors, size_t count,
                                   const struct kg_weight_file *file, struct kg_error *error)
{
    qsort(tensors, count, sizeof(const struct kg_stored *), by_offset);
    for (size_t i = 1; i < count; i++) {
        const struct kg_stored *before = tensors[i - 1], *tensor = tensors[i];
        if (tensor->offset - before->offset < before->bytes) {
            struct kg_text name = {0};
            kg_text_add_printable(&name, before->name);
            kg_text_cut(&name, LONGEST_SHOWN);
            enum kg_status status =
                kg_weights_refuse(file, tensor->offset, tensor->name, error,
                                  "its data overlaps that of \"%s\", %zu bytes at offset %zu",
                                  kg_text_string(&name), before->bytes, before->offset);
            kg_text_free(&name);
            return status;
        }
    }
    return KG_OK;
}

void kg_stored_list_free(struct kg_stored_list *list)
{
    free(list->items);
    kg_arena_free(&list->arena);
    *list = (struct kg_stored_list){0};
}

enum kg_status kg_stored_list_add(struct kg_stored_list *list, const struct kg_weight_file *file,
                                  const struct kg_stored *tensor, struct kg_error *error)
{
    size_t length = strlen(tensor->name);
    if (length > KG_MAX_STORED_NAME)
        return kg_weights_refuse(file, tensor->offset, tensor->name, error,
                                 "its name has %zu bytes; at most %zu are read", length,
                                 KG_MAX_STORED_NAME);
    enum kg_status status = grow(list, file, error);
    if (status)
        return status;
    const char *name = kg_arena_copy(&list->arena, tensor->name, length);
    if (!name)
        return kg_error_memory(error, "the name of a tensor");
    struct kg_stored *item = &list->items[list->count++];
    *item = *tensor;
    item->name = name;
    return KG_OK;
}

enum kg_status kg_stored_list_check_overlaps(const struct kg_stored_list *list, size_t first,
                                             const struct kg_weight_file *file,
                                             struct kg_error *error)
{
    size_t count = 0;
    const struct kg_stored **tensors = malloc((list->count - first + 1) * sizeof *tensors);
    if (!tensors)
        return kg_error_memory(error, "a list of tensors");
    for (size_t i = first; i < list->count; i++)
        if (list->items[i].bytes > 0)
            tensors[count++] = &list->items[i];
    enum kg_status status = find_overlap(tensors, count, file, error);
    free(tensors);
    return status;
}

bool kg_stored_set_shape(struct kg_stored *tensor, const int64_t *sizes, int rank)
{
    bool is_empty = false;
    int64_t elements = 1;
    for (int d = 0; d < rank; d++) {
        is_empty |= sizes[d] == 0;
        if (sizes[d] && __builtin_mul_overflow(elements, sizes[d], &elements))
            return false;
    }
    tensor->elements = is_empty ? 0 : elements;
    tensor->rank = rank > KG_STORED_RANK ? 1 : rank;
    memset(tensor->shape, 0, sizeof tensor->shape);
    if (rank > KG_STORED_RANK) {
        tensor->type = KG_STORED_OTHER;
        tensor->shape[0] = tensor->elements;
        return true;
    }
    for (int d = 0; d < rank; d++)
        tensor->shape[d] = sizes[d];
    return true;
}

enum kg_status kg_weights_refuse(const struct kg_weight_file *file, size_t offset,
                                 const char *tensor, struct kg_error *error, const char *format,
                                 ...)
{
    struct kg_text text = {0};
    kg_text_add_printable(&text, file->path);
    kg_text_format(&text, ": offset %zu: ", offset);
    if (tensor) {
        struct kg_text name = {0};
        kg_text_add_printable(&name, tensor);
        bool is_long = name.length > LONGEST_SHOWN;
        kg_text_cut(&name, LONGEST_SHOWN);
        kg_text_format(&text, "tensor \"%s%s\": ", kg_text_string(&name), is_long ? "..." : "");
        kg_text_free(&name);
    }
    va_list arguments;
    va_start(arguments, format);
    kg_text_vformat(&text, format, arguments);
    va_end(arguments);
    enum kg_status status = text.failed ? kg_error_memory(error, "a message")
                                        : kg_error_set(error, KG_ERROR_CORRUPT, "%s", text.data);
    kg_text_free(&text);
    return status;
}
