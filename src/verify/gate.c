// The gate: makes the cases once, checks that they reject impostors, and then judges one subject
// after the other.

#include "verify/gate.h"

#include "verify/case.h"
#include "verify/random.h"
#include "verify/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Streams of random numbers for the order of the cases.
#define FIRST_ORDER 21
#define SECOND_ORDER 22

struct kg_gate {
    struct kg_device *device;
    const struct kg_op *op;
    const volatile int *cancel;
    uint64_t seed;
    struct kg_cases cases;
    struct kg_witness *witness;
    struct kg_residents *residents; // NULL if the device shares memory
    struct kg_impostors impostors;
};

// Memory for one judgement, of the size of the largest image.
struct bench {
    struct kg_image_memory image;
    unsigned char *device; // in the device's memory, if it has its own
    struct kg_kept *kept;  // by case: outputs of the first run
};

static void close_bench(const struct kg_gate *gate, struct bench *bench)
{
    kg_image_memory_free(&bench->image);
    if (bench->device)
        gate->device->backend->release(gate->device, bench->device);
    for (int i = 0; i < gate->cases.count && bench->kept; i++)
        kg_kept_free(&bench->kept[i]);
    free(bench->kept);
}

// The bytes of the largest image; with `shared`, of those in memory that cases share.
static size_t largest_image(const struct kg_gate *gate, bool shared)
{
    size_t bytes = 1;
    for (int i = 0; i < gate->cases.count; i++) {
        const struct kg_case *item = gate->cases.items[i];
        if ((!shared || !item->own.at) && item->image.bytes > bytes)
            bytes = item->image.bytes;
    }
    return bytes;
}

static enum kg_status open_bench(const struct kg_gate *gate, struct bench *bench,
                                 struct kg_error *error)
{
    memset(bench, 0, sizeof *bench);
    bench->kept = calloc((size_t)gate->cases.count + 1, sizeof *bench->kept);
    enum kg_status status = bench->kept
                                ? kg_image_memory_make(&bench->image, gate->cases.is_guarded,
                                                       largest_image(gate, true), error)
                                : kg_error_memory(error, "the gate's images");
    void *memory = NULL;
    if (status == KG_OK && !gate->device->backend->shares_memory)
        status = gate->device->backend->allocate(gate->device, largest_image(gate, false), &memory,
                                                 error);
    bench->device = memory;
    if (status != KG_OK)
        close_bench(gate, bench);
    return status;
}

enum kg_status kg_gate_make(struct kg_device *device, const struct kg_op *instance,
                            const struct kg_policy *policy, struct kg_gate **gate,
                            struct kg_error *error)
{
    static const struct kg_policy plain = {0};
    *gate = NULL;
    policy = policy ? policy : &plain;
    struct kg_gate *made = calloc(1, sizeof *made);
    if (!made)
        return kg_error_memory(error, "a gate");
    made->device = device;
    made->op = instance;
    made->cancel = policy->cancel;
    made->seed = policy->seed ? policy->seed : kg_random_fresh();
    made->cases.is_guarded = device->backend->shares_memory;
    made->cases.alignment = policy->alignment;
    enum kg_status status = kg_witness_make(&made->witness, error);
    if (status == KG_OK)
        status = kg_cases_make(&made->cases, instance, policy, made->seed, error);
    if (status == KG_OK)
        status = kg_cases_check_results(&made->cases, instance, error);
    if (status == KG_OK)
        status =
            kg_impostors_try(&made->impostors, &made->cases, instance, policy, made->seed, error);
    if (status == KG_OK && !device->backend->shares_memory)
        status = kg_residents_make(device, &made->cases, &made->residents, error);
    if (status != KG_OK) {
        kg_gate_free(made);
        return status;
    }
    *gate = made;
    return KG_OK;
}

void kg_gate_free(struct kg_gate *gate)
{
    if (!gate)
        return;
    kg_residents_free(gate->residents);
    kg_cases_free(&gate->cases);
    kg_witness_free(gate->witness);
    free(gate);
}

// Subjects.

// Whether a subject ran, and how it failed if it did not.
struct outcome {
    bool ran;
    struct kg_error failure;
};

static const struct kg_image_memory *memory_of(const struct bench *bench,
                                               const struct kg_case *item)
{
    return item->own.at ? &item->own : &bench->image;
}

