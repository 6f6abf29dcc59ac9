// Buffers of device memory behind a lock, each with the stream that used it last. There are as many
// as ever ran at once, and those that became too small: releasing memory waits for the device.

#include "flow/workspaces.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_CACHED 64 // beyond that many at once, buffers are released instead of cached

struct returned {
    const void *stream;
    struct kg_buffer buffer;
};

struct kg_workspaces {
    struct kg_device *device;
    pthread_mutex_t lock;
    int cached;
    struct returned cache[MAX_CACHED];
};

struct kg_workspaces *kg_workspaces_create(struct kg_device *device)
{
    struct kg_workspaces *workspaces = calloc(1, sizeof *workspaces);
    if (!workspaces)
        return NULL;
    workspaces->device = device;
    pthread_mutex_init(&workspaces->lock, NULL);
    return workspaces;
}

static void release(const struct kg_workspaces *workspaces, struct kg_buffer buffer)
{
    workspaces->device->backend->release(workspaces->device, buffer.memory);
}

void kg_workspaces_destroy(struct kg_workspaces *workspaces)
{
    if (!workspaces)
        return;
    for (int i = 0; i < workspaces->cached; i++)
        release(workspaces, workspaces->cache[i].buffer);
    pthread_mutex_destroy(&workspaces->lock);
    free(workspaces);
}

// The largest buffer that was returned from the stream, if it is large enough; it stays the same
// one from execution to execution, as recorded ones want it. Otherwise `*buffer` has no memory,
// only the bytes of the largest.
static void take_cached(struct kg_workspaces *workspaces, const void *stream, size_t bytes,
                        struct kg_buffer *buffer)
{
    int largest = -1;
    *buffer = (struct kg_buffer){NULL, 0};
    for (int i = 0; i < workspaces->cached; i++) {
        const struct returned *returned = &workspaces->cache[i];
        if (returned->stream == stream && returned->buffer.bytes > buffer->bytes) {
            largest = i;
            buffer->bytes = returned->buffer.bytes;
        }
    }
    if (largest < 0 || buffer->bytes < bytes)
        return;
    *buffer = workspaces->cache[largest].buffer;
    workspaces->cache[largest] = workspaces->cache[--workspaces->cached];
}

enum kg_status kg_workspaces_take(struct kg_workspaces *workspaces, const void *stream,
                                  size_t bytes, struct kg_buffer *buffer, struct kg_error *error)
{
    struct kg_device *device = workspaces->device;
    *buffer = (struct kg_buffer){NULL, 0};
    if (bytes == 0)
        return KG_OK;
    pthread_mutex_lock(&workspaces->lock);
    take_cached(workspaces, stream, bytes, buffer);
    pthread_mutex_unlock(&workspaces->lock);
    if (buffer->memory)
        return KG_OK;
    size_t doubled = 2 * buffer->bytes;
    buffer->bytes = bytes > doubled ? bytes : doubled;
    enum kg_status status =
        device->backend->allocate(device, buffer->bytes, &buffer->memory, error);
    if (status == KG_OK || buffer->bytes == bytes)
        return status;
    kg_error_clear(error);
    buffer->bytes = bytes;
    return device->backend->allocate(device, bytes, &buffer->memory, error);
}

void kg_workspaces_return(struct kg_workspaces *workspaces, const void *stream,
                          struct kg_buffer buffer)
{
    if (!buffer.memory)
        return;
    pthread_mutex_lock(&workspaces->lock);
    bool is_kept = workspaces->cached < MAX_CACHED;
    if (is_kept)
        workspaces->cache[workspaces->cached++] = (struct returned){stream, buffer};
    pthread_mutex_unlock(&workspaces->lock);
    if (!is_kept)
        release(workspaces, buffer);
}
