// How many blocks of a kernel an SM holds at once, as the device itself decides it, what limits
// their number, and how a grid falls into waves. Pure arithmetic on asm/gpu.h.

#ifndef KG_ASM_OCCUPANCY_H
#define KG_ASM_OCCUPANCY_H

#include "asm/gpu.h"
#include "base/text.h"

enum kg_limiter {
    KG_LIMIT_WARPS, // threads
    KG_LIMIT_BLOCKS,
    KG_LIMIT_REGISTERS,
    KG_LIMIT_SHARED,
    KG_LIMIT_BARRIERS,
    KG_LIMIT_COUNT
};

// What one block takes. Unknown numbers may be given as 0 or below, and then limit nothing; threads
// may not.
struct kg_block_needs {
    int threads;
    int registers;         // of a thread
    int64_t static_shared; // bytes, without what the system reserves
    int64_t dynamic_shared;
    int barriers;
    int cluster; // blocks of a cluster; 0 or 1: none
};

struct kg_occupancy {
    int blocks;                // on an SM; 0: the launch fails
    int warps;                 // on an SM
    double share;              // of the warps an SM can hold
    int limit[KG_LIMIT_COUNT]; // blocks each resource has room for; INT_MAX: any number
    enum kg_limiter limiter;   // what has the least room; the first of equals
    int64_t block_registers;   // as allocated, granules and all
    int64_t block_shared;      // as allocated, with what the system reserves
    bool opt_in;               // the launch must ask for more shared memory than the default
};

struct kg_occupancy kg_occupancy_of(const struct kg_sm *sm, const struct kg_block_needs *needs);

// One thing that must change for an SM to hold one block more.
struct kg_occupancy_step {
    enum kg_limiter resource;
    int64_t now;
    int64_t max; // what it may be at most then; below 0: nothing helps
};

// All that must change for one block more, each by itself, into `steps`. Returns their number.
int kg_occupancy_raise(const struct kg_sm *sm, const struct kg_block_needs *needs,
                       struct kg_occupancy_step steps[KG_LIMIT_COUNT]);
// The same in words: "3 blocks on an SM instead of 2: registers of a thread at most 80 (now 96)".
void kg_occupancy_explain(struct kg_text *text, const struct kg_sm *sm,
                          const struct kg_block_needs *needs);

struct kg_waves {
    int64_t resident; // blocks of the device at once; with clusters an upper bound, as they need
                      // neighbouring SMs
    int64_t busiest;  // blocks that the busiest SM runs, at least
    double waves;     // grid / resident
    double idle;      // share of the block slots of all waves that stays empty: the tail
};
// All zeros for an empty grid, or where no block fits.
struct kg_waves kg_occupancy_waves(const struct kg_occupancy *occupancy, int64_t grid, int sms,
                                   int cluster);

// "registers", "shared memory", …
const char *kg_limiter_name(enum kg_limiter limiter);

#endif
