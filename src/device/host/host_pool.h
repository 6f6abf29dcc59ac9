// The threads that run host kernels, and their workspaces.
//
// A pool belongs to the process that made it: threads do not survive a fork, so a child makes its
// own pool (in host_kernel.c). One application thread uses it at a time, between enter and leave;
// others wait.

#ifndef KG_DEVICE_HOST_POOL_H
#define KG_DEVICE_HOST_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kg_host_pool;

// Processes items [begin, end) as thread number `thread`.
typedef void kg_host_pool_body(void *user, int thread, int64_t begin, int64_t end);

// The first job that needs threads starts them. NULL: out of memory.
struct kg_host_pool *kg_host_pool_make(int threads);
// True in the process that made the pool.
bool kg_host_pool_is_ours(const struct kg_host_pool *pool);
// Takes NULL. In a forked child the memory is not freed, because other threads may have held locks.
void kg_host_pool_free(struct kg_host_pool *pool);

void kg_host_pool_enter(struct kg_host_pool *pool);
void kg_host_pool_leave(struct kg_host_pool *pool);

// Runs `body` over [0, items), each item exactly once, in ranges of at least `grain` (the last one
// may be shorter), and returns when all are done. The caller works too, as thread 0; it processes a
// single range alone.
void kg_host_pool_run(struct kg_host_pool *pool, int64_t items, int64_t grain,
                      kg_host_pool_body *body, void *user);

// How many ranges that are for so many threads.
int64_t kg_host_pool_ranges(int threads, int64_t items, int64_t grain);

// From now on threads compare their state (host_state.h) after every job with what it is now, and
// restore it.
void kg_host_pool_watch(struct kg_host_pool *pool);
// What a job changed in the state of a thread since the last call; NULL: nothing.
const char *kg_host_pool_changed(struct kg_host_pool *pool);

// Memory of at least `bytes`, 64-byte aligned, not cleared, kept for the next request. NULL: out of
// memory. `scratch` is one region per thread, `*stride` bytes apart.
char *kg_host_pool_shared(struct kg_host_pool *pool, size_t bytes);
char *kg_host_pool_scratch(struct kg_host_pool *pool, size_t bytes, size_t *stride);

#endif
