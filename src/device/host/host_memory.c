// Memory and the clock of the host.

#include "device/host/host_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
// Below two huge pages rounding up would waste more than it gains.
#define HUGE_FROM ((size_t)4 << 20)

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
    if (*memory)
        kg_host_flush_add(*memory, bytes);
    else
        return kg_error_set(error, KG_ERROR_MEMORY, "out of memory: %zu bytes on the host", bytes);
    return KG_OK;
}

void kg_host_release(struct kg_device *device, void *memory)
{
    (void)device;
    kg_host_flush_remove(memory);
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
