// See matrix_panels.h. Codes are counted from the first one of all matrices, because nothing aligns
// a row, or a matrix, to a byte.

#include "weights/matrix_panels.h"

#include "weights/panel_order.h"

#include <string.h>

#define LINE 16 // codes that are read or written at once: a row of a panel

static int64_t panels_of(int64_t size, int64_t panel)
{
    return size / panel + (size % panel != 0);
}

// Products of sizes, in which one may be too large although another is 0.
static bool multiply(const int64_t sizes[4], int64_t *product)
{
    bool overflow = false;
    *product = 1;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] == 0) {
            *product = 0;
            return true;
        }
        overflow |= __builtin_mul_overflow(*product, sizes[i], product);
    }
    return !overflow;
}

enum kg_status kg_matrix_lengths(const struct kg_weights *weights, size_t *codes, size_t *packed,
                                 struct kg_error *error)
{
    const int64_t batch = weights->batch, rows = weights->rows, columns = weights->columns;
    const int64_t panel = KG_PANEL_CODES, down = panels_of(rows, KG_PANEL_ROWS);
    int64_t logical, in_panels;
    *codes = *packed = 0;
    if (batch < 0 || rows < 0 || columns < 0 ||
        !multiply((const int64_t[]){batch, rows, columns, 1}, &logical) ||
        !multiply((const int64_t[]){batch, down, panels_of(columns, KG_PANEL_COLUMNS), panel},
                  &in_panels))
        return kg_error_set(
            error, KG_ERROR_SHAPE,
            "%lld matrices of %lld x %lld codes: sizes are not negative, and memory "
            "has to hold all",
            (long long)batch, (long long)rows, (long long)columns);
    *codes = (size_t)logical / 2 + (size_t)logical % 2;
    *packed = (size_t)in_panels / 2;
    return KG_OK;
}

// Codes from `place` on, at most LINE, the first in the lowest bits.
static uint64_t load_codes(const uint8_t *from, int64_t place, int count)
{
    bool odd = place & 1;
    int bytes = (odd + count + 1) / 2;
    uint64_t value = 0;
    from += place / 2;
    if (bytes >= (int)sizeof value)
        memcpy(&value, from, sizeof value);
    else
        memcpy(&value, from, (size_t)bytes);
    if (odd)
        value = value >> 4 | (bytes == 9 ? (uint64_t)from[8] << 60 : 0);
    return count < LINE ? value & (((uint64_t)1 << (4 * count)) - 1) : value;
}

// Leaves the other half of a byte as it is.
static void store_codes(uint8_t *to, int64_t place, int count, uint64_t value)
{
    to += place / 2;
    if (place & 1 && count > 0) {
        *to = (uint8_t)((*to & 0x0f) | value << 4);
        to++;
        value >>= 4;
        count--;
    }
    memcpy(to, &value, count == LINE ? sizeof value : (size_t)count / 2);
    to += count / 2;
    if (count % 2)
        *to = (uint8_t)((*to & 0xf0) | (value >> (4 * (count - 1)) & 15));
}

// One panel in one matrix: where it begins, and how much of it there is.
struct part {
    int64_t panel;        // its number in the packed tensor
    int64_t base;         // of the matrix, in codes
    int64_t rows;         // of the matrix
    int64_t columns;      // of the matrix
    int64_t row, column;  // first ones
    int height, width;    // of the panel, without what is beyond the matrix
    const uint8_t *codes; // or NULL
    uint8_t *written;     // or NULL
};

// The matrix lies in rows: lines of 16 columns.
static void read_rows(const struct part *part, kg_panel panel)
{
    for (int word = 0; word < KG_PANEL_WORDS; word++) {
        uint64_t lines[8] = {0};
        int64_t place = part->base + (part->row + 8 * word) * part->columns + part->column;
        for (int i = 0; i < 8 && 8 * word + i < part->height; i++, place += part->columns)
            lines[i] = load_codes(part->codes, place, part->width);
        kg_panel_transpose(lines);
        for (int c = 0; c < 8; c++) {
            panel[word][c] = (uint32_t)lines[c];
            panel[word][8 + c] = (uint32_t)(lines[c] >> 32);
        }
    }
}

