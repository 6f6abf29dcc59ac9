// See loader.h.

#include "base/loader.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void *kg_loader_open(const char *path)
{
    kg_loader_hold();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    kg_loader_release();
    return library;
}

void kg_loader_close(void *library)
{
    kg_loader_hold();
    dlclose(library);
    kg_loader_release();
}

void kg_loader_hold(void)
{
    pthread_mutex_lock(&turn);
}

void kg_loader_release(void)
{
    pthread_mutex_unlock(&turn);
}
