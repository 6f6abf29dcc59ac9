// Safetensors files written here, good and bad.

#include "weights/safetensors.h"

#include "test.h"
#include "unit/weights/checkpoint_bytes.h"

static const char small[] = "{\"__metadata__\": {\"format\": \"pt\"},"
                            "\"w\": {\"dtype\": \"F16\", \"shape\": [2, 3],"
                            " \"data_offsets\": [4, 16]},"
                            "\"b\": {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [0, 4]}}";

static void test_tensors(void)
{
    struct kg_text text = {0};
    put_safetensors(&text, small, 16);
    struct kg_weight_file file = {"FILE", (const unsigned char *)text.data, text.length};
    struct kg_stored_list list = {0};
    struct kg_error error = {0};
    CHECK(kg_safetensors_is(file.bytes, file.length));
    CHECK_STATUS(kg_safetensors_list(&file, &list, &error), KG_OK, &error);
    CHECK(list.count == 2);
    size_t data = text.length - 16;
    const struct kg_stored *w = &list.items[0], *b = &list.items[1];
    CHECK_TEXT(w->name, "w");
    CHECK_TEXT(w->file, "FILE");
    CHECK_TEXT(w->type_name, "F16");
    CHECK(w->type == KG_STORED_F16 && w->rank == 2 && w->shape[0] == 2 && w->shape[1] == 3);
    CHECK(w->elements == 6 && w->bytes == 12 && w->offset == data + 4);
    CHECK(*(const unsigned char *)w->data == 4);
    CHECK(b->type == KG_STORED_F32 && b->rank == 0 && b->elements == 1 && b->bytes == 4);
    CHECK(*(const unsigned char *)b->data == 0);
    kg_stored_list_free(&list);
    kg_text_free(&text);
}

// The type and the rank that a tensor of this header has; its data are 48 bytes.
static struct kg_stored first_of(const char *dtype, const char *shape)
{
    struct kg_text header = {0}, text = {0};
    kg_text_format(&header,
                   "{\"x\": {\"dtype\": \"%s\", \"shape\": %s, \"data_offsets\": [0, 48]}}", dtype,
                   shape);
    put_safetensors(&text, kg_text_string(&header), 48);
    struct kg_weight_file file = {"FILE", (const unsigned char *)text.data, text.length};
    struct kg_stored_list list = {0};
    struct kg_error error = {0};
    struct kg_stored first = {.type = KG_STORED_COUNT};
    CHECK_STATUS(kg_safetensors_list(&file, &list, &error), KG_OK, &error);
    if (list.count)
        first = list.items[0];
    kg_stored_list_free(&list);
    kg_text_free(&header);
    kg_text_free(&text);
    return first;
}

