// The parameters of an op's plain C function: see gen/standalone.h.

#ifndef KG_GEN_SIGNATURE_H
#define KG_GEN_SIGNATURE_H

#include "gen/shared/emit.h"

// Storage types as every C compiler knows them: the bits of one narrow float, or of two elements of
// 4 bits. (_Float16 is not to be had everywhere; a pointer to it may be cast.)
const char *kg_emit_plain_storage(enum kg_dtype dtype);
// Params are constants of the kernel; other sizes are arguments.
bool kg_size_is_argument(const struct kg_size *size);
// "const float *x, float *y, int64_t P"
void kg_emit_parameters(const struct kg_op *op, struct kg_text *text);
// The last part alone: "int64_t P, int64_t D". Returns how many there are.
int kg_emit_size_parameters(const struct kg_op *op, struct kg_text *text);
// Comments that say what the bits of narrow elements are.
void kg_emit_storage_notes(const struct kg_op *op, struct kg_text *text);

#endif
