// The gate: makes the cases once, checks that they reject impostors, and then judges one subject
// after the other.

#include "verify/gate.h"

#include "verify/case.h"
#include "verify/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum impostor_fate { FATE_UNKNOWN, FATE_REJECTED, FATE_IS_THE_OP };

#define MAX_IMPOSTORS 32
#define MAX_MENDS 3 // rounds of new cases after an impostor has passed
// Of the results of ordinary inputs, at least this fraction must be decidable.
#define LEAST_DECIDED 0.1
#define MAX_PROOF_BYTES ((size_t)1 << 20)

struct kg_gate {
    struct kg_device *device;
    const struct kg_op *op;
    const volatile int *cancel;
    uint64_t seed;
    struct kg_cases cases;
    struct kg_residents *residents; // NULL if the device shares memory
    enum impostor_fate fates[MAX_IMPOSTORS];
    char reasons[MAX_IMPOSTORS][512]; // why each impostor was rejected
};

// Host memory for one judgement, of the size of the largest image.
struct bench {
    unsigned char *image[2]; // after the first and the second run
    unsigned char *scratch;
    unsigned char *device; // in the device's memory
};

static void close_bench(const struct kg_gate *gate, struct bench *bench)
{
    free(bench->image[0]);
    free(bench->image[1]);
    free(bench->scratch);
    if (bench->device)
        gate->device->backend->release(gate->device, bench->device);
}

static enum kg_status open_bench(const struct kg_gate *gate, bool with_device, struct bench *bench,
                                 struct kg_error *error)
{
    size_t bytes = 1;
    memset(bench, 0, sizeof *bench);
    for (int i = 0; i < gate->cases.count; i++)
        if (gate->cases.items[i]->image_bytes > bytes)
            bytes = gate->cases.items[i]->image_bytes;
    bench->image[0] = malloc(bytes);
    bench->image[1] = malloc(bytes);
    bench->scratch = malloc(bytes);
    enum kg_status status = KG_OK;
    if (!bench->image[0] || !bench->image[1] || !bench->scratch)
        status = kg_error_memory(error, "the gate's images");
    void *memory = NULL;
    if (status == KG_OK && with_device)
        status = gate->device->backend->allocate(gate->device, bytes, &memory, error);
    bench->device = memory;
    if (status != KG_OK)
        close_bench(gate, bench);
    return status;
}

// Puts "case 3 (P=7 D=13, some NaN): " before the reason.
static void blame(const struct kg_gate *gate, int index, struct kg_verdict *verdict)
{
    char reason[sizeof verdict->reason];
    memcpy(reason, verdict->reason, sizeof reason);
    snprintf(verdict->reason, sizeof verdict->reason, "case %d (%s): %.600s", index + 1,
             gate->cases.items[index]->label, reason);
    verdict->passed = false;
}

// Checks the images after both runs.
static bool check_images(const struct kg_case *item, const struct bench *bench,
                         struct kg_verdict *verdict)
{
    const void *outputs[KG_MAX_TENSORS];
    const struct kg_op *op = item->problem->op;
    for (int run = 0; run < 2; run++)
        if (!kg_image_intact(item, kg_image_fills[run], bench->image[run], bench->scratch,
                             verdict->reason, sizeof verdict->reason))
            return false;
    for (int o = 0; o < op->output_count; o++)
        outputs[o] = bench->image[0] + item->offsets[op->input_count + o];
    for (int w = 0; w < item->window_count; w++)
        if (!kg_compare_outputs(item->problem, item->expected[w], outputs, verdict))
            return false;
    return kg_image_same(item, bench->image[0], bench->image[1], verdict->reason,
                         sizeof verdict->reason);
}

// Impostors.

// Large cases would make the test of impostors slow without making it stronger.
static bool proves(const struct kg_case *item)
{
    return item->whole && item->image_bytes <= MAX_PROOF_BYTES;
}

static bool rejects(const struct kg_gate *gate, int impostor, int index, const struct bench *bench,
                    struct kg_verdict *verdict)
{
    const struct kg_case *item = gate->cases.items[index];
    if (!proves(item))
        return false;
    for (int run = 0; run < 2; run++) {
        kg_image_compose(item, kg_image_fills[run], bench->image[run]);
        kg_impostor_run(impostor, item, bench->image[run]);
    }
    if (check_images(item, bench, verdict))
        return false;
    blame(gate, index, verdict);
    return true;
}

