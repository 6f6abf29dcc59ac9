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
    double load_bytes;         // bytes of a load in the main loop, on average; 0: it loads nothing
    bool tensor;               // there are matrix instructions
    int64_t main_instructions; // of the kernel whose main loop it is
};

// Adds the kernels with these names or, with `count` 0, all. The main loop is that of the longest
// kernel with a loop. False when out of memory.
bool kg_asm_gist_add(struct kg_asm_gist *gist, const struct kg_asm_file *file,
                     const char *const *names, int count);
// "40 registers, 16 B a load, no spills, matrix instructions"; nothing if it is not known.
void kg_asm_gist_print(const struct kg_asm_gist *gist, struct kg_text *text);
// How the first differs from the second: "64 B a load, not 4; no spills, not 164 B". Nothing if it
// does not, or if one is not known.
void kg_asm_gist_compare(const struct kg_asm_gist *gist, const struct kg_asm_gist *other,
                         struct kg_text *text);

#endif
