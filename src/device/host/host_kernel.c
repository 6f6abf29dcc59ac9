// Loading compiled kernels and running them on the pool.

#include "base/loader.h"
#include "device/host/host_abi.h"
#include "device/host/host_device.h"
#include "device/objects.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct kg_kernel {
    struct kg_host_device *host;
    void *library;
    int64_t (*items)(const struct kg_host_call *call, int phase);
    void (*run)(const struct kg_host_call *call, int phase, int64_t begin, int64_t end);
    int64_t (*bytes)(const struct kg_host_call *call, int kind);
};

// An upper limit on items, so that counters beyond it do not overflow.
#define MAX_ITEMS (INT64_C(1) << 60)

// One phase of one launch, as the threads of the pool see it.
struct phase {
    const struct kg_kernel *kernel;
    // Each thread has its own copy with its thread number and scratch.
    const struct kg_host_call *call;
    char *scratch;
    size_t stride;
    int number;
};

static void run_range(void *user, int thread, int64_t begin, int64_t end)
{
    const struct phase *phase = user;
    struct kg_host_call call = *phase->call;
    call.thread = thread;
    call.scratch = phase->scratch + (size_t)thread * phase->stride;
    phase->kernel->run(&call, phase->number, begin, end);
}

static enum kg_status find_symbol(void *library, const char *entry, const char *suffix,
                                  void **found, struct kg_error *error)
{
    struct kg_text name = {0};
    kg_text_format(&name, "%s_%s", entry, suffix);
    enum kg_status status = KG_OK;
    *found = name.failed ? NULL : dlsym(library, name.data);
    if (name.failed)
        status = kg_error_memory(error, "a symbol's name");
    else if (!*found)
        status = kg_error_set(error, KG_ERROR_COMPILE,
                              "the kernel does not export %s: a host kernel called %s must export "
                              "%s_items, %s_run and %s_bytes",
                              name.data, entry, entry, entry, entry);
    kg_text_free(&name);
    return status;
}

static enum kg_status find_symbols(struct kg_kernel *kernel, const char *entry,
                                   struct kg_error *error)
{
    void *items, *run, *bytes;
    enum kg_status status = find_symbol(kernel->library, entry, "items", &items, error);
    if (!status)
        status = find_symbol(kernel->library, entry, "run", &run, error);
    if (!status)
        status = find_symbol(kernel->library, entry, "bytes", &bytes, error);
    if (status)
        return status;
    // ISO C has no cast from an object pointer to a function pointer; POSIX guarantees that this
    // works.
    memcpy(&kernel->items, &items, sizeof items);
    memcpy(&kernel->run, &run, sizeof run);
    memcpy(&kernel->bytes, &bytes, sizeof bytes);
    return KG_OK;
}

enum kg_status kg_host_load(struct kg_device *device, const struct kg_binary *binary,
                            const char *entry, struct kg_kernel **kernel, struct kg_error *error)
{
    *kernel = NULL;
    // A truncated object would crash the loader, so it is checked each time.
    enum kg_status status = kg_objects_check(binary->path, error);
    if (status)
        return status;
    struct kg_kernel *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return kg_error_memory(error, "a kernel");
    loaded->host = (struct kg_host_device *)device;
    loaded->library = kg_loader_open(binary->path);
    if (!loaded->library)
        status =
            kg_error_set(error, KG_ERROR_COMPILE, "cannot load the compiled kernel: %s", dlerror());
    else
        status = find_symbols(loaded, entry, error);
    if (status) {
        kg_host_unload(loaded);
        return status;
    }
    *kernel = loaded;
    return KG_OK;
}

void kg_host_unload(struct kg_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->library)
        kg_loader_close(kernel->library);
    free(kernel);
}

struct kg_host_pool *kg_host_device_pool(struct kg_host_device *host)
{
    struct kg_host_pool *pool = atomic_load_explicit(&host->pool, memory_order_acquire);
    if (pool && kg_host_pool_is_ours(pool))
        return pool;
    struct kg_host_pool *made = kg_host_pool_make(host->base.facts.units);
    if (!made)
        return NULL;
    // Another thread may have been faster. A pool from before a fork is abandoned.
    if (atomic_compare_exchange_strong(&host->pool, &pool, made))
        return made;
    kg_host_pool_free(made);
    return pool;
}