static bool is_the_op(const struct kg_gate *gate, int impostor)
{
    for (int i = 0; i < gate->cases.count; i++)
        if (proves(gate->cases.items[i]) && !kg_impostor_equals(impostor, gate->cases.items[i]))
            return false;
    return true;
}

static void try_impostor(struct kg_gate *gate, int impostor, const struct bench *bench)
{
    for (int i = 0; i < gate->cases.count; i++) {
        struct kg_verdict verdict = {0};
        if (!rejects(gate, impostor, i, bench, &verdict))
            continue;
        gate->fates[impostor] = FATE_REJECTED;
        snprintf(gate->reasons[impostor], sizeof gate->reasons[impostor], "%.511s", verdict.reason);
        return;
    }
    gate->fates[impostor] = is_the_op(gate, impostor) ? FATE_IS_THE_OP : FATE_UNKNOWN;
}

// Runs all impostors that are not settled yet; returns the first that passes, or -1.
static int find_passing(struct kg_gate *gate, const struct bench *bench)
{
    int passing = -1;
    for (int i = 0; i < kg_gate_impostor_count(); i++) {
        if (gate->fates[i] != FATE_REJECTED)
            try_impostor(gate, i, bench);
        if (gate->fates[i] == FATE_UNKNOWN && passing < 0)
            passing = i;
    }
    return passing;
}

// Counts elements whose slack is small compared with the output's largest value.
static double count_decided(const struct kg_expected *expected)
{
    double largest = 0, decided = 0;
    for (int64_t n = 0; n < expected->count; n++)
        if (isfinite(expected->value[n]))
            largest = fmax(largest, fabs(expected->value[n]));
    for (int64_t n = 0; n < expected->count; n++)
        decided += expected->slack[n] <= largest / 2;
    return decided;
}

// If no result is decidable, every impostor would count as the op itself.
static enum kg_status check_decidable(const struct kg_gate *gate, struct kg_error *error)
{
    double decided = 0, all = 0;
    for (int i = 0; i < gate->cases.count; i++) {
        const struct kg_case *item = gate->cases.items[i];
        for (int o = 0; o < gate->op->output_count && item->class == KG_INPUT_NORMAL; o++) {
            const struct kg_expected *expected = &item->expected[0][o];
            all += (double)expected->count;
            decided += count_decided(expected);
        }
    }
    if (decided > 0 && decided >= LEAST_DECIDED * all)
        return KG_OK;
    return kg_error_set(error, KG_ERROR_WRONG,
                        "rounding decides %.0f%% of the results of %s: nothing can be verified",
                        all > 0 ? 100 * (1 - decided / all) : 100, gate->op->name);
}

static enum kg_status prove(struct kg_gate *gate, const struct kg_policy *policy,
                            struct kg_error *error)
{
    for (int mend = 0;; mend++) {
        struct bench bench;
        enum kg_status status = open_bench(gate, false, &bench, error);
        if (status != KG_OK)
            return status;
        int passing = find_passing(gate, &bench);
        close_bench(gate, &bench);
        if (passing < 0)
            return KG_OK;
        if (mend == MAX_MENDS)
            return kg_error_set(error, KG_ERROR_WRONG,
                                "the gate for %s proves nothing: an impostor (%s) passes all %d "
                                "cases; give larger sizes in its goal: verify ...",
                                gate->op->name, kg_gate_impostor_name(passing), gate->cases.count);
        // Adds cases with other inputs, at sizes whose cost grows by a factor of four each time.
        struct kg_policy richer = *policy;
        richer.effort =
            (policy->effort > 0 ? policy->effort : KG_DEFAULT_EFFORT) * (double)(4 << 2 * mend);
        struct kg_cases more = {0};
        status = kg_cases_make(&more, gate->op, &richer, gate->seed + (uint64_t)mend + 1, error);
        if (status == KG_OK)
            status = kg_cases_take(&gate->cases, &more, error);
        kg_cases_free(&more);
        if (status != KG_OK)
            return status;
    }
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
    enum kg_status status = kg_cases_make(&made->cases, instance, policy, made->seed, error);
    if (status == KG_OK)
        status = check_decidable(made, error);
    if (status == KG_OK)
        status = prove(made, policy, error);
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
    free(gate);
}

// Subjects.

