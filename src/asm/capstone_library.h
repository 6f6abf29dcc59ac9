// Capstone, opened at run time: its library contains decoders for a dozen processors and has 6 MB,
// more than all of this project. Without it, only host objects cannot be read.

#ifndef KG_ASM_CAPSTONE_LIBRARY_H
#define KG_ASM_CAPSTONE_LIBRARY_H

#include "base/error.h"

#include <capstone/capstone.h>

struct kg_capstone {
    void *library;
    csh handle;
    cs_insn *instruction; // the last decoded one
    __typeof__(&cs_open) open;
    __typeof__(&cs_close) close;
    __typeof__(&cs_option) option;
    __typeof__(&cs_malloc) allocate;
    __typeof__(&cs_free) release;
    __typeof__(&cs_disasm_iter) decode;
    __typeof__(&cs_insn_name) name;
};

// Opens Capstone for x86-64 with details. KG_ERROR_MISSING says what to install.
enum kg_status kg_capstone_open(struct kg_capstone *capstone, struct kg_error *error);
// Also accepts a zero-initialised struct that was not opened.
void kg_capstone_close(struct kg_capstone *capstone);

#endif
