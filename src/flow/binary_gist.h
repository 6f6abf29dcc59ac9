// What the code of a compiled kernel says at a glance, whatever the device.

#ifndef KG_FLOW_BINARY_GIST_H
#define KG_FLOW_BINARY_GIST_H

#include "asm/gist.h"
#include "device/device.h"

// Adds the functions of a binary, as kg_asm_gist_add. What cannot be read (no disassembler, another
// architecture) leaves the gist unknown.
void kg_binary_gist(const struct kg_binary *binary, const char *const *names, int count,
                    struct kg_asm_gist *gist);

#endif
