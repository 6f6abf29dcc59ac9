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

enum kg_status kg_worker_run_confined(kg_worker_job *job, void *user, double seconds,
                                      const volatile int *cancel, void *result, size_t size,
                                      struct kg_error *error)
{
    const struct kg_worker_step step = {job, seconds, NULL};
    const struct kg_confinement confinement = {0};
    return kg_worker_run_steps(&step, 1, user, &confinement, cancel, result, size, error);
}

// What the child knows of its steps.
struct sequence {
    const struct kg_worker_step *steps;
    void *user;
    char *result;
    size_t size;
};

// The request is the number of the step.
static enum kg_status serve_step(void *user, const void *request, size_t length,
                                 struct kg_text *answer, struct kg_error *error)
{
    const struct sequence *sequence = user;
    (void)length;
    const struct kg_worker_step *step = &sequence->steps[*(const int *)request];
    enum kg_status status = step->job(sequence->user, sequence->result, sequence->size, error);
    kg_text_add_bytes(answer, sequence->result, sequence->size);
    return status;
}

static enum kg_status run_steps(const struct sequence *sequence, int count, struct kg_child *child,
                                const volatile int *cancel, void *result, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++) {
        struct kg_text answer;
        const struct kg_worker_step *step = &sequence->steps[i];
        struct kg_error own = {0};
        status =
            kg_child_ask(child, &i, sizeof i, step->seconds, cancel, sequence->size, &answer, &own);
        if (answer.length == sequence->size && answer.length > 0)
            memcpy(result, answer.data, answer.length);
        kg_text_free(&answer);
        bool ended = status == KG_ERROR_FAULT || status == KG_ERROR_TIMEOUT;
        if (status)
            kg_error_set(error, status, ended && step->when ? "%s %s" : "%s", own.text, step->when);
    }
    return status;
}

enum kg_status kg_worker_run_steps(const struct kg_worker_step *steps, int count, void *user,
                                   const struct kg_confinement *confinement,
                                   const volatile int *cancel, void *result, size_t size,
                                   struct kg_error *error)
{
    struct sequence sequence = {steps, user, calloc(1, size ? size : 1), size};
    struct kg_child_service service = {
        .user = &sequence, .serve = serve_step, .confinement = confinement};
    struct kg_child *child = NULL;
    if (size > 0)
        memset(result, 0, size);
    enum kg_status status = sequence.result ? kg_child_start(&service, &child, error)
                                            : kg_error_memory(error, "a worker's result");
    if (!status)
        status = run_steps(&sequence, count, child, cancel, result, error);
    kg_child_stop(child);
    free(sequence.result);
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
        return kg_worker_run_confined(job, user, seconds, cancel, result, size, error);
    if (size > 0)
        memset(result, 0, size);
    return isolation == KG_ISOLATION_NONE ? job(user, result, size, error)
                                          : run_when_ready(&use, seconds, cancel, result, error);
}
