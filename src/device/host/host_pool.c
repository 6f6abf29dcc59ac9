// The threads that run host kernels.
//
// Work is announced, not assigned. The caller writes the job, opens as many places as helpers can
// be useful, and starts working itself. A helper that arrives takes an open place. When the caller
// finds no work left, it closes the remaining places, so that it waits only for helpers that did
// arrive, never for a thread that the system has not woken yet. Threads take ranges of items from a
// counter.
//
// Between jobs helpers spin for a short while, so that the next phase of a kernel or the next
// launch of a loop finds them awake, and then sleep on a futex.
//
// A scheduler may wake a helper on the core of the caller that wakes it, expecting the caller to
// sleep soon. The caller does not, and both would share that core for milliseconds. Helpers
// therefore may not run on the caller's core.

#include "device/host/host_pool.h"
#include "device/host/host_device.h"
#include "device/host/host_state.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// About 20 to 50 microseconds: several times the cost of waking a sleeping thread.
enum { SPIN_TURNS = 2000 };
// Ranges per thread when the grain allows: enough to balance threads that are slowed down, few
// enough that taking a range costs nothing.
enum { RANGES_PER_THREAD = 8 };
enum { LINE = 64 };

struct workspace {
    char *memory;
    size_t capacity;
};

struct kg_host_pool {
    pthread_mutex_t lock; // held by the application thread that uses the pool
    pid_t owner;
    int threads; // including the caller
    int started; // helpers running; -1 before the first attempt
    int spin;
    cpu_set_t cores; // the cores that may be used; empty if there are more threads than cores
    int caller_core; // helpers may not run on it; -1: none yet
    pthread_t *helpers;
    struct workspace shared, scratch;
    _Atomic bool is_watched;
    _Atomic(const char *) changed; // in a thread's state

    // The job. Written before places open, read by threads that took one.
    kg_host_pool_body *body;
    void *user;
    int64_t items;
    int64_t chunk;

    _Alignas(LINE) _Atomic int64_t next; // first item that no thread has taken
    _Alignas(LINE) _Atomic int places;   // places that are open for helpers
    // Number of jobs announced so far; helpers sleep on it.
    _Alignas(LINE) _Atomic uint32_t announced;
    _Atomic int sleeping; // helpers asleep, or about to be
    _Atomic bool stop;
    _Alignas(LINE) _Atomic uint32_t pending; // helpers still at work; the caller sleeps on it
    _Atomic bool caller_sleeps;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void work(struct kg_host_pool *pool, int thread)
{
    for (;;) {
        int64_t begin = atomic_fetch_add_explicit(&pool->next, pool->chunk, memory_order_relaxed);
        if (begin >= pool->items)
            return;
        int64_t rest = pool->items - begin;
        pool->body(pool->user, thread, begin, begin + (rest < pool->chunk ? rest : pool->chunk));
    }
}

// Takes a place if one is open. Returns its number, which is the thread's number; 0 if none is
// open.
static int join(struct kg_host_pool *pool)
{
    int open = atomic_load_explicit(&pool->places, memory_order_relaxed);
    while (open > 0)
        if (atomic_compare_exchange_weak_explicit(&pool->places, &open, open - 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return open;
    return 0;
}

static void leave_place(struct kg_host_pool *pool)
{
    if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->caller_sleeps))
        futex_wake(&pool->pending, 1);
}

// Returns when the count of jobs is no longer `seen`.
static void await_announcement(struct kg_host_pool *pool, uint32_t seen)
{
    for (int turn = 0; turn < pool->spin; turn++) {
        if (atomic_load_explicit(&pool->announced, memory_order_acquire) != seen)
            return;
        relax();
    }
    atomic_fetch_add(&pool->sleeping, 1);
    while (atomic_load(&pool->announced) == seen)
        futex_wait(&pool->announced, seen);
    atomic_fetch_sub(&pool->sleeping, 1);
}

static void check_state(struct kg_host_pool *pool, const struct kg_host_thread_state *before)
{
    const char *changed = kg_host_thread_state_restore(before);
    if (changed)
        atomic_store(&pool->changed, changed);
}

static void *helper_main(void *argument)
{
    struct kg_host_pool *pool = argument;
    struct kg_host_thread_state state;
    uint32_t seen = 0;
    kg_host_thread_state_read(&state);
    for (;;) {
        await_announcement(pool, seen);
        seen = atomic_load(&pool->announced);
        if (atomic_load(&pool->stop))
            return NULL;
        int thread = join(pool);
        if (thread > 0) {
            work(pool, thread);
            if (atomic_load_explicit(&pool->is_watched, memory_order_relaxed))
                check_state(pool, &state);
            leave_place(pool);
        }
    }
}

// Helpers block all signals, which are for the application's threads. If the system grants fewer
// threads than wanted, fewer threads share the work.
static void start_helpers(struct kg_host_pool *pool)
{
    pool->started = 0;
    pool->helpers = calloc((size_t)pool->threads, sizeof *pool->helpers);
    if (!pool->helpers)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->threads - 1 &&
           pthread_create(&pool->helpers[pool->started], NULL, helper_main, pool) == 0)
        pool->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Only if the caller has moved to another core: this costs a system call for each helper.
static void keep_apart(struct kg_host_pool *pool)
{
    int core = sched_getcpu();
    if (core == pool->caller_core || core < 0 || core >= CPU_SETSIZE || !CPU_COUNT(&pool->cores))
        return;
    cpu_set_t others = pool->cores;
    CPU_CLR((size_t)core, &others);
    for (int i = 0; i < pool->started && CPU_COUNT(&others) > 0; i++)
        // A failure is harmless.
        pthread_setaffinity_np(pool->helpers[i], sizeof others, &others);
    pool->caller_core = core;
}

static void announce(struct kg_host_pool *pool, int helpers)
{
    keep_apart(pool);
    atomic_store_explicit(&pool->pending, (uint32_t)helpers, memory_order_relaxed);
    atomic_store_explicit(&pool->places, helpers, memory_order_release);
    atomic_fetch_add(&pool->announced, 1);
    if (atomic_load(&pool->sleeping) > 0)
        futex_wake(&pool->announced, helpers);
}

// Closes the places and waits for the helpers that took one.
static void finish(struct kg_host_pool *pool)
{
    uint32_t unused = (uint32_t)atomic_exchange(&pool->places, 0);
    uint32_t left = atomic_fetch_sub(&pool->pending, unused) - unused;
    for (int turn = 0; left > 0 && turn < pool->spin; turn++) {
        relax();
        left = atomic_load_explicit(&pool->pending, memory_order_acquire);
    }
    if (left == 0)
        return;
    atomic_store(&pool->caller_sleeps, true);
    while ((left = atomic_load(&pool->pending)) > 0)
        futex_wait(&pool->pending, left);
    atomic_store(&pool->caller_sleeps, false);
}

static void release(struct workspace *space)
{
    kg_host_flush_remove(space->memory);
    free(space->memory);
}

// Grows `space` to `bytes` without keeping its contents; NULL when there is no memory.
static char *reserve(struct workspace *space, size_t bytes)
{
    if (bytes <= space->capacity && space->memory)
        return space->memory;
    release(space);
    space->capacity = bytes < 4096 ? 4096 : bytes;
    space->memory = kg_host_memory(space->capacity);
    if (space->memory)
        kg_host_flush_add(space->memory, space->capacity);
    else
        space->capacity = 0;
    return space->memory;
}

struct kg_host_pool *kg_host_pool_make(int threads)
{
    void *memory = NULL;
    if (posix_memalign(&memory, LINE, sizeof(struct kg_host_pool)) != 0)
        return NULL;
    struct kg_host_pool *pool = memory;
    *pool = (struct kg_host_pool){
        .owner = getpid(), .threads = threads, .started = -1, .caller_core = -1};
    pthread_mutex_init(&pool->lock, NULL);
    // Spinning and avoiding the caller's core help only if every thread has a core to itself. With
    // more cores than a set can name, each thread is assumed to have one, and affinity is not set.
    if (sched_getaffinity(0, sizeof pool->cores, &pool->cores) != 0)
        CPU_ZERO(&pool->cores);
    int cores = CPU_COUNT(&pool->cores);
    if (cores == 0 || cores >= threads)
        pool->spin = SPIN_TURNS;
    else
        CPU_ZERO(&pool->cores);
    return pool;
}

bool kg_host_pool_is_ours(const struct kg_host_pool *pool)
{
    return pool->owner == getpid();
}

void kg_host_pool_free(struct kg_host_pool *pool)
{
    if (!pool || !kg_host_pool_is_ours(pool))
        return;
    atomic_store(&pool->stop, true);
    atomic_fetch_add(&pool->announced, 1);
    futex_wake(&pool->announced, pool->threads);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->helpers[i], NULL);
    pthread_mutex_destroy(&pool->lock);
    free(pool->helpers);
    release(&pool->shared);
    release(&pool->scratch);
    free(pool);
}

