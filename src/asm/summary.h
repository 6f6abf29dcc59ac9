// The first questions about a kernel's facts, independent of the launch: its main loop, where it
// spills, how much it computes per byte. Pure.

#ifndef KG_ASM_SUMMARY_H
#define KG_ASM_SUMMARY_H

#include "asm/facts.h"

struct kg_asm_summary {
    int main_loop; // -1: no loop
    // Spills, in instructions and bytes of one thread: in the loops, each counted for one trip, and
    // in the rest. -1 if the format does not tell (PTX).
    int64_t loop_spill_loads, loop_spill_stores, loop_spill_bytes;
    int64_t other_spill_bytes;
    // Of the main loop; without a loop, of the whole kernel once.
    struct kg_mix mix;
    bool tensor;  // there are matrix instructions
    double flops; // of one warp (of one thread on the host): theirs, else the others'; NaN when
                  // theirs are told at run time only (tcgen05)
    double shared_bytes; // moved by one warp, through instructions whose size is known
    double global_bytes; // the same, asynchronous copies too; on the host of one thread
    // Bulk copies, or matrix instructions that read shared memory: more bytes are moved.
    bool hidden_bytes;
};

// The loop where most of the work is expected; -1: none. False when out of memory.
bool kg_asm_main_loop(const struct kg_asm_kernel *kernel, int *index);
// False when out of memory.
bool kg_asm_summarise(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                      struct kg_asm_summary *summary);

#endif
