// How candidates reach the test rig (test_rig.h), by isolation (worker.h):
//
//     fork      the rig is here, and every candidate runs in its own fork, which inherits the rig
//     worker    the rig is in a long-lived process, which loads candidates from the cache and is
//               replaced when a candidate breaks it
//     none      the rig and the candidates are here

#include "tune/judgement.h"

#include "device/child.h"
#include "device/device_turn.h"
#include "tune/test_rig.h"
#include "tune/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUILD_SECONDS 60.0 // for loading one kernel, which is in the cache

struct kg_judge {
    const struct kg_search *search;
    enum kg_isolation isolation;
    struct kg_verified verified;
    struct kg_test_rig *rig; // NULL with a worker, which has its own
    struct kg_child *worker;
    bool is_ready; // the worker has made its test rig
};

// Of one candidate, or of several that race; READY has none.
enum kind { READY, TEST, RACE, VERIFY };

// A choice, as it is sent to a process that was forked before the choice was made: pointers to
// families are valid there, matches of groups may not exist yet.
struct candidate {
    int count;
    struct {
        const struct kg_family *family;
        int first, count; // nests
        struct kg_config config;
    } groups[KG_MAX_NESTS];
    struct kg_built *adopted; // foreign kernels, which a fork inherits; NULL: build the groups
};

struct request {
    enum kind kind;
    int count;
    bool drops; // RACE
    double incumbent;
    struct kg_verified verified;
    struct candidate candidates[];
};

// The state of a worker process.

struct workplace {
    const struct kg_search *search;
    struct kg_test_rig *rig;
    enum kg_status status; // of making the test rig
    struct kg_error error;
};

static void prepare(void *user)
{
    struct workplace *place = user;
    place->status = kg_test_rig_make(place->search, &place->rig, &place->error);
}

// Runs the test of one candidate.
static enum kg_status test_built(struct workplace *place, const struct request *request,
                                 struct kg_built *built, const struct kg_times *times,
                                 struct kg_text *answer, struct kg_error *error)
{
    struct kg_tested tested;
    enum kg_status status = request->kind == VERIFY
                                ? kg_test_rig_verify(place->rig, built, &tested, error)
                                : kg_test_rig_test(place->rig, built, request->incumbent,
                                                   &request->verified, &tested, error);
    kg_times_merge(&tested.times, times);
    kg_text_add_bytes(answer, (const char *)&tested, sizeof tested);
    return status;
}

static enum kg_status race_built(struct workplace *place, struct kg_built *const *built, int count,
                                 bool drops, struct kg_text *answer, struct kg_error *error)
{
    struct kg_timing *timings = calloc((size_t)count, sizeof *timings);
    if (!timings)
        return kg_error_memory(error, "a race");
    enum kg_status status = kg_test_rig_race(place->rig, built, count, drops, timings, error);
    kg_text_add_bytes(answer, (const char *)timings, (size_t)count * sizeof *timings);
    free(timings);
    return status;
}

static struct candidate describe(const struct kg_built *built)
{
    const struct kg_choice *choice = &built->choice;
    struct candidate candidate = {.count = choice->count, .adopted = built->adopted};
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        candidate.groups[i].family = match->family;
        candidate.groups[i].first = match->group.first;
        candidate.groups[i].count = match->group.count;
        candidate.groups[i].config = choice->configs[i];
    }
    return candidate;
}

static enum kg_status build(const struct kg_search *search, const struct kg_problem *problem,
                            const struct candidate *candidate, struct kg_built **built,
                            struct kg_error *error)
{
    struct kg_choice choice = {.count = candidate->count};
    for (int i = 0; i < candidate->count; i++) {
        const struct kg_group group = {problem, candidate->groups[i].first,
                                       candidate->groups[i].count};
        choice.matches[i] =
            kg_match_find(candidate->groups[i].family, &group, &search->device->facts, NULL);
        choice.configs[i] = candidate->groups[i].config;
        if (!choice.matches[i])
            return kg_error_memory(error, "a candidate");
    }
    return kg_built_make(search->device, problem, &choice, BUILD_SECONDS, built, error);
}

