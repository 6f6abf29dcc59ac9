// See safetensors.h. Jansson reads the header; this file believes none of its numbers.

#include "weights/safetensors.h"

#include "base/printable.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define LENGTH_BYTES ((size_t)8)
#define LONGEST_HEADER ((uint64_t)100000000) // what the reference implementation reads
#define MOST_DIMENSIONS 64

static const struct dtype {
    const char *name;
    enum kg_stored_type type;
    int bits;
} dtypes[] = {
    {"F64", KG_STORED_F64, 64},      {"F32", KG_STORED_F32, 32},
    {"F16", KG_STORED_F16, 16},      {"BF16", KG_STORED_BF16, 16},
    {"I64", KG_STORED_I64, 64},      {"I32", KG_STORED_I32, 32},
    {"I16", KG_STORED_I16, 16},      {"I8", KG_STORED_I8, 8},
    {"U8", KG_STORED_U8, 8},         {"BOOL", KG_STORED_BOOL, 8},
    {"U16", KG_STORED_OTHER, 16},    {"U32", KG_STORED_OTHER, 32},
    {"U64", KG_STORED_OTHER, 64},    {"C64", KG_STORED_OTHER, 64},
    {"F8_E4M3", KG_STORED_OTHER, 8}, {"F8_E4M3FNUZ", KG_STORED_OTHER, 8},
    {"F8_E5M2", KG_STORED_OTHER, 8}, {"F8_E5M2FNUZ", KG_STORED_OTHER, 8},
    {"F8_E8M0", KG_STORED_OTHER, 8}, {"F6_E2M3", KG_STORED_OTHER, 6},
    {"F6_E3M2", KG_STORED_OTHER, 6}, {"F4", KG_STORED_OTHER, 4},
};

// A header that is being read.
struct header {
    const struct kg_weight_file *file;
    struct kg_stored_list *list;
    size_t data; // where it ends and data begins
    struct kg_error *error;
};

// Members of the header have no place of their own: Jansson does not tell it.
#define REFUSE(header, tensor, ...)                                                                \
    kg_weights_refuse((header)->file, LENGTH_BYTES, (tensor), (header)->error, __VA_ARGS__)

static enum kg_status read_length(const struct kg_weight_file *file, size_t *length,
                                  struct kg_error *error)
{
    if (file->length < LENGTH_BYTES)
        return kg_weights_refuse(file, 0, NULL, error,
                                 "the file ends at %zu; 8 bytes with the length of the header "
                                 "are expected",
                                 file->length);
    uint64_t claimed = 0;
    for (size_t i = LENGTH_BYTES; i > 0; i--)
        claimed = claimed << 8 | file->bytes[i - 1];
    if (claimed > LONGEST_HEADER)
        return kg_weights_refuse(file, 0, NULL, error,
                                 "a header of %" PRIu64 " bytes; at most %" PRIu64 " are read",
                                 claimed, LONGEST_HEADER);
    if (claimed > file->length - LENGTH_BYTES)
        return kg_weights_refuse(file, 0, NULL, error,
                                 "a header of %" PRIu64 " bytes; the file ends at %zu, cut short",
                                 claimed, file->length);
    *length = (size_t)claimed;
    return KG_OK;
}

static enum kg_status parse(const struct kg_weight_file *file, size_t length, json_t **json,
                            struct kg_error *error)
{
    json_error_t why;
    const char *text = (const char *)file->bytes + LENGTH_BYTES;
    if (length == 0 || text[0] != '{')
        return kg_weights_refuse(file, LENGTH_BYTES, NULL, error,
                                 "the header does not begin with '{'");
    *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (*json)
        return KG_OK;
    // Not every lack of memory gets Jansson's code for it; a syntax error always has a text.
    if (json_error_code(&why) == json_error_out_of_memory || !why.text[0])
        return kg_error_memory(error, "the header of a safetensors file");
    struct kg_text reason = {0};
    kg_text_add_printable(&reason, why.text);
    size_t place = why.position > 0 ? (size_t)why.position : 0;
    enum kg_status status = kg_weights_refuse(file, LENGTH_BYTES + place, NULL, error,
                                              "the header is no JSON: %s", kg_text_string(&reason));
    kg_text_free(&reason);
    return status;
}

static enum kg_status check_metadata(const struct header *header, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return REFUSE(header, NULL, "\"__metadata__\" must be an object of texts");
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return REFUSE(
        header, NULL, "\"__metadata__\" has a member that is no text");
    return KG_OK;
}

