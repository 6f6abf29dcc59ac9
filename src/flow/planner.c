// A problem becomes a plan: what is known is used, what is not is searched for, and what is chosen
// is compiled, loaded and remembered.

#include "flow/planner.h"

#include "flow/evaluator.h"
#include "flow/recall.h"
#include "flow/recorder.h"
#include "flow/small.h"
#include "flow/worker_job.h"

#include <stdlib.h>

// What the plan owes to a search.
static void note_search(struct kg_plan *plan, const struct kg_found *found, enum kg_rigor rigor)
{
    plan->found = *found;
    plan->found.choice = plan->built->choice;
    plan->seconds = found->seconds;
    plan->spread = found->spread;
    plan->verified = true;
    plan->origin = KG_ORIGIN_SEARCH;
    plan->rigor = rigor;
}

// Searches where the request says, or in an evaluator of its own.
static enum kg_status run_search(const struct kg_request *request, struct kg_recorder *recorder,
                                 const char *const *hints, int hint_count, struct kg_found *found,
                                 struct kg_error *error)
{
    struct kg_evaluator *evaluator = request->evaluator, *own = NULL;
    struct kg_ahead ahead = {.key = recorder->key};
    enum kg_status status = KG_OK;
    if (!evaluator) {
        status = kg_evaluator_open(request, true, &ahead, &own, error);
        evaluator = own;
    }
    if (!status && evaluator->is_elsewhere) // where it could not be done
        status = kg_evaluator_stay(evaluator, error);
    if (!status) {
        struct kg_search search = evaluator->terms;
        search.judge = evaluator->judge;
        search.rigor = request->rigor;
        search.seconds = request->seconds;
        search.hints = hints;
        search.hint_count = hint_count;
        kg_recorder_attach(recorder, &search);
        status = kg_search_run(&search, found, error);
    }
    kg_evaluator_close(own);
    return status == KG_ERROR_CANCELLED && found->measured > 0 ? KG_OK : status;
}

static enum kg_status plan_by_search(const struct kg_request *request, const struct kg_key *key,
                                     const char *const *hints, int hint_count, struct kg_plan **out,
                                     struct kg_error *error)
{
    struct kg_recorder recorder = {.request = request, .key = key};
    struct kg_found found = {0};
    struct kg_plan *plan;
    enum kg_status status = run_search(request, &recorder, hints, hint_count, &found, error);
    if (status == KG_OK)
        status = kg_flow_plan_of(request, &found.choice, &plan, error);
    if (status != KG_OK)
        return status;
    // A search cut short knows what it measured, not what its rigor promises.
    note_search(plan, &found, found.complete ? request->rigor : KG_RIGOR_ESTIMATE);
    if (found.seconds > 0) // else time was up before anything was measured
        status = kg_recorder_learn(&recorder, plan, error);
    if (status == KG_OK && recorder.error.status != KG_OK)
        status = kg_error_set(error, recorder.error.status, "%s", recorder.error.text);
    if (status == KG_OK)
        *out = plan;
    else
        kg_flow_plan_free(plan);
    return status;
}

// Searches in a program where no fork can. KG_ERROR_MISSING: it cannot either.
static enum kg_status plan_by_worker(const struct kg_request *request, struct kg_plan **plan,
                                     struct kg_error *error)
{
    const struct kg_session *session = request->session;
    const struct kg_device *device = request->device;
    char *text;
    struct kg_worker_job_answer answer;
    struct kg_choice choice;
    if (session->progress)
        session->progress(session->user, "searching in another process", 0, 1);
    enum kg_status status = kg_worker_job_plan(request, &text, &answer, error);
    if (status)
        return status;
    if (!kg_choice_read(request->problem, &device->facts, kg_session_target(device), text, &choice))
        status = kg_error_set(error, KG_ERROR_FAULT, "the worker's choice '%s' does not fit", text);
    else
        status = kg_flow_plan_of(request, &choice, plan, error);
    if (!status)
        note_search(*plan, &answer.found, answer.rigor);
    free(text);
    return status;
}

