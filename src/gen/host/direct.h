// What the two files of the direct family for the host share: direct.c decides, direct_emit.c
// writes.

#ifndef KG_GEN_HOST_DIRECT_H
#define KG_GEN_HOST_DIRECT_H

#include "gen/shared/direct_nest.h"

// The functions of the kernel, after the opening. `names` and `accumulate` are filled in here.
void kg_direct_emit(struct kg_direct *direct);

// What the window family adds to them: the bytes of its buffers, and their declarations.
void kg_window_emit_bytes(const struct kg_direct *direct);
void kg_window_emit_buffers(const struct kg_direct *direct);

#endif
