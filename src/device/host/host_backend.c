// The host backend: opening and closing this machine's CPU as a device, and its vtable.

#include "base/files.h"
#include "device/host/host_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int probe(struct kg_text *why)
{
    (void)why;
    return 1;
}

// An absolute path, so that a later change of the current folder does not matter.
static bool use_folder(struct kg_host_device *host, const char *path)
{
    char *full = realpath(path, NULL);
    bool usable =
        full && strlen(full) < sizeof host->base.cache && access(full, R_OK | W_OK | X_OK) == 0;
    if (usable)
        snprintf(host->base.cache, sizeof host->base.cache, "%s", full);
    free(full);
    return usable;
}

// Without a folder that can be written, objects go to a temporary one that lives as long as the
// device. mkdtemp makes it private: nobody else can put an object there.
static enum kg_status use_private_folder(struct kg_host_device *host, const char *wanted,
                                         struct kg_error *error)
{
    const char *parent = getenv("TMPDIR");
    struct kg_text path = {0};
    kg_text_format(&path, "%s/kernelgen-XXXXXX", parent && *parent ? parent : "/tmp");
    host->private_cache = !path.failed && mkdtemp(path.data) && use_folder(host, path.data);
    if (!host->private_cache)
        kg_error_set(error, KG_ERROR_IO,
                     "neither the cache folder %s nor a temporary one (%s) can be written", wanted,
                     kg_text_string(&path));
    kg_text_free(&path);
    return host->private_cache ? KG_OK : KG_ERROR_IO;
}

static enum kg_status prepare_cache(struct kg_host_device *host, const char *cache,
                                    struct kg_error *error)
{
    host->owner = getpid();
    struct kg_text path = {0};
    if (cache && *cache) {
        kg_text_add(&path, cache);
    } else {
        char *home = NULL;
        if (kg_files_home(NULL, &home, NULL) == KG_OK)
            kg_text_format(&path, "%s/objects", home);
        free(home);
    }
    enum kg_status status = KG_OK;
    const char *wanted = kg_text_string(&path);
    if (*wanted == '\0' || kg_files_make_folder(wanted, NULL) != KG_OK || !use_folder(host, wanted))
        status = use_private_folder(host, wanted, error);
    else
        kg_host_folder_sweep(host->base.cache);
    kg_text_free(&path);
    return status;
}

static void close_host(struct kg_device *device)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    if (host->owner == getpid())
        kg_host_keep_seen(host);
    kg_host_pool_free(atomic_load(&host->pool));
    kg_host_compiler_free(&host->compiler);
    free(host->flush_memory);
    if (host->private_cache && host->owner == getpid())
        kg_host_folder_remove(host->base.cache);
    free(host);
}

static enum kg_status open_host(int ordinal, const char *cache, int threads,
                                struct kg_device **device, struct kg_error *error)
{
    (void)ordinal;
    *device = NULL;
    struct kg_host_device *host = calloc(1, sizeof *host);
    if (!host)
        return kg_error_memory(error, "a device");
    host->base.backend = &kg_host_backend;
    kg_host_read_facts(threads, &host->base.facts, &host->machine);
    enum kg_status status = prepare_cache(host, cache, error);
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
    .probe = probe,
    .open = open_host,
    .close = close_host,
    .compile = kg_host_compile,
    .load = kg_host_load,
    .unload = kg_host_unload,
    .launch = kg_host_launch,
    .allocate = kg_host_allocate,
    .release = kg_host_release,
    .copy = kg_host_copy,
    .now = kg_host_now,
    .flush = kg_host_flush,
    .clock = kg_host_clock,
};
