// Capstone, opened at run time: it holds decoders for a dozen processors in one library of 6 MB,
// which is more than all of this project. Without it, host objects cannot be read, and nothing
// else is missing.

#ifndef KG_ASM_CAPSTONE_LIBRARY_H
#define KG_ASM_CAPSTONE_LIBRARY_H

#include "base/error.h"

#include <capstone/capstone.h>

struct kg_capstone {
    void *library;
    csh handle;
    cs_insn *instruction; // the one decoded last
    __typeof__(&cs_open) open;
    __typeof__(&cs_close) close;
    __typeof__(&cs_option) option;
    __typeof__(&cs_malloc) allocate;
    __typeof__(&cs_free) release;
    __typeof__(&cs_disasm_iter) decode;
    __typeof__(&cs_insn_name) name;
};

// Ready to decode x86-64 with details. KG_ERROR_MISSING says what to install.
enum kg_status kg_capstone_open(struct kg_capstone *capstone, struct kg_error *error);
// Of one that was not opened, too, as long as it is all zeros.
void kg_capstone_close(struct kg_capstone *capstone);

#endif
