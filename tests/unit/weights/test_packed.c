// The packed layout: where each element lies, that nothing is lost, and that what was changed or
// cut is refused.

#include "test.h"
#include "weights/matrix_panels.h"
#include "weights/packed.h"

#include <stdlib.h>
#include <string.h>

static struct kg_error error;
static uint64_t state = 1;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

// ---- A layer in plain arrays

static uint8_t *codes; // [rows][columns]
static float *scales, *offsets;
static uint8_t *zeros; // [groups][columns]
static int32_t *order;

static void read_codes(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    memset(panel, 0, sizeof(kg_panel));
    for (int i = 0; i < KG_PANEL_ROWS && row + i < layer->rows; i++)
        for (int c = 0; c < kg_layer_columns(layer, column); c++)
            panel[i / 8][c] |= (uint32_t)codes[(row + i) * layer->columns + column + c]
                               << (i % 8 * 4);
}

static void store(const struct kg_layer *layer, const float *from, int64_t group, int64_t column,
                  void *to)
{
    for (int c = 0; c < kg_layer_columns(layer, column); c++)
        kg_dtype_store(layer->dtype, to, (size_t)c,
                       (double)from[group * layer->columns + column + c]);
}

static void read_scales(const struct kg_layer *layer, int64_t group, int64_t column, void *to)
{
    store(layer, scales, group, column, to);
}

static void read_offsets(const struct kg_layer *layer, int64_t group, int64_t column, void *to)
{
    store(layer, offsets, group, column, to);
}

static void read_zeros(const struct kg_layer *layer, int64_t group, int64_t column, uint8_t *to)
{
    memcpy(to, zeros + group * layer->columns + column, (size_t)kg_layer_columns(layer, column));
}

static const struct kg_layer_reader reader = {"arrays",    false,      read_codes,
                                              read_scales, read_zeros, read_offsets};
static const struct kg_layer_reader row_reader = {"rows",      true,       read_codes,
                                                  read_scales, read_zeros, read_offsets};

static void make(struct kg_layer *layer)
{
    layer->reader = &reader;
    size_t elements = (size_t)(layer->rows * layer->columns);
    size_t values = (size_t)(kg_layer_groups(layer) * layer->columns);
    codes = malloc(elements);
    zeros = malloc(values);
    scales = malloc(values * sizeof *scales);
    offsets = malloc(values * sizeof *offsets);
    order = malloc((size_t)layer->rows * sizeof *order);
    for (size_t i = 0; i < elements; i++)
        codes[i] = (uint8_t)draw(16);
    for (size_t i = 0; i < values; i++) {
        zeros[i] = (uint8_t)draw(16);
        scales[i] = (float)draw(64) / 32 - 1; // exact in every dtype
        offsets[i] = (float)draw(64) / 32 - 1;
    }
    for (int64_t i = 0; i < layer->rows; i++)
        order[i] = (int32_t)(layer->rows - 1 - i);
    layer->order = layer->order ? order : NULL;
}

static void drop(void)
{
    free(codes);
    free(zeros);
    free(scales);
    free(offsets);
    free(order);
}

static unsigned char *pack(const struct kg_layer *layer, struct kg_packed *packed)
{
    kg_packed_lay_out(layer, packed);
    unsigned char *memory = aligned_alloc(KG_PACKED_HEADER, packed->bytes);
    memset(memory, 0xa5, packed->bytes); // no byte may stay as it is
    kg_packed_write(layer, packed, memory);
    return memory;
}

static double weight(const struct kg_layer *layer, int64_t row, int64_t column)
{
    int code = codes[row * layer->columns + column];
    int64_t at = row / layer->group * layer->columns + column;
    switch (layer->zero) {
    case KG_ZERO_FIXED:
        return (code - 8) * (double)scales[at];
    case KG_ZERO_CODES:
        return (code - zeros[at]) * (double)scales[at];
    default:
        return code * (double)scales[at] + (double)offsets[at];
    }
}

// ---- Tests

static int32_t any_order;

static const struct kg_layer layers[] = {
    {.rows = 1, .columns = 1, .group = 1, .dtype = KG_F16},
    {.rows = 64, .columns = 64, .group = 64, .dtype = KG_F16, .zero = KG_ZERO_CODES},
    {.rows = 65, .columns = 63, .group = 16, .dtype = KG_BF16, .zero = KG_ZERO_OFFSETS},
    {.rows = 300, .columns = 66, .group = 128, .dtype = KG_BF16, .zero = KG_ZERO_CODES},
    {.rows = 256, .columns = 17, .group = 32, .dtype = KG_F32, .zero = KG_ZERO_OFFSETS},
    {.rows = 127, .columns = 130, .group = 127, .dtype = KG_F16, .order = &any_order},
    {.rows = 7, .columns = 5, .group = 3, .dtype = KG_F32, .zero = KG_ZERO_CODES},
    {.rows = 130, .columns = 530, .group = 64, .dtype = KG_F16, .zero = KG_ZERO_OFFSETS},
};
#define LAYERS (sizeof layers / sizeof layers[0])