static enum kg_status run_once(const struct kg_gate *gate, const struct kg_case *item,
                               const struct kg_subject *subject, const struct bench *bench, int run,
                               bool *ran, struct kg_error *failure, struct kg_error *error)
{
    struct kg_device *device = gate->device;
    const struct kg_op *op = item->problem->op;
    unsigned char *image = bench->image[run];
    void *tensors[KG_MAX_TENSORS];
    for (int i = 0; i < op->input_count + op->output_count; i++)
        tensors[i] = bench->device + item->offsets[i];
    kg_image_compose(item, kg_image_fills[run], image);
    *ran = false;
    enum kg_status status =
        device->backend->copy(device, bench->device, image, item->image_bytes, error);
    if (status != KG_OK)
        return status;
    kg_error_clear(failure);
    failure->status = subject->run(subject->user, item->problem, tensors, failure);
    if (failure->status != KG_OK)
        return KG_OK;
    *ran = true;
    return device->backend->copy(device, image, bench->device, item->image_bytes, error);
}

// Judges by one case. `*go_on` is false when the verdict is final.
static enum kg_status judge_case(const struct kg_gate *gate, int index,
                                 const struct kg_subject *subject, const struct bench *bench,
                                 struct kg_verdict *verdict, bool *go_on, struct kg_error *error)
{
    const struct kg_case *item = gate->cases.items[index];
    struct kg_error failure = {0};
    *go_on = true;
    if (gate->residents) {
        bool passes;
        enum kg_status status =
            kg_residents_judge(gate->residents, index, subject, verdict, &passes, error);
        verdict->cases += passes;
        if (status != KG_OK || passes)
            return status;
    }
    for (int run = 0; run < 2; run++) {
        bool ran;
        enum kg_status status = run_once(gate, item, subject, bench, run, &ran, &failure, error);
        if (status != KG_OK)
            return status;
        if (failure.status == KG_ERROR_CANCELLED)
            return kg_error_set(error, KG_ERROR_CANCELLED, "%s", failure.text);
        if (failure.status == KG_ERROR_UNSUPPORTED && run == 0) {
            verdict->skipped++;
            return KG_OK;
        }
        if (!ran) {
            snprintf(verdict->reason, sizeof verdict->reason, "%.800s",
                     failure.text[0] ? failure.text : "it failed without saying why");
            blame(gate, index, verdict);
            *go_on = false;
            return KG_OK;
        }
    }
    verdict->cases++;
    if (check_images(item, bench, verdict))
        return KG_OK;
    blame(gate, index, verdict);
    *go_on = false;
    return KG_OK;
}

void kg_gate_begin(const struct kg_gate *gate, struct kg_verdict *verdict)
{
    memset(verdict, 0, sizeof *verdict);
    verdict->seed = gate->seed;
    for (int i = 0; i < kg_gate_impostor_count(); i++)
        verdict->impostors += gate->fates[i] == FATE_REJECTED;
}

enum kg_status kg_gate_judge(const struct kg_gate *gate, const struct kg_subject *subject,
                             struct kg_verdict *verdict, struct kg_error *error)
{
    kg_gate_begin(gate, verdict);
    struct bench bench;
    enum kg_status status = open_bench(gate, true, &bench, error);
    if (status != KG_OK)
        return status;
    bool go_on = true;
    for (int i = 0; i < gate->cases.count && go_on && status == KG_OK; i++) {
        if (gate->cancel && *gate->cancel)
            status = kg_error_set(error, KG_ERROR_CANCELLED, "stopped while verifying");
        else
            status = judge_case(gate, i, subject, &bench, verdict, &go_on, error);
    }
    close_bench(gate, &bench);
    if (status != KG_OK)
        return status;
    verdict->passed = go_on && verdict->cases > 0;
    if (go_on && verdict->cases == 0)
        snprintf(verdict->reason, sizeof verdict->reason, "%s ran none of the %d cases",
                 subject->name, gate->cases.count);
    return KG_OK;
}

void kg_gate_impostor_report(const struct kg_gate *gate, struct kg_text *text)
{
    for (int i = 0; i < kg_gate_impostor_count(); i++) {
        const char *fate = gate->fates[i] == FATE_REJECTED ? gate->reasons[i] : "is the op itself";
        kg_text_format(text, "%s: %s%s\n", kg_gate_impostor_name(i),
                       gate->fates[i] == FATE_REJECTED ? "rejected, " : "", fate);
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
