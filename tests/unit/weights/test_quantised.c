// Layers of every format, encoded here element by element, found in a checkpoint and packed.

#include "support/folder.h"
#include "test.h"
#include "unit/weights/checkpoint_bytes.h"
#include "weights/pack_layers.h"
#include "weights/packed.h"

#include <stdio.h>
#include <unistd.h>

#define MOST 256 // rows, columns

static char folder[] = "/tmp/kg-test-quantised-XXXXXX";
static struct kg_error error;
static uint64_t state = 7;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

// ---- What is encoded

static struct {
    int rows, columns, group;
    int code[MOST][MOST];
    int zero[MOST][MOST];     // by group
    double scale[MOST][MOST]; // exact in f16 and bf16
    double offset[MOST][MOST];
    int group_of[MOST]; // of each row, as stored
} matrix;

static int groups(void)
{
    return (matrix.rows + matrix.group - 1) / matrix.group;
}

// `zero` below 0: they differ.
static void make(int rows, int columns, int group, int zero, bool ordered)
{
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.group = group;
    for (int k = 0; k < rows; k++) {
        matrix.group_of[k] = k / group;
        for (int n = 0; n < columns; n++)
            matrix.code[k][n] = (int)draw(16);
    }
    for (int g = 0; g < groups(); g++)
        for (int n = 0; n < columns; n++) {
            matrix.zero[g][n] = zero < 0 ? (int)draw(16) : zero;
            matrix.scale[g][n] = (1 + (double)draw(64)) / 64;
            matrix.offset[g][n] = (double)draw(64) / 32 - 1;
        }
    for (int k = rows - 1; k > 0 && ordered; k--) {
        int other = (int)draw((unsigned)k + 1), swapped = matrix.group_of[k];
        matrix.group_of[k] = matrix.group_of[other];
        matrix.group_of[other] = swapped;
    }
}

static double weight(int k, int n, bool has_offsets)
{
    int g = matrix.group_of[k];
    return has_offsets ? matrix.code[k][n] * matrix.scale[g][n] + matrix.offset[g][n]
                       : (matrix.code[k][n] - matrix.zero[g][n]) * matrix.scale[g][n];
}

// ---- Safetensors files

static struct kg_text header, data;

static void begin_tensor(const char *name, const char *dtype, int first, int second, size_t bytes)
{
    kg_text_format(&header, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [%d%s",
                   header.length ? ", " : "{", name, dtype, first, second ? ", " : "");
    if (second)
        kg_text_format(&header, "%d", second);
    kg_text_format(&header, "], \"data_offsets\": [%zu, %zu]}", data.length, data.length + bytes);
}

static void put_words(const char *name, int rows, int columns,
                      uint32_t (*word)(int row, int column))
{
    begin_tensor(name, "I32", rows, columns, (size_t)rows * (size_t)columns * 4);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            put_number(&data, word(r, c), 4);
}

static void put_value(enum kg_dtype dtype, double value)
{
    uint64_t bits = 0;
    kg_dtype_store(dtype, &bits, 0, value);
    put_number(&data, bits, kg_dtype_bytes(dtype, 1));
}

static void put_scales(const char *name, enum kg_dtype dtype, bool by_column)
{
    int rows = by_column ? matrix.columns : groups(),
        columns = by_column ? groups() : matrix.columns;
    begin_tensor(name, dtype == KG_F16 ? "F16" : "BF16", rows, columns,
                 (size_t)rows * (size_t)columns * 2);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            put_value(dtype, by_column ? matrix.scale[c][r] : matrix.scale[r][c]);
}

static void put_integers(const char *name, int count, const int *values)
{
    begin_tensor(name, "I32", count, 0, (size_t)count * 4);
    for (int i = 0; i < count; i++)
        put_number(&data, (uint32_t)values[i], 4);
}

static void write_file(const char *name, const struct kg_text *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(text->data, 1, text->length, file) == text->length);
    fclose(file);
}

