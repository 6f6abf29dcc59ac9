// GGUF files written here, good and bad.

#include "weights/gguf.h"

#include "test.h"
#include "unit/weights/checkpoint_bytes.h"

enum { U8 = 0, U32 = 4, BOOLEAN = 7, TEXT = 8, ARRAY = 9, F64 = 12 };
enum { TYPE_F32 = 0, TYPE_Q4_0 = 2, TYPE_Q4_K = 12 };

// Pairs of all shapes, among them arrays of arrays of texts, and two tensors.
static void put_small(struct kg_text *file, uint32_t version)
{
    put_gguf_head(file, version, 2, 5);
    put_gguf_text(file, "general.name");
    put_number(file, TEXT, 4);
    put_gguf_text(file, "a model");
    put_gguf_pair(file, "general.alignment", U32, 64, 4);
    put_gguf_pair(file, "tied", BOOLEAN, 1, 1);
    put_gguf_pair(file, "scale", F64, 0, 8);
    put_gguf_text(file, "merges");
    put_number(file, ARRAY, 4);
    put_number(file, ARRAY, 4);
    put_number(file, 2, 8);
    put_number(file, TEXT, 4);
    put_number(file, 1, 8);
    put_gguf_text(file, "a b");
    put_number(file, U8, 4);
    put_number(file, 3, 8);
    put_data(file, 3);
    put_gguf_tensor(file, "w", 64, 3, TYPE_Q4_0, 64);
    put_gguf_tensor(file, "b", 4, 1, TYPE_F32, 0);
    put_gguf_padding(file, 64);
    put_data(file, 64 + 64 * 3 / 32 * 18);
}

static void check_small(uint32_t version)
{
    struct kg_text text = {0};
    put_small(&text, version);
    struct kg_weight_file file = {"FILE", (const unsigned char *)text.data, text.length};
    struct kg_stored_list list = {0};
    struct kg_error error = {0};
    size_t data = text.length - 64 - 108;
    CHECK(kg_gguf_is(file.bytes, file.length));
    CHECK_STATUS(kg_gguf_list(&file, &list, &error), KG_OK, &error);
    CHECK(list.count == 2);
    const struct kg_stored *w = &list.items[0], *b = &list.items[1];
    CHECK_TEXT(w->name, "w");
    CHECK_TEXT(w->file, "FILE");
    CHECK_TEXT(w->type_name, "Q4_0");
    CHECK(w->type == KG_STORED_Q4_0 && w->rank == 2 && w->shape[0] == 3 && w->shape[1] == 64);
    CHECK(w->elements == 192 && w->bytes == 108 && w->offset == data + 64);
    CHECK(*(const unsigned char *)w->data == 64);
    CHECK(b->type == KG_STORED_F32 && b->bytes == 16 && b->offset == data);
    kg_stored_list_free(&list);
    kg_text_free(&text);
}

static void test_tensors(void)
{
    check_small(2);
    check_small(3);
}

// What the reader says of one tensor "x" of this type, with one row of `values` in `bytes`.
static const char *message_of_type(uint32_t type, uint64_t values, size_t bytes)
{
    static char message[KG_ERROR_TEXT];
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", values, 1, type, 0);
    put_gguf_padding(&text, 32);
    put_data(&text, bytes);
    snprintf(message, sizeof message, "%s", message_of(kg_gguf_list, text.data, text.length));
    kg_text_free(&text);
    return message;
}

// Whether blocks of this type take exactly so many bytes, and rows are whole blocks.
static void check_block(uint32_t type, uint64_t values, size_t bytes)
{
    CHECK_TEXT(message_of_type(type, values, bytes), "");
    CHECK(strstr(message_of_type(type, values, bytes - 1), "cut short"));
    CHECK_TEXT(message_of_type(type, 0, 0), "");
    if (values > 1)
        CHECK(strstr(message_of_type(type, values / 2, bytes), "elements; blocks of "));
}

