// See judging.h.

#include "flow/judging.h"

#include "base/printable.h"

#include <stdio.h>
#include <string.h>

#define LOAD_SECONDS 20.0 // for loading or unloading a guest; a longer time is a hang
#define WATCHED 5         // a tool that watches a kernel takes this many times as long

enum kg_status kg_flow_gate(const struct kg_request *request, uint64_t seed, bool strided,
                            size_t alignment, struct kg_gate **gate, struct kg_error *error)
{
    // Vector widths and cache lines in elements, and block lengths that families like to use.
    static const int64_t tiles[] = {8, 16, 64, 128};
    struct kg_session *session = request->session;
    struct kg_policy policy = {
        .seed = seed,
        .tiles = tiles,
        .tile_count = sizeof tiles / sizeof tiles[0],
        .strided = strided,
        .alignment = alignment,
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
    const struct kg_guest *guest;
    bool exercises; // and does not judge
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
    enum kg_status (*const judge)(const struct kg_gate *gate, const struct kg_subject *subject,
                                  struct kg_verdict *verdict, struct kg_error *error) =
        judging->exercises ? kg_gate_exercise : kg_gate_judge;
    enum kg_status status = judge(judging->gate, judging->subject, &judged->verdict, error);
    judged->seconds = kg_times_now() - start;
    // A guest has a share of memory of its own, and has taken it all.
    if (judging->guest && status == KG_ERROR_MEMORY)
        return kg_error_set(error, KG_ERROR_FAULT, "left no memory for the gate");
    return status;
}

static enum kg_status load_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)result;
    (void)size;
    const struct judging *judging = user;
    return judging->guest->load(judging->subject->user, error);
}

static enum kg_status unload_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)result;
    (void)size;
    const struct judging *judging = user;
    return judging->guest->unload(judging->subject->user, error);
}

static enum kg_status judge_guest(struct judging *judging, double seconds,
                                  const volatile int *cancel, struct judged *judged,
                                  struct kg_error *error)
{
    const struct kg_worker_step steps[] = {
        {load_in_child, LOAD_SECONDS, "while it was loaded"},
        {judge_in_child, seconds, "while it ran"},
        {unload_in_child, LOAD_SECONDS, "while it was unloaded"},
    };
    return kg_worker_run_steps(steps, sizeof steps / sizeof steps[0], judging,
                               &judging->guest->confinement, cancel, judged, sizeof *judged, error);
}

enum kg_status kg_flow_judge(const struct kg_request *request, const struct kg_gate *gate,
                             const struct kg_subject *subject, const struct kg_guest *guest,
                             double seconds, struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_session *session = request->session;
    struct judging judging = {gate, subject, guest, session->exercises};
    seconds *= session->exercises ? WATCHED : 1;
    struct judged judged;
    struct kg_error own = {0};
    kg_session_warn(session, request->device);
    double start = kg_times_now();
    enum kg_status status =
        guest ? judge_guest(&judging, seconds, session->cancel, &judged, &own)
              : kg_worker_run_on(request->device, judge_in_child, &judging, seconds,
                                 session->cancel, &judged, sizeof judged, &own);
    judged.verdict.reason[sizeof judged.verdict.reason - 1] = '\0';
    kg_times_since(&session->times, KG_ACTIVITY_PREPARE, start + judged.seconds);
    kg_times_add(&session->times, KG_ACTIVITY_JUDGE, judged.seconds, judged.seconds);
    *verdict = judged.verdict;
    if (status != KG_ERROR_FAULT && status != KG_ERROR_TIMEOUT)
        return status ? kg_error_set(error, status, "%s", own.text) : KG_OK;
    kg_gate_begin(gate, &judged.verdict);
    if (verdict->seed != judged.verdict.seed) // it was not judged to the end
        *verdict = judged.verdict;
    verdict->passed = false;
    verdict->ended = status;
    // What was refused and then harmed its process has a reason already.
    if (!verdict->reason[0]) {
        snprintf(verdict->reason, sizeof verdict->reason, "%.400s: %.600s", subject->name,
                 own.text[0] ? own.text : kg_status_name(status));
        kg_gate_explain_end(gate, verdict);
    }
    kg_printable_text(verdict->reason, strlen(verdict->reason));
    kg_error_clear(error);
    return KG_OK;
}
