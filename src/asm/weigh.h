// From single blocks to loops and the whole kernel, in one way for every reader.

#ifndef KG_ASM_WEIGH_H
#define KG_ASM_WEIGH_H

#include "asm/facts.h"

// Wants kernel->flow; of every block its instructions, issue_cycles and stall_cycles; of every loop
// its kind and trips, and the spills of its own blocks (those whose innermost loop it is). Fills in
// `trips` of the blocks (0: never reached); mix, cycles and spills of the loops, each with those of
// the loops in it; `mix` and `weighted` of the kernel.
void kg_asm_weigh(struct kg_asm_kernel *kernel);

#endif
