// See worker_serve.h. The program does one job and ends.

#include "flow/worker_serve.h"

#include "base/files.h"
#include "device/child.h"
#include "flow/plan_bench.h"
#include "flow/planner.h"
#include "flow/verify.h"
#include "flow/verify_files.h"
#include "flow/worker_job_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOB ((size_t)64 << 20) // bytes

static enum kg_status answer_plan(const struct kg_request *request, const struct kg_worker_job *job,
                                  struct kg_text *answer, struct kg_error *error)
{
    struct kg_plan *plan;
    struct kg_request asked = *request;
    asked.rigor = job->rigor;
    asked.seconds = job->seconds;
    asked.takes_nearest = job->takes_nearest;
    asked.hint = job->choice;
    asked.change = job->change;
    enum kg_status status = kg_flow_plan(&asked, &plan, error);
    if (status)
        return status;
    struct kg_worker_job_answer head = {.found = plan->found,
                                        .rigor = plan->rigor,
                                        .origin = (int)plan->origin,
                                        .verified = plan->verified};
    head.found.choice = (struct kg_choice){0}; // its pointers are of this process
    head.found.seconds = plan->seconds;
    head.found.spread = plan->spread;
    kg_text_add_bytes(answer, (const char *)&head, sizeof head);
    kg_text_add(answer, plan->choice);
    kg_flow_plan_free(plan);
    return KG_OK;
}

static enum kg_status make_plan(const struct kg_request *request, const char *text,
                                struct kg_plan **plan, struct kg_error *error)
{
    struct kg_choice choice;
    const struct kg_device *device = request->device;
    *plan = NULL;
    if (!text ||
        !kg_choice_read(request->problem, &device->facts, kg_target_of(device), text, &choice))
        return kg_error_set(error, KG_ERROR_CORRUPT, "a worker's job's choice does not fit");
    return kg_flow_plan_of(request, &choice, plan, error);
}

static enum kg_status answer_verify(const struct kg_request *request,
                                    const struct kg_worker_job *job, struct kg_text *answer,
                                    struct kg_error *error)
{
    struct kg_plan *plan;
    struct kg_verdict verdict = {0};
    enum kg_status status = make_plan(request, job->choice, &plan, error);
    if (!status)
        status = kg_flow_verify(plan, job->seed, &verdict, error);
    kg_text_add_bytes(answer, (const char *)&verdict, sizeof verdict);
    kg_flow_plan_free(plan);
    return status;
}

static enum kg_status answer_verify_file(const struct kg_request *request,
                                         const struct kg_worker_job *job, struct kg_text *answer,
                                         struct kg_error *error)
{
    struct kg_verdict verdict;
    enum kg_status status = kg_flow_verify_file(request, job->path, job->seed, &verdict, error);
    kg_text_add_bytes(answer, (const char *)&verdict, sizeof verdict);
    return status;
}

static enum kg_status answer_bench(const struct kg_request *request,
                                   const struct kg_worker_job *job, struct kg_text *answer,
                                   struct kg_error *error)
{
    struct kg_plan *plan, *rival = NULL;
    struct kg_bench_result result = {0};
    double rival_seconds = 0;
    enum kg_status status = make_plan(request, job->choice, &plan, error);
    if (!status && job->rival)
        status = make_plan(request, job->rival, &rival, error);
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
    static enum kg_status (*const answers[])(const struct kg_request *request,
                                             const struct kg_worker_job *job,
                                             struct kg_text *answer, struct kg_error *error) = {
        [KG_WORKER_JOB_PLAN] = answer_plan,
        [KG_WORKER_JOB_VERIFY] = answer_verify,
        [KG_WORKER_JOB_VERIFY_FILE] = answer_verify_file,
        [KG_WORKER_JOB_BENCH] = answer_bench,
    };
    struct kg_session session = {.protocol = job->protocol,
                                 .effort = job->effort,
                                 .exercises = job->exercises,
                                 .home = job->home,
                                 .file_path = job->wisdom};
    struct kg_request request = {.session = &session, .problem = problem};
    struct kg_worker_job_head head = {0};
    kg_text_add_bytes(answer, (const char *)&head, sizeof head);
    if ((unsigned)job->kind >= sizeof answers / sizeof answers[0] || !job->device)
        return kg_error_set(error, KG_ERROR_CORRUPT, "a worker's job of no known kind");
    if (!job->home)
        kg_error_set(&session.missing, KG_ERROR_IO, "no place for records");
    enum kg_status status = kg_session_open(&session, NULL, error);
    if (!status)
        status = kg_device_open(job->device, job->cache, 0, &request.device, error);
    if (!status)
        status = answers[job->kind](&request, job, answer, error);
    if (!answer->failed)
        memcpy(answer->data, session.unrecorded, sizeof session.unrecorded);
    kg_device_close(request.device);
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

// The answer's file: the error, then the bytes of the answer.
static int serve_files(const char *job, const char *place)
{
    char *request = NULL;
    size_t length = 0;
    struct kg_error error = {0};
    struct kg_text answer = {0}, whole = {0};
    enum kg_status status = kg_files_read(job, MAX_JOB, &request, &length, &error);
    if (!status)
        serve(NULL, request, length, &answer, &error);
    kg_text_add_bytes(&whole, (const char *)&error, sizeof error);
    kg_text_add_bytes(&whole, answer.data, answer.length);
    if (!whole.failed && !answer.failed)
        status = kg_files_publish(place, whole.data, whole.length, &error);
    if (status)
        fprintf(stderr, "%s\n", error.text);
    free(request);
    kg_text_free(&answer);
    kg_text_free(&whole);
    return status ? 1 : 0;
}

_Noreturn void kg_worker_serve(int argc, char **argv)
{
    const struct kg_child_service service = {.serve = serve};
    if (argc == 3)
        exit(serve_files(argv[1], argv[2]));
    kg_child_serve(&service, argc, argv);
}
