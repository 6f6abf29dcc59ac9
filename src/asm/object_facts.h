// Computes the facts of one function from its decoded instructions.

#ifndef KG_ASM_OBJECT_FACTS_H
#define KG_ASM_OBJECT_FACTS_H

#include "asm/x86.h"

// kernel->name is set by the caller, everything else here. False when out of memory.
bool kg_object_facts(const struct kg_capstone *capstone, const struct kg_x86_core *core,
                     struct kg_x86_step *steps, int32_t count, struct kg_arena *arena,
                     struct kg_asm_kernel *kernel);

#endif
