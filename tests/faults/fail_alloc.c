// The wrappers behind fail_alloc.h. Counters are atomic: what is tested may use threads.

#include "faults/fail_alloc.h"

#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static atomic_long countdown; // 0: off
static atomic_bool keep_failing;
static atomic_bool failed;

static bool fails(void)
{
    if (atomic_load(&countdown) == 0)
        return atomic_load(&keep_failing) && atomic_load(&failed);
    if (atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_store(&failed, true);
    return true;
}

static void start(long n, bool all)
{
    atomic_store(&failed, false);
    atomic_store(&keep_failing, all);
    atomic_store(&countdown, n);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

void fail_alloc_at(long n)
{
    start(n, false);
}

void fail_alloc_from(long n)
{
    start(n, true);
}

void fail_alloc_never(void)
{
    atomic_store(&countdown, 0);
    atomic_store(&keep_failing, false);
}

bool fail_alloc_happened(void)
{
    return atomic_load(&failed);
}

bool fail_alloc_sweep(long n)
{
    return n == 1 || fail_alloc_happened();
}
