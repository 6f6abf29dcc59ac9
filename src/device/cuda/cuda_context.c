// The driver in this process: the first call that needs it initialises it, and every call makes its
// context current without disturbing other users.

#include "device/cuda/cuda_device.h"

#include <unistd.h>

static enum kg_status initialise(struct kg_cuda_device *cuda, struct kg_error *error)
{
    const struct kg_cuda_driver *driver = &cuda->driver;
    struct kg_cuda_context *context = &cuda->context;
    int result = driver->init(0);
    if (!result)
        result = driver->device_get(&context->device, cuda->ordinal);
    if (!result)
        result = driver->context_retain(&context->handle, context->device);
    if (result)
        return kg_cuda_error(driver, result, "initialising the CUDA driver", error);
    atomic_store(&context->owner, (int)getpid());
    return KG_OK;
}

enum kg_status kg_cuda_refuse_described(const struct kg_cuda_device *cuda, struct kg_error *error)
{
    return kg_error_set(error, KG_ERROR_MISSING,
                        "there is no GPU behind %s: it was described to compile for it, and "
                        "nothing can run. Open cuda:0 where there is one",
                        cuda->base.facts.isa);
}

static enum kg_status ensure_live(struct kg_cuda_device *cuda, struct kg_error *error)
{
    struct kg_cuda_context *context = &cuda->context;
    if (cuda->ordinal < 0)
        return kg_cuda_refuse_described(cuda, error);
    int owner = atomic_load_explicit(&context->owner, memory_order_acquire);
    if (owner == (int)getpid())
        return KG_OK;
    if (owner != 0)
        return kg_cuda_error(&cuda->driver, KG_CUDA_NOT_INITIALIZED, "using the CUDA driver",
                             error);
    pthread_mutex_lock(&context->lock);
    enum kg_status status = atomic_load(&context->owner) ? KG_OK : initialise(cuda, error);
    pthread_mutex_unlock(&context->lock);
    return status;
}

// If the thread has no context, ours stays current, so that the next call finds it. Otherwise ours
// is pushed, and popped afterwards.
int kg_cuda_switch(const struct kg_cuda_device *cuda, bool *pushed)
{
    const struct kg_cuda_driver *driver = &cuda->driver;
    void *current = NULL;
    *pushed = false;
    int result = driver->context_current(&current);
    if (result || current == cuda->context.handle)
        return result;
    if (!current)
        return driver->context_set(cuda->context.handle);
    result = driver->context_push(cuda->context.handle);
    *pushed = !result;
    return result;
}

void kg_cuda_leave(const struct kg_cuda_device *cuda, bool pushed)
{
    void *ours;
    if (pushed)
        cuda->driver.context_pop(&ours);
}

enum kg_status kg_cuda_enter(struct kg_cuda_device *cuda, bool *pushed, struct kg_error *error)
{
    *pushed = false;
    enum kg_status status = ensure_live(cuda, error);
    if (status)
        return status;
    int result = kg_cuda_switch(cuda, pushed);
    return result ? kg_cuda_error(&cuda->driver, result, "using the device", error) : KG_OK;
}

enum kg_status kg_cuda_begin(struct kg_device *device, bool *pushed, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    if (atomic_load_explicit(&cuda->context.owner, memory_order_acquire) == 0)
        return kg_cuda_enter(cuda, pushed, error);
    int result = kg_cuda_switch(cuda, pushed);
    return result ? kg_cuda_error(&cuda->driver, result, "launching a kernel", error) : KG_OK;
}

void kg_cuda_end(struct kg_device *device, bool pushed)
{
    kg_cuda_leave((struct kg_cuda_device *)device, pushed);
}

bool kg_cuda_is_live(struct kg_cuda_device *cuda)
{
    return cuda->ordinal >= 0 &&
           atomic_load_explicit(&cuda->context.owner, memory_order_acquire) == (int)getpid();
}

bool kg_cuda_may_fork(struct kg_device *device)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    return cuda->ordinal < 0 || !kg_cuda_driver_in_use(&cuda->driver);
}

void kg_cuda_context_drop(struct kg_cuda_device *cuda)
{
    const struct kg_cuda_driver *driver = &cuda->driver;
    struct kg_cuda_context *context = &cuda->context;
    if (!kg_cuda_is_live(cuda))
        return;
    void *current = NULL;
    bool pushed;
    if (kg_cuda_switch(cuda, &pushed) == 0) {
        kg_cuda_unload(context->digest);
        context->digest = NULL;
        if (context->digest_sum)
            driver->release(context->digest_sum);
        if (context->flush_memory)
            driver->release(context->flush_memory);
        for (int i = 0; i < 2; i++)
            if (context->events[i])
                driver->event_free(context->events[i]);
        kg_cuda_leave(cuda, pushed);
    }
    if (driver->context_current(&current) == 0 && current == context->handle)
        driver->context_set(NULL);
    driver->context_release(context->device);
    atomic_store(&context->owner, 0);
}
