// Buffers of device memory behind a lock, each with the stream that used it last. There are as many
// as ever ran at once.

#include "flow/workspaces.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_CACHED 64 // beyond that many at once, buffers are released instead of cached

struct buffer {
    const void *stream;
    void *memory;
};

struct kg_workspaces {
    struct kg_device *device;
    size_t bytes;
    pthread_mutex_t lock;
    int cached;
    struct buffer buffers[MAX_CACHED];
};

struct kg_workspaces *kg_workspaces_create(struct kg_device *device, size_t bytes)
{
    struct kg_workspaces *workspaces = calloc(1, sizeof *workspaces);
    if (!workspaces)
        return NULL;
    workspaces->device = device;
    workspaces->bytes = bytes;
    pthread_mutex_init(&workspaces->lock, NULL);
    return workspaces;
}

void kg_workspaces_destroy(struct kg_workspaces *workspaces)
{
    if (!workspaces)
        return;
    for (int i = 0; i < workspaces->cached; i++)
        workspaces->device->backend->release(workspaces->device, workspaces->buffers[i].memory);
    pthread_mutex_destroy(&workspaces->lock);
    free(workspaces);
}

// The last buffer that was returned from the stream, or NULL.
static void *take_cached(struct kg_workspaces *workspaces, const void *stream)
{
    for (int i = workspaces->cached - 1; i >= 0; i--) {
        if (workspaces->buffers[i].stream != stream)
            continue;
        void *memory = workspaces->buffers[i].memory;
        workspaces->buffers[i] = workspaces->buffers[--workspaces->cached];
        return memory;
    }
    return NULL;
}

enum kg_status kg_workspaces_take(struct kg_workspaces *workspaces, const void *stream,
                                  void **memory, struct kg_error *error)
{
    *memory = NULL;
    if (workspaces->bytes == 0)
        return KG_OK;
    pthread_mutex_lock(&workspaces->lock);
    *memory = take_cached(workspaces, stream);
    pthread_mutex_unlock(&workspaces->lock);
    if (*memory)
        return KG_OK;
    return workspaces->device->backend->allocate(workspaces->device, workspaces->bytes, memory,
                                                 error);
}

void kg_workspaces_return(struct kg_workspaces *workspaces, const void *stream, void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&workspaces->lock);
    if (workspaces->cached < MAX_CACHED) {
        workspaces->buffers[workspaces->cached++] = (struct buffer){stream, memory};
        memory = NULL;
    }
    pthread_mutex_unlock(&workspaces->lock);
    if (memory)
        workspaces->device->backend->release(workspaces->device, memory);
}
