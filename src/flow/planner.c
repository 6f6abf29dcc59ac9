// A problem becomes a plan: uses what is known, searches for the rest; the choice is compiled,
// loaded and recorded.

#include "flow/planner.h"

#include "flow/evaluator.h"
#include "flow/recall.h"
#include "flow/recorder.h"
#include "flow/small.h"
#include "flow/turns.h"
#include "flow/worker_job.h"
#include "tune/code_identity.h"

#include <stdlib.h>

// Copies the results of a search, of this process or another, to the plan.
static void note_search(struct kg_plan *plan, const struct kg_found *found, enum kg_rigor rigor)
{
    plan->found = *found;
    plan->found.choice = plan->built->choice;
    plan->seconds = found->seconds;
    plan->spread = found->spread;
    plan->seed = found->seed;
    plan->verified = found->seconds > 0; // else time was up, and it is the rules' choice
    plan->origin = KG_ORIGIN_SEARCH;
    plan->rigor = rigor;
}

static bool is_measuring(const struct kg_request *request)
{
    return request->rigor != KG_RIGOR_ESTIMATE && request->rigor != KG_RIGOR_WISDOM;
}

// The request's evaluator, or `*opened`, which the caller closes; ready to judge in this process.
static enum kg_status get_evaluator(const struct kg_request *request, const struct kg_ahead *ahead,
                                    struct kg_evaluator **evaluator, struct kg_evaluator **opened,
                                    struct kg_error *error)
{
    enum kg_status status = KG_OK;
    *opened = NULL;
    *evaluator = request->evaluator;
    if (!*evaluator) {
        status = kg_evaluator_open(request, true, ahead, opened, error);
        *evaluator = *opened;
    }
    if (!status && (*evaluator)->is_elsewhere) // if it could not be done there
        status = kg_evaluator_stay(*evaluator, error);
    return status;
}

// `from` is what a search for one kind of change starts from; NULL for any other search.
static enum kg_status run_search(struct kg_recorder *recorder, const char *const *hints,
                                 int hint_count, const struct kg_choice *from,
                                 struct kg_found *found, struct kg_error *error)
{
    const struct kg_request *request = recorder->request;
    struct kg_evaluator *evaluator, *opened;
    struct kg_ahead ahead = {.key = recorder->key};
    enum kg_status status = get_evaluator(request, &ahead, &evaluator, &opened, error);
    if (!status) {
        struct kg_search search = evaluator->terms;
        search.judge = evaluator->judge;
        search.rigor = request->rigor;
        search.seconds = request->seconds;
        search.hints = hints;
        search.hint_count = hint_count;
        search.change = request->change;
        search.from = from;
        struct kg_learned learned;
        kg_recorder_learned(request, &learned);
        kg_recorder_favourites(request, &learned);
        recorder->learned = &learned;
        kg_recorder_attach(recorder, &search);
        status = kg_recorder_describe(request, recorder->key, error);
        if (!status)
            status = kg_search_run(&search, found, error);
        recorder->learned = NULL;
        kg_recorder_forget(&learned);
    }
    kg_evaluator_close(opened);
    return status == KG_ERROR_CANCELLED && found->measured > 0 ? KG_OK : status;
}

static enum kg_status plan_by_search(struct kg_recorder *recorder, const char *const *hints,
                                     int hint_count, const struct kg_choice *from,
                                     struct kg_plan **out, struct kg_error *error)
{
    const struct kg_request *request = recorder->request;
    struct kg_found found = {0};
    struct kg_plan *plan;
    enum kg_status status = run_search(recorder, hints, hint_count, from, &found, error);
    if (status == KG_OK)
        status = kg_flow_plan_of(request, &found.choice, &plan, error);
    if (status != KG_OK)
        return status;
    // A search that was cut short has its measurements, but not what its rigor stands for.
    note_search(plan, &found, found.complete ? request->rigor : KG_RIGOR_ESTIMATE);
    if (found.seconds > 0) // else time was up before anything was measured
        status = kg_recorder_learn(recorder, plan, error);
    if (status == KG_OK && recorder->error.status != KG_OK)
        status = kg_error_set(error, recorder->error.status, "%s", recorder->error.text);
    if (status == KG_OK)
        *out = plan;
    else
        kg_flow_plan_free(plan);
    return status;
}

// Whether this process cannot measure, and the worker program may.
static bool is_elsewhere(const struct kg_request *request)
{
    const struct kg_evaluator *evaluator = request->evaluator;
    return evaluator ? evaluator->is_elsewhere : kg_worker_job_is_wanted(request->device);
}

