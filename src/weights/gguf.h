// Reading GGUF, versions 2 and 3, little-endian:
//
//     "GGUF", version u32, number of tensors u64, number of key-value pairs u64
//     key-value pairs: key, type u32, value
//     tensors: name, rank u32, sizes u64 (the fastest first), type u32, offset u64
//     data, from the next multiple of "general.alignment" (32 where no pair says it) on
//
// Texts are a length u64 and bytes. Offsets are relative to the data. Of the pairs, only the
// alignment is read; the others are skipped.

#ifndef KG_WEIGHTS_GGUF_H
#define KG_WEIGHTS_GGUF_H

#include "weights/stored_list.h"

// By its first bytes.
bool kg_gguf_is(const unsigned char *bytes, size_t length);
// Appends the tensors of the file; after a failure the list can only be freed.
enum kg_status kg_gguf_list(const struct kg_weight_file *file, struct kg_stored_list *list,
                            struct kg_error *error);

#endif
