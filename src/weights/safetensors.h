// Reading safetensors: 8 bytes with the length of a header (little-endian), the header, which is a
// JSON object of tensors by name, and the data.
//
//     {"__metadata__": {"format": "pt"},
//      "q.weight": {"dtype": "F16", "shape": [64, 32], "data_offsets": [0, 4096]}}
//
// Offsets are relative to the end of the header. Members that the format does not know are skipped.

#ifndef KG_WEIGHTS_SAFETENSORS_H
#define KG_WEIGHTS_SAFETENSORS_H

#include "weights/stored_list.h"

// By its first bytes.
bool kg_safetensors_is(const unsigned char *bytes, size_t length);
// Appends the tensors of the file; after a failure the list can only be freed.
enum kg_status kg_safetensors_list(const struct kg_weight_file *file, struct kg_stored_list *list,
                                   struct kg_error *error);

#endif
