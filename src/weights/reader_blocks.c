// GGUF: a row of blocks for each column. A block of Q4_0 and Q4_1 has 32 codes; one of Q4_K has
// 256, in four stretches of 64, with a scale and an offset for each 32.

#include "weights/readers.h"

#include <string.h>

#define BLOCK 32
#define STRETCH 64
#define LONG_BLOCK 256
#define Q4_0_BYTES 18  // scale, codes
#define Q4_1_BYTES 20  // scale, offset, codes
#define Q4_K_BYTES 144 // scale of scales, scale of offsets, both of six bits each, codes

static const unsigned char *column_of(const struct kg_layer *layer, int64_t column)
{
    return (const unsigned char *)layer->code_data + column * layer->code_stride;
}

// Sixteen bytes, two a number.
typedef uint16_t pairs __attribute__((vector_size(16)));
typedef uint8_t bytes_of_pairs __attribute__((vector_size(8)));

// The lower four bits of each byte, side by side, as two words of a column.
static void gather(pairs bytes, kg_panel panel, int word, int column)
{
    pairs codes = bytes & 0x0f0f;
    bytes_of_pairs packed = __builtin_convertvector((codes | codes >> 4) & 0xff, bytes_of_pairs);
    uint32_t words[2];
    memcpy(words, &packed, sizeof words);
    panel[word][column] = words[0];
    panel[word + 1][column] = words[1];
}

// 2 * count * 16 codes: all lower halves of count * 16 bytes, then all upper halves.
static void read_halves(const unsigned char *bytes, int count, kg_panel panel, int word, int column)
{
    for (int i = 0; i < count; i++) {
        pairs sixteen;
        memcpy(&sixteen, bytes + 16 * i, sizeof sixteen);
        gather(sixteen, panel, word + 2 * i, column);
        gather(sixteen >> 4, panel, word + 2 * (count + i), column);
    }
}

static void short_codes(const struct kg_layer *layer, int64_t row, int64_t column, int bytes,
                        kg_panel panel)
{
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++)
        for (int half = 0; half < KG_PANEL_ROWS / BLOCK; half++) {
            int64_t first = row + half * BLOCK;
            if (first < layer->rows)
                read_halves(column_of(layer, column + c) + first / BLOCK * bytes + bytes -
                                BLOCK / 2,
                            BLOCK / 32, panel, half * BLOCK / 8, c);
        }
}

// Floats of 16 bits that lie `place` bytes behind the beginning of each block.
static void copy_halves(const struct kg_layer *layer, int64_t group, int64_t column, int bytes,
                        int place, void *values)
{
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++)
        memcpy((char *)values + 2 * c, column_of(layer, column + c) + group * bytes + place, 2);
}

static void q4_0_codes(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    short_codes(layer, row, column, Q4_0_BYTES, panel);
}

static void q4_0_scales(const struct kg_layer *layer, int64_t group, int64_t column, void *scales)
{
    copy_halves(layer, group, column, Q4_0_BYTES, 0, scales);
}

static void q4_1_codes(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    short_codes(layer, row, column, Q4_1_BYTES, panel);
}

static void q4_1_scales(const struct kg_layer *layer, int64_t group, int64_t column, void *scales)
{
    copy_halves(layer, group, column, Q4_1_BYTES, 0, scales);
}

static void q4_1_offsets(const struct kg_layer *layer, int64_t group, int64_t column, void *offsets)
{
    copy_halves(layer, group, column, Q4_1_BYTES, 2, offsets);
}

static void q4_k_codes(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    int columns = kg_layer_columns(layer, column);
    for (int c = 0; c < columns; c++) {
        const unsigned char *block = column_of(layer, column + c) + row / LONG_BLOCK * Q4_K_BYTES;
        read_halves(block + 16 + row % LONG_BLOCK / 2, STRETCH / 32, panel, 0, c);
    }
}

// An f16 number; those that are not normal are rare.
static float half(const unsigned char *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    int exponent = bits >> 10 & 31;
    if (exponent == 0 || exponent == 31)
        return (float)kg_dtype_load(KG_F16, at, 0);
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = (uint32_t)(bits & 0x7fff) << 13;
    uint32_t wide = sign | (magnitude + (112u << 23)); // the exponents' biases are 112 apart
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

// Six bits each: eight scales and eight offsets in twelve bytes.
static int small_scale(const unsigned char *twelve, int i)
{
    return i < 4 ? twelve[i] & 63 : (twelve[i + 4] & 15) | (twelve[i - 4] >> 6) << 4;
}

static int small_offset(const unsigned char *twelve, int i)
{
    return i < 4 ? twelve[i + 4] & 63 : twelve[i + 4] >> 4 | (twelve[i] >> 6) << 4;
}

static void q4_k_values(const struct kg_layer *layer, int64_t group, int64_t column, bool offsets,
                        float *values)
{
    int columns = kg_layer_columns(layer, column), inside = (int)(group % (LONG_BLOCK / BLOCK));
    for (int c = 0; c < columns; c++) {
        const unsigned char *block =
            column_of(layer, column + c) + group * BLOCK / LONG_BLOCK * Q4_K_BYTES;
        float scale = half(block + (offsets ? 2 : 0));
        float value = offsets ? -scale * (float)small_offset(block + 4, inside)
                              : scale * (float)small_scale(block + 4, inside);
        memcpy(values + c, &value, sizeof value);
    }
}

static void q4_k_scales(const struct kg_layer *layer, int64_t group, int64_t column, void *scales)
{
    q4_k_values(layer, group, column, false, scales);
}

static void q4_k_offsets(const struct kg_layer *layer, int64_t group, int64_t column, void *offsets)
{
    q4_k_values(layer, group, column, true, offsets);
}

const struct kg_layer_reader kg_q4_0_reader = {"GGUF Q4_0", false, q4_0_codes,
                                               q4_0_scales, NULL,  NULL};
const struct kg_layer_reader kg_q4_1_reader = {"GGUF Q4_1", false, q4_1_codes,
                                               q4_1_scales, NULL,  q4_1_offsets};
const struct kg_layer_reader kg_q4_k_reader = {"GGUF Q4_K", false, q4_k_codes,
                                               q4_k_scales, NULL,  q4_k_offsets};
