// Cubins: NVIDIA's ELF files of machine code, from ptxas, NVRTC or Triton.

#ifndef KG_ASM_CUBIN_H
#define KG_ASM_CUBIN_H

#include "asm/facts.h"

// True for an ELF file for CUDA, intact or not: it is for kg_cubin_read.
bool kg_cubin_is(const void *bytes, size_t length);

// Reads every kernel of the file, in the order of its sections; `file` and its contents are
// allocated in `arena`. Functions that are not kernels have no entries. KG_ERROR_CORRUPT gives the
// offset of the damage; KG_ERROR_UNSUPPORTED: code before sm_75, or a fatbinary, whose cubins must
// be extracted first.
enum kg_status kg_cubin_read(const void *bytes, size_t length, struct kg_arena *arena,
                             struct kg_asm_file *file, struct kg_error *error);

#endif
