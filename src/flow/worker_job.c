// See worker_job.h.

#include "flow/worker_job.h"

#include "device/child.h"
#include "tune/worker.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "kernelgen-worker"
#define MAX_BYTES ((size_t)1 << 20) // of an answer

// The folder of the library, or of the program that contains it. The caller frees it.
static char *own_folder(void)
{
    Dl_info info;
    bool (*const here)(struct kg_device *) = kg_worker_job_is_wanted;
    void *address;
    memcpy(&address, &here, sizeof address);
    char *path = NULL;
    if (dladdr(address, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        path = realpath(info.dli_fname, NULL);
    if (!path)
        path = realpath("/proc/self/exe", NULL);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    return path;
}

char *kg_worker_job_program(void)
{
    static const char *const places[] = {"", "/..", "/../libexec", "/../../libexec"};
    const char *wanted = getenv("KERNELGEN_WORKER");
    if (wanted)
        return *wanted && access(wanted, X_OK) == 0 ? strdup(wanted) : NULL;
    char *folder = own_folder(), *found = NULL;
    for (size_t i = 0; folder && i < sizeof places / sizeof places[0] && !found; i++) {
        struct kg_text path = {0};
        kg_text_format(&path, "%s%s/" PROGRAM, folder, places[i]);
        if (!path.failed && access(path.data, X_OK) == 0)
            found = strdup(path.data);
        kg_text_free(&path);
    }
    free(folder);
    return found;
}

bool kg_worker_job_is_wanted(struct kg_device *device)
{
    if (kg_worker_isolation(device) != KG_ISOLATION_NONE || !device->name[0])
        return false;
    char *program = kg_worker_job_program();
    free(program);
    return program != NULL;
}

// Removes the head of an answer.
static void take_head(struct kg_session *session, struct kg_text *answer)
{
    struct kg_worker_job_head head;
    if (answer->length < sizeof head)
        return;
    memcpy(&head, answer->data, sizeof head);
    memmove(answer->data, answer->data + sizeof head, answer->length - sizeof head + 1);
    answer->length -= sizeof head;
    head.unrecorded[KG_SESSION_UNRECORDED - 1] = '\0';
    if (head.unrecorded[0])
        kg_session_tell_unrecorded(session, head.unrecorded);
}

// Starts the program, sends the job, and waits for the answer.
static enum kg_status send(const struct kg_request *request, struct kg_worker_job *job,
                           struct kg_text *answer, struct kg_error *error)
{
    struct kg_text order = {0};
    struct kg_child *child = NULL;
    struct kg_session *session = request->session;
    job->home = session->home;
    job->wisdom = session->file_path;
    job->protocol = session->protocol;
    job->effort = session->effort;
    job->device = request->device->name;
    job->cache = request->device->cache;
    *answer = (struct kg_text){0};
    char *program = kg_worker_job_program();
    enum kg_status status = KG_OK;
    if (!program)
        status = kg_error_set(error, KG_ERROR_MISSING, "there is no " PROGRAM);
    else if (!kg_worker_job_write(job, request->problem, &order))
        status = kg_error_memory(error, "a worker's job");
    if (!status)
        status = kg_child_spawn(program, &child, error);
    if (!status)
        status = kg_child_ask(child, order.data, order.length, 0, session->cancel, MAX_BYTES,
                              answer, error);
    take_head(session, answer);
    if (status == KG_ERROR_MISSING && error)
        kg_session_tell(session, "%s: this process does it", error->text);
    kg_child_stop(child);
    kg_text_free(&order);
    free(program);
    return status;
}

static enum kg_status take_verdict(enum kg_status status, struct kg_text *answer,
                                   struct kg_verdict *verdict)
{
    *verdict = (struct kg_verdict){0};
    if (answer->length == sizeof *verdict)
        memcpy(verdict, answer->data, sizeof *verdict);
    kg_text_free(answer);
    return status;
}

enum kg_status kg_worker_job_plan(const struct kg_request *request, char **choice,
                                  struct kg_worker_job_answer *head, struct kg_error *error)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_PLAN,
                                .rigor = request->rigor,
                                .change = request->change,
                                .seconds = request->seconds,
                                .takes_nearest = request->takes_nearest,
                                .choice = request->hint};
    struct kg_text answer;
    *choice = NULL;
    enum kg_status status = send(request, &job, &answer, error);
    if (!status && answer.length <= sizeof *head)
        status = kg_error_set(error, KG_ERROR_FAULT, "the worker's answer makes no sense");
    if (!status) {
        memcpy(head, answer.data, sizeof *head);
        *choice = strdup(answer.data + sizeof *head);
        status = *choice ? KG_OK : kg_error_memory(error, "a plan");
    }
    kg_text_free(&answer);
    return status;
}

enum kg_status kg_worker_job_verify(const struct kg_request *request, const char *choice,
                                    uint64_t seed, struct kg_verdict *verdict,
                                    struct kg_error *error)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_VERIFY, .seed = seed, .choice = choice};
    struct kg_text answer;
    enum kg_status status = send(request, &job, &answer, error);
    return take_verdict(status, &answer, verdict);
}

enum kg_status kg_worker_job_verify_file(const struct kg_request *request, const char *path,
                                         uint64_t seed, struct kg_verdict *verdict,
                                         struct kg_error *error)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_VERIFY_FILE, .seed = seed, .path = path};
    struct kg_text answer;
    enum kg_status status = send(request, &job, &answer, error);
    return take_verdict(status, &answer, verdict);
}

enum kg_status kg_worker_job_bench(const struct kg_request *request, const char *choice,
                                   const char *rival, struct kg_bench_result *result,
                                   double *rival_seconds, struct kg_error *error)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_BENCH, .choice = choice, .rival = rival};
    struct kg_text answer;
    enum kg_status status = send(request, &job, &answer, error);
    if (!status && answer.length == sizeof *result + sizeof *rival_seconds) {
        memcpy(result, answer.data, sizeof *result);
        if (rival_seconds)
            memcpy(rival_seconds, answer.data + sizeof *result, sizeof *rival_seconds);
    }
    kg_text_free(&answer);
    return status;
}
