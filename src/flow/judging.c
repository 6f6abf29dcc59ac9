// See judging.h.

#include "flow/judging.h"

#include "tune/worker.h"

#include <stdio.h>

enum kg_status kg_flow_gate(const struct kg_request *request, uint64_t seed, bool strided,
                            struct kg_gate **gate, struct kg_error *error)
{
    // Vector widths and cache lines in elements, and block lengths that families like to use.
    static const int64_t tiles[] = {8, 16, 64, 128};
    struct kg_session *session = request->session;
    struct kg_policy policy = {
        .seed = seed,
        .tiles = tiles,
        .tile_count = sizeof tiles / sizeof tiles[0],
        .strided = strided,
        .shapes = request->problem->sizes,
        .shape_count = 1,
        .effort = session->effort,
        .cancel = session->cancel,
    };
    double start = kg_times_now();
    enum kg_status status =
        kg_gate_make(request->device, request->problem->op, &policy, gate, error);
    kg_times_since(&session->times, KG_ACTIVITY_REFERENCE, start);
    return status;
}

struct judging {
    const struct kg_gate *gate;
    const struct kg_subject *subject;
};

// The gate's result, and the time that the gate itself took.
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

enum kg_status kg_flow_judge(const struct kg_request *request, const struct kg_gate *gate,
                             const struct kg_subject *subject, double seconds,
                             struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_session *session = request->session;
    struct judging judging = {gate, subject};
    struct judged judged;
    kg_session_warn(session, request->device);
    double start = kg_times_now();
    enum kg_status status = kg_worker_run_on(request->device, judge_in_child, &judging, seconds,
                                             session->cancel, &judged, sizeof judged, error);
    kg_times_since(&session->times, KG_ACTIVITY_PREPARE, start + judged.seconds);
    kg_times_add(&session->times, KG_ACTIVITY_JUDGE, judged.seconds, judged.seconds);
    *verdict = judged.verdict;
    if (status != KG_ERROR_FAULT && status != KG_ERROR_TIMEOUT)
        return status;
    verdict->passed = false;
    snprintf(verdict->reason, sizeof verdict->reason, "%.400s: %.600s", subject->name,
             error ? error->text : kg_status_name(status));
    kg_gate_explain_end(gate, verdict);
    kg_error_clear(error);
    return KG_OK;
}
