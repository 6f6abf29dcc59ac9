// Reading PTX: text to facts.
//
// The names in ptx_opcodes.c determine what an instruction does; an unknown one counts as
// KG_WORK_UNKNOWN, and reading continues. Opcodes are counted by the table's names: the mnemonic
// without modifiers, with the memory space if there is one ("ld.global", "fma", "mma.sync",
// "wgmma.mma_async", "cp.async.bulk.tensor").
//
// A kernel is an .entry with a body. Instructions of a .func that it calls are not counted with it,
// nor is shared memory that only the .func uses.
// Bytes are those of one thread by the instruction's type and vector. A bulk copy counts its size
// if that is a constant. A tensor instruction counts the flops of its shape (a sparse one those of
// the equivalent dense product), wgmma a quarter of them, and tcgen05.mma all of them for the
// issuing thread, if its instruction descriptor is a constant.
//
// Trips are KG_TRIPS_CONSTANT when a register counts from a constant by a constant step up or down
// to a constant, and the loop has no other exit. For a loop that may exit before its body runs, the
// runs of the body count. Trips are a KG_TRIPS_SYMBOL when the bound (or else the start) comes from
// a scalar parameter: "parameter 2" if parameters are numbered as compilers do (NAME_param_2),
// "parameter 0+8" for a field of one, else "parameter NAME".

#ifndef KG_ASM_PTX_H
#define KG_ASM_PTX_H

#include "asm/facts.h"

#define KG_PTX_MAX_BYTES ((size_t)1 << 30)

// Malformed text gives KG_ERROR_CORRUPT, with "LINE:COLUMN: error: …".
enum kg_status kg_ptx_read(const char *text, size_t length, struct kg_arena *arena,
                           struct kg_asm_file *file, struct kg_error *error);

#endif