static void end_file(void)
{
    struct kg_text text = {0};
    kg_text_add(&header, "}");
    put_number(&text, header.length, 8);
    kg_text_add_bytes(&text, header.data, header.length);
    kg_text_add_bytes(&text, data.data, data.length);
    write_file("model.safetensors", &text);
    kg_text_free(&text);
    kg_text_free(&header);
    kg_text_free(&data);
}

static void label(const char *config)
{
    struct kg_text text = {0};
    kg_text_format(&text, "{\"quantization_config\": {%s}}", config);
    write_file("config.json", &text);
    kg_text_free(&text);
}

// ---- Formats

static int zero_shift; // what GPTQ stores less

static uint32_t gptq_word(int row, int column)
{
    uint32_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint32_t)matrix.code[8 * row + i][column] << (4 * i);
    return word;
}

static uint32_t gptq_zero(int group, int column)
{
    uint32_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint32_t)((matrix.zero[group][8 * column + i] - zero_shift) & 15) << (4 * i);
    return word;
}

static const int awq_order[8] = {0, 2, 4, 6, 1, 3, 5, 7};

static uint32_t awq_word(int row, int column)
{
    uint32_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint32_t)matrix.code[row][8 * column + awq_order[i]] << (4 * i);
    return word;
}

static uint32_t awq_zero(int group, int column)
{
    uint32_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint32_t)matrix.zero[group][8 * column + awq_order[i]] << (4 * i);
    return word;
}

static uint32_t compressed_word(int column, int row)
{
    uint32_t word = 0;
    for (int i = 0; i < 8 && 8 * row + i < matrix.rows; i++)
        word |= (uint32_t)matrix.code[8 * row + i][column] << (4 * i);
    return word;
}

static uint32_t compressed_zero(int column, int group)
{
    uint32_t word = 0;
    for (int i = 0; i < 8 && 8 * column + i < matrix.columns; i++)
        word |= (uint32_t)matrix.zero[group][8 * column + i] << (4 * i);
    return word;
}

static void put_gptq(void)
{
    put_words("a.qweight", matrix.rows / 8, matrix.columns, gptq_word);
    put_words("a.qzeros", groups(), matrix.columns / 8, gptq_zero);
    put_scales("a.scales", KG_F16, false);
    put_integers("a.g_idx", matrix.rows, matrix.group_of);
}

static void put_awq(void)
{
    put_words("a.qweight", matrix.rows, matrix.columns / 8, awq_word);
    put_words("a.qzeros", groups(), matrix.columns / 8, awq_zero);
    put_scales("a.scales", KG_F16, false);
}

static void put_compressed(bool zeros, bool order)
{
    int shape[2] = {matrix.columns, matrix.rows};
    put_words("a.weight_packed", matrix.columns, (matrix.rows + 7) / 8, compressed_word);
    put_scales("a.weight_scale", KG_BF16, true);
    put_integers("a.weight_shape", 2, shape);
    if (zeros)
        put_words("a.weight_zero_point", (matrix.columns + 7) / 8, groups(), compressed_zero);
    if (order)
        put_integers("a.weight_g_idx", matrix.rows, matrix.group_of);
}

// Q4_0: scale and codes; Q4_1: scale, offset and codes.
static void put_short_blocks(bool offsets)
{
    for (int n = 0; n < matrix.columns; n++)
        for (int g = 0; g < groups(); g++) {
            put_value(KG_F16, matrix.scale[g][n]);
            if (offsets)
                put_value(KG_F16, matrix.offset[g][n]);
            for (int i = 0; i < 16; i++)
                put_number(
                    &data,
                    (uint64_t)(matrix.code[32 * g + i][n] | matrix.code[32 * g + i + 16][n] << 4),
                    1);
        }
}

