// One instruction of x86-64, as far as time depends on it; and the stack frames of functions.

#ifndef KG_ASM_X86_H
#define KG_ASM_X86_H

#include "asm/capstone_library.h"
#include "asm/facts.h"

// A slot of the stack frame, addressed by a constant offset.
struct kg_x86_slot {
    bool by_pointer; // relative to rbp, else to rsp
    int64_t offset;
};

struct kg_x86_step {
    uint64_t offset; // in its section
    uint8_t size;
    enum kg_work work;
    unsigned id;   // Capstone's; 0: bytes that it does not decode
    uint8_t loads; // memory operands read, including folded ones
    uint8_t stores;
    uint16_t bytes;   // of the memory operand
    uint8_t width;    // bytes of the vector registers it works on; 0: none
    uint8_t lanes;    // floats it computes at once; 0: no arithmetic of floats
    uint8_t flops;    // of one execution
    bool multiplies;  // on the multiply-add pipes
    bool compares;    // sets flags, and may fuse with a following branch
    bool falls_apart; // a jump on flags
    enum kg_step_kind kind;
    bool has_target;
    uint64_t target; // in its section; has_target only
    // Stack frames.
    bool on_stack; // the memory operand is `slot`
    struct kg_x86_slot slot;
    bool register_move; // between a register and memory, and nothing else
    unsigned moved;     // that register, Capstone's number
    bool guard;         // it receives the value that the stack protector compares
    uint8_t saved;      // number of the callee-saved register that it moves, from 1; 0: none
    // Number of the callee-saved register that it changes otherwise; 0: none.
    uint8_t overwrites;
    bool sets_pointer; // makes rbp the frame pointer
    int64_t frame;     // bytes by which it lowers rsp: sub and push
    bool spill;        // set by kg_x86_find_spills
};

// The table's row of a mnemonic.
struct kg_x86_opcode {
    const char *prefix; // of the mnemonic; the first matching row counts
    enum kg_work work;
    int flops;      // of each element; 0 if it is not floating-point arithmetic
    bool moves;     // does nothing but read or write memory
    bool reads_all; // also reads its first operand, and does not write it
    bool compares;
};
// Never NULL: the last row matches everything and is KG_WORK_UNKNOWN.
const struct kg_x86_opcode *kg_x86_opcode_find(const char *mnemonic);

// Describes capstone->instruction. `relocated`: the linker fills in its displacement, so a jump
// leaves the function.
void kg_x86_describe(const struct kg_capstone *capstone, bool relocated, struct kg_x86_step *step);

// Marks spills: steps that store a register in the frame to load it again from the same slot, and
// the steps that load it. Registers saved for the caller, arguments outside the frame, and the
// stack protector's value are not spills. Returns the size of the frame in bytes; -1 when out of
// memory.
int64_t kg_x86_find_spills(struct kg_x86_step *steps, int32_t count);

// The resources of a core that some instructions use.
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

// The rates of a core per cycle, by vector width if they differ.
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
// The first is "generic": the best value of each column. Name NULL at the end.
extern const struct kg_x86_core kg_x86_cores[];
const struct kg_x86_core *kg_x86_core_find(const char *name); // NULL when unknown

// Least number of cycles, with perfect overlap.
double kg_x86_cycles(const struct kg_x86_core *core, const struct kg_x86_usage *usage);

#endif
