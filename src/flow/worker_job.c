// Errands, from both sides: see worker_job.h. One program does one errand and ends.

#include "flow/worker_job.h"

#include "device/child.h"
#include "flow/worker_job_text.h"
#include "tune/worker.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "kernelgen-worker"
#define MOST_BYTES ((size_t)1 << 20) // of an answer
#define COMPILE_SECONDS 120.0

// The program's side.

static enum kg_status answer_plan(struct kg_session *session, const struct kg_worker_job *job,
                                  const struct kg_problem *problem, struct kg_device *device,
                                  struct kg_text *answer, struct kg_error *error)
{
    struct kg_plan *plan;
    enum kg_status status = kg_flow_plan(session, problem, device, job->rigor, job->seconds,
                                         job->choice, NULL, &plan, error);
    if (status)
        return status;
    struct kg_worker_job_answer head = {.found = plan->found, .rigor = plan->rigor};
    head.found.choice = (struct kg_choice){0}; // its addresses are ours
    head.found.seconds = plan->seconds;
    head.found.spread = plan->spread;
    kg_text_add_bytes(answer, (const char *)&head, sizeof head);
    kg_text_add(answer, plan->choice);
    kg_flow_plan_free(plan);
    return KG_OK;
}

static enum kg_status make_plan(struct kg_session *session, const struct kg_problem *problem,
                                struct kg_device *device, const char *text, struct kg_plan **plan,
                                struct kg_error *error)
{
    struct kg_choice choice;
    *plan = NULL;
    if (!text || !kg_choice_read(problem, &device->facts, kg_session_target(device), text, &choice))
        return kg_error_set(error, KG_ERROR_CORRUPT, "a worker's job's choice does not fit");
    return kg_flow_plan_of(session, problem, device, &choice, plan, error);
}

static enum kg_status answer_verify(struct kg_session *session, const struct kg_worker_job *job,
                                    const struct kg_problem *problem, struct kg_device *device,
                                    struct kg_text *answer, struct kg_error *error)
{
    struct kg_plan *plan;
    struct kg_verdict verdict = {0};
    enum kg_status status = make_plan(session, problem, device, job->choice, &plan, error);
    if (!status)
        status = kg_flow_verify(plan, job->seed, &verdict, error);
    kg_text_add_bytes(answer, (const char *)&verdict, sizeof verdict);
    kg_flow_plan_free(plan);
    return status;
}

static enum kg_status answer_verify_file(struct kg_session *session,
                                         const struct kg_worker_job *job,
                                         const struct kg_problem *problem, struct kg_device *device,
                                         struct kg_text *answer, struct kg_error *error)
{
    struct kg_verdict verdict;
    enum kg_status status =
        kg_flow_verify_file(session, problem, device, job->path, job->seed, &verdict, error);
    kg_text_add_bytes(answer, (const char *)&verdict, sizeof verdict);
    return status;
}

static enum kg_status answer_bench(struct kg_session *session, const struct kg_worker_job *job,
                                   const struct kg_problem *problem, struct kg_device *device,
                                   struct kg_text *answer, struct kg_error *error)
{
    struct kg_plan *plan, *rival = NULL;
    struct kg_bench_result result = {0};
    double rival_seconds = 0;
    enum kg_status status = make_plan(session, problem, device, job->choice, &plan, error);
    if (!status && job->rival)
        status = make_plan(session, problem, device, job->rival, &rival, error);
    if (!status)
        status = kg_flow_bench(plan, rival, &result, &rival_seconds, error);
    kg_text_add_bytes(answer, (const char *)&result, sizeof result);
    kg_text_add_bytes(answer, (const char *)&rival_seconds, sizeof rival_seconds);
    kg_flow_plan_free(plan);
    kg_flow_plan_free(rival);
    return status;
}

static enum kg_status do_job(const struct kg_worker_job *job, const struct kg_problem *problem,
                             struct kg_text *answer, struct kg_error *error)
{
    static enum kg_status (*const answers[])(
        struct kg_session * session, const struct kg_worker_job *job,
        const struct kg_problem *problem, struct kg_device *device, struct kg_text *answer,
        struct kg_error *error) = {
        [KG_WORKER_JOB_PLAN] = answer_plan,
        [KG_WORKER_JOB_VERIFY] = answer_verify,
        [KG_WORKER_JOB_VERIFY_FILE] = answer_verify_file,
        [KG_WORKER_JOB_BENCH] = answer_bench,
    };
    struct kg_session session = {.protocol = job->protocol,
                                 .home = job->home,
                                 .file_path = job->wisdom,
                                 .takes_nearest = job->takes_nearest};
    struct kg_device *device = NULL;
    struct kg_worker_job_head head = {0};
    kg_text_add_bytes(answer, (const char *)&head, sizeof head);
    if ((unsigned)job->kind >= sizeof answers / sizeof answers[0] || !job->device)
        return kg_error_set(error, KG_ERROR_CORRUPT, "a worker's job of no known kind");
    if (!job->home)
        kg_error_set(&session.missing, KG_ERROR_IO, "no place for records");
    enum kg_status status = kg_session_open(&session, NULL, error);
    if (!status)
        status = kg_device_open(job->device, job->cache, 0, &device, error);
    if (!status)
        status = answers[job->kind](&session, job, problem, device, answer, error);
    if (!answer->failed)
        memcpy(answer->data, session.unrecorded, sizeof session.unrecorded);
    kg_device_close(device);
    kg_store_close(session.file);
    kg_store_close(session.store);
    return status;
}

