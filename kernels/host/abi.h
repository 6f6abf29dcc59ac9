// The contract between this kernel and the runtime that calls it.
#include <stdbool.h>
#include <stdint.h>

struct kg_host_call {
    void *const *tensor;   // inputs, outputs, then intermediates in memory
    const int64_t *size;   // by size id, params included
    const int64_t *stride; // 8 per tensor, in elements
    char *shared;          // workspace of all threads
    char *scratch;         // workspace of this thread
    int thread;            // 0 .. threads-1
    int threads;
};

enum { KG_HOST_SHARED = 0, KG_HOST_SCRATCH = 1, KG_HOST_GRAIN = 2 };
