// See pack_layers.h.

#include "weights/pack_layers.h"

#include "base/files.h"
#include "base/json.h"
#include "base/printable.h"
#include "weights/packed.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME 200

static const char *const zero_names[KG_ZERO_KIND_COUNT] = {"fixed", "codes", "offsets"};

// Names become those of files, and come from anywhere.
static bool is_file_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);
    return length > 0 && length <= LONGEST_NAME && name[0] != '.' &&
           strspn(name, allowed) == length;
}

static enum kg_status check_names(const struct kg_quantised_list *list, struct kg_error *error)
{
    for (int i = 0; i < list->count; i++) {
        if (is_file_name(list->list[i].name))
            continue;
        struct kg_text name = {0};
        kg_text_add_printable(&name, list->list[i].name);
        enum kg_status status = kg_error_set(
            error, KG_ERROR_ARGUMENT, "%s: a file cannot be named after its layer \"%.200s\"",
            list->list[i].codes->file, kg_text_string(&name));
        kg_text_free(&name);
        return status;
    }
    return KG_OK;
}

static enum kg_status publish(const char *folder, const char *name, const char *suffix,
                              const void *bytes, size_t length, struct kg_error *error)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s%s", folder, name, suffix);
    enum kg_status status = path.failed ? kg_error_memory(error, "a path")
                                        : kg_files_publish(path.data, bytes, length, error);
    kg_text_free(&path);
    return status;
}

// In `memory`, which has room for it.
static enum kg_status pack_one(const struct kg_quantised *quantised, const char *folder,
                               void *memory, struct kg_error *error)
{
    struct kg_packed packed;
    int64_t row, column;
    kg_packed_lay_out(&quantised->layer, &packed);
    kg_packed_write(&quantised->layer, &packed, memory);
    enum kg_status status = KG_OK;
    if (!kg_packed_holds(&quantised->layer, &packed, memory, &row, &column))
        status = kg_error_set(error, KG_ERROR_WRONG,
                              "layer %s: what was packed differs from what was read at row %lld, "
                              "column %lld; was the file changed meanwhile?",
                              quantised->name, (long long)row, (long long)column);
    if (status == KG_OK)
        status = publish(folder, quantised->name, KG_PACKED_SUFFIX, memory, packed.bytes, error);
    return status;
}

static enum kg_status write_index(const struct kg_quantised_list *list, const char *folder,
                                  struct kg_error *error)
{
    struct kg_text text = {0};
    kg_weights_json(list, &text);
    enum kg_status status =
        text.failed ? kg_error_memory(error, "the list of layers")
                    : publish(folder, KG_PACKED_INDEX, "", text.data, text.length, error);
    kg_text_free(&text);
    return status;
}

static size_t largest_of(const struct kg_quantised_list *list)
{
    size_t largest = KG_PACKED_HEADER;
    for (int i = 0; i < list->count; i++) {
        struct kg_packed packed;
        kg_packed_lay_out(&list->list[i].layer, &packed);
        largest = packed.bytes > largest ? packed.bytes : largest;
    }
    return largest;
}

enum kg_status kg_weights_pack(const struct kg_quantised_list *list, const char *folder,
                               const struct kg_packing *packing, struct kg_error *error)
{
    enum kg_status status = check_names(list, error);
    if (status == KG_OK)
        status = kg_files_make_folder(folder, error);
    // One for all: what allocators keep of those before would be as much again.
    void *memory = status == KG_OK ? aligned_alloc(KG_PACKED_HEADER, largest_of(list)) : NULL;
    if (status == KG_OK && !memory)
        status = kg_error_memory(error, "a packed layer");
    for (int i = 0; i < list->count && status == KG_OK; i++) {
        if (packing->cancelled && packing->cancelled(packing->user)) {
            status = kg_error_set(error, KG_ERROR_CANCELLED, "%d of %d layers were packed", i,
                                  list->count);
            break;
        }
        if (packing->progress)
            packing->progress(packing->user, list->list[i].name, i, list->count);
        status = pack_one(&list->list[i], folder, memory, error);
    }
    free(memory);
    return status == KG_OK ? write_index(list, folder, error) : status;
}

void kg_weights_json(const struct kg_quantised_list *list, struct kg_text *text)
{
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    kg_json_begin_array(&json, "layers");
    for (int i = 0; i < list->count; i++) {
        const struct kg_quantised *quantised = &list->list[i];
        const struct kg_layer *layer = &quantised->layer;
        struct kg_packed packed;
        kg_packed_lay_out(layer, &packed);
        kg_json_begin_object(&json, NULL);
        kg_json_text(&json, "name", quantised->name);
        kg_json_text(&json, "format", layer->reader->name);
        kg_json_integer(&json, "rows", layer->rows);
        kg_json_integer(&json, "columns", layer->columns);
        kg_json_integer(&json, "group", layer->group);
        kg_json_text(&json, "scales", kg_dtypes[layer->dtype].name);
        kg_json_text(&json, "zero", zero_names[layer->zero]);
        kg_json_boolean(&json, "ordered", layer->order != NULL);
        kg_json_integer(&json, "bytes", (int64_t)packed.bytes);
        kg_json_end_object(&json);
    }
    kg_json_end_array(&json);
    kg_json_integer(&json, "other_tensors", list->others);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

void kg_weights_table(const struct kg_quantised_list *list, struct kg_text *text)
{
    size_t widest = strlen("layer"), bytes = 0;
    for (int i = 0; i < list->count; i++) {
        size_t width = strlen(list->list[i].name);
        widest = width > widest && width <= LONGEST_NAME ? width : widest;
    }
    kg_text_format(text, "%-*s  %8s  %8s  %6s  %-6s  %-7s  format\n", (int)widest, "layer", "rows",
                   "columns", "group", "scales", "zero");
    for (int i = 0; i < list->count; i++) {
        const struct kg_layer *layer = &list->list[i].layer;
        struct kg_packed packed;
        struct kg_text name = {0};
        kg_packed_lay_out(layer, &packed);
        bytes += packed.bytes;
        kg_text_add_printable(&name, list->list[i].name);
        kg_text_format(text, "%-*s  %8lld  %8lld  %6lld  %-6s  %-7s  %s%s\n", (int)widest,
                       kg_text_string(&name), (long long)layer->rows, (long long)layer->columns,
                       (long long)layer->group, kg_dtypes[layer->dtype].name,
                       zero_names[layer->zero], layer->reader->name,
                       layer->order ? ", rows in the order of their groups" : "");
        kg_text_free(&name);
    }
    kg_text_format(text, "%d layer%s, %.3g MB packed; %d other tensor%s\n", list->count,
                   list->count == 1 ? "" : "s", (double)bytes / 1e6, list->others,
                   list->others == 1 ? "" : "s");
}
