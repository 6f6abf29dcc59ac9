// A matrix of 4-bit weights, wherever it lies: codes of 0 to 15 with a scale for each column of
// each group of rows. Rows are what a product combines (K), columns are its outputs (N).
//
//   weight[k, n] = (code[k, n] - zero) * scale[k / group, n]           zero fixed or by group
//   weight[k, n] = code[k, n] * scale[k / group, n] + offset[k / group, n]

#ifndef KG_WEIGHTS_LAYER_H
#define KG_WEIGHTS_LAYER_H

#include "lang/dtype.h"
#include "lang/panels.h"

#include <stdint.h>

// Codes are read in panels, as they are packed.
#define KG_PANEL_WORDS (KG_PANEL_ROWS / 8)

#define KG_FIXED_ZERO 8

enum kg_zero_kind {
    KG_ZERO_FIXED,   // KG_FIXED_ZERO everywhere
    KG_ZERO_CODES,   // one of 0 to 15 for each scale
    KG_ZERO_OFFSETS, // a float for each scale, added after it
    KG_ZERO_KIND_COUNT
};

// Eight codes of consecutive rows in each word, the first in the lowest bits; [word][column].
typedef uint32_t kg_panel[KG_PANEL_WORDS][KG_PANEL_COLUMNS];

struct kg_layer;

// How a layer is read. `column` is a multiple of KG_PANEL_COLUMNS, and only columns that exist are
// filled; the caller has set the others to zero.
struct kg_layer_reader {
    const char *name; // of the format
    bool by_rows;     // what a row of panels needs lies in whole rows, which are read to their ends
    // `row`: a multiple of KG_PANEL_ROWS. Rows that do not exist may be left as they are.
    void (*codes)(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel);
    // The scales of a group's columns, in the layer's dtype.
    void (*scales)(const struct kg_layer *layer, int64_t group, int64_t column, void *scales);
    // With KG_ZERO_CODES: one byte each.
    void (*zeros)(const struct kg_layer *layer, int64_t group, int64_t column, uint8_t *zeros);
    // With KG_ZERO_OFFSETS: in the layer's dtype.
    void (*offsets)(const struct kg_layer *layer, int64_t group, int64_t column, void *offsets);
};

struct kg_layer {
    const struct kg_layer_reader *reader;
    int64_t rows;
    int64_t columns;
    int64_t group;       // rows of a scale, at least 1; the last group may be shorter
    enum kg_dtype dtype; // of scales and offsets
    enum kg_zero_kind zero;
    const int32_t *order; // of each row here: which row of the product it is; NULL: the same
    // The reader's own: where codes, scales and zeros lie, and what is added to a stored zero.
    const void *code_data, *scale_data, *zero_data;
    int64_t code_stride;
    int zero_shift;
};

static inline int64_t kg_layer_groups(const struct kg_layer *layer)
{
    return layer->rows / layer->group + (layer->rows % layer->group != 0);
}

// How many columns of the panel at `column` there are.
static inline int kg_layer_columns(const struct kg_layer *layer, int64_t column)
{
    int64_t left = layer->columns - column;
    return left < KG_PANEL_COLUMNS ? (int)left : KG_PANEL_COLUMNS;
}

#endif