// Plans in the worker program. KG_ERROR_MISSING: it cannot be used.
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
    if (!kg_choice_read(request->problem, &device->facts, kg_target_of(device), text, &choice))
        status = kg_error_set(error, KG_ERROR_FAULT, "the worker's choice '%s' does not fit", text);
    else
        status = kg_flow_plan_of(request, &choice, plan, error);
    if (!status) {
        note_search(*plan, &answer.found, answer.rigor);
        (*plan)->origin = (enum kg_origin)answer.origin;
        (*plan)->verified = answer.verified;
    }
    free(text);
    return status;
}

static enum kg_status plan_by_rule(const struct kg_request *request, struct kg_plan **plan,
                                   struct kg_error *error)
{
    struct kg_choice choice;
    struct kg_learned learned;
    struct kg_search search = {.device = request->device,
                               .problem = request->problem,
                               .target = kg_target_of(request->device),
                               .user = &learned};
    kg_recorder_learned(request, &learned);
    if (learned.patterns.count > 0)
        search.prior = kg_recorder_prior;
    bool corrected = kg_search_estimate(&search, &choice);
    kg_recorder_forget(&learned);
    enum kg_status status = kg_flow_plan_of(request, &choice, plan, error);
    if (status == KG_OK && corrected)
        (*plan)->origin = KG_ORIGIN_PATTERNS;
    return status;
}

// The plan of a known choice that may be used. Times and verdicts of other kernels than today's do
// not apply to it.
static enum kg_status plan_by_recall(const struct kg_request *request,
                                     const struct kg_recalled *recalled, struct kg_plan **plan,
                                     struct kg_error *error)
{
    enum kg_status status = kg_flow_plan_of(request, &recalled->choice, plan, error);
    if (status != KG_OK)
        return status;
    (*plan)->origin = recalled->origin;
    (*plan)->rigor = recalled->rigor;
    (*plan)->verified = recalled->is_proved;
    if (recalled->is_proved) {
        (*plan)->seconds = recalled->seconds;
        (*plan)->spread = recalled->spread;
    } else if (recalled->origin != KG_ORIGIN_NEAREST) {
        kg_session_tell(request->session,
                        "the best choice known of %s was verified and timed with other kernels "
                        "than are written for it now: these are neither verified nor measured",
                        request->problem->op->name);
    }
    return KG_OK;
}

// Judges and times today's kernels of a plan, and records the outcome.
static enum kg_status judge_again(struct kg_recorder *recorder, struct kg_plan *plan,
                                  struct kg_judgement *judgement, struct kg_error *error)
{
    struct kg_evaluator *evaluator, *opened;
    bool by_code;
    enum kg_status status = get_evaluator(recorder->request, NULL, &evaluator, &opened, error);
    if (!status)
        status = kg_evaluator_judge(evaluator, plan, judgement, error);
    kg_evaluator_close(opened);
    if (status)
        return status;
    plan->verified = judgement->kind == KG_OUTCOME_MEASURED;
    plan->seed = judgement->verdict.seed;
    plan->seconds = judgement->timing.median;
    plan->spread = judgement->timing.spread;
    const struct kg_outcome outcome = {.kind = judgement->kind,
                                       .choice = plan->choice,
                                       .source = kg_code_identity(plan->built, &by_code),
                                       .compile_seconds = plan->built->compile_seconds,
                                       .timing = judgement->timing,
                                       .verdict = judgement->verdict,
                                       .reason = plan->verified ? "" : judgement->reason};
    kg_recorder_append(recorder, &outcome);
    const struct kg_error *failure = &recorder->error;
    return failure->status ? kg_error_set(error, failure->status, "%s", failure->text) : KG_OK;
}