// The second kernel to verify is the counterpart of the first.
static enum kg_status load(const struct kg_search *search, const struct request *request,
                           struct kg_built **built, struct kg_error *error)
{
    for (int i = 0; i < request->count; i++) {
        const struct candidate *candidate = &request->candidates[i];
        bool other = request->kind == VERIFY && i > 0;
        enum kg_status status = KG_OK;
        if (candidate->adopted)
            built[i] = candidate->adopted;
        else
            status = build(search, other ? search->counterpart : search->problem, candidate,
                           &built[i], error);
        if (status)
            return status;
    }
    if (request->kind == VERIFY && request->count > 1)
        built[0]->counterpart = built[1];
    return KG_OK;
}

static enum kg_status serve(void *user, const void *bytes, size_t length, struct kg_text *answer,
                            struct kg_error *error)
{
    struct workplace *place = user;
    const struct request *request = bytes;
    (void)length;
    if (place->status)
        return kg_error_set(error, place->status, "%s", place->error.text);
    if (request->kind == READY)
        return KG_OK;
    struct kg_built **built = calloc((size_t)request->count, sizeof(struct kg_built *));
    if (!built)
        return kg_error_memory(error, "candidates");
    struct kg_times times = {0};
    double start = kg_times_now();
    enum kg_status status = load(place->search, request, built, error);
    kg_times_since(&times, KG_ACTIVITY_LOAD, start);
    if (!status && request->kind == RACE)
        status = race_built(place, built, request->count, request->drops, answer, error);
    else if (!status)
        status = test_built(place, request, built[0], &times, answer, error);
    for (int i = 0; i < request->count; i++)
        if (!request->candidates[i].adopted)
            kg_built_free(built[i]);
    free(built);
    return status;
}

// The parent's side of the worker.

static enum kg_status start_worker(struct kg_judge *judge, struct kg_error *error)
{
    struct workplace place = {.search = judge->search};
    struct kg_child_service service = {.user = &place, .prepare = prepare, .serve = serve};
    return kg_child_start(&service, &judge->worker, error);
}

static void stop_worker(struct kg_judge *judge)
{
    kg_child_stop(judge->worker);
    judge->worker = NULL;
    judge->is_ready = false;
}

// Starts a worker if there is none, and waits until it is ready. A failure to start is not the
// candidate's fault, and the start does not count towards its time.
static enum kg_status ensure_worker(struct kg_judge *judge, struct kg_error *error)
{
    enum kg_status status = judge->worker ? KG_OK : start_worker(judge, error);
    if (status || judge->is_ready)
        return status;
    double start = kg_times_now();
    struct request request = {.kind = READY};
    struct kg_text answer;
    status = kg_child_ask(judge->worker, &request, sizeof request, KG_READY_SECONDS,
                          judge->search->cancel, 0, &answer, error);
    kg_text_free(&answer);
    kg_times_since(judge->search->times, KG_ACTIVITY_PREPARE, start);
    judge->is_ready = status == KG_OK;
    if (status)
        stop_worker(judge);
    if (status && status != KG_ERROR_CANCELLED)
        kg_error_prefix(error, "preparing %s to measure", judge->search->device->facts.name);
    return status;
}

// `result` is zero if there is none. A worker that a candidate may have harmed is not used again.
static enum kg_status ask_worker(struct kg_judge *judge, struct kg_built *const *built,
                                 const struct request *head, double seconds, void *result,
                                 size_t size, struct kg_error *error)
{
    size_t count = (size_t)head->count;
    size_t length = sizeof *head + count * sizeof head->candidates[0];
    struct request *request = malloc(length);
    if (!request)
        return kg_error_memory(error, "the question to a worker");
    memcpy(request, head, sizeof *head);
    for (size_t i = 0; i < count; i++)
        request->candidates[i] = describe(built[i]);
    struct kg_text answer;
    enum kg_status status = kg_child_ask(judge->worker, request, length, seconds,
                                         judge->search->cancel, size, &answer, error);
    if (answer.length == size)
        memcpy(result, answer.data, size);
    kg_text_free(&answer);
    free(request);
    if (status != KG_OK && status != KG_ERROR_WRONG)
        stop_worker(judge);
    return status;
}

