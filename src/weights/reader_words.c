// Formats that keep codes in 32-bit words: GPTQ, AWQ, compressed-tensors. Their tensors lie at any
// alignment.

#include "weights/panel_order.h"
#include "weights/readers.h"

#include <string.h>

static uint32_t word_at(const void *data, int64_t position)
{
    uint32_t word;
    memcpy(&word, (const char *)data + position * (int64_t)sizeof word, sizeof word);
    return word;
}

// Copies a line of a panel. A whole one takes compilers a few instructions, any other one a call.
static inline void copy_line(void *to, const void *from, size_t bytes, size_t whole)
{
    memcpy(to, from, bytes == whole ? whole : bytes);
}

// A word of each column.
typedef uint32_t line __attribute__((vector_size(4 * KG_PANEL_COLUMNS)));

// Scales in rows of columns.
static void scales_by_row(const struct kg_layer *layer, int64_t group, int64_t column, void *scales)
{
    size_t item = kg_dtype_bytes(layer->dtype, 1);
    const char *row = (const char *)layer->scale_data + (size_t)(group * layer->columns) * item;
    memcpy(scales, row + (size_t)column * item, (size_t)kg_layer_columns(layer, column) * item);
}

// ---- GPTQ

static void gptq_codes(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    size_t bytes = (size_t)kg_layer_columns(layer, column) * sizeof(uint32_t);
    for (int64_t word = 0; word < KG_PANEL_WORDS && row + 8 * word < layer->rows; word++) {
        int64_t at = (row / 8 + word) * layer->columns + column;
        copy_line(panel[word], (const char *)layer->code_data + at * (int64_t)sizeof(uint32_t),
                  bytes, sizeof panel[word]);
    }
}

static void gptq_ordered_codes(const struct kg_layer *layer, int64_t row, int64_t column,
                               kg_panel panel)
{
    size_t bytes = (size_t)kg_layer_columns(layer, column) * sizeof(uint32_t);
    for (int word = 0; word < KG_PANEL_WORDS && row + 8 * word < layer->rows; word++) {
        line codes = {0}; // the latest in the highest bits
        for (int i = 0; i < 8; i++) {
            line words = {0};
            int32_t stored = layer->order[row + 8 * word + i];
            int64_t at = stored / 8 * layer->columns + column;
            const char *from = (const char *)layer->code_data + at * (int64_t)sizeof(uint32_t);
            __builtin_prefetch(from + 128); // processors do not follow 64 rows by themselves
            copy_line(&words, from, bytes, sizeof words);
            codes = codes >> 4 | words >> stored % 8 * 4 << 28;
        }
        memcpy(panel[word], &codes, sizeof codes);
    }
}

static void gptq_zeros(const struct kg_layer *layer, int64_t group, int64_t column, uint8_t *zeros)
{
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++) {
        uint32_t word = word_at(layer->zero_data, group * (layer->columns / 8) + (column + c) / 8);
        zeros[c] = (uint8_t)((word >> ((column + c) % 8 * 4)) + (uint32_t)layer->zero_shift) & 15;
    }
}

const struct kg_layer_reader kg_gptq_reader = {"GPTQ",        true,       gptq_codes,
                                               scales_by_row, gptq_zeros, NULL};
const struct kg_layer_reader kg_gptq_ordered_reader = {
    "GPTQ", false, gptq_ordered_codes, scales_by_row, gptq_zeros, NULL};

// ---- AWQ

// Which column of eight the nibble i of a word holds.
static const int awq_columns[8] = {0, 2, 4, 6, 1, 3, 5, 7};

static void awq_codes(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    const char *data = (const char *)layer->code_data + column / 2;
    size_t bytes = (size_t)kg_layer_columns(layer, column) / 2;
    for (int word = 0; word < KG_PANEL_WORDS; word++) {
        uint64_t words[8] = {0};
        for (int i = 0; i < 8 && row + 8 * word + i < layer->rows; i++) {
            const char *from = data + (row + 8 * word + i) * (layer->columns / 2);
            __builtin_prefetch(from + 128);
            copy_line(&words[i], from, bytes, sizeof words[i]);
        }
        kg_panel_transpose(words);
        for (int i = 0; i < 8; i++) {
            panel[word][awq_columns[i]] = (uint32_t)words[i];
            panel[word][8 + awq_columns[i]] = (uint32_t)(words[i] >> 32);
        }
    }
}

static void awq_zeros(const struct kg_layer *layer, int64_t group, int64_t column, uint8_t *zeros)
{
    int64_t across = layer->columns / 8;
    for (int first = 0; first < kg_layer_columns(layer, column); first += 8) {
        uint32_t word = word_at(layer->zero_data, group * across + (column + first) / 8);
        for (int i = 0; i < 8; i++)
            zeros[first + awq_columns[i]] = word >> (4 * i) & 15;
    }
}

const struct kg_layer_reader kg_awq_reader = {"AWQ",         true,      awq_codes,
                                              scales_by_row, awq_zeros, NULL};

// ---- compressed-tensors

static void compressed_codes(const struct kg_layer *layer, int64_t row, int64_t column,
                             kg_panel panel)
{
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++)
        for (int word = 0; word < KG_PANEL_WORDS && row + 8 * word < layer->rows; word++)
            panel[word][c] =
                word_at(layer->code_data, (column + c) * layer->code_stride + row / 8 + word);
}

static void compressed_ordered_codes(const struct kg_layer *layer, int64_t row, int64_t column,
                                     kg_panel panel)
{
    int columns = kg_layer_columns(layer, column);
    memset(panel, 0, sizeof(kg_panel));
    for (int c = 0; c < columns; c++)
        for (int i = 0; i < KG_PANEL_ROWS && row + i < layer->rows; i++) {
            int32_t stored = layer->order[row + i];
            int64_t at = (column + c) * layer->code_stride + stored / 8;
            uint32_t code = word_at(layer->code_data, at) >> (stored % 8 * 4) & 15;
            panel[i / 8][c] |= code << (i % 8 * 4);
        }
}

static void compressed_scales(const struct kg_layer *layer, int64_t group, int64_t column,
                              void *scales)
{
    size_t item = kg_dtype_bytes(layer->dtype, 1);
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++) {
        int64_t at = (column + c) * kg_layer_groups(layer) + group;
        memcpy((char *)scales + (size_t)c * item,
               (const char *)layer->scale_data + (size_t)at * item, item);
    }
}

static void compressed_zeros(const struct kg_layer *layer, int64_t group, int64_t column,
                             uint8_t *zeros)
{
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++) {
        int64_t at = (column + c) / 8 * kg_layer_groups(layer) + group;
        zeros[c] = word_at(layer->zero_data, at) >> ((column + c) % 8 * 4) & 15;
    }
}

const struct kg_layer_reader kg_compressed_reader = {
    "compressed-tensors", false, compressed_codes, compressed_scales, compressed_zeros, NULL};
const struct kg_layer_reader kg_compressed_ordered_reader = {
    "compressed-tensors", false, compressed_ordered_codes, compressed_scales,
    compressed_zeros,     NULL};
