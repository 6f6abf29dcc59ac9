// Reading PTX: text to facts.
//
// Known names decide what an instruction does (ptx_opcodes.c); an unknown one counts as
// KG_WORK_UNKNOWN and the file is read on. Opcodes are counted by the table's names: the mnemonic
// without modifiers, with the memory space where there is one ("ld.global", "fma", "mma.sync",
// "wgmma.mma_async", "cp.async.bulk.tensor").
//
// A kernel is an .entry with a body; what a .func does that it calls is not counted with it, nor is
// shared memory that only the .func refers to.
// Bytes are those of one thread as the instruction's type and vector say. A bulk copy counts the
// bytes it is given as a constant. A tensor instruction counts the flops of its shape (a sparse one
// those of the dense product it stands for), wgmma a quarter of them, tcgen05.mma all of them for
// the thread that issues it, where its instruction descriptor is a constant.
//
// Trips are KG_TRIPS_CONSTANT when a register goes from a constant by a constant step up to, or
// down to, a constant, and the loop has no other way out. A loop that is left before its body is
// run counts the runs of its body. They are a KG_TRIPS_SYMBOL when the bound (or else the start)
// comes from a scalar parameter: "parameter 2" where the kernel's parameters are numbered as
// compilers do (NAME_param_2), "parameter 0+8" for a field of one, else "parameter NAME".

#ifndef KG_ASM_PTX_H
#define KG_ASM_PTX_H

#include "asm/facts.h"

#define KG_PTX_MAX_BYTES ((size_t)1 << 30)

// Malformed text gives KG_ERROR_CORRUPT, with "LINE:COLUMN: error: …".
enum kg_status kg_ptx_read(const char *text, size_t length, struct kg_arena *arena,
                           struct kg_asm_file *file, struct kg_error *error);

#endif
