// A job with a result of fixed size in a separate process (device/child.h).

#include "tune/worker.h"

#include "device/child.h"

#include <stdlib.h>
#include <string.h>

struct task {
    kg_worker_job *job;
    void *user;
    size_t size;
};

static enum kg_status work(void *user, struct kg_text *answer, struct kg_error *error)
{
    const struct task *task = user;
    char *result = calloc(1, task->size ? task->size : 1);
    if (!result)
        return kg_error_memory(error, "a worker's result");
    enum kg_status status = task->job(task->user, result, task->size, error);
    kg_text_add_bytes(answer, result, task->size);
    free(result);
    return status;
}

enum kg_status kg_worker_run(kg_worker_job *job, void *user, double seconds,
                             const volatile int *cancel, void *result, size_t size,
                             struct kg_error *error)
{
    struct task task = {.job = job, .user = user, .size = size};
    struct kg_text answer = {0};
    if (size > 0)
        memset(result, 0, size);
    enum kg_status status = kg_child_run(work, &task, seconds, cancel, size, &answer, error);
    if (answer.length == size && size > 0)
        memcpy(result, answer.data, size);
    kg_text_free(&answer);
    return status;
}

enum kg_isolation kg_worker_isolation(struct kg_device *device)
{
    const struct kg_backend *backend = device->backend;
    if (backend->may_fork && !backend->may_fork(device))
        return KG_ISOLATION_NONE;
    return backend->needs_worker ? KG_ISOLATION_WORKER : KG_ISOLATION_FORK;
}

struct use {
    struct kg_device *device;
    struct task task;
};

enum request { READY, WORK };

// The first use of a device includes the time to open it.
static enum kg_status make_ready(struct kg_device *device, struct kg_error *error)
{
    void *memory;
    enum kg_status status = device->backend->allocate(device, 1, &memory, error);
    if (!status)
        device->backend->release(device, memory);
    return status;
}

static enum kg_status serve(void *user, const void *request, size_t length, struct kg_text *answer,
                            struct kg_error *error)
{
    struct use *use = user;
    (void)length;
    return *(const enum request *)request == READY ? make_ready(use->device, error)
                                                   : work(&use->task, answer, error);
}

static enum kg_status ask(struct kg_child *child, enum request request, double seconds,
                          const volatile int *cancel, void *result, size_t size,
                          struct kg_error *error)
{
    struct kg_text answer;
    enum kg_status status =
        kg_child_ask(child, &request, sizeof request, seconds, cancel, size, &answer, error);
    if (answer.length == size && size > 0)
        memcpy(result, answer.data, size);
    kg_text_free(&answer);
    return status;
}

static enum kg_status run_when_ready(struct use *use, double seconds, const volatile int *cancel,
                                     void *result, struct kg_error *error)
{
    const struct kg_child_service service = {.user = use, .serve = serve};
    struct kg_child *child;
    struct kg_error why = {0};
    enum kg_status status = kg_child_start(&service, &child, error);
    if (status)
        return status;
    status = ask(child, READY, KG_READY_SECONDS, cancel, NULL, 0, &why);
    if (status == KG_ERROR_FAULT || status == KG_ERROR_TIMEOUT)
        status = KG_ERROR_MISSING;
    if (status)
        kg_error_set(error, status, "%s cannot be used: %s", use->device->facts.name, why.text);
    else
        status = ask(child, WORK, seconds, cancel, result, use->task.size, error);
    kg_child_stop(child);
    return status;
}

enum kg_status kg_worker_run_on(struct kg_device *device, kg_worker_job *job, void *user,
                                double seconds, const volatile int *cancel, void *result,
                                size_t size, struct kg_error *error)
{
    enum kg_isolation isolation = kg_worker_isolation(device);
    struct use use = {device, {.job = job, .user = user, .size = size}};
    if (isolation == KG_ISOLATION_FORK)
        return kg_worker_run(job, user, seconds, cancel, result, size, error);
    if (size > 0)
        memset(result, 0, size);
    return isolation == KG_ISOLATION_NONE ? job(user, result, size, error)
                                          : run_when_ready(&use, seconds, cancel, result, error);
}
