// The clock, timing by events, and flushing the cache.

#include "base/times.h"
#include "device/cuda/cuda_device.h"

// Twice the cache evicts all its contents, and takes long enough to hide the latency of a launch.
#define FLUSH_TIMES 2
#define FLUSH_LEAST ((size_t)64 << 20)

// A process that never used the driver may ask for the time too, and has nothing to wait for.
// Errors are reported by `start` and `stop`.
double kg_cuda_now(struct kg_device *device)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    bool pushed;
    if (kg_cuda_is_live(cuda) && kg_cuda_switch(cuda, &pushed) == 0) {
        cuda->driver.context_synchronize();
        kg_cuda_leave(cuda, pushed);
    }
    return kg_times_now();
}

static int make_events(struct kg_cuda_device *cuda)
{
    int result = 0;
    for (int i = 0; i < 2 && !result; i++)
        if (!cuda->context.events[i])
            result = cuda->driver.event_make(&cuda->context.events[i], 0);
    return result;
}

enum kg_status kg_cuda_start(struct kg_device *device, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    int result = make_events(cuda);
    if (!result)
        result = cuda->driver.event_record(cuda->context.events[0], NULL);
    if (result)
        status = kg_cuda_error(&cuda->driver, result, "timing a kernel", error);
    kg_cuda_leave(cuda, pushed);
    return status;
}

enum kg_status kg_cuda_stop(struct kg_device *device, double *seconds, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    const struct kg_cuda_driver *driver = &cuda->driver;
    bool pushed;
    *seconds = 0;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    float milliseconds = 0;
    int result = make_events(cuda);
    if (!result)
        result = driver->event_record(cuda->context.events[1], NULL);
    if (!result)
        result = driver->event_wait(cuda->context.events[1]);
    if (!result)
        result =
            driver->event_elapsed(&milliseconds, cuda->context.events[0], cuda->context.events[1]);
    if (result)
        status = kg_cuda_error(driver, result, "running kernels", error);
    else
        *seconds = 1e-3 * (double)milliseconds;
    kg_cuda_leave(cuda, pushed);
    return status;
}

// Asynchronous: later work on the NULL stream waits for it.
void kg_cuda_flush(struct kg_device *device)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    struct kg_cuda_context *context = &cuda->context;
    bool pushed;
    if (kg_cuda_enter(cuda, &pushed, NULL) != KG_OK)
        return;
    if (!context->flush_memory) {
        size_t bytes = FLUSH_TIMES * (size_t)cuda->base.facts.cache[3];
        context->flush_bytes = bytes < FLUSH_LEAST ? FLUSH_LEAST : bytes;
        if (cuda->driver.allocate(&context->flush_memory, context->flush_bytes) != 0)
            context->flush_memory = 0;
    }
    if (context->flush_memory)
        cuda->driver.fill(context->flush_memory, 0, context->flush_bytes, NULL);
    kg_cuda_leave(cuda, pushed);
}

static void find_nvml_device(struct kg_cuda_device *cuda)
{
    struct kg_cuda_context *context = &cuda->context;
    char bus[32] = "";
    context->nvml_asked = true;
    kg_nvml_open(&context->nvml);
    if (!context->nvml.library ||
        cuda->driver.device_bus(bus, (int)sizeof bus, context->device) != 0 ||
        context->nvml.device_by_bus(bus, &context->nvml_device) != 0)
        context->nvml_device = NULL;
}

double kg_cuda_clock(struct kg_device *device)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    struct kg_cuda_context *context = &cuda->context;
    unsigned megahertz = 0;
    if (!kg_cuda_is_live(cuda))
        return 0;
    if (!context->nvml_asked)
        find_nvml_device(cuda);
    if (!context->nvml_device ||
        context->nvml.device_clock(context->nvml_device, KG_NVML_CLOCK_SM, &megahertz) != 0)
        return 0;
    return 1e6 * megahertz;
}
