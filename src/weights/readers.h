// How each format's layers are read. Members of struct kg_layer that belong to the reader are set
// by quantised.c.

#ifndef KG_WEIGHTS_READERS_H
#define KG_WEIGHTS_READERS_H

#include "weights/layer.h"

// Words of eight codes along K, as many words a row as there are columns. Zeros: eight columns a
// word, `zero_shift` less than they are.
extern const struct kg_layer_reader kg_gptq_reader;
// Words of eight columns, in the order 0, 2, 4, 6, 1, 3, 5, 7.
extern const struct kg_layer_reader kg_awq_reader;
// A row of words along K for each column; scales likewise; zeros: eight columns a word.
extern const struct kg_layer_reader kg_compressed_reader;
// The same with rows in the order of their groups, layer->order.
extern const struct kg_layer_reader kg_gptq_ordered_reader, kg_compressed_ordered_reader;
// Rows of blocks along K for each column, `code_stride` bytes long.
extern const struct kg_layer_reader kg_q4_0_reader, kg_q4_1_reader, kg_q4_k_reader;

#endif
