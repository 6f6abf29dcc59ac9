// A foreign kernel, as the files foreign.c, which opens it, and foreign_run.c, which runs it, share
// it. Only they include this.

#ifndef KG_FLOW_FOREIGN_PARTS_H
#define KG_FLOW_FOREIGN_PARTS_H

#include "flow/foreign.h"
#include "gen/cuda/declared.h"

#define KG_FOREIGN_ENTRY "kg_foreign" // of a C file's kernel, for the host's backend

// Ready to run: a host kernel or, for GPUs, a built choice or launches of its own.
struct kg_foreign {
    struct kg_device *device;
    const char *path;
    const char *overrides; // the choice it overrides if it names none; NULL: none
    char *code;
    size_t length;
    struct kg_binary binary;
    struct kg_kernel *kernel;
    struct kg_built *built;
    struct kg_declared declared;
    struct kg_kernel *kernels[KG_MOST_DECLARED];
};

#endif
