// A stack of pieces of device memory behind a lock. It holds as many as ever ran at once.

#include "flow/workspaces.h"

#include <pthread.h>
#include <stdlib.h>

#define MOST_KEPT 64 // beyond that many at once, pieces are released instead of kept

struct kg_workspaces {
    struct kg_device *device;
    size_t bytes;
    pthread_mutex_t lock;
    int kept;
    void *pieces[MOST_KEPT];
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
    for (int i = 0; i < workspaces->kept; i++)
        workspaces->device->backend->release(workspaces->device, workspaces->pieces[i]);
    pthread_mutex_destroy(&workspaces->lock);
    free(workspaces);
}

enum kg_status kg_workspaces_take(struct kg_workspaces *workspaces, void **memory,
                                  struct kg_error *error)
{
    *memory = NULL;
    if (workspaces->bytes == 0)
        return KG_OK;
    pthread_mutex_lock(&workspaces->lock);
    if (workspaces->kept > 0)
        *memory = workspaces->pieces[--workspaces->kept];
    pthread_mutex_unlock(&workspaces->lock);
    if (*memory)
        return KG_OK;
    return workspaces->device->backend->allocate(workspaces->device, workspaces->bytes, memory,
                                                 error);
}

void kg_workspaces_return(struct kg_workspaces *workspaces, void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&workspaces->lock);
    if (workspaces->kept < MOST_KEPT) {
        workspaces->pieces[workspaces->kept++] = memory;
        memory = NULL;
    }
    pthread_mutex_unlock(&workspaces->lock);
    if (memory)
        workspaces->device->backend->release(workspaces->device, memory);
}
