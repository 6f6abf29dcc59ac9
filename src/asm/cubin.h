// Cubins: NVIDIA's ELF files of machine code, as ptxas, NVRTC and Triton make them.

#ifndef KG_ASM_CUBIN_H
#define KG_ASM_CUBIN_H

#include "asm/facts.h"

// True for what kg_cubin_read should be given: an ELF file for CUDA, whatever its state.
bool kg_cubin_is(const void *bytes, size_t length);

// Every kernel of the file, in the order of its sections; `file` and all it holds live in `arena`.
// Functions that are no kernels are no entries of their own. KG_ERROR_CORRUPT with the offset of
// what is wrong; KG_ERROR_UNSUPPORTED for code before sm_75, and for fatbinaries, which are to be
// taken apart first.
enum kg_status kg_cubin_read(const void *bytes, size_t length, struct kg_arena *arena,
                             struct kg_asm_file *file, struct kg_error *error);

#endif
