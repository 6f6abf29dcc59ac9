// See quantisation_label.h. Three tools, three vocabularies: GPTQ's and AWQ's members stand side by
// side in one object; compressed-tensors describes groups of layers, each with its own weights.

#include "weights/quantisation_label.h"

#include "base/files.h"
#include "base/printable.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_CONFIG ((size_t)16 << 20)
#define LARGEST_GROUP ((int64_t)1 << 30)

// The file, and the member of it that is the label; NULL: all of it is.
static const struct place {
    const char *file;
    const char *member;
} places[] = {
    {"config.json", "quantization_config"},
    {"quantize_config.json", NULL}, // beside GPTQ's models
    {"quant_config.json", NULL},    // beside AWQ's
};

// A config that is being read; its failure is sticky.
struct config {
    const char *path;
    struct kg_error *error;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void refuse(struct config *config, const char *format,
                                                         ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (!config->failed)
        kg_error_set(config->error, KG_ERROR_CORRUPT, "%s: %s", config->path, reason);
    config->failed = true;
}

// Nulls are members that are not there.
static const json_t *member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static int integer(struct config *config, const json_t *object, const char *name, int64_t min,
                   int64_t max)
{
    const json_t *value = member(object, name);
    int64_t number = json_integer_value(value);
    if (!value || (json_is_integer(value) && number >= min && number <= max))
        return (int)number;
    refuse(config, "\"%s\" must be an integer from %lld to %lld", name, (long long)min,
           (long long)max);
    return 0;
}

static bool boolean(struct config *config, const json_t *object, const char *name, bool *given)
{
    const json_t *value = member(object, name);
    if (given)
        *given = value != NULL;
    if (value && !json_is_boolean(value))
        refuse(config, "\"%s\" must be true or false", name);
    return json_is_true(value);
}

// "" where it is not given.
static const char *text(struct config *config, const json_t *object, const char *name)
{
    const json_t *value = member(object, name);
    if (!value)
        return "";
    const char *string = json_string_value(value);
    if (string && strlen(string) < sizeof((struct kg_quantisation_label *)0)->method &&
        kg_printable_is(string))
        return string;
    refuse(config, "\"%s\" must be a text of at most %zu bytes", name,
           sizeof((struct kg_quantisation_label *)0)->method - 1);
    return "";
}

static void read_method(struct config *config, const json_t *json,
                        struct kg_quantisation_label *label)
{
    const char *method = text(config, json, "quant_method");
    const char *format = text(config, json, "checkpoint_format");
    if (strcmp(method, "gptq") == 0 && strcmp(format, "gptq_v2") == 0)
        method = format;
    memcpy(label->method, method, strlen(method) + 1);
}

static void read_members(struct config *config, const json_t *json,
                         struct kg_quantisation_label *label)
{
    int bits = integer(config, json, "bits", 1, 64);
    int group = integer(config, json, "group_size", -1, LARGEST_GROUP);
    label->bits = bits ? bits : integer(config, json, "w_bit", 1, 64);
    label->group = group ? group : integer(config, json, "q_group_size", -1, LARGEST_GROUP);
    label->symmetric = boolean(config, json, "sym", &label->symmetric_given);
    label->act_order = boolean(config, json, "desc_act", NULL);
}

// ---- compressed-tensors

// Weights that were permuted when they were quantised, and are stored as they were: "group", or an
// older name of it. Under "weight" the groups are those of the stored order.
static bool is_permuted(struct config *config, const json_t *weights)
{
    const json_t *order = member(weights, "actorder");
    if (!order || json_is_boolean(order))
        return json_is_true(order);
    const char *name = text(config, weights, "actorder");
    return strcmp(name, "group") == 0 || strcmp(name, "dynamic") == 0;
}

static struct kg_quantisation_label read_weights(struct config *config, const json_t *weights)
{
    struct kg_quantisation_label label = {0};
    label.bits = integer(config, weights, "num_bits", 1, 64);
    label.group = integer(config, weights, "group_size", -1, LARGEST_GROUP);
    if (label.group == 0 && strcmp(text(config, weights, "strategy"), "channel") == 0)
        label.group = -1;
    label.symmetric = boolean(config, weights, "symmetric", &label.symmetric_given);
    label.act_order = is_permuted(config, weights);
    return label;
}

// Drops what two groups of layers do not agree on.
static void agree(struct kg_quantisation_label *label, const struct kg_quantisation_label *other)
{
    if (label->bits != other->bits)
        label->bits = 0;
    if (label->group != other->group)
        label->group = 0;
    label->symmetric_given &= other->symmetric_given && label->symmetric == other->symmetric;
    label->symmetric &= label->symmetric_given;
    label->act_order |= other->act_order;
}

static void read_groups(struct config *config, json_t *groups, struct kg_quantisation_label *label)
{
    const char *name;
    json_t *group;
    bool is_first = true;
    json_object_foreach(groups, name, group)
    {
        const json_t *weights = member(group, "weights");
        if (!weights)
            continue;
        struct kg_quantisation_label other = read_weights(config, weights);
        memcpy(other.method, label->method, sizeof other.method);
        if (is_first)
            *label = other;
        else
            agree(label, &other);
        is_first = false;
    }
}

// ---- Files

static void read_label(struct config *config, const json_t *json,
                       struct kg_quantisation_label *label)
{
    read_method(config, json, label);
    json_t *groups = json_object_get(json, "config_groups");
    if (groups && strcmp(label->method, "compressed-tensors") == 0)
        read_groups(config, groups, label);
    else
        read_members(config, json, label);
}

static enum kg_status parse(const char *path, const char *bytes, size_t length, json_t **json,
                            struct kg_error *error)
{
    json_error_t why;
    *json = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &why);
    if (*json)
        return KG_OK;
    // Not every lack of memory gets Jansson's code for it; a syntax error always has a text.
    if (json_error_code(&why) == json_error_out_of_memory || !why.text[0])
        return kg_error_memory(error, path);
    return kg_error_set(error, KG_ERROR_CORRUPT, "%s:%d:%d: is no JSON: %s", path, why.line,
                        why.column, why.text);
}

static enum kg_status read_config(const char *path, const struct place *place,
                                  struct kg_quantisation_label *label, bool *found,
                                  struct kg_error *error)
{
    char *bytes;
    size_t length;
    json_t *json = NULL;
    enum kg_status status = kg_files_read(path, LONGEST_CONFIG, &bytes, &length, error);
    if (!status)
        status = parse(path, bytes, length, &json, error);
    free(bytes);
    if (status)
        return status;
    struct kg_error local;
    struct config config = {path, error ? error : &local, false};
    const json_t *said = place->member ? member(json, place->member) : json;
    *found = said != NULL;
    if (said && !json_is_object(said))
        refuse(&config, "%s must be an object", place->member ? place->member : "it");
    else if (said)
        read_label(&config, said, label);
    json_decref(json);
    return config.failed ? config.error->status : KG_OK;
}

enum kg_status kg_quantisation_label_read(const char *folder, struct kg_quantisation_label *label,
                                          struct kg_error *error)
{
    bool found = false;
    enum kg_status status = KG_OK;
    *label = (struct kg_quantisation_label){0};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found && !status; i++) {
        struct kg_text path = {0};
        kg_text_format(&path, "%s/%s", folder, places[i].file);
        if (path.failed)
            status = kg_error_memory(error, "the path of a config");
        else if (kg_files_exists(path.data))
            status = read_config(path.data, &places[i], label, &found, error);
        kg_text_free(&path);
    }
    if (status)
        *label = (struct kg_quantisation_label){0};
    return status;
}