// For a choice that was found with other kernels: today's are used, and become what is known, if
// they pass the gate and are about as fast. Else KG_ERROR_NO_WISDOM.
static enum kg_status plan_by_judging(struct kg_recorder *recorder,
                                      const struct kg_recalled *recalled, struct kg_plan **out,
                                      struct kg_error *error)
{
    struct kg_request request = *recorder->request;
    struct kg_judgement judgement;
    struct kg_plan *plan;
    request.source_only = false; // it has to run
    enum kg_status status = kg_flow_plan_of(&request, &recalled->choice, &plan, error);
    if (status)
        return status;
    plan->origin = recalled->origin;
    plan->rigor = recalled->rigor;
    status = judge_again(recorder, plan, &judgement, error);
    if (!status && !plan->verified)
        status = kg_error_set(error, KG_ERROR_NO_WISDOM,
                              "the known choice '%s' fails with the kernels of today: %.400s",
                              plan->choice, judgement.reason);
    else if (!status && is_measuring(&request) &&
             !kg_recall_is_as_fast(plan->seconds, recalled->seconds))
        status =
            kg_error_set(error, KG_ERROR_NO_WISDOM,
                         "the known choice '%s' is slower with the kernels of today", plan->choice);
    if (!status)
        status = kg_recorder_learn(recorder, plan, error);
    if (!status)
        *out = plan;
    else
        kg_flow_plan_free(plan);
    return status;
}

// A search that starts from all that is known; `outdated` is a choice that was judged again, NULL
// if none was.
static enum kg_status plan_by_measuring(struct kg_recorder *recorder,
                                        const struct kg_recalled *recalled,
                                        const struct kg_choice *outdated, struct kg_plan **plan,
                                        struct kg_error *error)
{
    struct kg_text text = {0};
    if (outdated)
        kg_choice_print(outdated, &text);
    const char *all[] = {recorder->request->hint, recalled->lesser[0], recalled->lesser[1],
                         recalled->nearest.choice, text.data};
    const char *hints[sizeof all / sizeof all[0]];
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            hints[count++] = all[i];
    enum kg_status status = plan_by_search(recorder, hints, count, NULL, plan, error);
    kg_text_free(&text);
    return status;
}

// Judges again what was found with other kernels, unless nothing may be run, or nothing can.
static bool is_judged_again(const struct kg_request *request, const struct kg_recalled *recalled)
{
    if (recalled->is_proved || recalled->origin == KG_ORIGIN_NEAREST ||
        request->device->is_described)
        return false;
    return is_measuring(request) || (request->rigor == KG_RIGOR_WISDOM && !request->source_only);
}

static enum kg_status plan_by_change(struct kg_recorder *recorder, struct kg_plan **plan,
                                     struct kg_error *error)
{
    const struct kg_request *request = recorder->request;
    struct kg_choice from;
    if (!request->hint || !kg_choice_read(request->problem, &request->device->facts,
                                          kg_target_of(request->device), request->hint, &from))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "the choice '%s' does not fit %s",
                            request->hint ? request->hint : "", request->problem->op->name);
    return plan_by_search(recorder, NULL, 0, &from, plan, error);
}

// Whether something has to be run. `recall` is what kg_flow_recall returned.
static bool must_run(enum kg_status recall, const struct kg_request *request,
                     const struct kg_recalled *recalled)
{
    if (request->change != KG_CHANGE_NONE)
        return true;
    if (recall == KG_OK)
        return is_judged_again(request, recalled);
    return recall == KG_ERROR_NO_WISDOM && is_measuring(request);
}

static enum kg_status plan_without_running(enum kg_status recall, const struct kg_request *request,
                                           const struct kg_recalled *recalled,
                                           struct kg_plan **plan, struct kg_error *error)
{
    if (recall == KG_OK)
        return plan_by_recall(request, recalled, plan, error);
    if (recall == KG_ERROR_NO_WISDOM && request->rigor == KG_RIGOR_ESTIMATE)
        return plan_by_rule(request, plan, error);
    return recall;
}

// The failures after which a search goes on: the kernels do not compile, run or pass.
static bool is_candidates_fault(enum kg_status status)
{
    return status == KG_ERROR_NO_WISDOM || status == KG_ERROR_COMPILE;
}

static enum kg_status plan_by_running(enum kg_status recall, struct kg_recorder *recorder,
                                      const struct kg_recalled *recalled, struct kg_plan **plan,
                                      struct kg_error *error)
{
    const struct kg_choice *outdated = recall == KG_OK ? &recalled->choice : NULL;
    if (outdated) {
        enum kg_status status = plan_by_judging(recorder, recalled, plan, error);
        if (status == KG_OK || !is_measuring(recorder->request) || !is_candidates_fault(status))
            return status;
    }
    return plan_by_measuring(recorder, recalled, outdated, plan, error);
}