// Reserves both workspaces. Generated code computes the sizes, so they are checked.
static enum kg_status reserve_workspaces(struct kg_host_pool *pool, const struct kg_kernel *kernel,
                                         struct kg_host_call *call, struct phase *phase,
                                         struct kg_error *error)
{
    int64_t shared = kernel->bytes(call, KG_HOST_SHARED);
    int64_t scratch = kernel->bytes(call, KG_HOST_SCRATCH);
    if (shared < 0 || scratch < 0)
        return kg_error_set(error, KG_ERROR_FAULT, "the kernel asks for a workspace of %lld bytes",
                            (long long)(shared < 0 ? shared : scratch));
    call->shared = kg_host_pool_shared(pool, (size_t)shared);
    phase->scratch = kg_host_pool_scratch(pool, (size_t)scratch, &phase->stride);
    call->scratch = phase->scratch;
    if (!call->shared || !phase->scratch)
        return kg_error_set(error, KG_ERROR_MEMORY,
                            "out of memory: workspaces of %lld bytes and %lld bytes per thread",
                            (long long)shared, (long long)scratch);
    return KG_OK;
}

static enum kg_status run_phases(struct kg_host_pool *pool, const struct kg_kernel *kernel,
                                 struct kg_host_call *call, struct kg_error *error)
{
    struct phase phase = {.kernel = kernel, .call = call};
    enum kg_status status = reserve_workspaces(pool, kernel, call, &phase, error);
    if (status)
        return status;
    int64_t grain = kernel->bytes(call, KG_HOST_GRAIN);
    for (;; phase.number++) {
        int64_t items = kernel->items(call, phase.number);
        if (items < -1)
            return kg_error_set(error, KG_ERROR_FAULT, "the kernel returned %lld, which is not 0",
                                (long long)(items - KG_HOST_FAILED));
        if (items < 0)
            return KG_OK;
        if (items > MAX_ITEMS)
            return kg_error_set(error, KG_ERROR_FAULT, "the kernel reports %lld items in phase %d",
                                (long long)items, phase.number);
        kg_host_pool_run(pool, items, grain, run_range, &phase);
    }
}

int64_t kg_host_ranges(const struct kg_kernel *kernel, const struct kg_launch *launch)
{
    int threads = kernel->host->base.facts.units;
    struct kg_host_call call = {.tensor = launch->tensors,
                                .size = launch->sizes,
                                .stride = launch->strides,
                                .threads = threads};
    int64_t grain = kernel->bytes(&call, KG_HOST_GRAIN), most = 0;
    for (int phase = 0;; phase++) {
        int64_t items = kernel->items(&call, phase);
        if (items < 0 || items > MAX_ITEMS)
            break;
        most = items > most ? items : most;
    }
    return kg_host_pool_ranges(threads, most, grain);
}

static void do_nothing(void *user, int thread, int64_t begin, int64_t end)
{
    (void)user, (void)thread, (void)begin, (void)end;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double kg_host_idle_launch(struct kg_device *device, bool rested)
{
    enum { SAMPLES = 11, PAUSE = 300000 }; // ns, several times what threads spin for
    double samples[SAMPLES];
    struct kg_host_pool *pool = kg_host_device_pool((struct kg_host_device *)device);
    if (!pool)
        return 0;
    kg_host_pool_enter(pool);
    for (int i = 0; i < SAMPLES; i++) {
        if (rested)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
        double start = kg_host_now(device);
        kg_host_pool_run(pool, device->facts.units, 1, do_nothing, NULL);
        samples[i] = kg_host_now(device) - start;
    }
    kg_host_pool_leave(pool);
    qsort(samples, SAMPLES, sizeof *samples, by_value);
    return samples[SAMPLES / 2];
}

enum kg_status kg_host_launch(const struct kg_kernel *kernel, const struct kg_launch *launch,
                              struct kg_error *error)
{
    struct kg_host_pool *pool = kg_host_device_pool(kernel->host);
    if (!pool)
        return kg_error_memory(error, "the threads of the host");
    struct kg_host_call call = {.tensor = launch->tensors,
                                .size = launch->sizes,
                                .stride = launch->strides,
                                .threads = kernel->host->base.facts.units};
    kg_host_pool_enter(pool);
    enum kg_status status = run_phases(pool, kernel, &call, error);
    kg_host_pool_leave(pool);
    return status;
}

enum kg_status kg_host_watch(struct kg_device *device, struct kg_error *error)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    struct kg_host_pool *pool = kg_host_device_pool(host);
    if (!pool)
        return kg_error_memory(error, "the threads of the host");
    kg_host_pool_watch(pool);
    kg_host_thread_state_read(&host->caller_state);
    kg_host_process_state_read(&host->process_state);
    return KG_OK;
}

const char *kg_host_changed(struct kg_device *device)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    struct kg_host_pool *pool = kg_host_device_pool(host);
    const char *by_helper = pool ? kg_host_pool_changed(pool) : NULL;
    const char *in_caller = kg_host_thread_state_restore(&host->caller_state);
    const char *in_process = kg_host_process_state_restore(&host->process_state);
    return in_caller ? in_caller : by_helper ? by_helper : in_process;
}
