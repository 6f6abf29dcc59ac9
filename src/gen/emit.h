// Printing expressions of nests as C (host) source. Families decide where values come from; this
// file decides how arithmetic is spelled. The spelling of functions is a table (emit_host.c) over
// the prelude kernels/host/prelude.h.

#ifndef KG_GEN_EMIT_H
#define KG_GEN_EMIT_H

#include "gen/family.h"

// How a family names things. Each callback appends an expression of the target language.
struct kg_emit_names {
    void *user;
    // The current value of axis `axis` (an int64_t expression). NULL: "i<axis>".
    void (*axis)(void *user, struct kg_text *text, int axis);
    // The value of a read, converted to its compute type. NULL, or false returned: the default,
    // a load from memory with pad handled (kg_emit_load).
    bool (*read)(void *user, struct kg_text *text, const struct kg_access *access);
};

// The value of `expr`, a sub-expression of `nest->body`, in its compute type.
void kg_emit_expr(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                  const struct kg_emit_names *names);
// A load of one element: "kg_load_f16(x + i0 * x_s0 + i1)"; pad() as a guarded load; gathers
// clamped to the tensor.
void kg_emit_load(struct kg_text *text, const struct kg_nest *nest, const struct kg_access *access,
                  const struct kg_emit_names *names);
// A size expression: sizes appear under their own names ("P", "D"), which the opening declares.
void kg_emit_size(struct kg_text *text, const struct kg_expr *expr);

// The element offset of an access: "i0 * x_s0 + i1".
void kg_emit_offset(struct kg_text *text, const struct kg_nest *nest,
                    const struct kg_access *access, const struct kg_emit_names *names);

// Opening of a generated file: a comment (op, family, config, dtypes), the ABI, the prelude.
void kg_emit_host_opening(struct kg_text *text, const struct kg_group *group, const char *family,
                          const struct kg_config *config, const struct kg_space *space);
// Declarations inside a function that has `const struct kg_host_call *call`: typed pointers and
// strides of the tensors the group touches, and the sizes they need. Tensors local to the group
// are left out unless `locals`.
void kg_emit_host_bindings(struct kg_text *text, const struct kg_group *group, bool locals);

// C spellings.
const char *kg_emit_storage(enum kg_dtype dtype); // "float", "_Float16", "kg_bf16" ...
const char *kg_emit_type(enum kg_type type);      // "float", "double", "int64_t", "bool"
// Storage type of any tensor of a problem: a local is stored in its compute type.
const char *kg_emit_tensor_storage(const struct kg_tensor *tensor);

// True when the local tensor is defined and used inside the group only.
bool kg_group_is_private(const struct kg_group *group, const struct kg_tensor *tensor);

#endif
