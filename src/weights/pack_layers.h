// A checkpoint's quantised layers, each packed into a file of its own.

#ifndef KG_WEIGHTS_PACK_LAYERS_H
#define KG_WEIGHTS_PACK_LAYERS_H

#include "base/text.h"
#include "weights/quantised.h"

#define KG_PACKED_SUFFIX ".kgw"
#define KG_PACKED_INDEX "layers.json"

struct kg_packing {
    void *user;
    void (*progress)(void *user, const char *layer, int done, int total); // may be NULL
    bool (*cancelled)(void *user);                                        // likewise
};

// Writes FOLDER/NAME.kgw for each layer, one layer in memory at a time, each compared with what was
// read before it is written, and FOLDER/layers.json at the end. Nothing is written if some layer
// cannot be packed.
enum kg_status kg_weights_pack(const struct kg_quantised_list *list, const char *folder,
                               const struct kg_packing *packing, struct kg_error *error);

// The layers as JSON, and as a table.
void kg_weights_json(const struct kg_quantised_list *list, struct kg_text *text);
void kg_weights_table(const struct kg_quantised_list *list, struct kg_text *text);

#endif
