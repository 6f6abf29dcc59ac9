// The packed layout of 4-bit weights: one for every number of activations, because the fragments of
// mma.sync m16n8k16 and of wgmma with its first operand in registers are the same. docs/packed.md
// describes it. A packed matrix is one piece of memory: a header, then sections.

#ifndef KG_WEIGHTS_PACKED_H
#define KG_WEIGHTS_PACKED_H

#include "base/error.h"
#include "weights/layer.h"

#include <stdbool.h>
#include <stddef.h>

#define KG_PACKED_VERSION 2
#define KG_PACKED_HEADER 256     // bytes; sections begin at multiples of it
#define KG_PACKED_MOST (1 << 28) // rows, columns

enum kg_section {
    KG_SECTION_CODES,
    KG_SECTION_SCALES,
    KG_SECTION_ZEROS, // or offsets
    KG_SECTION_ORDER,
    KG_SECTION_COUNT
};

struct kg_packed {
    int64_t rows, columns, group;
    enum kg_dtype dtype;
    enum kg_zero_kind zero;
    bool ordered;
    size_t offset[KG_SECTION_COUNT]; // of the sections
    size_t length[KG_SECTION_COUNT];
    size_t bytes; // of all
};

// Where everything lies in the packed form of a layer.
void kg_packed_lay_out(const struct kg_layer *layer, struct kg_packed *packed);

// Writes the whole piece, packed->bytes long, at an alignment of 16.
void kg_packed_write(const struct kg_layer *layer, const struct kg_packed *packed, void *memory);

// Does the piece hold this layer, element by element? `*row` and `*column`: where it does not
// first.
bool kg_packed_holds(const struct kg_layer *layer, const struct kg_packed *packed,
                     const void *memory, int64_t *row, int64_t *column);

// The layout of a piece from anywhere: its header, its length and its checksum are verified.
enum kg_status kg_packed_read(const void *memory, size_t length, struct kg_packed *packed,
                              struct kg_error *error);

// Single elements, for whoever has time.
int kg_packed_code(const struct kg_packed *packed, const void *memory, int64_t row, int64_t column);
double kg_packed_weight(const struct kg_packed *packed, const void *memory, int64_t row,
                        int64_t column);

#endif