// Composes the image of a case where the subject will find it. `*base`: its address there.
static enum kg_status set_image(const struct kg_gate *gate, const struct kg_case *item,
                                struct bench *bench, int run, unsigned char **base,
                                struct kg_error *error)
{
    enum kg_status status =
        item->own.at ? KG_OK : kg_image_memory_open(&bench->image, &item->image, error);
    if (status != KG_OK)
        return status;
    unsigned char *image = memory_of(bench, item)->at;
    kg_image_compose(item, kg_image_fills[run], image);
    *base = bench->device ? bench->device : image;
    return bench->device
               ? gate->device->backend->copy(gate->device, *base, image, item->image.bytes, error)
               : kg_image_memory_seal(memory_of(bench, item), &item->image,
                                      item->problem->op->input_count, true, error);
}

// Makes what the subject left of the image readable for the gate.
static enum kg_status get_image(const struct kg_gate *gate, const struct kg_case *item,
                                const struct bench *bench, struct kg_error *error)
{
    const struct kg_image_memory *memory = memory_of(bench, item);
    return bench->device ? gate->device->backend->copy(gate->device, memory->at, bench->device,
                                                       item->image.bytes, error)
                         : kg_image_memory_seal(memory, &item->image,
                                                item->problem->op->input_count, false, error);
}

// `image`: where the tensors' image begins; NULL: they lie in no image.
static void run_subject(const struct kg_gate *gate, int index, const struct kg_subject *subject,
                        const unsigned char *image, void *const *tensors, struct outcome *outcome)
{
    const struct kg_backend *backend = gate->device->backend;
    const struct kg_case *item = gate->cases.items[index];
    atomic_store(&gate->witness->image, (uintptr_t)image);
    atomic_store(&gate->witness->running, index + 1);
    outcome->failure.status =
        subject->run(subject->user, item->problem, tensors, &outcome->failure);
    atomic_store(&gate->witness->running, 0);
    const char *changed = backend->changed ? backend->changed(gate->device) : NULL;
    if (changed && !outcome->failure.status)
        outcome->failure.status =
            kg_error_set(&outcome->failure, KG_ERROR_WRONG, "it left %s changed", changed);
    outcome->ran = outcome->failure.status == KG_OK;
}

static enum kg_status run_once(const struct kg_gate *gate, int index,
                               const struct kg_subject *subject, struct bench *bench, int run,
                               struct outcome *outcome, struct kg_error *error)
{
    const struct kg_case *item = gate->cases.items[index];
    unsigned char *base;
    void *tensors[KG_MAX_TENSORS];
    *outcome = (struct outcome){.ran = false};
    enum kg_status status = set_image(gate, item, bench, run, &base, error);
    if (status != KG_OK)
        return status;
    for (int i = 0; i < item->problem->op->input_count + item->problem->op->output_count; i++)
        tensors[i] = base + item->image.offset[i];
    run_subject(gate, index, subject, base, tensors, outcome);
    // A device that failed may not even copy.
    return outcome->ran || !bench->device ? get_image(gate, item, bench, error) : KG_OK;
}

static void tell_failure(const struct kg_gate *gate, int index, const struct kg_error *failure,
                         struct kg_verdict *verdict)
{
    snprintf(verdict->reason, sizeof verdict->reason, "%.800s",
             failure->text[0] ? failure->text : "it failed without saying why");
    kg_case_blame(gate->cases.items[index], index, verdict);
}

// Judges one run of a case. `*go_on` is false when the verdict is final; `*ran`: it was run.
static enum kg_status judge_run(const struct kg_gate *gate, int index, int run,
                                const struct kg_subject *subject, struct bench *bench,
                                struct kg_verdict *verdict, bool *ran, bool *go_on,
                                struct kg_error *error)
{
    struct kg_case *item = gate->cases.items[index];
    struct outcome outcome;
    bool right = true;
    enum kg_status status = run_once(gate, index, subject, bench, run, &outcome, error);
    if (status != KG_OK)
        return status;
    *ran = outcome.ran;
    if (outcome.failure.status == KG_ERROR_CANCELLED)
        return kg_error_set(error, KG_ERROR_CANCELLED, "%s", outcome.failure.text);
    if (outcome.failure.status == KG_ERROR_UNSUPPORTED && run == 0) {
        verdict->skipped++;
        return KG_OK;
    }
    if (outcome.ran)
        status = kg_case_check(item, run, memory_of(bench, item)->at, &bench->kept[index], verdict,
                               &right, error);
    if ((!outcome.ran || !right) && item->own.at)
        kg_case_restore(item);
    if (status != KG_OK)
        return status;
    *go_on = outcome.ran && right;
    if (!outcome.ran)
        tell_failure(gate, index, &outcome.failure, verdict);
    else if (!right)
        kg_case_blame(gate->cases.items[index], index, verdict);
    return KG_OK;
}

