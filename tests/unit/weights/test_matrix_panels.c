// Matrices to panels and back: each code lies where docs/packed.md says, whatever the sizes, and
// nothing outside of the buffers is read or written.

#include "test.h"
#include "weights/matrix_panels.h"

#include <stdlib.h>
#include <string.h>

static struct kg_error error;
static uint64_t state = 1;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static int code_at(const unsigned char *bytes, int64_t place)
{
    return bytes[place / 2] >> (place % 2 * 4) & 15;
}

// The formula of the layout, as the language's manual has it.
static int64_t place_of(const struct kg_weights *weights, int64_t b, int64_t k, int64_t n)
{
    int64_t down = (weights->rows + 63) / 64, across = (weights->columns + 15) / 16;
    int64_t panel = (b * down + k / 64) * across + n / 16;
    return panel * 1024 + n % 16 / 2 * 128 + k % 8 / 2 * 32 + k % 64 / 16 * 8 + k % 2 * 4 +
           k % 16 / 8 * 2 + n % 2;
}

static int64_t lies_at(const struct kg_weights *weights, int64_t b, int64_t k, int64_t n)
{
    int64_t before = b * weights->rows * weights->columns;
    return before + (weights->transposed ? n * weights->rows + k : k * weights->columns + n);
}

// Buffers of exactly the length, so that a sanitizer sees the byte behind them, at odd addresses.
static void check(int64_t batch, int64_t rows, int64_t columns, bool transposed)
{
    const struct kg_weights weights = {
        .batch = batch, .rows = rows, .columns = columns, .transposed = transposed};
    size_t length, panels;
    int64_t count = batch * rows * columns, wrong = 0, padding = 0;
    CHECK_STATUS(kg_matrix_lengths(&weights, &length, &panels, &error), KG_OK, &error);
    CHECK(length == (size_t)(count + 1) / 2);
    unsigned char *memory[3] = {malloc(length + 1), malloc(panels + 1), malloc(length + 1)};
    unsigned char *codes = memory[0] + 1, *packed = memory[1] + 1, *back = memory[2] + 1;
    for (size_t i = 0; i < length; i++)
        codes[i] = (unsigned char)draw(256);
    if (count % 2)
        codes[length - 1] &= 15;
    memory[1][0] = memory[2][0] = 0x5a;
    memset(packed, 0xa5, panels);
    memset(back, 0xa5, length);
    kg_matrix_pack(&weights, codes, packed);
    kg_matrix_unpack(&weights, packed, back);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t k = 0; k < rows; k++)
            for (int64_t n = 0; n < columns; n++)
                wrong += code_at(packed, place_of(&weights, b, k, n)) !=
                         code_at(codes, lies_at(&weights, b, k, n));
    // Each code lies once in the panels: with as much in them as in the matrices, the rest is zero.
    for (size_t i = 0; i < panels; i++)
        padding += (packed[i] & 15) + (packed[i] >> 4);
    for (int64_t i = 0; i < count; i++)
        padding -= code_at(codes, i);
    CHECK(wrong == 0 && padding == 0);
    CHECK(memcmp(codes, back, length) == 0);
    CHECK(memory[1][0] == 0x5a && memory[2][0] == 0x5a);
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

static void every_code_has_its_place(void)
{
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 64, 16}, {1, 128, 32}, {1, 65, 17},
                                       {1, 63, 15},  {3, 7, 5},   {3, 65, 17},  {2, 130, 47},
                                       {1, 1, 300},  {1, 300, 1}, {2, 64, 15},  {2, 63, 16},
                                       {1, 300, 66}, {5, 3, 3},   {2, 200, 1},  {1, 192, 80},
                                       {0, 64, 16},  {3, 0, 16},  {3, 64, 0},   {0, 0, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int transposed = 0; transposed < 2; transposed++)
            check(sizes[i][0], sizes[i][1], sizes[i][2], transposed);
    for (int i = 0; i < 200; i++)
        check(1 + draw(3), 1 + draw(140), 1 + draw(40), draw(2));
}

static void refuse(int64_t batch, int64_t rows, int64_t columns)
{
    const struct kg_weights weights = {.batch = batch, .rows = rows, .columns = columns};
    size_t length = 1, panels = 1;
    CHECK(kg_matrix_lengths(&weights, &length, &panels, &error) == KG_ERROR_SHAPE);
    CHECK(length == 0 && panels == 0);
}

static void impossible_sizes(void)
{
    refuse(-1, 1, 1);
    refuse(1, -1, 1);
    refuse(1, 1, -64);
    refuse(1, INT64_MAX, 2);
    refuse((int64_t)1 << 31, (int64_t)1 << 31, 2);
    refuse(1, INT64_MAX, 1);        // only the panels are too many
    refuse((int64_t)1 << 60, 1, 1); // likewise
    const int64_t large = (int64_t)1 << 40;
    const struct kg_weights none = {.batch = large, .rows = large, .columns = 0};
    size_t length = 1, panels = 1;
    CHECK_STATUS(kg_matrix_lengths(&none, &length, &panels, &error), KG_OK, &error);
    CHECK(length == 0 && panels == 0);
    kg_matrix_pack(&none, "", NULL);
    kg_matrix_unpack(&none, "", NULL);
}

TEST_MAIN(every_code_has_its_place, impossible_sizes)
