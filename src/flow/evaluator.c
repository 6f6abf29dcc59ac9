// See evaluator.h.

#include "flow/evaluator.h"

#include "flow/companions.h"
#include "flow/judging.h"
#include "flow/proof.h"
#include "flow/recorder.h"
#include "flow/worker_job.h"
#include "tune/compiling.h"

#include <pthread.h>
#include <stdlib.h>

#define COMPILE_SECONDS 120.0 // for one kernel; a longer time is a hang
#define JUDGE_SECONDS 120.0   // one kernel on all cases; a longer time is a hang

void kg_evaluator_close(struct kg_evaluator *evaluator)
{
    if (!evaluator)
        return;
    kg_judge_free(evaluator->judge);
    kg_gate_free(evaluator->gate);
    kg_problem_free(evaluator->counterpart);
    free(evaluator);
}

static void add(struct kg_compilation *items, int *count, const struct kg_problem *problem,
                const struct kg_choice *choice)
{
    items[*count].problem = problem;
    items[(*count)++].choice = *choice;
}

// The choices that a build compares with the guess.
static void add_companions(const struct kg_evaluator *evaluator, const struct kg_choice *guess,
                           struct kg_compilation *items, int *count)
{
    const struct kg_search *terms = &evaluator->terms;
    struct kg_text text = {0};
    struct kg_choice choice;
    kg_flow_choose_baseline(terms->device, terms->problem, &choice);
    add(items, count, terms->problem, &choice);
    kg_choice_print(guess, &text);
    if (evaluator->counterpart && !text.failed) {
        kg_flow_choose_counterpart(terms->device, evaluator->counterpart, kg_text_string(&text),
                                   &choice);
        add(items, count, evaluator->counterpart, &choice);
    }
    kg_text_free(&text);
}

// Whether there is an earlier outcome of this choice. Then a search continues it, and tries other
// candidates first.
static bool is_known(const struct kg_evaluator *evaluator, const struct kg_key *key,
                     const struct kg_choice *choice)
{
    struct kg_text text = {0};
    struct kg_outcome outcome;
    kg_choice_print(choice, &text);
    bool found = kg_proof_find(&evaluator->request, key, kg_text_string(&text), &outcome);
    kg_text_free(&text);
    return found;
}

// Compilers that run while the gate is made.
struct compiling {
    const struct kg_search *terms;
    struct kg_compilation items[KG_MAX_FORESEEN + 2];
    int count;
    pthread_t thread, own, file;
    bool has_thread, has_own, has_file;
};

static void list_ahead(const struct kg_evaluator *evaluator, const struct kg_ahead *ahead,
                       struct compiling *compiling)
{
    struct kg_search search = evaluator->terms;
    search.rigor = evaluator->request.rigor;
    bool searches = search.rigor != KG_RIGOR_ESTIMATE && search.rigor != KG_RIGOR_WISDOM;
    struct kg_choice *choices = calloc(KG_MAX_FORESEEN, sizeof *choices);
    struct kg_learned learned;
    if (!choices)
        return; // each is then compiled when it is needed
    kg_recorder_learned(&evaluator->request, &learned);
    if (searches)
        kg_recorder_favourites(&evaluator->request, &learned);
    search.user = &learned;
    search.prior = learned.patterns.count > 0 ? kg_recorder_prior : NULL;
    search.favourites = learned.favourites.count > 0 ? kg_recorder_offer : NULL;
    int foreseen = kg_search_foresee(&search, choices);
    kg_recorder_forget(&learned);
    if (!searches || is_known(evaluator, ahead->key, &choices[0]))
        foreseen = 1;
    for (int i = 0; i < foreseen; i++)
        add(compiling->items, &compiling->count, search.problem, &choices[i]);
    if (ahead->build)
        add_companions(evaluator, &choices[0], compiling->items, &compiling->count);
    free(choices);
}

static void *compile_listed(void *argument)
{
    struct compiling *compiling = argument;
    const struct kg_search *terms = compiling->terms;
    kg_compile_all(terms->device, compiling->items, compiling->count, COMPILE_SECONDS, 0, false,
                   terms->cancel, NULL);
    return NULL;
}

static void *compile_own(void *argument)
{
    struct kg_device *device = argument;
    device->backend->compile_own(device);
    return NULL;
}

// Compiles the guess, the first item, from the file that a build keeps of it.
static void *compile_file(void *argument)
{
    const struct compiling *compiling = argument;
    const struct kg_search *terms = compiling->terms;
    struct kg_text source = {0};
    struct kg_binary binary;
    kg_flow_compile_file(terms->problem, terms->device, &compiling->items[0].choice, &source,
                         &binary, NULL);
    kg_binary_free(&binary);
    kg_text_free(&source);
    return NULL;
}

