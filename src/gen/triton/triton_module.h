// A module: the kernels of every combination of dtypes that a definition allows, and one public
// function that takes tensors of any of them.

#ifndef KG_GEN_TRITON_MODULE_H
#define KG_GEN_TRITON_MODULE_H

#include "gen/choice.h"
#include "gen/triton/triton_host.h"

#define KG_TRITON_VARIANTS 64

// Kernels and launches that serve some combinations of dtypes.
struct kg_triton_variant {
    struct kg_text kernels;
    struct kg_text launches; // of the public function, indented by one level
    struct kg_text summary;  // a line for each kernel: its name and what it computes
    struct kg_text proofs;   // a line for each launch: what its tiles take of buffers
    int count;
    enum kg_dtype combinations[KG_TRITON_VARIANTS][KG_DTYPE_COUNT]; // by type variable
};

struct kg_triton_module {
    struct kg_arena arena;
    const struct kg_op *op;       // generic: dtypes are variables
    const struct kg_op *instance; // what the caller's problem is of
    struct kg_triton_host host;
    int variant_count;
    struct kg_triton_variant variants[KG_TRITON_VARIANTS];
};

// Appends the public function. triton_function.c.
void kg_triton_function(const struct kg_triton_module *module, struct kg_text *text);
// What is known of the kernels on Ascend devices: a section of the module's docstring.
// triton_ascend.c.
void kg_triton_ascend(const struct kg_triton_module *module, struct kg_text *text);
// PyTorch's dtype: "torch.float16".
const char *kg_triton_torch_dtype(enum kg_dtype dtype);
// The functions of the skeleton that `text` uses, in front of it. triton_helpers.c.
void kg_triton_helpers(const char *skeleton, const char *uses, struct kg_text *text);

#endif
