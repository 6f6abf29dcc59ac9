// The quantised layers of a checkpoint, whatever wrote it: GPTQ, AWQ, compressed-tensors, GGUF.

#ifndef KG_WEIGHTS_QUANTISED_H
#define KG_WEIGHTS_QUANTISED_H

#include "base/arena.h"
#include "weights/checkpoint.h"
#include "weights/layer.h"

struct kg_quantised {
    const char *name;              // of the layer: its tensors' names without what tells them apart
    const struct kg_stored *codes; // where it lies, for messages
    struct kg_layer layer;
};

// Refers to the checkpoint.
struct kg_quantised_list {
    struct kg_arena arena;
    int count;
    struct kg_quantised *list; // in the order of names
    int others;                // tensors that belong to none of these layers
};

// KG_ERROR_UNSUPPORTED for weights of other bits; KG_ERROR_ARGUMENT where tensors contradict each
// other. The message names the tensor. To be freed in any case.
enum kg_status kg_quantised_find(const struct kg_checkpoint *checkpoint,
                                 struct kg_quantised_list *list, struct kg_error *error);
void kg_quantised_free(struct kg_quantised_list *list);

#endif