static void write_rows(const struct part *part, const kg_panel panel)
{
    for (int word = 0; 8 * word < part->height; word++) {
        uint64_t lines[8];
        for (int c = 0; c < 8; c++)
            lines[c] = panel[word][c] | (uint64_t)panel[word][8 + c] << 32;
        kg_panel_transpose(lines);
        int64_t place = part->base + (part->row + 8 * word) * part->columns + part->column;
        for (int i = 0; i < 8 && 8 * word + i < part->height; i++, place += part->columns)
            store_codes(part->written, place, part->width, lines[i]);
    }
}

// The matrix lies in columns: lines of 16 rows.
static void read_columns(const struct part *part, kg_panel panel)
{
    memset(panel, 0, sizeof(kg_panel));
    for (int c = 0; c < part->width; c++) {
        int64_t place = part->base + (part->column + c) * part->rows + part->row;
        for (int i = 0; i < part->height; i += LINE) {
            int count = part->height - i < LINE ? part->height - i : LINE;
            uint64_t line = load_codes(part->codes, place + i, count);
            panel[i / 8][c] = (uint32_t)line;
            panel[i / 8 + 1][c] = (uint32_t)(line >> 32);
        }
    }
}

static void write_columns(const struct part *part, const kg_panel panel)
{
    for (int c = 0; c < part->width; c++) {
        int64_t place = part->base + (part->column + c) * part->rows + part->row;
        for (int i = 0; i < part->height; i += LINE) {
            int count = part->height - i < LINE ? part->height - i : LINE;
            uint64_t line = panel[i / 8][c] | (uint64_t)panel[i / 8 + 1][c] << 32;
            store_codes(part->written, place + i, count, line);
        }
    }
}

static int least(int64_t left, int panel)
{
    return left < panel ? (int)left : panel;
}

// The panel that is visited after `visited` others. Each strip of panels is gone through in the
// direction in which the codes are adjacent, so that lines of the cache are used while they are
// there.
static struct part part_of(const struct kg_weights *weights, int64_t visited)
{
    int64_t across = panels_of(weights->columns, KG_PANEL_COLUMNS);
    int64_t down = panels_of(weights->rows, KG_PANEL_ROWS);
    int64_t matrix = visited / (down * across), inside = visited % (down * across);
    int64_t row = weights->transposed ? inside % down : inside / across;
    int64_t column = weights->transposed ? inside / down : inside % across;
    struct part part = {.panel = (matrix * down + row) * across + column,
                        .base = matrix * weights->rows * weights->columns,
                        .rows = weights->rows,
                        .columns = weights->columns,
                        .row = row * KG_PANEL_ROWS,
                        .column = column * KG_PANEL_COLUMNS};
    part.height = least(part.rows - part.row, KG_PANEL_ROWS);
    part.width = least(part.columns - part.column, KG_PANEL_COLUMNS);
    return part;
}

static int64_t panel_count(const struct kg_weights *weights)
{
    if (weights->batch == 0 || weights->rows == 0 || weights->columns == 0)
        return 0;
    return weights->batch * panels_of(weights->rows, KG_PANEL_ROWS) *
           panels_of(weights->columns, KG_PANEL_COLUMNS);
}

void kg_matrix_pack(const struct kg_weights *weights, const void *codes, void *packed)
{
    uint32_t words[KG_PANEL_PACKED];
    int64_t panels = panel_count(weights);
    for (int64_t i = 0; i < panels; i++) {
        struct part part = part_of(weights, i);
        kg_panel panel;
        part.codes = codes;
        if (weights->transposed)
            read_columns(&part, panel);
        else
            read_rows(&part, panel);
        kg_panel_pack((const uint32_t(*)[KG_PANEL_COLUMNS])panel, words);
        memcpy((char *)packed + (size_t)part.panel * sizeof words, words, sizeof words);
    }
}

void kg_matrix_unpack(const struct kg_weights *weights, const void *packed, void *codes)
{
    uint32_t words[KG_PANEL_PACKED];
    int64_t panels = panel_count(weights);
    int64_t count = panels > 0 ? weights->batch * weights->rows * weights->columns : 0;
    if (count % 2)
        ((uint8_t *)codes)[count / 2] = 0;
    for (int64_t i = 0; i < panels; i++) {
        struct part part = part_of(weights, i);
        kg_panel panel;
        part.written = codes;
        memcpy(words, (const char *)packed + (size_t)part.panel * sizeof words, sizeof words);
        kg_panel_unpack(words, panel);
        if (weights->transposed)
            write_columns(&part, (const uint32_t(*)[KG_PANEL_COLUMNS])panel);
        else
            write_rows(&part, (const uint32_t(*)[KG_PANEL_COLUMNS])panel);
    }
}