static enum kg_status serve(void *user, const void *request, size_t length, struct kg_text *answer,
                            struct kg_error *error)
{
    (void)user;
    struct kg_arena arena = {0};
    struct kg_worker_job job;
    struct kg_problem *problem;
    enum kg_status status = kg_worker_job_read(request, length, &arena, &job, &problem, error);
    if (!status)
        status = do_job(&job, problem, answer, error);
    kg_problem_free(problem);
    kg_arena_free(&arena);
    return status;
}

_Noreturn void kg_worker_job_serve(int argc, char **argv)
{
    const struct kg_child_service service = {.serve = serve};
    kg_child_serve(&service, argc, argv);
}

// The library's side.

// The folder of the library, or of the program it is part of. The caller frees it.
static char *own_folder(void)
{
    Dl_info info;
    void (*const here)(int, char **) = kg_worker_job_serve;
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

// The caller frees it; NULL: there is none.
static char *find_program(void)
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
    char *program = find_program();
    free(program);
    return program != NULL;
}

// Takes the head off an answer.
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

// Starts the program, tells it, and waits for what it says.
static enum kg_status send(struct kg_session *session, const struct kg_problem *problem,
                           struct kg_device *device, struct kg_worker_job *job,
                           struct kg_text *answer, struct kg_error *error)
{
    struct kg_text order = {0};
    struct kg_child *child = NULL;
    job->home = session->home;
    job->wisdom = session->file_path;
    job->takes_nearest = session->takes_nearest;
    job->protocol = session->protocol;
    job->device = device->name;
    job->cache = device->cache;
    *answer = (struct kg_text){0};
    char *program = find_program();
    enum kg_status status = KG_OK;
    if (!program)
        status = kg_error_set(error, KG_ERROR_MISSING, "there is no " PROGRAM);
    else if (!kg_worker_job_write(job, problem, &order))
        status = kg_error_memory(error, "a worker's job");
    if (!status)
        status = kg_child_spawn(program, &child, error);
    if (!status)
        status = kg_child_ask(child, order.data, order.length, 0, session->cancel, MOST_BYTES,
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
    if (answer->length == sizeof *verdict)
        memcpy(verdict, answer->data, sizeof *verdict);
    kg_text_free(answer);
    return status;
}

enum kg_status kg_worker_job_plan(struct kg_session *session, const struct kg_problem *problem,
                                  struct kg_device *device, enum kg_rigor rigor, double seconds,
                                  const char *hint, char **choice, struct kg_found *found,
                                  enum kg_rigor *reached, struct kg_error *error)
{
    struct kg_worker_job job = {
        .kind = KG_WORKER_JOB_PLAN, .rigor = rigor, .seconds = seconds, .choice = hint};
    struct kg_text answer;
    struct kg_worker_job_answer head;
    *choice = NULL;
    enum kg_status status = send(session, problem, device, &job, &answer, error);
    if (!status && answer.length <= sizeof head)
        status = kg_error_set(error, KG_ERROR_FAULT, "the worker's answer makes no sense");
    if (!status) {
        memcpy(&head, answer.data, sizeof head);
        *found = head.found;
        *reached = head.rigor;
        *choice = strdup(answer.data + sizeof head);
        status = *choice ? KG_OK : kg_error_memory(error, "a plan");
    }
    kg_text_free(&answer);
    return status;
}

enum kg_status kg_worker_job_verify(const struct kg_plan *plan, uint64_t seed,
                                    struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_VERIFY, .seed = seed, .choice = plan->choice};
    struct kg_text answer;
    *verdict = (struct kg_verdict){0};
    enum kg_status status = send(plan->session, plan->problem, plan->device, &job, &answer, error);
    return take_verdict(status, &answer, verdict);
}

enum kg_status kg_worker_job_verify_file(struct kg_session *session,
                                         const struct kg_problem *problem, struct kg_device *device,
                                         const char *path, uint64_t seed,
                                         struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_VERIFY_FILE, .seed = seed, .path = path};
    struct kg_text answer;
    *verdict = (struct kg_verdict){0};
    enum kg_status status = send(session, problem, device, &job, &answer, error);
    return take_verdict(status, &answer, verdict);
}

enum kg_status kg_worker_job_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                                   struct kg_bench_result *result, double *rival_seconds,
                                   struct kg_error *error)
{
    struct kg_worker_job job = {
        .kind = KG_WORKER_JOB_BENCH, .choice = plan->choice, .rival = rival ? rival->choice : NULL};
    struct kg_text answer;
    enum kg_status status = send(plan->session, plan->problem, plan->device, &job, &answer, error);
    if (!status && answer.length == sizeof *result + sizeof *rival_seconds) {
        memcpy(result, answer.data, sizeof *result);
        if (rival_seconds)
            memcpy(rival_seconds, answer.data + sizeof *result, sizeof *rival_seconds);
    }
    kg_text_free(&answer);
    return status;
}