static enum kg_status read_dtype(const struct header *header, const json_t *json,
                                 struct kg_stored *tensor, const struct dtype **dtype)
{
    const char *name = json_string_value(json_object_get(json, "dtype"));
    if (!name)
        return REFUSE(header, tensor->name, "\"dtype\" must be a text");
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = &dtypes[i];
            tensor->type = dtypes[i].type;
            tensor->type_name = dtypes[i].name;
            return KG_OK;
        }
    struct kg_text shown = {0};
    kg_text_add_printable(&shown, name);
    kg_text_cut(&shown, 40);
    enum kg_status status =
        REFUSE(header, tensor->name, "dtype \"%s\" is not known", kg_text_string(&shown));
    kg_text_free(&shown);
    return status;
}

// Integers from 0, into `values`; the number of them, or -1.
static int read_integers(const json_t *array, int64_t *values, size_t most)
{
    size_t count = json_array_size(array);
    if (!json_is_array(array) || count > most)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return -1;
        values[i] = json_integer_value(value);
    }
    return (int)count;
}

static enum kg_status read_shape(const struct header *header, const json_t *json,
                                 struct kg_stored *tensor)
{
    int64_t sizes[MOST_DIMENSIONS];
    int rank = read_integers(json_object_get(json, "shape"), sizes, MOST_DIMENSIONS);
    if (rank < 0)
        return REFUSE(header, tensor->name,
                      "\"shape\" must be a list of at most %d integers from 0", MOST_DIMENSIONS);
    if (!kg_stored_set_shape(tensor, sizes, rank))
        return REFUSE(header, tensor->name, "its shape has more than 2^63 elements");
    return KG_OK;
}

static enum kg_status read_place(const struct header *header, const json_t *json,
                                 struct kg_stored *tensor)
{
    int64_t offsets[2];
    size_t room = header->file->length - header->data;
    if (read_integers(json_object_get(json, "data_offsets"), offsets, 2) != 2)
        return REFUSE(header, tensor->name, "\"data_offsets\" must be two integers from 0");
    if (offsets[0] > offsets[1])
        return REFUSE(header, tensor->name,
                      "its data begins at %" PRId64 " and ends at %" PRId64
                      ", relative to offset %zu",
                      offsets[0], offsets[1], header->data);
    if ((uint64_t)offsets[1] > room)
        return REFUSE(header, tensor->name,
                      "its data ends at %" PRId64 " relative to offset %zu; the file ends at %zu, "
                      "cut short",
                      offsets[1], header->data, header->file->length);
    tensor->offset = header->data + (size_t)offsets[0];
    tensor->bytes = (size_t)(offsets[1] - offsets[0]);
    tensor->data = header->file->bytes + tensor->offset;
    return KG_OK;
}

static enum kg_status check_bytes(const struct header *header, const struct kg_stored *tensor,
                                  int bits_each)
{
    int64_t bits;
    if (__builtin_mul_overflow(tensor->elements, bits_each, &bits) || bits % 8 != 0 ||
        (uint64_t)bits / 8 != tensor->bytes)
        return kg_weights_refuse(header->file, tensor->offset, tensor->name, header->error,
                                 "%zu bytes of data; %" PRId64 " elements of %s have %d bits each",
                                 tensor->bytes, tensor->elements, tensor->type_name, bits_each);
    return KG_OK;
}

static enum kg_status list_tensor(const struct header *header, const char *name, const json_t *json)
{
    const struct dtype *dtype = NULL;
    struct kg_stored tensor = {.name = name, .file = header->file->path};
    if (!json_is_object(json))
        return REFUSE(header, name, "it must be an object");
    enum kg_status status = read_dtype(header, json, &tensor, &dtype);
    if (!status)
        status = read_shape(header, json, &tensor);
    if (!status)
        status = read_place(header, json, &tensor);
    if (!status)
        status = check_bytes(header, &tensor, dtype->bits);
    if (!status)
        status = kg_stored_list_add(header->list, header->file, &tensor, header->error);
    return status;
}

bool kg_safetensors_is(const unsigned char *bytes, size_t length)
{
    return length > LENGTH_BYTES && bytes[LENGTH_BYTES] == '{';
}

enum kg_status kg_safetensors_list(const struct kg_weight_file *file, struct kg_stored_list *list,
                                   struct kg_error *error)
{
    size_t length = 0, first = list->count;
    json_t *json = NULL, *value;
    const char *name;
    enum kg_status status = read_length(file, &length, error);
    if (!status)
        status = parse(file, length, &json, error);
    if (status)
        return status;
    const struct header header = {file, list, LENGTH_BYTES + length, error};
    json_object_foreach(json, name, value)
    {
        if (status)
            break;
        if (strcmp(name, "__metadata__") == 0)
            status = check_metadata(&header, value);
        else
            status = list_tensor(&header, name, value);
    }
    json_decref(json);
    return status ? status : kg_stored_list_check_overlaps(list, first, file, error);
}
