// The accuracy gate. No kernel is timed before it passes. docs/verification.md describes the
// policy.

#ifndef KG_VERIFY_GATE_H
#define KG_VERIFY_GATE_H

#include "device/device.h"
#include "verify/reference.h"
#include "verify/roundings.h"

// Raised when the gate learns to reject what it passed before: verdicts of an earlier version do
// not count any more.
#define KG_GATE_VERSION 8

// Anything that can be judged: a built plan, a foreign kernel, an impostor.
struct kg_subject {
    const char *name;
    void *user;
    // Runs the kernel once. `tensors`: inputs then outputs, device memory laid out as
    // problem->layouts. KG_ERROR_UNSUPPORTED: the subject does not support this problem (strided
    // views, say); the verdict then names the case as not applicable.
    enum kg_status (*run)(void *user, const struct kg_problem *problem, void *const *tensors,
                          struct kg_error *error);
};

struct kg_policy {
    uint64_t seed; // 0: a fresh one, reported in the verdict
    // Sizes (tile and vector lengths) around which cases are made, may be NULL.
    const int64_t *tiles;
    int tile_count;
    double effort; // multiplies the limits on work and memory; 0: as 1
    bool strided;  // include strided views
    // What the addresses of tensors are multiples of, in bytes; 0: of their elements. For devices
    // of backends without pages that guard: elsewhere it is always elements.
    size_t alignment;
    const int64_t *shapes; // further rows of sizes (by kg_size id) to verify, may be NULL
    int shape_count;
    const volatile int *cancel;
};

#define KG_REMARKS_TEXT 256

struct kg_verdict {
    bool passed;
    uint64_t seed;
    char remarks[KG_REMARKS_TEXT]; // required cases left out, and what is odd about the op; or ""
    int cases;                     // run
    int skipped;                   // not applicable to the subject
    int64_t elements;              // number compared
    double worst_relative;         // largest |error| / allowed, over all elements; <= 1 when passed
    double worst_rms;              // largest rms(error) / rms(unavoidable), over cases
    int impostors;                 // rejected by the inputs in use (all that differ from the op)
    char reason[1024];             // if not passed: case, output, element, expected, found
    // KG_ERROR_FAULT or KG_ERROR_TIMEOUT: what ended the process that judged it (flow/judging.h).
    enum kg_status ended;
    char sanitized[128]; // the tools that found nothing: flow/sanitize.h
    // How the outputs compared so far are rounded.
    struct kg_roundings roundings;
};

struct kg_gate;

// Prepares cases, inputs and references for every dtype and size class of `instance`, and tests the
// gate: these inputs must reject every impostor that differs from the op, otherwise KG_ERROR_WRONG.
// `device` allocates the buffers.
enum kg_status kg_gate_make(struct kg_device *device, const struct kg_op *instance,
                            const struct kg_policy *policy, struct kg_gate **gate,
                            struct kg_error *error);
// The verdict before the first case: not passed, with the seed and the impostors of the gate. For
// subjects that never got so far.
void kg_gate_begin(const struct kg_gate *gate, struct kg_verdict *verdict);
// Judging returns KG_OK with verdict->passed false when the subject is wrong; errors are failures
// of the gate or the machine. An error of the subject is a verdict, with its text as the reason.
enum kg_status kg_gate_judge(const struct kg_gate *gate, const struct kg_subject *subject,
                             struct kg_verdict *verdict, struct kg_error *error);
// Runs the subject once on each case and compares nothing, for tools that watch what a kernel does.
// Each tensor has an allocation of its own, of exactly its bytes, so that every access outside is
// one that they can see. Passed: no run failed.
enum kg_status kg_gate_exercise(const struct kg_gate *gate, const struct kg_subject *subject,
                                struct kg_verdict *verdict, struct kg_error *error);
// When the process that judged has ended without an answer: adds to the verdict's reason in which
// case that was, and what was accessed if that was the cause. For the process that made the gate,
// once for each such end.
void kg_gate_explain_end(const struct kg_gate *gate, struct kg_verdict *verdict);
void kg_gate_free(struct kg_gate *gate);

// The catalogue of impostors, for tests and documentation.
int kg_gate_impostor_count(void);
const char *kg_gate_impostor_name(int index);
// Reports how many impostors were rejected, and how many equal the op itself.
void kg_gate_impostor_report(const struct kg_gate *gate, struct kg_text *text);

// A single comparison without a gate: are `outputs` correct for `inputs`? Used after timing.
// `outputs` are host memory laid out as the problem says.
enum kg_status kg_verify_outputs(const struct kg_problem *problem, const void *const *inputs,
                                 const void *const *outputs, struct kg_verdict *verdict,
                                 struct kg_error *error);

// Fills host memory of input `tensor` of the problem with signed, wide-range, seeded values
// (gather indices in range).
void kg_verify_fill(const struct kg_problem *problem, int tensor, uint64_t seed, void *data);
// The same values, but the first `count` elements only.
void kg_verify_fill_some(const struct kg_problem *problem, int tensor, uint64_t seed, int64_t count,
                         void *data);

#endif