static void test_blocks(void)
{
    static const unsigned short blocks[][3] = {
        {0, 1, 4},      {1, 1, 2},      {2, 32, 18},    {3, 32, 20},    {6, 32, 22},
        {7, 32, 24},    {8, 32, 34},    {10, 256, 84},  {11, 256, 110}, {12, 256, 144},
        {13, 256, 176}, {14, 256, 210}, {15, 256, 292}, {16, 256, 66},  {17, 256, 74},
        {18, 256, 98},  {19, 256, 50},  {20, 32, 18},   {21, 256, 110}, {22, 256, 82},
        {23, 256, 136}, {24, 1, 1},     {25, 1, 2},     {26, 1, 4},     {27, 1, 8},
        {28, 1, 8},     {29, 256, 56},  {30, 1, 2},     {34, 256, 54},  {35, 256, 66},
        {39, 32, 17},   {40, 64, 36},   {41, 128, 18},
    };
    size_t next = 0;
    for (uint32_t type = 0; type < 64; type++)
        if (next < sizeof blocks / sizeof blocks[0] && blocks[next][0] == type) {
            check_block(type, blocks[next][1], blocks[next][2]);
            next++;
        } else
            CHECK(strstr(message_of_type(type, 256, 4096), " is not known"));
}

static void check(struct kg_text *text, const char *message)
{
    CHECK_TEXT(message_of(kg_gguf_list, kg_text_string(text), text->length), message);
    kg_text_cut(text, 0);
}

static void test_malformed_head(void)
{
    struct kg_text text = {0};
    kg_text_add(&text, "GGML----");
    check(&text, "FILE: offset 0: the head: it does not begin with \"GGUF\"");
    put_gguf_head(&text, 1, 0, 0);
    check(&text, "FILE: offset 4: the head: version 1; only versions 2 and 3 are read");
    put_gguf_head(&text, 3u << 24, 0, 0);
    check(&text, "FILE: offset 4: the head: a big-endian file; only little-endian ones are read");
    put_gguf_head(&text, 3, UINT64_MAX, 0);
    check(&text,
          "FILE: offset 8: the head: 18446744073709551615 tensors; at most 1048576 are read");
    put_gguf_head(&text, 3, 1, 0);
    check(&text, "FILE: offset 8: the head: 1 tensors; the file ends at 24, cut short");
    put_gguf_head(&text, 3, 0, UINT64_MAX);
    check(&text, "FILE: offset 16: the head: 18446744073709551615 key-value pairs; the file ends "
                 "at 24, cut short");
    kg_text_free(&text);
}

// A file of one pair "k" whose value begins with an array's head.
static void put_array(struct kg_text *text, uint32_t type, uint64_t count)
{
    put_gguf_head(text, 3, 0, 1);
    put_gguf_text(text, "k");
    put_number(text, ARRAY, 4);
    put_number(text, type, 4);
    put_number(text, count, 8);
}

static void test_malformed_pairs(void)
{
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 0, 1);
    put_gguf_pair(&text, "k", 13, 0, 8);
    check(&text, "FILE: offset 37: key-value pair 1 of 1: type 13 of its value is not known");
    put_gguf_head(&text, 3, 0, 1);
    put_number(&text, 1000, 8);
    put_data(&text, 16);
    check(&text, "FILE: offset 32: key-value pair 1 of 1: 1000 bytes are expected; the file ends "
                 "at 48, cut short");
    put_array(&text, 13, 0);
    check(&text, "FILE: offset 37: key-value pair 1 of 1: type 13 of an array's elements is not "
                 "known");
    put_array(&text, F64, UINT64_MAX / 8 + 2);
    check(&text, "FILE: offset 37: key-value pair 1 of 1: an array of 2305843009213693953 "
                 "elements; the file ends at 49, cut short");
    put_array(&text, ARRAY, 1);
    for (int i = 0; i < 20; i++) {
        put_number(&text, ARRAY, 4);
        put_number(&text, 1, 8);
    }
    check(&text, "FILE: offset 133: key-value pair 1 of 1: arrays are nested deeper than 8");
    kg_text_free(&text);
}

