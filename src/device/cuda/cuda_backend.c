// The CUDA backend: opens and closes a GPU, present or only described, and its vtable.

#include "device/cuda/cuda_device.h"
#include "device/objects.h"
#include "device/sanitizer.h"

#include <stdio.h>
#include <stdlib.h>

// Adds what works without a GPU.
static void describe_compiler(struct kg_text *why)
{
    struct kg_nvrtc nvrtc;
    struct kg_error error = {0};
    if (kg_nvrtc_open(0, &nvrtc, &error) != KG_OK) {
        kg_text_format(why, "; %s", error.text);
        return;
    }
    kg_text_format(why, "; NVRTC %d.%d (%s) compiles for", nvrtc.major, nvrtc.minor, nvrtc.path);
    for (int i = 0; i < nvrtc.sm_count; i++) {
        char isa[16];
        kg_cuda_format_isa(nvrtc.sms[i], isa, sizeof isa);
        kg_text_format(why, "%s %s", i ? "," : "", isa);
    }
}

static enum kg_status count_devices(int *count, struct kg_error *error)
{
    struct kg_cuda_driver driver;
    struct kg_cuda_report report = {0};
    enum kg_status status = kg_cuda_driver_open(&driver, error);
    if (!status)
        status = kg_cuda_ask(&driver, 0, &report, error);
    if (!status && report.count == 0)
        status = kg_cuda_error(&driver, KG_CUDA_NO_DEVICE, "asking the CUDA driver", error);
    *count = report.count;
    return status;
}

static int probe(struct kg_text *why)
{
    struct kg_error error = {0};
    int count;
    if (count_devices(&count, &error) == KG_OK)
        return count;
    kg_text_add(why, error.text);
    describe_compiler(why);
    return 0;
}

static void close_cuda(struct kg_device *device)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    kg_cuda_context_drop(cuda);
    pthread_mutex_destroy(&cuda->context.lock);
    kg_objects_close(device);
    free(cuda);
}

static struct kg_cuda_device *make_device(int ordinal, struct kg_error *error)
{
    struct kg_cuda_device *cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        kg_error_memory(error, "a device");
        return NULL;
    }
    cuda->base.backend = &kg_cuda_backend;
    cuda->ordinal = ordinal;
    pthread_mutex_init(&cuda->context.lock, NULL);
    return cuda;
}

// The last step of opening: `status` is the result of the previous steps.
static enum kg_status finish(struct kg_cuda_device *cuda, enum kg_status status, const char *cache,
                             struct kg_device **device, struct kg_error *error)
{
    if (!status)
        status = kg_objects_open(&cuda->base, cache, error);
    if (status) {
        close_cuda(&cuda->base);
        return status;
    }
    kg_cuda_compiler_find(cuda, cuda->driver.version / 1000);
    *device = &cuda->base;
    return KG_OK;
}

enum kg_status kg_cuda_open_described(const char *name, const char *cache,
                                      struct kg_device **device, struct kg_error *error)
{
    *device = NULL;
    struct kg_cuda_device *cuda = make_device(-1, error);
    if (!cuda)
        return KG_ERROR_MEMORY;
    cuda->base.is_described = true;
    return finish(cuda, kg_cuda_describe(name, &cuda->base.facts, error), cache, device, error);
}

static enum kg_status read_device(struct kg_cuda_device *cuda, struct kg_error *error)
{
    struct kg_cuda_report report;
    enum kg_status status = kg_cuda_driver_open(&cuda->driver, error);
    if (!status)
        status = kg_cuda_ask(&cuda->driver, cuda->ordinal, &report, error);
    if (status)
        return status;
    if (report.count == 0)
        return kg_cuda_error(&cuda->driver, KG_CUDA_NO_DEVICE, "asking the CUDA driver", error);
    if (cuda->ordinal >= report.count)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "no device 'cuda:%d': this machine has %d of its kind, from 0",
                            cuda->ordinal, report.count);
    cuda->base.facts = report.facts;
    snprintf(cuda->base.driver, sizeof cuda->base.driver, "%s", report.driver);
    return KG_OK;
}

static enum kg_status open_cuda(int ordinal, const char *cache, int threads,
                                struct kg_device **device, struct kg_error *error)
{
    (void)threads;
    *device = NULL;
    struct kg_cuda_device *cuda = make_device(ordinal, error);
    if (!cuda)
        return KG_ERROR_MEMORY;
    enum kg_status status = read_device(cuda, error);
    if (status == KG_ERROR_MISSING)
        kg_error_prefix(error, "no cuda device");
    return finish(cuda, status, cache, device, error);
}

const struct kg_backend kg_cuda_backend = {
    .name = "cuda",
    .runs_grids = true,
    .dlpack = 2,
    .computes_apart = true,
    .needs_worker = true,
    .probe = probe,
    .open = open_cuda,
    .close = close_cuda,
    .compile = kg_cuda_compile,
    .load = kg_cuda_load,
    .unload = kg_cuda_unload,
    .launch = kg_cuda_launch,
    .enter = kg_cuda_begin,
    .leave = kg_cuda_end,
    .encode = kg_cuda_encode,
    .allocate = kg_cuda_allocate,
    .release = kg_cuda_release,
    .copy = kg_cuda_copy,
    .fill = kg_cuda_fill,
    .digest = kg_cuda_digest,
    .compile_own = kg_cuda_compile_digest,
    .may_fork = kg_cuda_may_fork,
    .now = kg_cuda_now,
    .start = kg_cuda_start,
    .stop = kg_cuda_stop,
    .flush = kg_cuda_flush,
    .clock = kg_cuda_clock,
    .sanitizers = kg_cuda_sanitizers,
    .record = kg_cuda_record,
    .record_for = kg_cuda_record_for,
    .renew = kg_cuda_renew,
    .may_replay = kg_cuda_may_replay,
    .replay = kg_cuda_replay,
    .forget = kg_cuda_forget,
};
