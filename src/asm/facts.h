// The facts about a kernel in PTX text, a cubin, or a host object. Each reader fills this struct;
// the model, the advisories and the command line use it.
//
// Everything is allocated from the caller's arena and does not point into the input.

#ifndef KG_ASM_FACTS_H
#define KG_ASM_FACTS_H

#include "asm/flow.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"

enum kg_asm_format { KG_ASM_PTX, KG_ASM_CUBIN, KG_ASM_OBJECT };

// The effect of an instruction, as far as it determines time. Each instruction is in exactly one
// class.
enum kg_work {
    KG_WORK_TENSOR,       // matrix units
    KG_WORK_FMA,          // f32 add, multiply, multiply-add
    KG_WORK_HALF,         // packed f16 or bf16 arithmetic
    KG_WORK_DOUBLE,       // f64 arithmetic
    KG_WORK_INTEGER,      // integer arithmetic, logic, shifts, address computations
    KG_WORK_SELECT,       // comparisons, selections, predicates, min and max
    KG_WORK_CONVERT,      // between types
    KG_WORK_SPECIAL,      // exponentials, reciprocals, roots
    KG_WORK_MOVE,         // registers, constants, special registers
    KG_WORK_LOAD_GLOBAL,  // generic loads too
    KG_WORK_STORE_GLOBAL, // generic stores too; on the host: every store except spills
    KG_WORK_ATOMIC,       // atomics and reductions on memory
    KG_WORK_LOAD_SHARED,  // ldmatrix too
    KG_WORK_STORE_SHARED, // stmatrix too
    KG_WORK_LOAD_LOCAL,   // stack and spilled registers
    KG_WORK_STORE_LOCAL,
    KG_WORK_LOAD_CONSTANT, // constant memory and parameters, by an instruction of its own
    KG_WORK_ASYNC_COPY,    // cp.async: global to shared, per thread
    KG_WORK_BULK_COPY,     // TMA, either direction
    KG_WORK_SHUFFLE,       // between the lanes of a warp; votes
    KG_WORK_BARRIER,       // of a block or a cluster; mbarrier operations
    KG_WORK_FENCE,         // memory fences, waits for asynchronous work
    KG_WORK_BRANCH,        // jumps, reconvergence, calls, returns, exit
    KG_WORK_NOTHING,       // no-operations
    KG_WORK_UNKNOWN,       // a mnemonic or an opcode that no table knows
    KG_WORK_COUNT
};

// "tensor", "load global", …: for display, and for JSON (with '_' for ' ').
const char *kg_work_name(enum kg_work work);

// Instructions by class, of one thread (PTX, x86) or one warp (SASS), which gives the same count.
// Weighted counts need not be integers.
struct kg_mix {
    double count[KG_WORK_COUNT];
    double guarded[KG_WORK_COUNT]; // of `count`: predicated, so they may have no effect
    double bytes[KG_WORK_COUNT];   // of one thread: moved by memory instructions
    double tensor_flops; // of a whole warp, or of a warp's share of a warpgroup's instruction
    double flops;        // of one thread, outside the tensor cores; FMA counted as two
};

// Limit of all counts, which nested loops of a malicious file could drive to infinity.
#define KG_MIX_MAX 1e30
void kg_mix_add(struct kg_mix *mix, const struct kg_mix *other, double weight);
double kg_mix_total(const struct kg_mix *mix);

struct kg_asm_count {
    const char *name; // mnemonic without its modifiers: "FFMA", "ld.global", "vfmadd231ps"
    int64_t count;
};

// Instructions of one class in a basic block.
struct kg_asm_part {
    enum kg_work work;
    double count, guarded, bytes; // as in a mix
};

// Blocks are many and small, so their mix is stored as the few classes that occur.
struct kg_asm_block {
    const struct kg_asm_part *parts; // by class
    int32_t part_count;
    double tensor_flops, flops; // as in a mix
    double issue_cycles;        // SASS: one per instruction; host: throughput bound
    double stall_cycles;        // SASS: sum of the stall counts; 0 where unknown
    double trips;               // product over the loops around it; an unknown loop counts 1
};

// Stores `mix` in `block` and leaves its other members unchanged. False when out of memory.
bool kg_asm_block_fill(struct kg_asm_block *block, const struct kg_mix *mix,
                       struct kg_arena *arena);
void kg_mix_add_block(struct kg_mix *mix, const struct kg_asm_block *block, double weight);

enum kg_trips {
    KG_TRIPS_UNKNOWN,
    KG_TRIPS_CONSTANT, // `trips` is exact
    KG_TRIPS_SYMBOL,   // depends on the problem: `symbol` names the parameter
};

struct kg_asm_loop {
    enum kg_trips kind;
    double trips;        // KG_TRIPS_CONSTANT only, else 0
    const char *symbol;  // KG_TRIPS_SYMBOL: "parameter 3", …; else NULL
    struct kg_mix mix;   // one trip of the body, inner loops weighted by their own trips
    double issue_cycles; // one trip, weighted likewise
    double stall_cycles;
    int64_t spill_loads; // instructions in the body that reload or store a spilled register
    int64_t spill_stores;
    int64_t spill_bytes;
    int64_t first; // position of the first and the last instruction of the body:
    int64_t last;  // byte offset in the code (SASS, x86), line (PTX)
};

enum kg_advice_level { KG_ADVICE_NOTE, KG_ADVICE_WARNING };
struct kg_advice {
    enum kg_advice_level level;
    const char *code; // stable, for programs: "spill-in-loop", "wgmma-serialised", …
    const char *text; // one sentence, with its numbers
};

// Numbers that are not in the file are -1.
struct kg_asm_kernel {
    const char *name;
    const char *arch; // "sm_90a", "x86-64"
    int sm;           // 90; 0 on the host
    int registers;
    int64_t shared_bytes; // static, without the system's reserve
    int64_t stack_bytes;
    int64_t spill_store_bytes;
    int64_t spill_load_bytes;
    int barriers;
    int64_t parameter_bytes;
    int max_threads[3]; // launch bounds: .maxntid; 0: none
    int required_threads[3];
    int min_blocks;    // .minnctapersm; 0: none
    int max_registers; // .maxnreg; 0: none
    int cluster[3];    // required cluster dimensions; 0: none
    int max_cluster;   // largest cluster, in blocks; 0: none

    int64_t instructions;
    struct kg_asm_count *opcodes; // by name
    int opcode_count;
    struct kg_flow flow;         // blocks and loops; indices of instructions, of blocks, of loops
    struct kg_asm_block *blocks; // flow.block_count
    struct kg_asm_loop *loops;   // flow.loop_count, in flow's order
    struct kg_mix mix;           // every instruction once
    struct kg_mix weighted;      // by known trip counts
    struct kg_advice *advice;
    int advice_count;
    struct kg_hash normal_hash; // equal for code that differs in names only; PTX
};

struct kg_asm_file {
    enum kg_asm_format format;
    const char *version; // "PTX ISA 9.0", "cubin ABI 8", "ELF x86-64"
    struct kg_asm_kernel *kernels;
    int kernel_count;
};

// NULL when there is no kernel of that name.
const struct kg_asm_kernel *kg_asm_find(const struct kg_asm_file *file, const char *name);

// Recognises and reads `bytes`. Other or broken files give KG_ERROR_CORRUPT with the offset or line
// and what was expected there.
enum kg_status kg_asm_read(const void *bytes, size_t length, struct kg_arena *arena,
                           struct kg_asm_file *file, struct kg_error *error);
// A remark about code in the file that is not in the facts. NULL: none.
const char *kg_asm_notice(const void *bytes, size_t length);

#endif
