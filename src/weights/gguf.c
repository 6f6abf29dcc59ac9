// See gguf.h. Everything is read through a reader whose failure is sticky: behind it, numbers are 0
// and loops end.

#include "weights/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_ALIGNMENT 32
#define DEEPEST_ARRAY 8
#define LEAST_PAIR 13   // bytes: an empty key, a type and a value of one byte
#define LEAST_TENSOR 24 // bytes: an empty name, no sizes

// Blocks as ggml lays them out in memory and in files. Not here: Q8_1 (9), whose blocks have had 36
// and 40 bytes and which is no type of files; types that were removed (4, 5, 31 to 33, 36 to 38).
static const struct block {
    uint32_t number;
    const char *name;
    enum kg_stored_type type;
    int values, bytes;
} blocks[] = {
    {0, "F32", KG_STORED_F32, 1, 4},           {1, "F16", KG_STORED_F16, 1, 2},
    {2, "Q4_0", KG_STORED_Q4_0, 32, 18},       {3, "Q4_1", KG_STORED_Q4_1, 32, 20},
    {6, "Q5_0", KG_STORED_OTHER, 32, 22},      {7, "Q5_1", KG_STORED_OTHER, 32, 24},
    {8, "Q8_0", KG_STORED_OTHER, 32, 34},      {10, "Q2_K", KG_STORED_OTHER, 256, 84},
    {11, "Q3_K", KG_STORED_OTHER, 256, 110},   {12, "Q4_K", KG_STORED_Q4_K, 256, 144},
    {13, "Q5_K", KG_STORED_OTHER, 256, 176},   {14, "Q6_K", KG_STORED_OTHER, 256, 210},
    {15, "Q8_K", KG_STORED_OTHER, 256, 292},   {16, "IQ2_XXS", KG_STORED_OTHER, 256, 66},
    {17, "IQ2_XS", KG_STORED_OTHER, 256, 74},  {18, "IQ3_XXS", KG_STORED_OTHER, 256, 98},
    {19, "IQ1_S", KG_STORED_OTHER, 256, 50},   {20, "IQ4_NL", KG_STORED_OTHER, 32, 18},
    {21, "IQ3_S", KG_STORED_OTHER, 256, 110},  {22, "IQ2_S", KG_STORED_OTHER, 256, 82},
    {23, "IQ4_XS", KG_STORED_OTHER, 256, 136}, {24, "I8", KG_STORED_I8, 1, 1},
    {25, "I16", KG_STORED_I16, 1, 2},          {26, "I32", KG_STORED_I32, 1, 4},
    {27, "I64", KG_STORED_I64, 1, 8},          {28, "F64", KG_STORED_F64, 1, 8},
    {29, "IQ1_M", KG_STORED_OTHER, 256, 56},   {30, "BF16", KG_STORED_BF16, 1, 2},
    {34, "TQ1_0", KG_STORED_OTHER, 256, 54},   {35, "TQ2_0", KG_STORED_OTHER, 256, 66},
    {39, "MXFP4", KG_STORED_OTHER, 32, 17},    {40, "NVFP4", KG_STORED_OTHER, 64, 36},
    {41, "Q1_0", KG_STORED_OTHER, 128, 18},
};

enum value_type { VALUE_U32 = 4, VALUE_TEXT = 8, VALUE_ARRAY = 9, VALUE_TYPES = 13 };
// Of a value, by its type: u8 i8 u16 i16 u32 i32 f32 bool text array u64 i64 f64. A text or an
// array has more: what is given is its head.
static const unsigned char value_bytes[VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

struct reader {
    const struct kg_weight_file *file;
    size_t at;
    const char *part; // what is being read, for messages: "tensor" 3 "of" 17
    uint64_t number, total;
    bool failed;
    struct kg_error *error;
};

struct slice {
    const char *bytes;
    size_t length;
};

// A tensor as the file describes it.
struct description {
    size_t at; // in the file
    char name[KG_MAX_STORED_NAME + 1];
    int rank;
    int64_t sizes[KG_STORED_RANK]; // the slowest first
    uint32_t type;
    uint64_t offset; // relative to the data
};

__attribute__((format(printf, 3, 4))) static void refuse(struct reader *reader, size_t offset,
                                                         const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (!reader->failed && reader->total > 0)
        kg_weights_refuse(reader->file, offset, NULL, reader->error,
                          "%s %" PRIu64 " of %" PRIu64 ": %s", reader->part, reader->number + 1,
                          reader->total, reason);
    else if (!reader->failed)
        kg_weights_refuse(reader->file, offset, NULL, reader->error, "%s: %s", reader->part,
                          reason);
    reader->failed = true;
}

static size_t left(const struct reader *reader)
{
    return reader->failed ? 0 : reader->file->length - reader->at;
}

static const unsigned char *take(struct reader *reader, uint64_t bytes)
{
    if (!reader->failed && bytes > left(reader))
        refuse(reader, reader->at,
               "%" PRIu64 " bytes are expected; the file ends at %zu, cut short", bytes,
               reader->file->length);
    if (reader->failed)
        return NULL;
    const unsigned char *taken = reader->file->bytes + reader->at;
    reader->at += (size_t)bytes;
    return taken;
}

static uint64_t take_number(struct reader *reader, size_t bytes)
{
    const unsigned char *taken = take(reader, bytes);
    uint64_t number = 0;
    for (size_t i = bytes; taken && i > 0; i--)
        number = number << 8 | taken[i - 1];
    return number;
}

static uint32_t take_u32(struct reader *reader)
{
    return (uint32_t)take_number(reader, 4);
}

static uint64_t take_u64(struct reader *reader)
{
    return take_number(reader, 8);
}

static struct slice take_text(struct reader *reader)
{
    uint64_t length = take_u64(reader);
    const unsigned char *bytes = take(reader, length);
    return (struct slice){(const char *)bytes, bytes ? (size_t)length : 0};
}

static bool is_text(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.bytes, text, slice.length) == 0;
}