// The first run of a case, on a device with memory of its own both of them.
static enum kg_status judge_first(const struct kg_gate *gate, int index,
                                  const struct kg_subject *subject, struct bench *bench,
                                  struct kg_verdict *verdict, bool *go_on, struct kg_error *error)
{
    bool ran = false, passes = false;
    if (gate->residents) {
        enum kg_status status =
            kg_residents_judge(gate->residents, index, subject, verdict, &passes, error);
        verdict->cases += passes;
        if (status != KG_OK || passes)
            return status;
    }
    enum kg_status status = judge_run(gate, index, 0, subject, bench, verdict, &ran, go_on, error);
    verdict->cases += ran;
    return status;
}

static enum kg_status judge_again(const struct kg_gate *gate, int index,
                                  const struct kg_subject *subject, struct bench *bench,
                                  struct kg_verdict *verdict, bool *go_on, struct kg_error *error)
{
    bool ran = false;
    return bench->kept[index].is_there
               ? judge_run(gate, index, 1, subject, bench, verdict, &ran, go_on, error)
               : KG_OK;
}

// One run in memory of its own, whose results nobody looks at.
static enum kg_status exercise(const struct kg_gate *gate, int index,
                               const struct kg_subject *subject, struct bench *bench,
                               struct kg_verdict *verdict, bool *go_on, struct kg_error *error)
{
    (void)bench;
    const struct kg_case *item = gate->cases.items[index];
    struct outcome outcome = {.ran = false};
    void *tensors[KG_MAX_TENSORS];
    enum kg_status status = kg_exercise_open(gate->device, item, tensors, error);
    if (status == KG_OK) {
        run_subject(gate, index, subject, NULL, tensors, &outcome);
        struct kg_error *failure = &outcome.failure;
        if (outcome.ran)
            failure->status = kg_exercise_wait(gate->device, item, tensors, failure);
        bool unsupported = failure->status == KG_ERROR_UNSUPPORTED;
        verdict->cases += failure->status == KG_OK;
        verdict->skipped += unsupported;
        *go_on = failure->status == KG_OK || unsupported;
        if (!*go_on)
            tell_failure(gate, index, failure, verdict);
    }
    kg_exercise_close(gate->device, tensors);
    return status;
}

typedef enum kg_status judging(const struct kg_gate *gate, int index,
                               const struct kg_subject *subject, struct bench *bench,
                               struct kg_verdict *verdict, bool *go_on, struct kg_error *error);

