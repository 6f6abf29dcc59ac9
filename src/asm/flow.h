// Control flow of one kernel: basic blocks, dominators, natural loops. All readers share it; they
// only provide the successors of each instruction.

#ifndef KG_ASM_FLOW_H
#define KG_ASM_FLOW_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum kg_step_kind {
    KG_STEP_NEXT,       // continues with the next instruction
    KG_STEP_JUMP,       // jumps to `target`
    KG_STEP_BRANCH,     // continues at `target` or the next instruction
    KG_STEP_MANY,       // continues at one of `target_count` `targets` (indexed branches)
    KG_STEP_MAYBE_MANY, // the same, or the next instruction
    KG_STEP_END,        // returns or exits
    KG_STEP_MAYBE_END,  // returns or exits under a condition, or continues
};

// The successors of one instruction. Targets are indices of instructions.
struct kg_step {
    enum kg_step_kind kind;
    int32_t target;
    const int32_t *targets;
    int32_t target_count;
};

struct kg_flow_block {
    int32_t first, count; // instructions
    int32_t *next;        // indices of blocks
    int32_t next_count;
    int32_t dominator; // immediate; -1: the entry, or never reached
    int32_t loop;      // innermost, -1: none
    bool reached;
    bool conditional; // not executed on every trip of its loop (or run of the kernel)
};

// A natural loop: all blocks that reach the back edges without passing the header. Back edges to
// one header form one loop.
struct kg_flow_loop {
    int32_t header;
    int32_t parent; // -1: outermost
    int32_t depth;  // 1: outermost
    // The loop's own, ascending; then those of each loop inside it, in the same order.
    int32_t *blocks;
    int32_t block_count;
    int32_t *latches; // blocks with an edge back to the header
    int32_t latch_count;
    bool conditional; // not entered on every trip of the loop around it (or run of the kernel)
};

struct kg_flow {
    struct kg_flow_block *blocks; // by first instruction
    int32_t block_count;
    struct kg_flow_loop *loops; // outer before inner, then by header
    int32_t loop_count;
    bool irreducible; // some cycle has two entries; it belongs to no loop
};

// Near-linear time for every graph: a million instructions take well under a second. False when out
// of memory. A successor after the last instruction ends the kernel. Targets outside [0, count) are
// a bug of the caller.
bool kg_flow_find(const struct kg_step *steps, int32_t count, struct kg_arena *arena,
                  struct kg_flow *flow);

// The same for code whose successors are computed on demand, possibly more than once: an array of
// them would be larger than the code.
struct kg_flow_code {
    struct kg_step (*step)(const void *of, int32_t index);
    const void *of;
    int32_t count;
};
bool kg_flow_find_in(const struct kg_flow_code *code, struct kg_arena *arena, struct kg_flow *flow);

#endif
