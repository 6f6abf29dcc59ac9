// The device's memory.

#include "device/cuda/cuda_device.h"

#include <stdio.h>

// The driver uses integers for addresses; the backend contract uses pointers.
static kg_cuda_pointer address(const void *memory)
{
    return (kg_cuda_pointer)(uintptr_t)memory;
}

static enum kg_status describe_shortage(const struct kg_cuda_device *cuda, size_t bytes,
                                        struct kg_error *error)
{
    size_t left = 0, total = 0;
    cuda->driver.memory_left(&left, &total);
    return kg_error_set(error, KG_ERROR_MEMORY,
                        "out of memory: %zu bytes on %s, which has %zu of %zu left", bytes,
                        cuda->base.facts.name, left, total);
}

enum kg_status kg_cuda_allocate(struct kg_device *device, size_t bytes, void **memory,
                                struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    *memory = NULL;
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    kg_cuda_pointer made = 0;
    int result = cuda->driver.allocate(&made, bytes ? bytes : 1);
    if (result == KG_CUDA_OUT_OF_MEMORY)
        status = describe_shortage(cuda, bytes, error);
    else if (result)
        status = kg_cuda_error(&cuda->driver, result, "allocating memory on the device", error);
    else
        *memory = (void *)(uintptr_t)made;
    kg_cuda_leave(cuda, pushed);
    return status;
}

// Memory of another process was freed with that process.
void kg_cuda_release(struct kg_device *device, void *memory)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    bool pushed;
    if (!memory || !kg_cuda_is_live(cuda) || kg_cuda_enter(cuda, &pushed, NULL) != KG_OK)
        return;
    cuda->driver.release(address(memory));
    kg_cuda_leave(cuda, pushed);
}

// Waits before the copy, for work on other streams, and after it, because copies within the device
// are asynchronous.
enum kg_status kg_cuda_copy(struct kg_device *device, void *to, const void *from, size_t bytes,
                            struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    const struct kg_cuda_driver *driver = &cuda->driver;
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    int result = driver->context_synchronize();
    if (result) {
        status = kg_cuda_error(driver, result, "running kernels", error);
    } else if (bytes > 0) {
        result = driver->copy(address(to), address(from), bytes);
        if (!result)
            result = driver->context_synchronize();
        if (result)
            status = kg_cuda_error(driver, result, "copying memory of the device", error);
    }
    kg_cuda_leave(cuda, pushed);
    return status;
}

// Asynchronous.
enum kg_status kg_cuda_fill(struct kg_device *device, void *memory, unsigned char value,
                            size_t bytes, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    bool pushed;
    enum kg_status status = kg_cuda_enter(cuda, &pushed, error);
    if (status)
        return status;
    int result = bytes > 0 ? cuda->driver.fill(address(memory), value, bytes, NULL) : 0;
    if (result)
        status = kg_cuda_error(&cuda->driver, result, "filling memory of the device", error);
    kg_cuda_leave(cuda, pushed);
    return status;
}
