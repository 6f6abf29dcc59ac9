// Checkpoints as others write them: the tensors of a model in safetensors or GGUF files. Every byte
// of them may be hostile; what is listed here lies within its file and has the bytes that its type
// and shape need.

#ifndef KG_WEIGHTS_CHECKPOINT_H
#define KG_WEIGHTS_CHECKPOINT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KG_STORED_RANK 4 // GGUF has no more; tensors of more dimensions are listed as OTHER, flat

// How elements are stored. Blocks of GGUF types hold several.
enum kg_stored_type {
    KG_STORED_F64,
    KG_STORED_F32,
    KG_STORED_F16,
    KG_STORED_BF16,
    KG_STORED_I64,
    KG_STORED_I32,
    KG_STORED_I16,
    KG_STORED_I8,
    KG_STORED_U8,
    KG_STORED_BOOL,
    KG_STORED_Q4_0, // GGUF: 32 values in 18 bytes
    KG_STORED_Q4_1, // 32 in 20
    KG_STORED_Q4_K, // 256 in 144
    KG_STORED_OTHER,
    KG_STORED_COUNT
};
extern const char *const kg_stored_names[KG_STORED_COUNT];

struct kg_stored {
    const char *name;
    const char *file; // the path of the file it lies in
    enum kg_stored_type type;
    int rank;
    int64_t shape[KG_STORED_RANK]; // the slowest dimension first, in both formats
    int64_t elements;
    const void *data; // in the mapped file; at any alignment
    size_t bytes;
    size_t offset;         // of data, in the file
    const char *type_name; // as the format names it: "F8_E4M3", "Q6_K"
};

// What the file says about how it was quantised; texts are "" and numbers 0 where it says nothing.
struct kg_quantisation_label {
    char method[32]; // "gptq", "gptq_v2", "awq", "compressed-tensors"
    int bits;
    int group; // -1: a group is all of K
    bool symmetric, symmetric_given;
    bool act_order;
};

struct kg_checkpoint;

// `path`: a .safetensors or .gguf file (told apart by content, not by name), or a folder with
// *.safetensors and, perhaps, config.json or quantize_config.json. Files are mapped, not read.
// Messages name the file, the tensor and the offset.
enum kg_status kg_checkpoint_open(const char *path, struct kg_checkpoint **checkpoint,
                                  struct kg_error *error);
void kg_checkpoint_close(struct kg_checkpoint *checkpoint);

int kg_checkpoint_count(const struct kg_checkpoint *checkpoint);
// In the order of names, bytewise.
const struct kg_stored *kg_checkpoint_tensor(const struct kg_checkpoint *checkpoint, int position);
// NULL: there is none of this name.
const struct kg_stored *kg_checkpoint_find(const struct kg_checkpoint *checkpoint,
                                           const char *name);
const struct kg_quantisation_label *kg_checkpoint_label(const struct kg_checkpoint *checkpoint);

#endif
