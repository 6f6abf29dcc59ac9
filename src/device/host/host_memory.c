// Memory, the clock, and emptying the caches of the host.

#include "device/host/host_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
// Below two huge pages rounding up would waste more than it gains.
#define HUGE_FROM ((size_t)4 << 20)

// Reading as much as the last-level cache holds does not empty it: recent caches keep part of their
// content during streaming reads. On an EPYC with 32 MiB, an 8 MiB kernel after a flush of 2, 4 and
// 8 times the cache took 210, 270 and 280 microseconds.
#define FLUSH_TIMES 4
#define FLUSH_LEAST ((size_t)64 << 20) // if the size of the cache is unknown
#define FLUSH_MAX ((size_t)2 << 30)

char *kg_host_memory(size_t bytes)
{
    bool huge = bytes >= HUGE_FROM;
    size_t alignment = huge ? HUGE_PAGE : LINE;
    size_t rounded;
    if (__builtin_add_overflow(bytes ? bytes : 1, alignment - 1, &rounded))
        return NULL;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, rounded & ~(alignment - 1)) != 0)
        return NULL;
    if (huge)
        // A refusal only costs speed.
        madvise(memory, rounded & ~(alignment - 1), MADV_HUGEPAGE);
    return memory;
}

enum kg_status kg_host_allocate(struct kg_device *device, size_t bytes, void **memory,
                                struct kg_error *error)
{
    (void)device;
    *memory = kg_host_memory(bytes);
    if (!*memory)
        return kg_error_set(error, KG_ERROR_MEMORY, "out of memory: %zu bytes on the host", bytes);
    return KG_OK;
}

void kg_host_release(struct kg_device *device, void *memory)
{
    (void)device;
    free(memory);
}

enum kg_status kg_host_copy(struct kg_device *device, void *to, const void *from, size_t bytes,
                            struct kg_error *error)
{
    (void)device;
    (void)error;
    if (bytes > 0)
        memmove(to, from, bytes);
    return KG_OK;
}

enum kg_status kg_host_fill(struct kg_device *device, void *memory, unsigned char value,
                            size_t bytes, struct kg_error *error)
{
    (void)device;
    (void)error;
    memset(memory, value, bytes);
    return KG_OK;
}

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

// Fast rather than strong. Four lanes hide the latency of the multiplications.
enum kg_status kg_host_digest(struct kg_device *device, const void *memory, size_t bytes,
                              uint64_t *sum, struct kg_error *error)
{
    (void)device;
    (void)error;
    static const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t seed = *sum, lanes[4] = {seed, seed ^ prime, ~seed, seed + prime};
    const char *at = memory;
    size_t left = bytes;
    for (; left >= 32; at += 32, left -= 32) {
        uint64_t words[4];
        memcpy(words, at, 32);
        for (int i = 0; i < 4; i++)
            lanes[i] = rotate(lanes[i] ^ words[i], 29) * prime;
    }
    uint64_t total = left * prime;
    for (; left > 0; at++, left--)
        total = rotate(total ^ (unsigned char)*at, 11) * prime;
    for (int i = 0; i < 4; i++)
        total = rotate(total ^ lanes[i], 31) * prime;
    *sum = total ^ total >> 32;
    return KG_OK;
}

double kg_host_now(struct kg_device *device)
{
    (void)device;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum kg_status kg_host_start(struct kg_device *device, struct kg_error *error)
{
    (void)error;
    ((struct kg_host_device *)device)->started = kg_host_now(device);
    return KG_OK;
}

enum kg_status kg_host_stop(struct kg_device *device, double *seconds, struct kg_error *error)
{
    (void)error;
    *seconds = kg_host_now(device) - ((struct kg_host_device *)device)->started;
    return KG_OK;
}

// Reads one word of every line of a range.
static void read_lines(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const char *memory = user;
    uint64_t sum = 0;
    for (int64_t line = begin; line < end; line++)
        sum += *(const uint64_t *)(const void *)(memory + (size_t)line * LINE);
    __asm__ volatile("" : : "r"(sum)); // keeps the reads
}

// Called under the pool's lock. False: no memory.
static bool prepare_flush(struct kg_host_device *host)
{
    if (host->flush_memory)
        return true;
    size_t bytes = FLUSH_TIMES * (size_t)host->base.facts.cache[3];
    if (bytes < FLUSH_LEAST)
        bytes = FLUSH_LEAST;
    if (bytes > FLUSH_MAX)
        bytes = FLUSH_MAX;
    host->flush_memory = kg_host_memory(bytes);
    if (!host->flush_memory)
        return false;
    // Memory that was never written is one shared page of zeros and would stay in the first-level
    // cache.
    memset(host->flush_memory, 1, bytes);
    host->flush_bytes = bytes;
    return true;
}

// Reads FLUSH_TIMES the last-level cache with all threads. It reads instead of writing, so that the
// cache is full of clean lines and the kernel measured next does not pay for writing back dirty
// ones. A forked child also keeps sharing the pages.
void kg_host_flush(struct kg_device *device)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    struct kg_host_pool *pool = kg_host_device_pool(host);
    if (!pool)
        return;
    kg_host_pool_enter(pool);
    if (prepare_flush(host))
        kg_host_pool_run(pool, (int64_t)(host->flush_bytes / LINE), 4096, read_lines,
                         host->flush_memory);
    kg_host_pool_leave(pool);
}