// Forks.

struct single {
    const struct kg_judge *judge;
    struct kg_built *built;
    double incumbent;
};

static enum kg_status verify_in_fork(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct single *single = user;
    return kg_test_rig_verify(single->judge->rig, single->built, result, error);
}

static enum kg_status test_in_fork(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct single *single = user;
    return kg_test_rig_test(single->judge->rig, single->built, single->incumbent,
                            &single->judge->verified, result, error);
}

struct race {
    const struct kg_judge *judge;
    struct kg_built *const *built;
    int count;
    bool drops;
};

static enum kg_status race_in_fork(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct race *race = user;
    return kg_test_rig_race(race->judge->rig, race->built, race->count, race->drops, result, error);
}

// All three isolations.

static enum kg_status test(struct kg_judge *judge, struct kg_built *built, double seconds,
                           double incumbent, struct kg_tested *tested, struct kg_error *error)
{
    struct single single = {judge, built, incumbent};
    struct request request = {
        .kind = TEST, .count = 1, .incumbent = incumbent, .verified = judge->verified};
    switch (judge->isolation) {
    case KG_ISOLATION_WORKER:
        return ask_worker(judge, &built, &request, seconds, tested, sizeof *tested, error);
    case KG_ISOLATION_NONE:
        return kg_test_rig_test(judge->rig, built, incumbent, &judge->verified, tested, error);
    default:
        return kg_worker_run_confined(test_in_fork, &single, seconds, judge->search->cancel, tested,
                                      sizeof *tested, error);
    }
}

enum kg_status kg_judge_one(struct kg_judge *judge, struct kg_built *built, double seconds,
                            double incumbent, struct kg_judgement *judgement,
                            struct kg_error *error)
{
    struct kg_tested tested = {.sum = 0};
    struct kg_error own = {0};
    *judgement = (struct kg_judgement){0};
    enum kg_status status = KG_OK;
    if (judge->isolation == KG_ISOLATION_WORKER)
        status = ensure_worker(judge, error);
    if (status)
        return status;
    int turn = kg_device_turn_begin(judge->search->device, judge->search->cancel);
    status = test(judge, built, seconds, incumbent, &tested, &own);
    kg_device_turn_end(turn);
    if (status == KG_ERROR_CANCELLED)
        return kg_error_set(error, status, "%s", own.text);
    kg_times_merge(judge->search->times, &tested.times);
    judgement->verdict = tested.verdict;
    judgement->timing = tested.timing;
    judgement->kind = status == KG_OK              ? KG_OUTCOME_MEASURED
                      : status == KG_ERROR_WRONG   ? KG_OUTCOME_WRONG
                      : status == KG_ERROR_TIMEOUT ? KG_OUTCOME_TIMEOUT
                                                   : KG_OUTCOME_FAULT;
    snprintf(judgement->reason, sizeof judgement->reason, "%s", own.text);
    if (status == KG_ERROR_FAULT || status == KG_ERROR_TIMEOUT) {
        struct kg_verdict *verdict = &judgement->verdict;
        snprintf(verdict->reason, sizeof verdict->reason, "%.900s", own.text);
        kg_gate_explain_end(judge->search->gate, verdict);
        snprintf(judgement->reason, sizeof judgement->reason, "%s", verdict->reason);
    }
    struct kg_verified *verified = &judge->verified;
    if (!status && tested.compared && verified->count < KG_MAX_VERIFIED)
        verified->sums[verified->count++] = tested.sum;
    return KG_OK;
}