static void test_dtypes(void)
{
    static const struct {
        const char *dtype, *shape;
        enum kg_stored_type type;
    } cases[] = {
        {"F64", "[6]", KG_STORED_F64},        {"F32", "[12]", KG_STORED_F32},
        {"F16", "[24]", KG_STORED_F16},       {"BF16", "[24]", KG_STORED_BF16},
        {"I64", "[6]", KG_STORED_I64},        {"I32", "[12]", KG_STORED_I32},
        {"I16", "[24]", KG_STORED_I16},       {"I8", "[48]", KG_STORED_I8},
        {"U8", "[48]", KG_STORED_U8},         {"BOOL", "[48]", KG_STORED_BOOL},
        {"U16", "[24]", KG_STORED_OTHER},     {"U32", "[12]", KG_STORED_OTHER},
        {"U64", "[6]", KG_STORED_OTHER},      {"C64", "[6]", KG_STORED_OTHER},
        {"F8_E4M3", "[48]", KG_STORED_OTHER}, {"F8_E5M2", "[48]", KG_STORED_OTHER},
        {"F8_E8M0", "[48]", KG_STORED_OTHER}, {"F6_E2M3", "[64]", KG_STORED_OTHER},
        {"F4", "[96]", KG_STORED_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_stored first = first_of(cases[i].dtype, cases[i].shape);
        CHECK(first.type == cases[i].type && first.rank == 1 && first.bytes == 48);
        CHECK_TEXT(first.type_name, cases[i].dtype);
    }
}

static void test_ranks(void)
{
    struct kg_stored four = first_of("F16", "[2, 3, 1, 4]");
    CHECK(four.type == KG_STORED_F16 && four.rank == 4 && four.shape[1] == 3 && four.shape[3] == 4);
    struct kg_stored five = first_of("F16", "[2, 3, 1, 4, 1]");
    CHECK(five.type == KG_STORED_OTHER && five.rank == 1 && five.shape[0] == 24);
    CHECK_TEXT(five.type_name, "F16");
}

// A header around the members of one tensor "x" with 8 bytes of data.
#define TENSOR(members) "{\"x\": {" members "}}"
#define PLACED(dtype, shape, offsets)                                                              \
    TENSOR("\"dtype\": " dtype ", \"shape\": " shape ", \"data_offsets\": " offsets)

static const struct {
    const char *header, *message;
} malformed[] = {
    {"", "FILE: offset 8: the header does not begin with '{'"},
    {"[]", "FILE: offset 8: the header does not begin with '{'"},
    {" {}", "FILE: offset 8: the header does not begin with '{'"},
    {"{", "FILE: offset 9: the header is no JSON: string or '}' expected near end of file"},
    {"{} {}", "FILE: offset 12: the header is no JSON: end of file expected near '{'"},
    {"{\"x\": 1}", "FILE: offset 8: tensor \"x\": it must be an object"},
    {"{\"x\": {}, \"x\": {}}",
     "FILE: offset 21: the header is no JSON: duplicate object key near '\"x\"'"},
    {"{\"__metadata__\": []}", "FILE: offset 8: \"__metadata__\" must be an object of texts"},
    {"{\"__metadata__\": {\"a\": 1}}",
     "FILE: offset 8: \"__metadata__\" has a member that is no text"},
    {TENSOR(""), "FILE: offset 8: tensor \"x\": \"dtype\" must be a text"},
    {PLACED("7", "[4]", "[0, 8]"), "FILE: offset 8: tensor \"x\": \"dtype\" must be a text"},
    {PLACED("\"F7\\u001b\"", "[4]", "[0, 8]"),
     "FILE: offset 8: tensor \"x\": dtype \"F7?\" is not known"},
    {PLACED("\"F16\"", "4", "[0, 8]"),
     "FILE: offset 8: tensor \"x\": \"shape\" must be a list of at most 64 integers from 0"},
    {PLACED("\"F16\"", "[4.0]", "[0, 8]"),
     "FILE: offset 8: tensor \"x\": \"shape\" must be a list of at most 64 integers from 0"},
    {PLACED("\"F16\"", "[-4]", "[0, 8]"),
     "FILE: offset 8: tensor \"x\": \"shape\" must be a list of at most 64 integers from 0"},
    {PLACED("\"F16\"", "[4294967296, 4294967296]", "[0, 8]"),
     "FILE: offset 8: tensor \"x\": its shape has more than 2^63 elements"},
    {PLACED("\"F16\"", "[0, 4294967296, 4294967296]", "[0, 0]"),
     "FILE: offset 8: tensor \"x\": its shape has more than 2^63 elements"},
    {PLACED("\"F16\"", "[4611686018427387904]", "[0, 8]"),
     "FILE: offset 87: tensor \"x\": 8 bytes of data; 4611686018427387904 elements of F16 have 16 "
     "bits each"},
    {PLACED("\"F16\"", "[99999999999999999999]", "[0, 8]"),
     "FILE: offset 61: the header is no JSON: too big integer near '99999999999999999999'"},
    {PLACED("\"F16\"", "[4]", "[8]"),
     "FILE: offset 8: tensor \"x\": \"data_offsets\" must be two integers from 0"},
    {PLACED("\"F16\"", "[4]", "[0, 8, 8]"),
     "FILE: offset 8: tensor \"x\": \"data_offsets\" must be two integers from 0"},
    {PLACED("\"F16\"", "[4]", "[-8, 0]"),
     "FILE: offset 8: tensor \"x\": \"data_offsets\" must be two integers from 0"},
    {PLACED("\"F16\"", "[4]", "[8, 0]"),
     "FILE: offset 8: tensor \"x\": its data begins at 8 and ends at 0, relative to offset 69"},
    {PLACED("\"F16\"", "[4]", "[1, 9]"),
     "FILE: offset 8: tensor \"x\": its data ends at 9 relative to offset 69; the file ends at 77, "
     "cut short"},
    {PLACED("\"F16\"", "[3]", "[0, 8]"),
     "FILE: offset 69: tensor \"x\": 8 bytes of data; 3 elements of F16 have 16 bits each"},
    {PLACED("\"F4\"", "[3]", "[0, 1]"),
     "FILE: offset 68: tensor \"x\": 1 bytes of data; 3 elements of F4 have 4 bits each"},
    {"{\"a\\nb\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]},"
     " \"c\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [3, 7]}}",
     "FILE: offset 134: tensor \"c\": its data overlaps that of \"a?b\", 4 bytes at offset 131"},
};

static void test_malformed(void)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        struct kg_text text = {0};
        put_safetensors(&text, malformed[i].header, 8);
        CHECK_TEXT(message_of(kg_safetensors_list, text.data, text.length), malformed[i].message);
        kg_text_free(&text);
    }
}