// Small scales of 6 bits under one for the block.
static void put_long_blocks(void)
{
    static const double scale = 0.125, offset = 0.25;
    for (int n = 0; n < matrix.columns; n++)
        for (int b = 0; b < matrix.rows / 256; b++) {
            int s[8], m[8];
            for (int i = 0; i < 8; i++) {
                s[i] = (int)draw(64);
                m[i] = (int)draw(64);
                matrix.scale[8 * b + i][n] = scale * s[i];
                matrix.offset[8 * b + i][n] = -offset * m[i];
            }
            put_value(KG_F16, scale);
            put_value(KG_F16, offset);
            for (int i = 0; i < 4; i++)
                put_number(&data, (uint64_t)(s[i] | s[i + 4] >> 4 << 6), 1);
            for (int i = 0; i < 4; i++)
                put_number(&data, (uint64_t)(m[i] | m[i + 4] >> 4 << 6), 1);
            for (int i = 0; i < 4; i++)
                put_number(&data, (uint64_t)((s[i + 4] & 15) | (m[i + 4] & 15) << 4), 1);
            for (int i = 0; i < 128; i++) {
                int k = 256 * b + i / 32 * 64 + i % 32;
                put_number(&data, (uint64_t)(matrix.code[k][n] | matrix.code[k + 32][n] << 4), 1);
            }
        }
}

static void put_gguf(uint32_t type)
{
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "a.weight", (uint64_t)matrix.rows, (uint64_t)matrix.columns, type, 0);
    put_gguf_padding(&text, 32);
    if (type == 12)
        put_long_blocks();
    else
        put_short_blocks(type == 3);
    kg_text_add_bytes(&text, data.data, data.length);
    write_file("model.gguf", &text);
    kg_text_free(&text);
    kg_text_free(&data);
}

// ---- Tests

// The packed layer, element by element.
static void check_layer(const char *file, enum kg_zero_kind zero, const char *format)
{
    char path[256];
    struct kg_checkpoint *checkpoint;
    struct kg_quantised_list list;
    snprintf(path, sizeof path, "%s%s", folder, file);
    CHECK_STATUS(kg_checkpoint_open(path, &checkpoint, &error), KG_OK, &error);
    CHECK_STATUS(kg_quantised_find(checkpoint, &list, &error), KG_OK, &error);
    CHECK(list.count == 1 && list.others == 0);
    const struct kg_layer *layer = &list.list[0].layer;
    CHECK_TEXT(list.list[0].name, "a");
    CHECK_TEXT(layer->reader->name, format);
    CHECK(layer->rows == matrix.rows && layer->columns == matrix.columns);
    CHECK(layer->group == matrix.group && layer->zero == zero);
    struct kg_packed packed;
    kg_packed_lay_out(layer, &packed);
    void *memory = aligned_alloc(KG_PACKED_HEADER, packed.bytes);
    kg_packed_write(layer, &packed, memory);
    int64_t row, column;
    CHECK(kg_packed_holds(layer, &packed, memory, &row, &column));
    int wrong = 0;
    for (int k = 0; k < matrix.rows; k++)
        for (int n = 0; n < matrix.columns; n++) {
            int stored = layer->order ? layer->order[k] : k;
            wrong += kg_packed_weight(&packed, memory, k, n) !=
                     weight(stored, n, zero == KG_ZERO_OFFSETS);
        }
    CHECK(wrong == 0);
    free(memory);
    kg_quantised_free(&list);
    kg_checkpoint_close(checkpoint);
}