static enum kg_status plan_by_rule(const struct kg_request *request, struct kg_plan **plan,
                                   struct kg_error *error)
{
    struct kg_choice choice;
    const struct kg_device *device = request->device;
    kg_choice_guess(request->problem, &device->facts, kg_session_target(device), &choice);
    return kg_flow_plan_of(request, &choice, plan, error);
}

static enum kg_status plan_by_recall(const struct kg_request *request,
                                     const struct kg_recalled *recalled, struct kg_plan **plan,
                                     struct kg_error *error)
{
    enum kg_status status = kg_flow_plan_of(request, &recalled->choice, plan, error);
    if (status != KG_OK)
        return status;
    (*plan)->origin = recalled->origin;
    (*plan)->rigor = recalled->rigor;
    (*plan)->seconds = recalled->seconds;
    (*plan)->spread = recalled->spread;
    (*plan)->verified = recalled->origin != KG_ORIGIN_NEAREST;
    return KG_OK;
}

// What is measured anew: by the worker where this process cannot, else here, beginning with what
// is known.
static enum kg_status plan_by_measuring(const struct kg_request *request, const struct kg_key *key,
                                        const struct kg_recalled *recalled, struct kg_plan **plan,
                                        struct kg_error *error)
{
    const struct kg_evaluator *evaluator = request->evaluator;
    const char *all[] = {request->hint, recalled->lesser[0], recalled->lesser[1],
                         recalled->nearest.choice};
    const char *hints[4];
    int count = 0;
    for (int i = 0; i < 4; i++)
        if (all[i])
            hints[count++] = all[i];
    enum kg_status status = KG_ERROR_MISSING;
    if (evaluator ? evaluator->is_elsewhere : kg_worker_job_is_wanted(request->device))
        status = plan_by_worker(request, plan, error);
    if (status == KG_ERROR_MISSING)
        status = plan_by_search(request, key, hints, count, plan, error);
    return status;
}

static enum kg_status plan_with_key(const struct kg_request *request, const struct kg_key *key,
                                    struct kg_plan **plan, struct kg_error *error)
{
    struct kg_recalled recalled;
    enum kg_status status = kg_flow_recall(request, key, &recalled, error);
    if (status == KG_OK)
        status = plan_by_recall(request, &recalled, plan, error);
    else if (status == KG_ERROR_NO_WISDOM && request->rigor == KG_RIGOR_ESTIMATE)
        status = plan_by_rule(request, plan, error);
    else if (status == KG_ERROR_NO_WISDOM && request->rigor != KG_RIGOR_WISDOM)
        status = plan_by_measuring(request, key, &recalled, plan, error);
    if (status == KG_OK) { // what was known of another shape stays with the plan, to be explained
        (*plan)->nearest = recalled.nearest;
        recalled.nearest = (struct kg_nearest){0};
    }
    kg_recalled_free(&recalled);
    return status;
}

enum kg_status kg_flow_plan(const struct kg_request *request, struct kg_plan **plan,
                            struct kg_error *error)
{
    *plan = NULL;
    struct kg_request asked = *request;
    struct kg_session *session = request->session;
    struct kg_device *device = request->device;
    asked.rigor = kg_flow_rigor(request->problem, device, request->rigor);
    if (device->is_described && asked.rigor != KG_RIGOR_ESTIMATE &&
        asked.rigor != KG_RIGOR_WISDOM) {
        kg_session_tell(session, "%s is not at hand: chosen by rule, and nothing was measured",
                        device->facts.isa);
        asked.rigor = KG_RIGOR_ESTIMATE;
    }
    kg_session_tell_missing(session);
    struct kg_session_key key;
    enum kg_status status =
        kg_session_key_make(request->problem, device, &session->protocol, &key, error);
    if (status != KG_OK)
        return status;
    status = plan_with_key(&asked, &key.key, plan, error);
    kg_session_key_free(&key);
    if (status != KG_OK)
        return status;
    kg_error_clear(error);
    if ((*plan)->found.ended[0])
        kg_session_tell(session, "the search ended early, with the best of what was measured: %s",
                        (*plan)->found.ended);
    return KG_OK;
}
