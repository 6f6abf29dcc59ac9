// The accuracy gate applied to plans, in a process that may die.

#include "flow/planner.h"

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

// A plan as the gate sees it: one kernel for contiguous tensors, one for strided views.
struct pair {
    struct kg_device *device;
    const struct kg_built *contiguous;
    const struct kg_built *strided;
};

static enum kg_status run_pair(void *user, const struct kg_problem *problem, void *const *tensors,
                               struct kg_error *error)
{
    const struct pair *pair = user;
    const struct kg_built *built = problem->contiguous ? pair->contiguous : pair->strided;
    if (!built)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "not for %s tensors",
                            problem->contiguous ? "contiguous" : "strided");
    size_t bytes = kg_built_workspace(built, problem);
    void *workspace = NULL;
    const struct kg_backend *backend = pair->device->backend;
    enum kg_status status = KG_OK;
    if (bytes)
        status = backend->allocate(pair->device, bytes, &workspace, error);
    if (status == KG_OK)
        status = kg_built_run(built, problem, tensors, workspace, NULL, error);
    if (workspace)
        backend->release(pair->device, workspace);
    return status;
}

// The same op with tensors of the other kind: strided for a contiguous problem, and back. All its
// sizes are 2, so that every definition has some elements; the kernel serves all sizes anyway.
static enum kg_status build_counterpart(const struct kg_plan *plan, struct kg_problem **problem,
                                        struct kg_built **built, struct kg_error *error)
{
    *problem = NULL;
    *built = NULL;
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    const struct kg_problem *from = plan->problem;
    int count = from->op->input_count + from->op->output_count;
    for (int i = 0; i < count; i++)
        for (int d = 0; d < from->tensors[i]->rank; d++)
            strides[i][d] = from->layouts[i].stride[d] * 2;
    enum kg_status status = kg_problem_make(
        from->op, from->sizes, from->contiguous ? (const int64_t(*)[KG_MAX_RANK])strides : NULL,
        problem, error);
    if (status != KG_OK)
        return status;
    if ((*problem)->contiguous == from->contiguous) // scalars only: there is no other kind
        return KG_OK;
    struct kg_choice choice;
    enum kg_target target = kg_session_target(plan->device);
    if (!kg_choice_read(*problem, &plan->device->facts, target, plan->choice, &choice))
        kg_choice_guess(*problem, &plan->device->facts, target, &choice);
    double start = kg_times_now();
    status = kg_built_make(plan->device, *problem, &choice, JUDGE_SECONDS, built, error);
    kg_times_since(&plan->session->times, KG_ACTIVITY_COMPILE, start);
    return status;
}

enum kg_status kg_flow_verify(const struct kg_plan *plan, uint64_t seed, struct kg_verdict *verdict,
                              struct kg_error *error)
{
    *verdict = (struct kg_verdict){0};
    struct kg_gate *gate = NULL;
    struct kg_problem *other = NULL;
    struct kg_built *counterpart = NULL;
    enum kg_status status = build_counterpart(plan, &other, &counterpart, error);
    // 4-bit tensors have no strided form: then there is no counterpart to judge.
    if (status == KG_ERROR_SHAPE)
        status = KG_OK;
    if (status == KG_OK)
        status = kg_flow_gate(plan->session, plan->problem, plan->device, seed, counterpart != NULL,
                              &gate, error);
    if (status == KG_OK) {
        bool contiguous = plan->problem->contiguous;
        struct pair pair = {plan->device, contiguous ? plan->built : counterpart,
                            contiguous ? counterpart : plan->built};
        struct kg_subject subject = {plan->choice, &pair, run_pair};
        status = kg_flow_judge(plan->session, plan->device, gate, &subject, JUDGE_SECONDS, verdict,
                               error);
    }
    kg_gate_free(gate);
    kg_built_free(counterpart);
    kg_problem_free(other);
    return status;
}