// The worker program takes its turn itself; this process has waited for it to be free, because it
// can say so and be cancelled.
static enum kg_status plan_anywhere(enum kg_status recall, struct kg_recorder *recorder,
                                    const struct kg_recalled *recalled, struct kg_plan **plan,
                                    struct kg_error *error)
{
    const struct kg_request *request = recorder->request;
    if (is_elsewhere(request)) {
        kg_turn_end(recorder->turn);
        enum kg_status status = plan_by_worker(request, plan, error);
        if (status != KG_ERROR_MISSING)
            return status;
        status = kg_turn_take(request, recorder->key, recorder->turn, error);
        if (status != KG_OK)
            return status;
    }
    if (request->change != KG_CHANGE_NONE)
        return plan_by_change(recorder, plan, error);
    return plan_by_running(recall, recorder, recalled, plan, error);
}

// For a request whose time passed while another process measured: the best that is on record so
// far.
static bool plan_by_others(const struct kg_request *request, const struct kg_key *key,
                           struct kg_plan **plan, enum kg_status *status, struct kg_error *error)
{
    struct kg_choice choice;
    struct kg_timing timing;
    if (!kg_turn_find_best(request, key, &choice, &timing))
        return false;
    *status = kg_flow_plan_of(request, &choice, plan, error);
    if (*status != KG_OK)
        return true;
    (*plan)->origin = KG_ORIGIN_RECORDS;
    (*plan)->rigor = KG_RIGOR_ESTIMATE;
    (*plan)->verified = true;
    (*plan)->seconds = timing.median;
    (*plan)->spread = timing.spread;
    return true;
}

// Runs what has to be run when it is our turn. What other processes recorded until then may be
// enough, so looks again first; `*recalled` is what is known then.
static enum kg_status plan_in_turn(struct kg_recorder *recorder, struct kg_recalled *recalled,
                                   struct kg_plan **plan, struct kg_error *error)
{
    struct kg_request request = *recorder->request;
    struct kg_turn turn;
    enum kg_status status = kg_turn_take(&request, recorder->key, &turn, error);
    if (status != KG_OK)
        return status;
    bool is_late = turn.waited && request.seconds > 0 && turn.seconds >= request.seconds;
    if (turn.waited && request.seconds > 0)
        request.seconds = is_late ? 1e-3 : request.seconds - turn.seconds;
    kg_recalled_free(recalled);
    enum kg_status recall = kg_flow_recall(&request, recorder->key, recalled, error);
    recorder->request = &request;
    recorder->turn = &turn;
    recorder->replaces = recalled->is_outdated;
    if (!must_run(recall, &request, recalled))
        status = plan_without_running(recall, &request, recalled, plan, error);
    else if (!is_late || !plan_by_others(&request, recorder->key, plan, &status, error))
        status = plan_anywhere(recall, recorder, recalled, plan, error);
    kg_turn_end(&turn);
    return status;
}

static enum kg_status plan_with_key(const struct kg_request *request, const struct kg_key *key,
                                    struct kg_plan **plan, struct kg_error *error)
{
    struct kg_recalled recalled;
    enum kg_status recall = kg_flow_recall(request, key, &recalled, error), status;
    struct kg_recorder recorder = {.request = request, .key = key};
    if (must_run(recall, request, &recalled))
        status = plan_in_turn(&recorder, &recalled, plan, error);
    else
        status = plan_without_running(recall, request, &recalled, plan, error);
    if (status == KG_OK) { // for explain: what was known of another shape
        (*plan)->nearest = recalled.nearest;
        recalled.nearest = (struct kg_nearest){0};
    }
    kg_recalled_free(&recalled);
    return status;
}

// Without a rigor, a problem whose search was not finished is not searched again unasked: what that
// search found is good enough to go on with.
static void settle_for_unfinished(struct kg_request *request, const struct kg_key *key)
{
    struct kg_request modest = *request;
    struct kg_recalled recalled;
    modest.rigor = KG_RIGOR_ESTIMATE;
    modest.takes_nearest = false;
    bool found = kg_flow_recall(&modest, key, &recalled, NULL) == KG_OK && recalled.is_proved &&
                 recalled.origin != KG_ORIGIN_NEAREST && recalled.rigor < request->rigor;
    if (found) {
        kg_session_tell(request->session,
                        "uses the best of a search of %s that was not finished; a plan of rigor "
                        "'measure' goes on with it",
                        request->problem->op->name);
        request->rigor = KG_RIGOR_ESTIMATE;
    }
    kg_recalled_free(&recalled);
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
    if (request->rigor == KG_RIGOR_DEFAULT && is_measuring(&asked))
        settle_for_unfinished(&asked, &key.key);
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
