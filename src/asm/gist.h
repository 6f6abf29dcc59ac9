// What one line says of the code of a file: registers, spills, the width of loads, matrix
// instructions. Pure.

#ifndef KG_ASM_GIST_H
#define KG_ASM_GIST_H

#include "asm/facts.h"
#include "base/text.h"

// Zero-initialised is that of nothing.
struct kg_asm_gist {
    bool known;
    int registers;       // of a thread, the most of all kernels; 0: unknown
    int64_t spill_bytes; // stored and loaded, of all kernels; -1: unknown
    int64_t loop_spill_bytes;
    // How wide instructions are, on average over the loop where they are widest, so that a loop
    // over what is left of a vector does not count: on GPUs bytes that a load of a thread reads, on
    // the host operations of an instruction of arithmetic. 0: unknown, or there are none.
    double load_bytes, step_flops;
    bool tensor; // there are matrix instructions
};

// Adds the kernels with these names or, with `count` 0, all. False when out of memory.
bool kg_asm_gist_add(struct kg_asm_gist *gist, const struct kg_asm_file *file,
                     const char *const *names, int count);
// "40 registers, loads of 16 B, no spills, matrix instructions"; nothing if it is not known.
void kg_asm_gist_print(const struct kg_asm_gist *gist, struct kg_text *text);
// How the first differs from the second: "loads of 64 B, not 4; no spills, not 164 B of
// spills". Nothing if it
// does not, or if one is not known.
void kg_asm_gist_compare(const struct kg_asm_gist *gist, const struct kg_asm_gist *other,
                         struct kg_text *text);

#endif
