// Combines blocks into loops and the whole kernel, for every reader.

#ifndef KG_ASM_WEIGH_H
#define KG_ASM_WEIGH_H

#include "asm/facts.h"

// Needs kernel->flow; of every block its instructions, issue_cycles and stall_cycles; of every loop
// its kind and trips, and the spills of its own blocks (those whose innermost loop it is). Computes
// `trips` of the blocks (0: unreachable); mix, cycles and spills of the loops, including inner
// loops; `mix` and `weighted` of the kernel.
void kg_asm_weigh(struct kg_asm_kernel *kernel);

#endif