// NULL if nothing is compiled ahead.
static struct compiling *start_compiling(const struct kg_evaluator *evaluator,
                                         const struct kg_ahead *ahead)
{
    struct kg_device *device = evaluator->terms.device;
    if (!ahead || !device->backend->computes_apart)
        return NULL;
    struct compiling *compiling = calloc(1, sizeof *compiling);
    if (!compiling)
        return NULL;
    compiling->terms = &evaluator->terms;
    compiling->has_own = device->backend->compile_own &&
                         pthread_create(&compiling->own, NULL, compile_own, device) == 0;
    list_ahead(evaluator, ahead, compiling);
    compiling->has_thread =
        pthread_create(&compiling->thread, NULL, compile_listed, compiling) == 0;
    compiling->has_file = ahead->files && compiling->count > 0 &&
                          evaluator->terms.target->has_assembly &&
                          pthread_create(&compiling->file, NULL, compile_file, compiling) == 0;
    return compiling;
}

static void await_compiling(struct compiling *compiling)
{
    double start = kg_times_now(), work = 0;
    if (!compiling)
        return;
    if (compiling->has_thread)
        pthread_join(compiling->thread, NULL);
    if (compiling->has_own)
        pthread_join(compiling->own, NULL);
    if (compiling->has_file)
        pthread_join(compiling->file, NULL);
    for (int i = 0; i < compiling->count; i++) {
        work += compiling->items[i].built ? compiling->items[i].built->compile_work : 0;
        kg_built_free(compiling->items[i].built); // it is in the cache
    }
    kg_times_add(compiling->terms->times, KG_ACTIVITY_COMPILE, kg_times_now() - start, work);
    free(compiling);
}

static struct kg_search terms_of(const struct kg_evaluator *evaluator)
{
    const struct kg_request *request = &evaluator->request;
    struct kg_session *session = request->session;
    return (struct kg_search){
        .device = request->device,
        .problem = request->problem,
        .counterpart = evaluator->counterpart,
        .target = kg_target_of(request->device),
        .protocol = session->protocol,
        .cancel = session->cancel,
        .times = &session->times,
    };
}

enum kg_status kg_evaluator_stay(struct kg_evaluator *evaluator, struct kg_error *error)
{
    const struct kg_request *request = &evaluator->request;
    enum kg_status status = KG_OK;
    evaluator->is_elsewhere = false;
    if (evaluator->judged)
        status =
            kg_flow_gate(request, 0, evaluator->counterpart != NULL, 0, &evaluator->gate, error);
    evaluator->terms.gate = evaluator->gate;
    if (status)
        return status;
    kg_session_warn(request->session, request->device);
    return kg_judge_make(&evaluator->terms, &evaluator->judge, error);
}

enum kg_status kg_evaluator_open(const struct kg_request *request, bool judged,
                                 const struct kg_ahead *ahead, struct kg_evaluator **out,
                                 struct kg_error *error)
{
    *out = NULL;
    struct kg_evaluator *evaluator = calloc(1, sizeof *evaluator);
    if (!evaluator)
        return kg_error_memory(error, "a place for kernels");
    evaluator->request = *request;
    enum kg_status status =
        judged ? kg_flow_counterpart(request->problem, &evaluator->counterpart, error) : KG_OK;
    if (status) {
        kg_evaluator_close(evaluator);
        return status;
    }
    evaluator->terms = terms_of(evaluator);
    evaluator->judged = judged;
    evaluator->is_elsewhere = kg_worker_job_is_wanted(request->device);
    struct compiling *compiling =
        evaluator->is_elsewhere ? NULL : start_compiling(evaluator, ahead);
    if (!evaluator->is_elsewhere)
        status = kg_evaluator_stay(evaluator, error);
    await_compiling(compiling);
    if (status) {
        kg_evaluator_close(evaluator);
        return status;
    }
    *out = evaluator;
    return KG_OK;
}

enum kg_status kg_evaluator_judge(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  struct kg_judgement *judgement, struct kg_error *error)
{
    struct kg_built built = *plan->built; // a copy: the plan's own may be in use
    struct kg_request request = kg_flow_request_of(plan);
    enum kg_status status = KG_OK;
    *judgement = (struct kg_judgement){.kind = KG_OUTCOME_WRONG};
    if (evaluator->counterpart)
        status = kg_flow_build_counterpart(&request, plan->choice, evaluator->counterpart,
                                           &built.counterpart, error);
    if (!status)
        status = kg_judge_one(evaluator->judge, &built, JUDGE_SECONDS, 0, judgement, error);
    kg_built_free(built.counterpart);
    return status;
}

enum kg_status kg_evaluator_verify(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                   struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_built built = *plan->built; // a copy: the plan's own may be in use
    struct kg_request request = kg_flow_request_of(plan);
    enum kg_status status = KG_OK;
    *verdict = (struct kg_verdict){0};
    if (evaluator->is_elsewhere) {
        status = plan->override ? KG_ERROR_MISSING
                                : kg_worker_job_verify(&request, plan->choice, 0, verdict, error);
        if (status != KG_ERROR_MISSING)
            return status;
        status = kg_evaluator_stay(evaluator, error);
        if (status)
            return status;
    }
    if (evaluator->counterpart && !plan->override)
        status = kg_flow_build_counterpart(&request, plan->choice, evaluator->counterpart,
                                           &built.counterpart, error);
    if (!status)
        status = kg_judge_verify(evaluator->judge, &built, JUDGE_SECONDS, verdict, error);
    kg_built_free(built.counterpart);
    return status;
}