enum kg_status kg_judge_verify(struct kg_judge *judge, struct kg_built *built, double seconds,
                               struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_tested tested = {.sum = 0};
    struct kg_error own = {0};
    struct single single = {.judge = judge, .built = built};
    struct request request = {.kind = VERIFY, .count = built->counterpart ? 2 : 1};
    struct kg_built *pair[] = {built, built->counterpart};
    enum kg_status status = KG_OK;
    *verdict = (struct kg_verdict){0};
    if (judge->isolation == KG_ISOLATION_WORKER)
        status = ensure_worker(judge, error);
    if (status)
        return status;
    int turn = kg_device_turn_begin(judge->search->device, judge->search->cancel);
    if (judge->isolation == KG_ISOLATION_WORKER)
        status = ask_worker(judge, pair, &request, seconds, &tested, sizeof tested, &own);
    else if (judge->isolation == KG_ISOLATION_NONE)
        status = kg_test_rig_verify(judge->rig, built, &tested, &own);
    else
        status = kg_worker_run_confined(verify_in_fork, &single, seconds, judge->search->cancel,
                                        &tested, sizeof tested, &own);
    kg_device_turn_end(turn);
    kg_times_merge(judge->search->times, &tested.times);
    *verdict = tested.verdict;
    if (status == KG_OK || status == KG_ERROR_WRONG)
        return KG_OK;
    if (status != KG_ERROR_FAULT && status != KG_ERROR_TIMEOUT)
        return kg_error_set(error, status, "%s", own.text);
    verdict->passed = false;
    snprintf(verdict->reason, sizeof verdict->reason, "%.900s", own.text);
    kg_gate_explain_end(judge->search->gate, verdict);
    return KG_OK;
}

enum kg_status kg_judge_race(struct kg_judge *judge, struct kg_built *const *built, int count,
                             bool drops, double seconds, struct kg_timing *timings,
                             struct kg_error *error)
{
    struct race race = {judge, built, count, drops};
    struct request request = {.kind = RACE, .count = count, .drops = drops};
    size_t size = (size_t)count * sizeof *timings;
    enum kg_status status = KG_OK;
    memset(timings, 0, size);
    if (judge->isolation == KG_ISOLATION_WORKER)
        status = ensure_worker(judge, error);
    if (status)
        return status;
    int turn = kg_device_turn_begin(judge->search->device, judge->search->cancel);
    double start = kg_times_now();
    if (judge->isolation == KG_ISOLATION_WORKER)
        status = ask_worker(judge, built, &request, seconds, timings, size, error);
    else if (judge->isolation == KG_ISOLATION_NONE)
        status = kg_test_rig_race(judge->rig, built, count, drops, timings, error);
    else
        status = kg_worker_run_confined(race_in_fork, &race, seconds, judge->search->cancel,
                                        timings, size, error);
    kg_device_turn_end(turn);
    kg_times_since(judge->search->times, KG_ACTIVITY_RACE, start);
    return status;
}

enum kg_status kg_judge_make(const struct kg_search *search, struct kg_judge **out,
                             struct kg_error *error)
{
    *out = NULL;
    struct kg_judge *judge = calloc(1, sizeof *judge);
    if (!judge)
        return kg_error_memory(error, "a judge");
    judge->search = search;
    judge->isolation = search->isolation ? search->isolation : kg_worker_isolation(search->device);
    enum kg_status status = judge->isolation == KG_ISOLATION_WORKER
                                ? start_worker(judge, error)
                                : kg_test_rig_make(search, &judge->rig, error);
    if (status) {
        kg_judge_free(judge);
        return status;
    }
    *out = judge;
    return KG_OK;
}

void kg_judge_free(struct kg_judge *judge)
{
    if (!judge)
        return;
    stop_worker(judge);
    kg_test_rig_free(judge->rig);
    free(judge);
}
