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

// The lower four bits of eight bytes.
static uint32_t gather(uint64_t bytes)
{
    bytes &= 0x0f0f0f0f0f0f0f0f;
    bytes = (bytes | bytes >> 4) & 0x00ff00ff00ff00ff;
    bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(bytes | bytes >> 16);
}

// 2 * count * 8 codes: all lower halves of count * 8 bytes, then all upper halves.
static void read_halves(const unsigned char *bytes, int count, kg_panel panel, int word, int column)
{
    for (int i = 0; i < count; i++) {
        uint64_t eight;
        memcpy(&eight, bytes + 8 * i, sizeof eight);
        panel[word + i][column] = gather(eight);
        panel[word + count + i][column] = gather(eight >> 4);
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
                            BLOCK / 16, panel, half * BLOCK / 8, c);
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
        read_halves(block + 16 + row % LONG_BLOCK / 2, STRETCH / 16, panel, 0, c);
    }
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
        float scale = (float)kg_dtype_load(KG_F16, block + (offsets ? 2 : 0), 0);
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

const struct kg_layer_reader kg_q4_0_reader = {"GGUF Q4_0", q4_0_codes, q4_0_scales, NULL, NULL};
const struct kg_layer_reader kg_q4_1_reader = {"GGUF Q4_1", q4_1_codes, q4_1_scales, NULL,
                                               q4_1_offsets};
const struct kg_layer_reader kg_q4_k_reader = {"GGUF Q4_K", q4_k_codes, q4_k_scales, NULL,
                                               q4_k_offsets};