static void nothing_is_lost(void)
{
    for (size_t i = 0; i < LAYERS; i++) {
        struct kg_layer layer = layers[i];
        struct kg_packed packed, read;
        make(&layer);
        unsigned char *memory = pack(&layer, &packed);
        int64_t row, column;
        CHECK(kg_packed_holds(&layer, &packed, memory, &row, &column));
        CHECK_STATUS(kg_packed_read(memory, packed.bytes, &read, &error), KG_OK, &error);
        CHECK(memcmp(read.offset, packed.offset, sizeof read.offset) == 0);
        CHECK(read.bytes == packed.bytes && read.ordered == packed.ordered);
        int wrong = 0;
        for (row = 0; row < layer.rows; row++)
            for (column = 0; column < layer.columns; column++)
                wrong +=
                    kg_packed_weight(&read, memory, row, column) != weight(&layer, row, column);
        CHECK(wrong == 0);
        CHECK(!layer.order || memcmp(memory + packed.offset[KG_SECTION_ORDER], layer.order,
                                     packed.length[KG_SECTION_ORDER]) == 0);
        // The same by another way through the layer.
        layer.reader = &row_reader;
        unsigned char *by_rows = pack(&layer, &packed);
        CHECK(memcmp(memory, by_rows, packed.bytes) == 0);
        CHECK(kg_packed_holds(&layer, &packed, memory, &row, &column));
        free(by_rows);
        free(memory);
        drop();
    }
}

// What a lane's word gives the registers of mma.sync m16n8k16 and of wgmma, by the rows and columns
// that PTX gives for their first operand. Its rows g and g + 8 are the weights' columns 2g, 2g + 1.
static void registers(void)
{
    struct kg_layer layer = {.rows = 128, .columns = 64, .group = 128, .dtype = KG_F16};
    struct kg_packed packed;
    make(&layer);
    unsigned char *memory = pack(&layer, &packed);
    const uint32_t *words = (const uint32_t *)(memory + packed.offset[KG_SECTION_CODES]);
    int wrong = 0;
    for (int step = 0; step < 8; step++)        // of 16 rows
        for (int panel = 0; panel < 4; panel++) // of 16 columns
            for (int lane = 0; lane < 32; lane++)
                for (int r = 0; r < 4; r++) {
                    int place = ((step / 4 * 4 + panel) * 32 + lane) * 4 + step % 4;
                    uint32_t halves = words[place] >> (4 * r) & 0x000f000f;
                    int column = 16 * panel + lane / 4 * 2 + r % 2;
                    int row = 16 * step + lane % 4 * 2 + (r / 2) * 8;
                    wrong += (halves & 0xffff) != codes[row * 64 + column];
                    wrong += halves >> 16 != codes[(row + 1) * 64 + column];
                }
    CHECK(wrong == 0);
    free(memory);
    drop();
}

// The codes are the tensor that a packed input takes, which kg_pack_weights writes.
static void codes_are_a_tensor(void)
{
    struct kg_layer layer = layers[3];
    struct kg_packed packed;
    make(&layer);
    unsigned char *memory = pack(&layer, &packed);
    struct kg_weights weights = {.batch = 1, .rows = layer.rows, .columns = layer.columns};
    size_t length, panels, elements = (size_t)(layer.rows * layer.columns);
    CHECK_STATUS(kg_matrix_lengths(&weights, &length, &panels, &error), KG_OK, &error);
    CHECK(panels == packed.length[KG_SECTION_CODES] && panels == 5 * 5 * 512);
    unsigned char *pairs = malloc(length), *tensor = malloc(panels);
    for (size_t i = 0; i < elements; i += 2)
        pairs[i / 2] = (unsigned char)(codes[i] | codes[i + 1] << 4);
    kg_matrix_pack(&weights, pairs, tensor);
    CHECK(memcmp(tensor, memory + packed.offset[KG_SECTION_CODES], panels) == 0);
    free(pairs);
    free(tensor);
    free(memory);
    drop();
}

static void differences_are_found(void)
{
    struct kg_layer layer = {
        .rows = 70, .columns = 20, .group = 35, .dtype = KG_F16, .zero = KG_ZERO_CODES};
    struct kg_packed packed;
    int64_t row = 0, column = 0;
    make(&layer);
    unsigned char *memory = pack(&layer, &packed);
    for (int i = 0; i < 70 * 20; i++) {
        codes[i] ^= 1;
        CHECK(!kg_packed_holds(&layer, &packed, memory, &row, &column));
        CHECK(row == i / 20 && column == i % 20);
        codes[i] ^= 1;
    }
    zeros[39] ^= 4;
    CHECK(!kg_packed_holds(&layer, &packed, memory, &row, &column) && row == 35 && column == 16);
    zeros[39] ^= 4;
    scales[3] += 1;
    CHECK(!kg_packed_holds(&layer, &packed, memory, &row, &column) && row == 0 && column == 0);
    free(memory);
    drop();
}

// Of the header every byte, of the rest every seventh; and every length.
static void changed_or_cut(void)
{
    struct kg_layer layer = layers[5];
    struct kg_packed packed, read;
    make(&layer);
    unsigned char *memory = pack(&layer, &packed);
    int taken = 0;
    for (size_t i = 0; i < packed.bytes; i += i < KG_PACKED_HEADER ? 1 : 7) {
        memory[i] ^= 0x10;
        taken += kg_packed_read(memory, packed.bytes, &read, &error) == KG_OK;
        memory[i] ^= 0x10;
    }
    for (size_t length = 0; length < packed.bytes; length++)
        taken += kg_packed_read(memory, length, &read, &error) == KG_OK;
    CHECK(taken == 0);
    CHECK_STATUS(kg_packed_read(memory, packed.bytes, &read, &error), KG_OK, &error);
    memory[8]++;
    CHECK(kg_packed_read(memory, packed.bytes, &read, &error) == KG_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "another version"));
    memory[8] = 1;
    CHECK(kg_packed_read(memory, packed.bytes, &read, &error) == KG_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "of version 1, whose columns are padded to 64: pack them again"));
    memory[8] = KG_PACKED_VERSION;
    memory[packed.offset[KG_SECTION_CODES] + 5] ^= 1;
    CHECK(kg_packed_read(memory, packed.bytes, &read, &error) == KG_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "checksum"));
    free(memory);
    drop();
}

TEST_MAIN(nothing_is_lost, registers, codes_are_a_tensor, differences_are_found, changed_or_cut)
