// Emptying the caches before a cold run.
//
// Processors of x86-64 can push single lines out of all caches. Where that is possible, the memory
// that kernels use is pushed out, line by line: that takes as long as the kernels' data are large,
// however large the caches are. Where it is not, or where reading is less work, all threads read
// several times what the last-level cache holds.

#include "device/host/host_device.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LINE ((size_t)64)
#define GRAIN 4096 // lines

// Reading as much as the last-level cache holds does not empty it: recent caches keep part of their
// content during streaming reads. On an EPYC with 32 MiB, an 8 MiB kernel after a flush of 2, 4 and
// 8 times the cache took 210, 270 and 280 microseconds.
#define FLUSH_TIMES 4
#define FLUSH_LEAST ((size_t)64 << 20) // if the size of the cache is unknown
#define FLUSH_MAX ((size_t)2 << 30)

// ---- The memory that kernels use

struct block {
    char *memory;
    size_t bytes;
};

// Blocks are added and removed by any thread, and a fork may happen meanwhile.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static size_t block_count, block_capacity, block_bytes;
static bool is_incomplete; // there was no memory to list a block

static void enter(void)
{
    pthread_mutex_lock(&lock);
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
}

static void keep_over_forks(void)
{
    pthread_atfork(enter, leave, leave);
}

void kg_host_flush_add(void *memory, size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, keep_over_forks);
    enter();
    if (block_count == block_capacity) {
        size_t capacity = block_capacity ? 2 * block_capacity : 64;
        struct block *larger = realloc(blocks, capacity * sizeof *larger);
        if (larger) {
            blocks = larger;
            block_capacity = capacity;
        }
    }
    if (block_count < block_capacity) {
        blocks[block_count++] = (struct block){memory, bytes};
        block_bytes += bytes;
    } else {
        is_incomplete = true;
    }
    leave();
}

void kg_host_flush_remove(const void *memory)
{
    enter();
    size_t at = block_count;
    while (at > 0 && blocks[at - 1].memory != memory) // the newest are removed first
        at--;
    if (at > 0) {
        block_bytes -= blocks[at - 1].bytes;
        blocks[at - 1] = blocks[--block_count];
    }
    leave();
}

// ---- Line by line

#ifdef __x86_64__
bool kg_host_flush_knows_lines(void)
{
    const unsigned clflushopt = 1u << 23;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & clflushopt);
}

static void push_lines(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    char *memory = user;
    for (int64_t line = begin; line < end; line++)
        __asm__ volatile("clflushopt %0" : "+m"(memory[(size_t)line * LINE]));
    __asm__ volatile("mfence" ::: "memory");
}
#else
bool kg_host_flush_knows_lines(void)
{
    return false;
}

static void push_lines(void *user, int thread, int64_t begin, int64_t end)
{
    (void)user, (void)thread, (void)begin, (void)end;
}
#endif

void kg_host_flush_lines(struct kg_host_pool *pool, char *memory, size_t bytes)
{
    kg_host_pool_run(pool, (int64_t)((bytes + LINE - 1) / LINE), GRAIN, push_lines, memory);
}

// False if the blocks are not all known, or are more than `most` bytes.
static bool push_blocks(struct kg_host_pool *pool, size_t most)
{
    enter();
    bool does = !is_incomplete && block_bytes <= most;
    for (size_t i = 0; does && i < block_count; i++)
        kg_host_flush_lines(pool, blocks[i].memory, blocks[i].bytes);
    leave();
    return does;
}

// ---- By reading

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

static size_t bytes_to_read(const struct kg_host_device *host)
{
    size_t bytes = FLUSH_TIMES * (size_t)host->base.facts.cache[3];
    if (bytes < FLUSH_LEAST)
        bytes = FLUSH_LEAST;
    return bytes > FLUSH_MAX ? FLUSH_MAX : bytes;
}

// Called under the pool's lock. False: no memory.
static bool prepare(struct kg_host_device *host)
{
    if (host->flush_memory)
        return true;
    size_t bytes = bytes_to_read(host);
    host->flush_memory = kg_host_memory(bytes);
    if (!host->flush_memory)
        return false;
    // Memory that was never written is one shared page of zeros and would stay in the first-level
    // cache.
    memset(host->flush_memory, 1, bytes);
    host->flush_bytes = bytes;
    return true;
}

// Reading leaves the caches full of clean lines: the kernel measured next does not pay for writing
// back dirty ones. A forked child also keeps sharing the pages.
void kg_host_flush(struct kg_device *device)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    struct kg_host_pool *pool = kg_host_device_pool(host);
    if (!pool)
        return;
    kg_host_pool_enter(pool);
    if (!(kg_host_flush_knows_lines() && push_blocks(pool, bytes_to_read(host))) && prepare(host))
        kg_host_pool_run(pool, (int64_t)(host->flush_bytes / LINE), GRAIN, read_lines,
                         host->flush_memory);
    kg_host_pool_leave(pool);
}
