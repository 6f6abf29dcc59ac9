// Facts about compiled host code: every function of an ELF object or shared library for x86-64.

#ifndef KG_ASM_OBJECT_H
#define KG_ASM_OBJECT_H

#include "asm/facts.h"
#include "asm/x86.h"

// A kernel per function symbol, in the order of the code. `core` gives the cycles of blocks and
// loops (kg_asm_block.issue_cycles); NULL: generic. Vector width is an advice ("vector-width").
// KG_ERROR_MISSING without Capstone, KG_ERROR_UNSUPPORTED for another processor's code,
// KG_ERROR_CORRUPT for a broken file.
enum kg_status kg_object_read(const void *bytes, size_t length, const struct kg_x86_core *core,
                              struct kg_arena *arena, struct kg_asm_file *file,
                              struct kg_error *error);

#endif
