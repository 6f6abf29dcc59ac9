// The accuracy gate applied to plans, in a process that may die.

#include "flow/evaluator.h"
#include "flow/worker_job.h"

#include "tune/test_rig.h"
#include "tune/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JUDGE_SECONDS 120.0 // one subject on all cases; more is a hang

enum kg_status kg_flow_gate(struct kg_session *session, const struct kg_problem *problem,
                            struct kg_device *device, uint64_t seed, bool strided,
                            struct kg_gate **gate, struct kg_error *error)
{
    // Vector widths and cache lines in elements, and the block lengths families like to use.
    static const int64_t tiles[] = {8, 16, 64, 128};
    struct kg_policy policy = {
        .seed = seed,
        .tiles = tiles,
        .tile_count = sizeof tiles / sizeof tiles[0],
        .strided = strided,
        .cancel = session->cancel,
    };
    double start = kg_times_now();
    enum kg_status status = kg_gate_make(device, problem->op, &policy, gate, error);
    kg_times_since(&session->times, KG_ACTIVITY_REFERENCE, start);
    return status;
}

struct judging {
    const struct kg_gate *gate;
    const struct kg_subject *subject;
};

// What it gave, and how long the gate itself took.
struct judged {
    struct kg_verdict verdict;
    double seconds;
};

static enum kg_status judge_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct judging *judging = user;
    struct judged *judged = result;
    double start = kg_times_now();
    enum kg_status status = kg_gate_judge(judging->gate, judging->subject, &judged->verdict, error);
    judged->seconds = kg_times_now() - start;
    return status;
}

enum kg_status kg_flow_judge(struct kg_session *session, struct kg_device *device,
                             const struct kg_gate *gate, const struct kg_subject *subject,
                             double seconds, struct kg_verdict *verdict, struct kg_error *error)
{
    struct judging judging = {gate, subject};
    struct judged judged;
    kg_session_warn(session, device);
    double start = kg_times_now();
    enum kg_status status = kg_worker_run_on(device, judge_in_child, &judging, seconds,
                                             session->cancel, &judged, sizeof judged, error);
    kg_times_since(&session->times, KG_ACTIVITY_PREPARE, start + judged.seconds);
    kg_times_add(&session->times, KG_ACTIVITY_JUDGE, judged.seconds, judged.seconds);
    *verdict = judged.verdict;
    if (status != KG_ERROR_FAULT && status != KG_ERROR_TIMEOUT)
        return status;
    verdict->passed = false;
    snprintf(verdict->reason, sizeof verdict->reason, "%.400s: %.600s", subject->name,
             error ? error->text : kg_status_name(status));
    kg_error_clear(error);
    return KG_OK;
}

// Of tensors of four bits there is no strided form.
enum kg_status kg_flow_counterpart(const struct kg_problem *problem, struct kg_problem **other,
                                   struct kg_error *error)
{
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    int count = problem->op->input_count + problem->op->output_count;
    *other = NULL;
    for (int i = 0; i < count; i++)
        for (int d = 0; d < problem->tensors[i]->rank; d++)
            strides[i][d] = problem->layouts[i].stride[d] * 2;
    enum kg_status status = kg_problem_make(
        problem->op, problem->sizes,
        problem->contiguous ? (const int64_t(*)[KG_MAX_RANK])strides : NULL, other, error);
    if (status == KG_ERROR_SHAPE) {
        kg_error_clear(error);
        return KG_OK;
    }
    if (status == KG_OK && (*other)->contiguous == problem->contiguous) { // scalars only
        kg_problem_free(*other);
        *other = NULL;
    }
    return status;
}

void kg_flow_choose_counterpart(const struct kg_device *device, const struct kg_problem *other,
                                const char *choice, struct kg_choice *counterpart)
{
    const struct kg_target *target = kg_session_target(device);
    if (!kg_choice_read(other, &device->facts, target, choice, counterpart))
        kg_choice_guess(other, &device->facts, target, counterpart);
}

enum kg_status kg_flow_build_counterpart(const struct kg_plan *plan, const struct kg_problem *other,
                                         struct kg_built **built, struct kg_error *error)
{
    struct kg_choice choice;
    kg_flow_choose_counterpart(plan->device, other, plan->choice, &choice);
    double start = kg_times_now();
    enum kg_status status =
        kg_built_make_soon(plan->device, other, &choice, JUDGE_SECONDS, built, error);
    kg_times_since(&plan->session->times, KG_ACTIVITY_COMPILE, start);
    kg_session_tell_of_cache(plan->session, plan->device);
    return status;
}

static enum kg_status verify_here(const struct kg_plan *plan, uint64_t seed,
                                  struct kg_verdict *verdict, struct kg_error *error)
{
    *verdict = (struct kg_verdict){0};
    struct kg_built built = *plan->built; // what others may use stays as it is
    struct kg_gate *gate = NULL;
    struct kg_problem *other = NULL;
    // PTX from outside is for tensors of one kind.
    enum kg_status status =
        plan->override ? KG_OK : kg_flow_counterpart(plan->problem, &other, error);
    if (status == KG_OK && other)
        status = kg_flow_build_counterpart(plan, other, &built.counterpart, error);
    if (status == KG_OK)
        status = kg_flow_gate(plan->session, plan->problem, plan->device, seed, other != NULL,
                              &gate, error);
    if (status == KG_OK) {
        struct kg_subject subject = kg_test_rig_subject(&built);
        subject.name = plan->override ? plan->override->path : plan->choice;
        status = kg_flow_judge(plan->session, plan->device, gate, &subject, JUDGE_SECONDS, verdict,
                               error);
    }
    kg_gate_free(gate);
    kg_built_free(built.counterpart);
    kg_problem_free(other);
    return status;
}

enum kg_status kg_flow_verify(const struct kg_plan *plan, uint64_t seed, struct kg_verdict *verdict,
                              struct kg_error *error)
{
    enum kg_status status = KG_ERROR_MISSING;
    if (!plan->override && kg_worker_job_is_wanted(plan->device))
        status = kg_worker_job_verify(plan, seed, verdict, error);
    return status == KG_ERROR_MISSING ? verify_here(plan, seed, verdict, error) : status;
}

void kg_flow_report_verdict(const struct kg_verdict *verdict, struct kg_verify_result *result)
{
    *result = (struct kg_verify_result){
        .passed = verdict->passed,
        .seed = verdict->seed,
        .cases = verdict->cases,
        .skipped = verdict->skipped,
        .elements = verdict->elements,
        .worst = verdict->worst_relative,
        .impostors = verdict->impostors,
    };
    snprintf(result->reason, sizeof result->reason, "%s", verdict->reason);
}
