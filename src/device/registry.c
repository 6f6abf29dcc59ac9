// The table of backends, and opening a device by name.

#include "asm/appraisal.h"
#include "asm/gpu.h"
#include "base/names.h"
#include "device/cuda/cuda_device.h"
#include "device/host/host_device.h"

#include <stdio.h>
#include <string.h>

const struct kg_backend *const kg_backends[] = {&kg_host_backend, &kg_cuda_backend, NULL};

const struct kg_backend *kg_backend_find(const char *name, size_t length)
{
    for (const struct kg_backend *const *backend = kg_backends; *backend; backend++)
        if (strlen((*backend)->name) == length && memcmp((*backend)->name, name, length) == 0)
            return *backend;
    return NULL;
}

static enum kg_status unknown_device(const char *name, struct kg_error *error)
{
    enum { MOST = 64 };
    struct kg_text known = {0};
    const char *names[MOST];
    size_t count = 0;
    for (const struct kg_backend *const *backend = kg_backends; *backend; backend++) {
        kg_text_format(&known, "%s, ", (*backend)->name);
        names[count++] = (*backend)->name;
    }
    for (const struct kg_gpu *gpu = kg_gpus; gpu->name && count < MOST; gpu++)
        names[count++] = gpu->handle;
    kg_text_add(&known, "sm_90a, ");
    kg_asm_list_devices(&known, NULL);
    const char *nearest = kg_names_nearest(name, names, count);
    kg_error_set(error, KG_ERROR_ARGUMENT, "unknown device '%.64s'; known: %s%s%s%s", name,
                 kg_text_string(&known), nearest ? "; did you mean '" : "", nearest ? nearest : "",
                 nearest ? "'?" : "");
    kg_text_free(&known);
    return KG_ERROR_ARGUMENT;
}

// The number after the colon. False when it is not a small number.
static bool read_ordinal(const char *text, int *ordinal)
{
    *ordinal = 0;
    if (*text == '\0' || strlen(text) > 4)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        *ordinal = *ordinal * 10 + (*text - '0');
    }
    return true;
}

static enum kg_status open_device(const char *name, const char *cache, int threads,
                                  struct kg_device **device, struct kg_error *error)
{
    if (strncmp(name, "sm_", 3) == 0 || kg_gpu_find(name))
        return kg_cuda_open_described(name, cache, device, error);
    size_t length = strcspn(name, ":");
    const struct kg_backend *backend = kg_backend_find(name, length);
    int ordinal = 0;
    if (!backend || (name[length] == ':' && !read_ordinal(name + length + 1, &ordinal)))
        return unknown_device(name, error);
    return backend->open(ordinal, cache, threads, device, error);
}

enum kg_status kg_device_open(const char *name, const char *cache, int threads,
                              struct kg_device **device, struct kg_error *error)
{
    *device = NULL;
    enum kg_status status = open_device(name, cache, threads, device, error);
    if (*device)
        snprintf((*device)->name, sizeof(*device)->name, "%s", name);
    return status;
}

void kg_device_close(struct kg_device *device)
{
    if (device)
        device->backend->close(device);
}

void kg_device_note_bandwidth(struct kg_device *device, double rate)
{
    double seen = atomic_load(&device->seen_bandwidth);
    while (rate > seen && !atomic_compare_exchange_weak(&device->seen_bandwidth, &seen, rate))
        ;
}