// ---- Key-value pairs

static void skip_value(struct reader *reader, uint32_t type, int depth);

static void skip_array(struct reader *reader, int depth)
{
    size_t at = reader->at;
    uint32_t type = take_u32(reader);
    uint64_t count = take_u64(reader);
    if (type >= VALUE_TYPES)
        refuse(reader, at, "type %u of an array's elements is not known", type);
    else if (depth == DEEPEST_ARRAY)
        refuse(reader, at, "arrays are nested deeper than %d", DEEPEST_ARRAY);
    else if (count > left(reader) / value_bytes[type])
        refuse(reader, at, "an array of %" PRIu64 " elements; the file ends at %zu, cut short",
               count, reader->file->length);
    else if (type != VALUE_TEXT && type != VALUE_ARRAY)
        take(reader, count * value_bytes[type]);
    else
        for (uint64_t i = 0; i < count && !reader->failed; i++)
            skip_value(reader, type, depth + 1);
}

static void skip_value(struct reader *reader, uint32_t type, int depth)
{
    if (type >= VALUE_TYPES)
        refuse(reader, reader->at, "type %u of its value is not known", type);
    else if (type == VALUE_TEXT)
        take_text(reader);
    else if (type == VALUE_ARRAY)
        skip_array(reader, depth);
    else
        take(reader, value_bytes[type]);
}

// 0 until a pair says it.
static void read_pair(struct reader *reader, uint32_t *alignment)
{
    struct slice key = take_text(reader);
    uint32_t type = take_u32(reader);
    size_t at = reader->at;
    if (reader->failed || !is_text(key, "general.alignment")) {
        skip_value(reader, type, 0);
        return;
    }
    uint32_t value = type == VALUE_U32 ? take_u32(reader) : 0;
    if (*alignment)
        refuse(reader, at, "\"general.alignment\" is given twice");
    else if (value == 0 || (value & (value - 1)) != 0)
        refuse(reader, at, "\"general.alignment\" must be a power of two, as u32");
    *alignment = value;
}

static uint32_t read_pairs(struct reader *reader, uint64_t count)
{
    uint32_t alignment = 0;
    reader->part = "key-value pair";
    reader->total = count;
    for (reader->number = 0; reader->number < count && !reader->failed; reader->number++)
        read_pair(reader, &alignment);
    return alignment ? alignment : DEFAULT_ALIGNMENT;
}

// ---- Tensors

static void read_name(struct reader *reader, struct description *tensor)
{
    size_t at = reader->at;
    struct slice name = take_text(reader);
    tensor->name[0] = '\0';
    if (name.length > KG_MAX_STORED_NAME)
        refuse(reader, at, "its name has %zu bytes; at most %zu are read", name.length,
               KG_MAX_STORED_NAME);
    else if (name.length && memchr(name.bytes, '\0', name.length))
        refuse(reader, at, "its name contains a zero byte");
    if (reader->failed)
        return;
    memcpy(tensor->name, name.bytes, name.length);
    tensor->name[name.length] = '\0';
}

static void read_description(struct reader *reader, struct description *tensor)
{
    tensor->at = reader->at;
    read_name(reader, tensor);
    size_t at = reader->at;
    uint32_t rank = take_u32(reader);
    if (rank > KG_STORED_RANK)
        refuse(reader, at, "%u dimensions; GGUF has at most %d", rank, KG_STORED_RANK);
    tensor->rank = reader->failed ? 0 : (int)rank;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        at = reader->at;
        uint64_t size = take_u64(reader);
        if (size > INT64_MAX)
            refuse(reader, at, "a dimension of %" PRIu64 " elements", size);
        tensor->sizes[d] = (int64_t)size;
    }
    tensor->type = take_u32(reader);
    tensor->offset = take_u64(reader);
}

static void skip_descriptions(struct reader *reader, uint64_t count)
{
    struct description tensor;
    reader->part = "tensor";
    reader->total = count;
    for (reader->number = 0; reader->number < count && !reader->failed; reader->number++)
        read_description(reader, &tensor);
}