void kg_host_pool_enter(struct kg_host_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
}

void kg_host_pool_leave(struct kg_host_pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}

static int64_t length_of_ranges(int threads, int64_t items, int64_t grain)
{
    int64_t length = items / ((int64_t)threads * RANGES_PER_THREAD);
    return length > grain ? length : grain;
}

int64_t kg_host_pool_ranges(int threads, int64_t items, int64_t grain)
{
    if (items <= 0)
        return 0;
    if (grain < 1)
        grain = 1;
    if (items <= grain || threads == 1)
        return 1;
    return (items - 1) / length_of_ranges(threads, items, grain) + 1;
}

void kg_host_pool_run(struct kg_host_pool *pool, int64_t items, int64_t grain,
                      kg_host_pool_body *body, void *user)
{
    if (items <= 0)
        return;
    if (grain < 1)
        grain = 1;
    if (items <= grain || pool->threads == 1) {
        body(user, 0, 0, items);
        return;
    }
    if (pool->started < 0)
        start_helpers(pool);

    pool->chunk = length_of_ranges(pool->threads, items, grain);
    int64_t ranges = (items - 1) / pool->chunk + 1;
    int helpers = pool->started < ranges - 1 ? pool->started : (int)(ranges - 1);
    pool->body = body;
    pool->user = user;
    pool->items = items;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    if (helpers > 0)
        announce(pool, helpers);
    work(pool, 0);
    if (helpers > 0)
        finish(pool);
}

void kg_host_pool_watch(struct kg_host_pool *pool)
{
    atomic_store(&pool->is_watched, true);
}

const char *kg_host_pool_changed(struct kg_host_pool *pool)
{
    return atomic_exchange(&pool->changed, NULL);
}

char *kg_host_pool_shared(struct kg_host_pool *pool, size_t bytes)
{
    return reserve(&pool->shared, bytes);
}

char *kg_host_pool_scratch(struct kg_host_pool *pool, size_t bytes, size_t *stride)
{
    // Regions are at least two cache lines apart, because lines are fetched in pairs.
    size_t rounded, total;
    if (__builtin_add_overflow(bytes, (size_t)(2 * LINE - 1), &rounded))
        return NULL;
    *stride = rounded & ~(size_t)(2 * LINE - 1);
    if (__builtin_mul_overflow(*stride, (size_t)pool->threads, &total))
        return NULL;
    return reserve(&pool->scratch, total);
}