static void test_lengths(void)
{
    struct kg_text text = {0};
    put_number(&text, 100000001, 8);
    CHECK_TEXT(message_of(kg_safetensors_list, text.data, 8),
               "FILE: offset 0: a header of 100000001 bytes; at most 100000000 are read");
    kg_text_cut(&text, 0);
    put_number(&text, UINT64_MAX, 8);
    CHECK_TEXT(message_of(kg_safetensors_list, text.data, 8),
               "FILE: offset 0: a header of 18446744073709551615 bytes; at most 100000000 are "
               "read");
    kg_text_cut(&text, 0);
    put_number(&text, 3, 8);
    kg_text_add(&text, "{}");
    CHECK_TEXT(message_of(kg_safetensors_list, text.data, 10),
               "FILE: offset 0: a header of 3 bytes; the file ends at 10, cut short");
    CHECK_TEXT(message_of(kg_safetensors_list, text.data, 7),
               "FILE: offset 0: the file ends at 7; 8 bytes with the length of the header are "
               "expected");
    kg_text_free(&text);
}

static void test_long_name(void)
{
    struct kg_text header = {0}, text = {0};
    kg_text_format(&header, "{\"%05000d\": {}}", 0);
    put_safetensors(&text, header.data, 0);
    const char *message = message_of(kg_safetensors_list, text.data, text.length);
    CHECK(strstr(message, "000...\": \"dtype\" must be a text") && strlen(message) < 300);
    kg_text_cut(&header, 0);
    kg_text_cut(&text, 0);
    kg_text_format(
        &header, "{\"%05000d\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [0, 0]}}", 0);
    put_safetensors(&text, header.data, 0);
    message = message_of(kg_safetensors_list, text.data, text.length);
    CHECK(strstr(message, "000...\": its name has 5000 bytes; at most 4096 are read"));
    kg_text_free(&header);
    kg_text_free(&text);
}

// It shares no bytes with others, wherever it lies.
static void test_empty_tensor(void)
{
    struct kg_text text = {0};
    put_safetensors(&text,
                    "{\"a\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]},"
                    " \"e\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [2, 2]}}",
                    4);
    CHECK_TEXT(message_of(kg_safetensors_list, text.data, text.length), "");
    kg_text_free(&text);
}

static void test_truncated(void)
{
    struct kg_text text = {0};
    put_safetensors(&text, small, 16);
    CHECK_TEXT(message_of(kg_safetensors_list, text.data, text.length), "");
    for (size_t length = 0; length < text.length; length++)
        CHECK(strstr(message_of(kg_safetensors_list, text.data, length), "FILE: offset "));
    kg_text_free(&text);
}

TEST_MAIN(test_tensors, test_dtypes, test_ranks, test_malformed, test_lengths, test_long_name,
          test_empty_tensor, test_truncated)