static void test_malformed_alignment(void)
{
    static const char must[] = "FILE: offset 53: key-value pair 1 of 1: \"general.alignment\" must "
                               "be a power of two, as u32";
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 0, 1);
    put_gguf_pair(&text, "general.alignment", U32, 0, 4);
    check(&text, must);
    put_gguf_head(&text, 3, 0, 1);
    put_gguf_pair(&text, "general.alignment", U32, 48, 4);
    check(&text, must);
    put_gguf_head(&text, 3, 0, 1);
    put_gguf_pair(&text, "general.alignment", U8, 32, 1);
    check(&text, must);
    put_gguf_head(&text, 3, 0, 2);
    put_gguf_pair(&text, "general.alignment", U32, 32, 4);
    put_gguf_pair(&text, "general.alignment", U32, 32, 4);
    check(&text, "FILE: offset 86: key-value pair 2 of 2: \"general.alignment\" is given twice");
    kg_text_free(&text);
}

static void test_malformed_descriptions(void)
{
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 1, 0);
    put_number(&text, 3, 8);
    kg_text_add_bytes(&text, "a\0b", 3);
    put_data(&text, 32);
    check(&text, "FILE: offset 24: tensor 1 of 1: its name contains a zero byte");
    put_gguf_head(&text, 3, 1, 0);
    put_number(&text, 5000, 8);
    put_data(&text, 6000);
    check(&text, "FILE: offset 24: tensor 1 of 1: its name has 5000 bytes; at most 4096 are read");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_text(&text, "x");
    put_number(&text, 5, 4);
    put_data(&text, 64);
    check(&text, "FILE: offset 33: tensor 1 of 1: 5 dimensions; GGUF has at most 4");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", UINT64_MAX, 1, TYPE_F32, 0);
    check(&text, "FILE: offset 37: tensor 1 of 1: a dimension of 18446744073709551615 elements");
    kg_text_free(&text);
}

static void test_malformed_tensors(void)
{
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x\033[", (uint64_t)1 << 32, (uint64_t)1 << 32, TYPE_F32, 0);
    check(&text, "FILE: offset 24: tensor \"x?[\": its shape has more than 2^63 elements");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", (uint64_t)1 << 62, 1, TYPE_F32, 0);
    check(&text, "FILE: offset 24: tensor \"x\": its data has more than 2^64 bytes");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", 1, 1, 4, 0);
    check(&text, "FILE: offset 24: tensor \"x\": GGML type 4 is not known");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", 300, 1, TYPE_Q4_K, 0);
    check(&text, "FILE: offset 24: tensor \"x\": rows of 300 elements; blocks of Q4_K have 256");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", 1, 1, TYPE_F32, 4);
    check(&text, "FILE: offset 24: tensor \"x\": its data begins at 4, no multiple of the "
                 "alignment, 32");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", 1, 1, TYPE_F32, (uint64_t)1 << 63);
    put_data(&text, 100);
    check(&text, "FILE: offset 24: tensor \"x\": 4 bytes at 9223372036854775808 relative to offset "
                 "96; the file ends at 165, cut short");
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "x", 0, 1, TYPE_F32, 0);
    check(&text, "FILE: offset 24: tensor \"x\": 0 bytes at 0 relative to offset 96; the file ends "
                 "at 65, cut short"); // its data would lie behind the end
    put_gguf_head(&text, 3, 2, 0);
    put_gguf_tensor(&text, "x", 16, 1, TYPE_F32, 0);
    put_gguf_tensor(&text, "y", 16, 1, TYPE_F32, 32);
    put_gguf_padding(&text, 32);
    put_data(&text, 96);
    check(&text, "FILE: offset 160: tensor \"y\": its data overlaps that of \"x\", 64 bytes at "
                 "offset 128");
    kg_text_free(&text);
}

static void test_truncated(void)
{
    struct kg_text text = {0};
    put_small(&text, 3);
    CHECK_TEXT(message_of(kg_gguf_list, text.data, text.length), "");
    for (size_t length = 0; length < text.length; length++)
        CHECK(strstr(message_of(kg_gguf_list, text.data, length), "FILE: offset "));
    kg_text_free(&text);
}

TEST_MAIN(test_tensors, test_blocks, test_malformed_head, test_malformed_pairs,
          test_malformed_alignment, test_malformed_descriptions, test_malformed_tensors,
          test_truncated)