// All cases in random order: a subject that remembers earlier calls gets other inputs of the same
// sizes, at the same addresses, in between.
static enum kg_status judge_all(const struct kg_gate *gate, judging *judge, uint64_t stream,
                                const struct kg_subject *subject, struct bench *bench,
                                struct kg_verdict *verdict, bool *go_on, struct kg_error *error)
{
    int count = gate->cases.count;
    int *order = malloc(((size_t)count + 1) * sizeof *order);
    if (!order)
        return kg_error_memory(error, "the gate's cases");
    struct kg_random random = kg_random_make(gate->seed, stream);
    for (int i = 0; i < count; i++) {
        int j = (int)kg_random_below(&random, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && *go_on && status == KG_OK; i++) {
        if (gate->cancel && *gate->cancel)
            status = kg_error_set(error, KG_ERROR_CANCELLED, "stopped while verifying");
        else
            status = judge(gate, order[i], subject, bench, verdict, go_on, error);
    }
    free(order);
    return status;
}

// What is true of all verdicts of a gate.
static void describe_gate(const struct kg_gate *gate, struct kg_verdict *verdict)
{
    verdict->seed = gate->seed;
    memcpy(verdict->remarks, gate->cases.remarks, sizeof verdict->remarks);
    verdict->impostors = gate->impostors.rejected;
}

void kg_gate_begin(const struct kg_gate *gate, struct kg_verdict *verdict)
{
    memset(verdict, 0, sizeof *verdict);
    describe_gate(gate, verdict);
}

// The state that kernels must leave as it is.
static enum kg_status watch(const struct kg_gate *gate, struct kg_error *error)
{
    const struct kg_backend *backend = gate->device->backend;
    return backend->watch ? backend->watch(gate->device, error) : KG_OK;
}

static void conclude(const struct kg_gate *gate, const struct kg_subject *subject, bool go_on,
                     struct kg_verdict *verdict)
{
    verdict->passed = go_on && verdict->cases > 0;
    if (go_on && verdict->cases == 0)
        snprintf(verdict->reason, sizeof verdict->reason, "%s ran none of the %d cases",
                 subject->name, gate->cases.count);
}

enum kg_status kg_gate_judge(const struct kg_gate *gate, const struct kg_subject *subject,
                             struct kg_verdict *verdict, struct kg_error *error)
{
    kg_gate_begin(gate, verdict);
    struct bench bench;
    enum kg_status status = open_bench(gate, &bench, error);
    if (status != KG_OK)
        return status;
    bool go_on = true;
    kg_witness_begin(gate->witness, gate->cases.is_guarded);
    status = watch(gate, error);
    if (status == KG_OK)
        status = judge_all(gate, judge_first, FIRST_ORDER, subject, &bench, verdict, &go_on, error);
    if (status == KG_OK && go_on)
        status =
            judge_all(gate, judge_again, SECOND_ORDER, subject, &bench, verdict, &go_on, error);
    kg_witness_end(gate->cases.is_guarded);
    close_bench(gate, &bench);
    if (status != KG_OK)
        return status;
    conclude(gate, subject, go_on, verdict);
    return KG_OK;
}

enum kg_status kg_gate_exercise(const struct kg_gate *gate, const struct kg_subject *subject,
                                struct kg_verdict *verdict, struct kg_error *error)
{
    kg_gate_begin(gate, verdict);
    bool go_on = true;
    enum kg_status status = watch(gate, error);
    if (status == KG_OK)
        status = judge_all(gate, exercise, FIRST_ORDER, subject, NULL, verdict, &go_on, error);
    if (status == KG_OK)
        conclude(gate, subject, go_on, verdict);
    return status;
}

void kg_gate_explain_end(const struct kg_gate *gate, struct kg_verdict *verdict)
{
    int running = atomic_load(&gate->witness->running);
    uintptr_t address = atomic_load(&gate->witness->address);
    int writes = atomic_load(&gate->witness->writes);
    size_t at = address - atomic_load(&gate->witness->image);
    describe_gate(gate, verdict);
    // The next subject may end its process before a case runs.
    kg_witness_forget(gate->witness);
    if (running < 1 || running > gate->cases.count)
        return;
    const struct kg_case *item = gate->cases.items[running - 1];
    char where[128], reason[600];
    snprintf(reason, sizeof reason, "%.590s", verdict->reason);
    if (address && at < item->image.bytes &&
        kg_image_describe(item->problem, &item->image, at, where, sizeof where))
        snprintf(verdict->reason, sizeof verdict->reason, "%s %s: %.400s",
                 writes == 1   ? "it wrote"
                 : writes == 0 ? "it read"
                               : "it accessed",
                 where, reason);
    kg_case_blame(item, running - 1, verdict);
}

void kg_gate_impostor_report(const struct kg_gate *gate, struct kg_text *text)
{
    for (int i = 0; i < kg_gate_impostor_count(); i++) {
        const char *reason = gate->impostors.reasons[i];
        kg_text_format(text, "%s: %s%s\n", kg_gate_impostor_name(i), reason[0] ? "rejected, " : "",
                       reason[0] ? reason : "is the op itself");
    }
}

// Outside the gate.

enum kg_status kg_verify_outputs(const struct kg_problem *problem, const void *const *inputs,
                                 const void *const *outputs, struct kg_verdict *verdict,
                                 struct kg_error *error)
{
    memset(verdict, 0, sizeof *verdict);
    verdict->seed = kg_random_fresh(); // for choosing windows
    struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS];
    int count;
    enum kg_status status =
        kg_case_windows(problem, KG_DEFAULT_EFFORT, verdict->seed, windows, &count, error);
    bool right = true;
    for (int w = 0; w < (count ? count : 1) && right && status == KG_OK; w++) {
        struct kg_expected expected[KG_MAX_TENSORS];
        status = kg_reference_window(problem, inputs, count ? windows[w] : NULL, kg_case_threads(),
                                     NULL, expected, error);
        if (status != KG_OK)
            break;
        right = kg_compare_outputs(problem, expected, outputs, verdict);
        kg_expected_free(expected, problem->op->output_count);
    }
    verdict->cases = status == KG_OK;
    verdict->passed = status == KG_OK && right;
    return status;
}
