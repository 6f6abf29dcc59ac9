// A job with a result of fixed size, in a process of its own (device/child.h).

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
    return backend->shares_memory ? KG_ISOLATION_FORK : KG_ISOLATION_WORKER;
}

enum kg_status kg_worker_run_on(struct kg_device *device, kg_worker_job *job, void *user,
                                double seconds, const volatile int *cancel, void *result,
                                size_t size, struct kg_error *error)
{
    if (kg_worker_isolation(device) != KG_ISOLATION_NONE)
        return kg_worker_run(job, user, seconds, cancel, result, size, error);
    if (size > 0)
        memset(result, 0, size);
    return job(user, result, size, error);
}
