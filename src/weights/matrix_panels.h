// Matrices of 4-bit codes as tensors of u4 have them, two codes a byte without gaps, and their
// panels without header, scales or zeros: what a `packed` input of a definition takes.

#ifndef KG_WEIGHTS_MATRIX_PANELS_H
#define KG_WEIGHTS_MATRIX_PANELS_H

#include "base/error.h"
#include "weights/layer.h"

// Bytes of the codes and of the panels. Refuses sizes below 0, and what 63 bits cannot count.
enum kg_status kg_matrix_lengths(const struct kg_weights *weights, size_t *codes, size_t *packed,
                                 struct kg_error *error);

// Both buffers have the lengths above, at any alignment. What panels have beyond the rows and
// columns is set to zero.
void kg_matrix_pack(const struct kg_weights *weights, const void *codes, void *packed);
// The unused half of the last byte, if there is one, is set to zero.
void kg_matrix_unpack(const struct kg_weights *weights, const void *packed, void *codes);

#endif
