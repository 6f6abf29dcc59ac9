// The contract between generated host kernels and the runtime. The same text stands at the top of
// every generated .c file (kernels/host/abi.h is this file's twin there; a test compares them).
//
// A kernel called NAME exports
//
//     int64_t NAME_items(const struct kg_host_call *call, int phase);
//     void    NAME_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end);
//     int64_t NAME_bytes(const struct kg_host_call *call, int kind);
//
// Work consists of phases, which run one after the other with a barrier between them. A phase
// consists of independent items. `NAME_items` gives the number of items of a phase (0 is legal), -1
// after the last phase, or KG_HOST_FAILED plus a number other than 0 when the kernel failed with
// that number. The runtime distributes ranges of items to threads, in any order, each item exactly
// once; ranges have at least `grain` items, where grain is NAME_bytes(call, KG_HOST_GRAIN).
// `NAME_bytes` also gives the sizes of two workspaces: one shared by all threads and kept across
// phases, and one per thread. Both are 64-byte aligned and not cleared.

#ifndef KG_DEVICE_HOST_ABI_H
#define KG_DEVICE_HOST_ABI_H

#include <stdint.h>

struct kg_host_call {
    void *const *tensor;   // inputs, outputs, then intermediates that live in memory
    const int64_t *size;   // by size id, params included
    const int64_t *stride; // 8 per tensor, in elements
    char *shared;          // workspace of all threads
    char *scratch;         // workspace of this thread
    int thread;            // 0 .. threads-1
    int threads;
};

#define KG_HOST_FAILED (-(INT64_C(1) << 62)) // generated kernels do not fail

enum { KG_HOST_SHARED = 0, KG_HOST_SCRATCH = 1, KG_HOST_GRAIN = 2 };

#endif
