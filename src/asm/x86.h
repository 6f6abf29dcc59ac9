// One instruction of x86-64, as far as time is concerned; and the stack frames of functions.

#ifndef KG_ASM_X86_H
#define KG_ASM_X86_H

#include "asm/capstone_library.h"
#include "asm/facts.h"

// A place in the stack frame, addressed by a constant.
struct kg_x86_slot {
    bool by_pointer; // relative to rbp, else to rsp
    int64_t offset;
};

struct kg_x86_step {
    uint64_t offset; // in its section
    uint8_t size;
    enum kg_work work;
    unsigned id;   // Capstone's; 0: bytes that it cannot decode
    uint8_t loads; // memory operands read, folded ones too
    uint8_t stores;
    uint16_t bytes;   // of the memory operand
    uint8_t width;    // bytes of the vector registers it works on; 0: none
    uint8_t lanes;    // floats it computes at once; 0: no arithmetic of floats
    uint8_t flops;    // of one execution
    bool multiplies;  // on the multiply-add pipes
    bool compares;    // sets flags, and may fuse with a branch behind it
    bool falls_apart; // a jump on flags
    enum kg_step_kind kind;
    bool has_target;
    uint64_t target; // in its section; has_target only
    // Stack frames.
    bool on_stack; // the memory operand is `slot`
    struct kg_x86_slot slot;
    bool register_move; // between a register and memory, and nothing else
    unsigned moved;     // that register, Capstone's number
    bool guard;         // it gets what the stack protector will compare
    uint8_t saved;      // number of the callee-saved register it moves, from 1; 0: none
    uint8_t overwrites; // number of the callee-saved register it changes otherwise; 0: none
    bool sets_pointer;  // makes rbp the frame pointer
    int64_t frame;      // bytes by which it lowers rsp: sub and push
    bool spill;         // filled in by kg_x86_find_spills
};

// What the table says of a mnemonic.
struct kg_x86_opcode {
    const char *prefix; // of the mnemonic; the first row that fits counts
    enum kg_work work;
    int flops;      // of each element; 0 where it is no arithmetic of floats
    bool moves;     // to or from memory it does nothing else
    bool reads_all; // reads its first operand, too, and does not write it
    bool compares;
};
// Never NULL: the last row fits everything and is KG_WORK_UNKNOWN.
const struct kg_x86_opcode *kg_x86_opcode_find(const char *mnemonic);

// Describes capstone->instruction. `relocated`: its displacement is filled in by the linker, so
// that a jump leads elsewhere.
void kg_x86_describe(const struct kg_capstone *capstone, bool relocated, struct kg_x86_step *step);

// Marks the steps that store a register in the frame, to be loaded again from the same place, and
// those that load it: spills. Registers saved for the caller are none, nor arguments beyond the
// frame, nor what the stack protector keeps there. Returns the bytes of the frame; -1 when out of
// memory.
int64_t kg_x86_find_spills(struct kg_x86_step *steps, int32_t count);

// What an execution of some instructions takes of a core.
struct kg_x86_usage {
    double issued;      // after fusion of comparison and branch
    double multiply[3]; // on multiply-add pipes, by width: up to 128, 256, 512 bits
    double vector[3];   // any work on vector registers
    double loads[3];
    double stores[3];
    double branches;
};
void kg_x86_use(struct kg_x86_usage *usage, const struct kg_x86_step *step,
                const struct kg_x86_step *before);

// What a core can do per cycle, by vector width where it matters.
struct kg_x86_core {
    const char *name;
    double issue;
    double multiply[3];
    double vector[3];
    double loads[3];
    double stores[3];
    double branches; // taken
    const char *source;
};
// The first is "generic": per column the best of them all. Name NULL at the end.
extern const struct kg_x86_core kg_x86_cores[];
const struct kg_x86_core *kg_x86_core_find(const char *name); // NULL when unknown

// Cycles at least, however well it overlaps.
double kg_x86_cycles(const struct kg_x86_core *core, const struct kg_x86_usage *usage);

#endif