static void gptq(void)
{
    static const struct {
        int zero, shift;
        bool ordered;
        const char *config;
        enum kg_zero_kind kind;
    } rows[] = {
        {-1, 1, false, "\"quant_method\": \"gptq\", \"bits\": 4", KG_ZERO_CODES},
        {-1, 0, false, "\"quant_method\": \"gptq\", \"checkpoint_format\": \"gptq_v2\"",
         KG_ZERO_CODES},
        {8, 1, false, "\"quant_method\": \"gptq\"", KG_ZERO_FIXED},
        // Labels that are wrong.
        {8, 0, false, "\"quant_method\": \"gptq\"", KG_ZERO_FIXED},
        {8, 1, false, "\"quant_method\": \"gptq\", \"checkpoint_format\": \"gptq_v2\"",
         KG_ZERO_FIXED},
        {8, 1, true, "\"quant_method\": \"gptq\", \"desc_act\": true", KG_ZERO_FIXED},
        {-1, 1, true, "\"quant_method\": \"gptq\", \"desc_act\": true", KG_ZERO_CODES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        make(96, 40, 32, rows[i].zero, rows[i].ordered);
        zero_shift = rows[i].shift;
        label(rows[i].config);
        put_gptq();
        end_file();
        check_layer("", rows[i].kind, "GPTQ");
    }
    make(72, 8, 72, -1, false); // one group
    put_gptq();
    end_file();
    check_layer("", KG_ZERO_CODES, "GPTQ");
    make(72, 24, 32, -1, false); // the last group is shorter: only the label tells
    label("\"quant_method\": \"gptq\", \"group_size\": 32");
    put_gptq();
    end_file();
    check_layer("", KG_ZERO_CODES, "GPTQ");
}

static void awq(void)
{
    label("\"quant_method\": \"awq\"");
    for (int fixed = 0; fixed < 2; fixed++) {
        make(67 - 3, 56, 16, fixed ? 8 : -1, false);
        put_awq();
        end_file();
        check_layer("", fixed ? KG_ZERO_FIXED : KG_ZERO_CODES, "AWQ");
    }
}

static void compressed(void)
{
    label("\"quant_method\": \"compressed-tensors\"");
    make(70, 19, 35, 8, false);
    put_compressed(false, false);
    end_file();
    check_layer("", KG_ZERO_FIXED, "compressed-tensors");
    make(128, 21, 16, -1, true);
    put_compressed(true, true);
    end_file();
    check_layer("", KG_ZERO_CODES, "compressed-tensors");
}

static void gguf(void)
{
    make(96, 21, 32, 8, false);
    put_gguf(2);
    check_layer("/model.gguf", KG_ZERO_FIXED, "GGUF Q4_0");
    make(96, 16, 32, -1, false);
    put_gguf(3);
    check_layer("/model.gguf", KG_ZERO_OFFSETS, "GGUF Q4_1");
    make(256, 9, 32, -1, false);
    put_gguf(12);
    check_layer("/model.gguf", KG_ZERO_OFFSETS, "GGUF Q4_K");
}

// What is said of tensors that contradict each other.
static void refused(void)
{
    static const struct {
        const char *header, *message;
    } rows[] = {
        {"\"a.qweight\": {\"dtype\": \"I32\", \"shape\": [2, 8], \"data_offsets\": [0, 64]}",
         "tensor \"a.qweight\" at byte 81: its scales or qzeros are missing"},
        {"\"a.qweight\": {\"dtype\": \"I32\", \"shape\": [2, 9], \"data_offsets\": [0, 72]},"
         "\"a.qzeros\": {\"dtype\": \"I32\", \"shape\": [1, 1], \"data_offsets\": [72, 76]},"
         "\"a.scales\": {\"dtype\": \"F16\", \"shape\": [1, 8], \"data_offsets\": [76, 92]}",
         "its shape fits neither GPTQ nor AWQ"},
        {"\"a.qweight\": {\"dtype\": \"I32\", \"shape\": [2, 8], \"data_offsets\": [0, 64]},"
         "\"a.qzeros\": {\"dtype\": \"I32\", \"shape\": [3, 1], \"data_offsets\": [64, 76]},"
         "\"a.scales\": {\"dtype\": \"F16\", \"shape\": [3, 8], \"data_offsets\": [76, 124]}",
         "the number of groups does not fit the rows"},
        {"\"a.qweight\": {\"dtype\": \"I32\", \"shape\": [2, 8], \"data_offsets\": [0, 64]},"
         "\"a.qzeros\": {\"dtype\": \"I32\", \"shape\": [1, 2], \"data_offsets\": [64, 72]},"
         "\"a.scales\": {\"dtype\": \"F16\", \"shape\": [1, 8], \"data_offsets\": [72, 88]}",
         "tensor \"a.qzeros\""},
        {"\"a.qweight\": {\"dtype\": \"I32\", \"shape\": [1, 8], \"data_offsets\": [0, 32]},"
         "\"a.qzeros\": {\"dtype\": \"I32\", \"shape\": [1, 1], \"data_offsets\": [32, 36]},"
         "\"a.scales\": {\"dtype\": \"I16\", \"shape\": [1, 8], \"data_offsets\": [36, 52]}",
         "scales must be a matrix of f16"},
        {"\"a.qweight\": {\"dtype\": \"I32\", \"shape\": [1, 8], \"data_offsets\": [0, 32]},"
         "\"a.qzeros\": {\"dtype\": \"I32\", \"shape\": [1, 1], \"data_offsets\": [32, 36]},"
         "\"a.scales\": {\"dtype\": \"F16\", \"shape\": [1, 8], \"data_offsets\": [36, 52]},"
         "\"a.g_idx\": {\"dtype\": \"I32\", \"shape\": [8], \"data_offsets\": [52, 84]}",
         "the groups of rows are not of one size"},
        {"\"a.weight_packed\": {\"dtype\": \"I32\", \"shape\": [2, 1], \"data_offsets\": [0, 8]}",
         "its weight_scale or weight_shape is missing"},
        {"\"a.weight_packed\": {\"dtype\": \"I32\", \"shape\": [2, 1], \"data_offsets\": [0, 8]},"
         "\"a.weight_scale\": {\"dtype\": \"F16\", \"shape\": [2, 1], \"data_offsets\": [8, 12]},"
         "\"a.weight_shape\": {\"dtype\": \"I32\", \"shape\": [2], \"data_offsets\": [12, 20]}",
         "its shape is not what weight_shape says"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kg_text text = {0}, bytes = {0};
        char path[256];
        struct kg_checkpoint *checkpoint;
        struct kg_quantised_list list;
        kg_text_format(&text, "{%s}", rows[i].header);
        put_safetensors(&bytes, text.data, (size_t)strtoul(strrchr(text.data, ',') + 1, NULL, 10));
        snprintf(path, sizeof path, "%s/bad.safetensors", folder);
        write_file("bad.safetensors", &bytes);
        CHECK_STATUS(kg_checkpoint_open(path, &checkpoint, &error), KG_OK, &error);
        CHECK(kg_quantised_find(checkpoint, &list, &error) == KG_ERROR_ARGUMENT);
        bool said = strstr(error.text, rows[i].message) != NULL;
        if (!said)
            fprintf(stderr, "'%s' is not in\n%s\n", rows[i].message, error.text);
        CHECK(said && strstr(error.text, "bad.safetensors"));
        kg_quantised_free(&list);
        kg_checkpoint_close(checkpoint);
        kg_text_free(&text);
        kg_text_free(&bytes);
    }
}

static void other_bits(void)
{
    struct kg_checkpoint *checkpoint;
    struct kg_quantised_list list;
    char path[256];
    snprintf(path, sizeof path, "%s/bad.safetensors", folder);
    unlink(path);
    make(64, 8, 64, -1, false);
    label("\"quant_method\": \"gptq\", \"bits\": 8");
    put_gptq();
    end_file();
    CHECK_STATUS(kg_checkpoint_open(folder, &checkpoint, &error), KG_OK, &error);
    CHECK(kg_quantised_find(checkpoint, &list, &error) == KG_ERROR_UNSUPPORTED);
    CHECK(strstr(error.text, "8 bits"));
    kg_quantised_free(&list);
    kg_checkpoint_close(checkpoint);
}

static void prepare(void)
{
    CHECK(folder_make(folder));
}

static void clean_up(void)
{
    folder_remove(folder);
}

TEST_MAIN(prepare, gptq, awq, compressed, gguf, refused, other_bits, clean_up)
