// The host backend: opening and closing this machine's CPU as a device, and its vtable.

#include "device/host/host_device.h"
#include "device/objects.h"
#include "device/sanitizer.h"

#include <stdlib.h>
#include <unistd.h>

static int probe(struct kg_text *why)
{
    (void)why;
    return 1;
}

static void close_host(struct kg_device *device)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    if (host->base.cache_owner == getpid())
        kg_host_keep_seen(host);
    kg_host_pool_free(atomic_load(&host->pool));
    kg_host_compiler_free(&host->compiler);
    free(host->flush_memory);
    kg_objects_close(&host->base);
    free(host);
}

static enum kg_status open_host(int ordinal, const char *cache, int threads,
                                struct kg_device **device, struct kg_error *error)
{
    *device = NULL;
    if (ordinal > 0)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "no device 'host:%d': this machine is one host", ordinal);
    struct kg_host_device *host = calloc(1, sizeof *host);
    if (!host)
        return kg_error_memory(error, "a device");
    host->base.backend = &kg_host_backend;
    kg_host_read_facts(threads, &host->base.facts, &host->machine);
    enum kg_status status = kg_objects_open(&host->base, cache, error);
    if (!status)
        status = kg_host_measure(host, error);
    if (status) {
        close_host(&host->base);
        return status;
    }
    kg_host_compiler_find(host);
    *device = &host->base;
    return KG_OK;
}

const struct kg_backend kg_host_backend = {
    .name = "host",
    .shares_memory = true,
    .is_single = true,
    .dlpack = 1,
    .probe = probe,
    .open = open_host,
    .close = close_host,
    .compile = kg_host_compile,
    .load = kg_host_load,
    .unload = kg_host_unload,
    .launch = kg_host_launch,
    .ranges = kg_host_ranges,
    .idle_launch = kg_host_idle_launch,
    .watch = kg_host_watch,
    .changed = kg_host_changed,
    .allocate = kg_host_allocate,
    .release = kg_host_release,
    .copy = kg_host_copy,
    .fill = kg_host_fill,
    .digest = kg_host_digest,
    .now = kg_host_now,
    .start = kg_host_start,
    .stop = kg_host_stop,
    .flush = kg_host_flush,
    .clock = kg_host_clock,
    .sanitizers = kg_host_sanitizers,
};