static const struct block *block_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (blocks[i].number == type)
            return &blocks[i];
    return NULL;
}

// The data of a tensor lies in the file and has the bytes that its shape needs.
static enum kg_status place(const struct kg_weight_file *file, const struct description *described,
                            size_t data, uint32_t alignment, struct kg_stored *tensor,
                            struct kg_error *error)
{
    const struct block *block = block_of(described->type);
    size_t at = described->at;
    int64_t row = described->rank ? described->sizes[described->rank - 1] : 1;
    if (!block)
        return kg_weights_refuse(file, at, tensor->name, error, "GGML type %u is not known",
                                 described->type);
    tensor->type = block->type;
    tensor->type_name = block->name;
    if (!kg_stored_set_shape(tensor, described->sizes, described->rank))
        return kg_weights_refuse(file, at, tensor->name, error,
                                 "its shape has more than 2^63 elements");
    if (row % block->values != 0)
        return kg_weights_refuse(file, at, tensor->name, error,
                                 "rows of %" PRId64 " elements; blocks of %s have %d", row,
                                 block->name, block->values);
    if (__builtin_mul_overflow(tensor->elements / block->values, block->bytes, &tensor->bytes))
        return kg_weights_refuse(file, at, tensor->name, error,
                                 "its data has more than 2^64 bytes");
    if (described->offset % alignment != 0)
        return kg_weights_refuse(file, at, tensor->name, error,
                                 "its data begins at %" PRIu64 ", no multiple of the alignment, %u",
                                 described->offset, alignment);
    size_t room = file->length > data ? file->length - data : 0;
    if (data > file->length || described->offset > room || tensor->bytes > room - described->offset)
        return kg_weights_refuse(file, at, tensor->name, error,
                                 "%zu bytes at %" PRIu64
                                 " relative to offset %zu; the file ends at %zu, cut short",
                                 tensor->bytes, described->offset, data, file->length);
    tensor->offset = data + (size_t)described->offset;
    tensor->data = file->bytes + tensor->offset;
    return KG_OK;
}

// Once more from the first description on, since only now it is known where the data begins.
static enum kg_status list_tensors(struct reader *reader, uint64_t count, size_t data,
                                   uint32_t alignment, struct kg_stored_list *list)
{
    enum kg_status status = KG_OK;
    struct description described;
    for (uint64_t i = 0; i < count && !status; i++) {
        struct kg_stored tensor = {.name = described.name, .file = reader->file->path};
        read_description(reader, &described);
        status = place(reader->file, &described, data, alignment, &tensor, reader->error);
        if (!status)
            status = kg_stored_list_add(list, reader->file, &tensor, reader->error);
    }
    return status;
}

// ---- The file

static void read_head(struct reader *reader, uint64_t *tensors, uint64_t *pairs)
{
    reader->part = "the head";
    const unsigned char *magic = take(reader, 4);
    if (magic && !kg_gguf_is(magic, 4))
        refuse(reader, 0, "it does not begin with \"GGUF\"");
    size_t at = reader->at;
    uint32_t version = take_u32(reader);
    if (version == 2u << 24 || version == 3u << 24)
        refuse(reader, at, "a big-endian file; only little-endian ones are read");
    else if (version != 2 && version != 3)
        refuse(reader, at, "version %u; only versions 2 and 3 are read", version);
    at = reader->at;
    *tensors = take_u64(reader);
    *pairs = take_u64(reader);
    if (*tensors > KG_MAX_STORED)
        refuse(reader, at, "%" PRIu64 " tensors; at most %zu are read", *tensors, KG_MAX_STORED);
    else if (*tensors > left(reader) / LEAST_TENSOR)
        refuse(reader, at, "%" PRIu64 " tensors; the file ends at %zu, cut short", *tensors,
               reader->file->length);
    else if (*pairs > left(reader) / LEAST_PAIR)
        refuse(reader, at + 8, "%" PRIu64 " key-value pairs; the file ends at %zu, cut short",
               *pairs, reader->file->length);
}

bool kg_gguf_is(const unsigned char *bytes, size_t length)
{
    return length >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

enum kg_status kg_gguf_list(const struct kg_weight_file *file, struct kg_stored_list *list,
                            struct kg_error *error)
{
    struct kg_error local;
    struct reader reader = {.file = file, .error = error ? error : &local};
    uint64_t tensors = 0, pairs = 0;
    size_t first = list->count;
    read_head(&reader, &tensors, &pairs);
    uint32_t alignment = reader.failed ? DEFAULT_ALIGNMENT : read_pairs(&reader, pairs);
    size_t descriptions = reader.at;
    if (!reader.failed)
        skip_descriptions(&reader, tensors);
    if (reader.failed)
        return reader.error->status;
    size_t data = (reader.at + alignment - 1) / alignment * alignment;
    reader.at = descriptions;
    enum kg_status status = list_tensors(&reader, tensors, data, alignment, list);
    return status ? status : kg_stored_list_check_overlaps(list, first, file, reader.error);
}
