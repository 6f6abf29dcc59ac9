// Several foreign kernels of one command: compiled on all cores, and judged by the same inputs.

#ifndef KG_FLOW_FOREIGN_BATCH_H
#define KG_FLOW_FOREIGN_BATCH_H

#include "flow/foreign.h"

struct kg_foreign_file {
    const char *path;
    const char *code; // the bytes of the file, borrowed; NULL: they are read
    size_t length;
    // The result; the caller closes it.
    struct kg_foreign *foreign;
    enum kg_status status;
    struct kg_error error;
};

// Opens the files (kg_foreign_open_code if their bytes are given, else kg_foreign_open). No thread
// of it is left when this returns: judging forks.
void kg_foreign_open_all(const struct kg_request *request, struct kg_foreign_file *files,
                         int count);

// The gates of one command, made when the first kernel needs them.
struct kg_foreign_gates {
    uint64_t seed;            // of all of them; 0: fresh inputs
    struct kg_gate *gates[2]; // for tensors at the alignment of elements, and at a larger one
};
enum kg_status kg_foreign_gate(const struct kg_request *request, struct kg_foreign_gates *gates,
                               const struct kg_foreign *foreign, struct kg_gate **gate,
                               struct kg_error *error);
void kg_foreign_gates_free(struct kg_foreign_gates *gates);

#endif
