// NVIDIA's machine code for sm_75 to sm_121: instructions of 128 bits, decoded as far as time
// depends on them. docs/assembly.md describes the encoding and how each fact was checked.

#ifndef KG_ASM_SASS_H
#define KG_ASM_SASS_H

#include "asm/elf_file.h"
#include "asm/facts.h"

#define KG_SASS_SIZE 16 // bytes of one instruction

struct kg_sass_word {
    uint64_t low, high; // bits 0-63, 64-127
};

static inline struct kg_sass_word kg_sass_word_at(const uint8_t *bytes)
{
    return (struct kg_sass_word){kg_elf_u64(bytes), kg_elf_u64(bytes + 8)};
}

// `count` <= 64 bits from bit `first` on, of all 128.
static inline uint64_t kg_sass_bits(struct kg_sass_word word, unsigned first, unsigned count)
{
    uint64_t mask = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
    if (first >= 64)
        return word.high >> (first - 64) & mask;
    uint64_t bits = word.low >> first;
    if (first > 0 && first + count > 64)
        bits |= word.high << (64 - first);
    return bits & mask;
}

// Generations with different encodings, as a set: those for which nvdisasm uses an opcode's name.
enum kg_sass_generation {
    KG_SASS_TURING = 1,         // sm_75
    KG_SASS_AMPERE = 2,         // sm_80, 86, 87, 89 (Ada)
    KG_SASS_HOPPER = 4,         // sm_90
    KG_SASS_BLACKWELL = 8,      // sm_100, 103, 107, 110
    KG_SASS_BLACKWELL_RTX = 16, // sm_120, 121
};

// The bits that tell how many bytes a thread moves.
enum kg_sass_width {
    KG_SASS_NO_BYTES,
    KG_SASS_ACCESS, // bits 73-75
    KG_SASS_ATOMIC, // bits 73-75, in the encoding of atomics
    KG_SASS_MATRIX, // bits 72-73: 1, 2 or 4 matrices
    KG_SASS_WIDE,   // always 32 bytes
};

struct kg_sass_opcode {
    const char *name; // NULL: unknown opcode
    enum kg_work work;
    uint8_t flops; // of one thread
    uint8_t width; // enum kg_sass_width
    uint8_t seen;  // enum kg_sass_generation, as a set
    bool shared;   // other instructions have the same number
};

// Found by bits 0-11, and further bits if a number has several instructions. Never NULL; an unknown
// instruction has the name "?" and KG_WORK_UNKNOWN. `*index` (if not NULL) is a position in a
// histogram, from 0 to KG_SASS_OPCODES - 1.
#define KG_SASS_OPCODES 540
const struct kg_sass_opcode *kg_sass_opcode(struct kg_sass_word word, int sm, int *index);
const struct kg_sass_opcode *kg_sass_opcode_at(int index);

// A decoded instruction.
struct kg_sass {
    const struct kg_sass_opcode *opcode;
    int index;                            // of the opcode
    enum kg_work work;                    // the opcode's, except for moves written as arithmetic
    bool guarded;                         // by a predicate
    double bytes;                         // of one thread
    double flops;                         // of one thread
    double tensor_flops;                  // of one warp; sparse products count what is computed
    unsigned stall;                       // cycles until the warp may issue again
    bool yield;                           // the scheduler should prefer another warp
    unsigned write_barrier, read_barrier; // scoreboards set, 7: none
    unsigned wait_mask;                   // scoreboards waited for
};
void kg_sass_decode(struct kg_sass_word word, int sm, struct kg_sass *sass);

// The code of one kernel: a .text section.
struct kg_sass_code {
    const uint8_t *bytes;
    int32_t count; // instructions
    int sm;
};

// Targets of an indirect branch, as the cubin lists them. Sorted by `at`.
struct kg_sass_table {
    int32_t at; // instruction
    const int32_t *targets;
    int32_t target_count;
};

// The successors of instruction `index`. A call may continue at its callee, which ends by
// returning: the callee's loops are found, and it counts once. An indirect branch without a table
// counts as an exit.
struct kg_step kg_sass_step(const struct kg_sass_code *code, int32_t index,
                            const struct kg_sass_table *tables, int32_t table_count);

// Trips of a loop that counts a register from a constant to a constant by a constant; 0: unknown.
// Only straight-line code is examined.
double kg_sass_trips(const struct kg_sass_code *code, const struct kg_flow *flow, int32_t loop);

// Fills instructions, opcodes, flow, blocks, loops and both mixes of `kernel`. `spills` are the
// indices of instructions that save or reload a register, ascending; spill_store_bytes and
// spill_load_bytes become their sums. False when out of memory.
bool kg_sass_read(const struct kg_sass_code *code, const struct kg_sass_table *tables,
                  int32_t table_count, const int32_t *spills, int32_t spill_count,
                  struct kg_arena *arena, struct kg_asm_kernel *kernel);

#endif
