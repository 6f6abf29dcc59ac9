// Tests one candidate after the other on the same inputs; see test_rig.h.

#include "tune/test_rig.h"

#include "gen/prepared.h"
#include "tune/tensors.h"

#include <stdlib.h>
#include <string.h>

// The interpreter does about 10^7 operations per second; with more, a search would spend more time
// on it than on timing. The gate has verified the candidate at smaller sizes in any case.
#define VERIFY_OPERATIONS 1e7
// Fraction of the warm-up that is enough after this process has timed a candidate.
#define WARM_SHARE 0.1

struct kg_test_rig {
    const struct kg_search *search;
    const struct kg_problem *problem;
    struct kg_device *device;
    void *tensors[KG_MAX_TENSORS]; // inputs; outputs only during a test
    void *workspace;               // only during a test
    uint64_t input_sums[KG_MAX_TENSORS];
    bool is_warm; // the device has run a candidate, so its clocks are up
};

static enum kg_status check_inputs(const struct kg_test_rig *rig, struct kg_error *error)
{
    const struct kg_problem *problem = rig->problem;
    for (int i = 0; i < problem->op->input_count; i++) {
        uint64_t sum = 0;
        enum kg_status status = rig->device->backend->digest(
            rig->device, rig->tensors[i], problem->layouts[i].bytes, &sum, error);
        if (status)
            return status;
        if (sum != rig->input_sums[i])
            return kg_error_set(error, KG_ERROR_WRONG, "the input %s was changed",
                                problem->op->tensors[i]->name);
    }
    return KG_OK;
}

// One candidate as a subject of the timer.
struct runner {
    const struct kg_test_rig *rig;
    struct kg_prepared *prepared;   // NULL: a guest runs
    const struct kg_subject *guest; // no built choice, but something else that runs
};

static enum kg_status run(void *user, struct kg_error *error)
{
    const struct runner *runner = user;
    const struct kg_test_rig *rig = runner->rig;
    if (runner->guest)
        return runner->guest->run(runner->guest->user, rig->problem, rig->tensors, error);
    return kg_prepared_run(runner->prepared, rig->tensors, rig->workspace, NULL, error);
}

static void close_test(struct kg_test_rig *rig, struct runner *runners, int count)
{
    for (int i = 0; i < count; i++)
        kg_prepared_free(runners[i].prepared);
    kg_tensors_release_outputs(rig->device, rig->problem, rig->tensors);
    if (rig->workspace)
        rig->device->backend->release(rig->device, rig->workspace);
    rig->workspace = NULL;
}

// Allocates outputs and a workspace large enough for every given candidate. The caller calls
// close_test even after a failure.
static enum kg_status open_test(struct kg_test_rig *rig, struct kg_built *const *built, int count,
                                struct runner *runners, struct kg_error *error)
{
    size_t workspace = 0;
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++) {
        runners[i] = (struct runner){.rig = rig};
        status = kg_prepared_make(built[i], rig->problem, &runners[i].prepared, error);
        size_t wanted = status ? 0 : kg_prepared_workspace(runners[i].prepared);
        workspace = wanted > workspace ? wanted : workspace;
    }
    if (!status)
        status = kg_tensors_make_outputs(rig->device, rig->problem, rig->tensors, error);
    if (!status && workspace > 0)
        status = rig->device->backend->allocate(rig->device, workspace, &rig->workspace, error);
    return status;
}

// Runs once on poisoned outputs and computes their checksum.
static enum kg_status run_fresh(struct runner *runner, uint64_t *sum, struct kg_error *error)
{
    const struct kg_test_rig *rig = runner->rig;
    enum kg_status status = kg_tensors_poison(rig->device, rig->problem, rig->tensors, error);
    if (!status)
        status = run(runner, error);
    if (!status)
        status = kg_tensors_digest(rig->device, rig->problem, rig->tensors, sum, error);
    return status;
}

static bool is_verified(const struct kg_verified *verified, uint64_t sum)
{
    for (int i = 0; i < verified->count; i++)
        if (verified->sums[i] == sum)
            return true;
    return false;
}

// A tensor's bytes in memory that the CPU can read: the tensor itself, or a copy that `*copy` owns.
static enum kg_status view(const struct kg_test_rig *rig, int tensor, const void **bytes,
                           void **copy, struct kg_error *error)
{
    size_t size = rig->problem->layouts[tensor].bytes;
    *bytes = rig->tensors[tensor];
    if (rig->device->backend->shares_memory)
        return KG_OK;
    *bytes = *copy = malloc(size ? size : 1);
    if (!*copy)
        return kg_error_memory(error, "a tensor");
    return rig->device->backend->copy(rig->device, *copy, rig->tensors[tensor], size, error);
}

static enum kg_status compare(const struct kg_test_rig *rig, struct kg_error *error)
{
    const struct kg_op *op = rig->problem->op;
    int count = op->input_count + op->output_count;
    const void *bytes[KG_MAX_TENSORS] = {0};
    void *copies[KG_MAX_TENSORS] = {0};
    struct kg_verdict verdict = {0};
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++)
        status = view(rig, i, &bytes[i], &copies[i], error);
    if (!status)
        status = kg_verify_outputs(rig->problem, bytes, bytes + op->input_count, &verdict, error);
    if (!status && !verdict.passed)
        status = kg_error_set(error, KG_ERROR_WRONG, "%s", verdict.reason);
    for (int i = 0; i < count; i++)
        free(copies[i]);
    return status;
}

static struct kg_protocol choose_protocol(const struct kg_test_rig *rig)
{
    struct kg_protocol protocol = rig->search->protocol;
    if (rig->is_warm)
        protocol.warm_seconds *= WARM_SHARE;
    return protocol;
}

// The test at the size to tune for, after the gate has passed the candidate.
static enum kg_status test_at_size(struct kg_test_rig *rig, struct runner *runner, double incumbent,
                                   const struct kg_verified *verified, struct kg_tested *tested,
                                   struct kg_error *error)
{
    const struct kg_search *search = rig->search;
    const struct kg_problem *problem = rig->problem;
    struct kg_timed timed = {runner, run};
    struct kg_protocol protocol = choose_protocol(rig);
    uint64_t after = 0;
    double start = kg_times_now();
    enum kg_status status = run_fresh(runner, &tested->sum, error);
    if (!status && problem->operations + problem->write_bytes <= VERIFY_OPERATIONS &&
        !is_verified(verified, tested->sum)) {
        status = compare(rig, error);
        tested->compared = status == KG_OK;
    }
    kg_times_since(&tested->times, KG_ACTIVITY_CHECK, start);
    start = kg_times_now();
    if (!status)
        status = kg_time_one(rig->device, &protocol, &timed, incumbent, search->cancel,
                             &tested->timing, error);
    kg_times_since(&tested->times, KG_ACTIVITY_MEASURE, start);
    rig->is_warm = !status;
    start = kg_times_now();
    if (!status)
        status = kg_tensors_digest(rig->device, problem, rig->tensors, &after, error);
    if (!status && after != tested->sum)
        status = kg_error_set(error, KG_ERROR_WRONG,
                              "the timed runs gave other outputs than the run before them");
    if (!status)
        status = check_inputs(rig, error);
    kg_times_since(&tested->times, KG_ACTIVITY_CHECK, start);
    return status;
}

// Compares the outputs of a fresh run of a guest with the reference, if that is affordable.
static enum kg_status check_guest(const struct kg_test_rig *rig, const struct runner *runner,
                                  struct kg_error *error)
{
    const struct kg_problem *problem = rig->problem;
    if (!runner->guest || problem->operations + problem->write_bytes > VERIFY_OPERATIONS)
        return KG_OK;
    return compare(rig, error);
}

// Restores the inputs for the next candidate: a wrong one may have written anywhere. If the device
// does not even complete its pending work, the candidate broke it, and that status replaces its
// own.
static enum kg_status restore(const struct kg_test_rig *rig, enum kg_status status,
                              struct kg_error *error)
{
    struct kg_device *device = rig->device;
    if (!status)
        return status;
    enum kg_status after = device->backend->copy(device, NULL, NULL, 0, NULL);
    if (!after)
        after = check_inputs(rig, NULL);
    if (after == KG_ERROR_WRONG)
        after = kg_tensors_fill_inputs(device, rig->problem, rig->tensors, NULL);
    if (!after)
        return status;
    if (error)
        error->status = KG_ERROR_FAULT;
    return KG_ERROR_FAULT;
}

static enum kg_status judge(const struct kg_test_rig *rig, struct kg_built *built,
                            struct kg_tested *tested, struct kg_error *error)
{
    struct kg_subject subject = kg_test_rig_subject(built);
    *tested = (struct kg_tested){0};
    double start = kg_times_now();
    enum kg_status status = kg_gate_judge(rig->search->gate, &subject, &tested->verdict, error);
    kg_times_since(&tested->times, KG_ACTIVITY_JUDGE, start);
    if (!status && !tested->verdict.passed)
        status = kg_error_set(error, KG_ERROR_WRONG, "%s", tested->verdict.reason);
    return status;
}

enum kg_status kg_test_rig_verify(struct kg_test_rig *rig, struct kg_built *built,
                                  struct kg_tested *tested, struct kg_error *error)
{
    return restore(rig, judge(rig, built, tested, error), error);
}

enum kg_status kg_test_rig_test(struct kg_test_rig *rig, struct kg_built *built, double incumbent,
                                const struct kg_verified *verified, struct kg_tested *tested,
                                struct kg_error *error)
{
    enum kg_status status = judge(rig, built, tested, error);
    if (!status) {
        struct runner runner = {0};
        status = open_test(rig, &built, 1, &runner, error);
        if (!status)
            status = test_at_size(rig, &runner, incumbent, verified, tested, error);
        close_test(rig, &runner, 1);
    }
    return restore(rig, status, error);
}

static enum kg_status race(struct kg_test_rig *rig, struct runner *runners, struct kg_timed *timed,
                           uint64_t *before, int count, bool drops, struct kg_timing *timings,
                           struct kg_error *error)
{
    const struct kg_protocol protocol = choose_protocol(rig);
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++) {
        timed[i] = (struct kg_timed){&runners[i], run};
        status = run_fresh(&runners[i], &before[i], error);
        if (!status)
            status = check_guest(rig, &runners[i], error);
    }
    if (!status)
        status = kg_time_race(rig->device, &protocol, timed, count, drops, rig->search->cancel,
                              timings, error);
    rig->is_warm = !status;
    for (int i = 0; i < count && !status; i++) {
        uint64_t sum = 0;
        status = run_fresh(&runners[i], &sum, error);
        if (!status && sum != before[i])
            status = kg_error_set(error, KG_ERROR_WRONG, "%s outputs changed while it was timed",
                                  runners[i].guest ? "its" : "a finalist's");
    }
    return status ? status : check_inputs(rig, error);
}

// `guest` may be NULL; else it is the first of the runners, before the `count` built ones.
static enum kg_status race_all(struct kg_test_rig *rig, const struct kg_subject *guest,
                               struct kg_built *const *built, int count, bool drops,
                               struct kg_timing *timings, struct kg_error *error)
{
    size_t first = guest != NULL, all = first + (size_t)count;
    struct runner *runners = calloc(all, sizeof *runners);
    struct kg_timed *timed = calloc(all, sizeof *timed);
    uint64_t *before = calloc(all, sizeof *before);
    enum kg_status status = KG_OK;
    if (!runners || !timed || !before) {
        status = kg_error_memory(error, "a race");
    } else {
        runners[0] = (struct runner){.rig = rig, .guest = guest};
        status = open_test(rig, built, count, runners + first, error);
        if (!status)
            status = race(rig, runners, timed, before, (int)all, drops, timings, error);
        close_test(rig, runners, (int)all);
    }
    free(runners);
    free(timed);
    free(before);
    return restore(rig, status, error);
}

enum kg_status kg_test_rig_race(struct kg_test_rig *rig, struct kg_built *const *built, int count,
                                bool drops, struct kg_timing *timings, struct kg_error *error)
{
    return race_all(rig, NULL, built, count, drops, timings, error);
}

enum kg_status kg_test_rig_race_guest(struct kg_test_rig *rig, const struct kg_subject *guest,
                                      struct kg_built *const *built, int count,
                                      struct kg_timing *timings, struct kg_error *error)
{
    return race_all(rig, guest, built, count, false, timings, error);
}

enum kg_status kg_test_rig_make(const struct kg_search *search, struct kg_test_rig **out,
                                struct kg_error *error)
{
    *out = NULL;
    struct kg_test_rig *rig = calloc(1, sizeof *rig);
    if (!rig)
        return kg_error_memory(error, "the tensors to tune with");
    rig->search = search;
    rig->problem = search->problem;
    rig->device = search->device;
    enum kg_status status = kg_tensors_make_inputs(rig->device, rig->problem, rig->tensors, error);
    for (int i = 0; i < rig->problem->op->input_count && !status; i++)
        status = rig->device->backend->digest(rig->device, rig->tensors[i],
                                              rig->problem->layouts[i].bytes, &rig->input_sums[i],
                                              error);
    if (status) {
        kg_test_rig_free(rig);
        return status;
    }
    // Memory that the device needs for a flush is allocated here once, not in every fork.
    if (search->protocol.cache == KG_COLD)
        rig->device->backend->flush(rig->device);
    *out = rig;
    return KG_OK;
}

void kg_test_rig_free(struct kg_test_rig *rig)
{
    if (!rig)
        return;
    kg_tensors_release_inputs(rig->device, rig->problem, rig->tensors);
    free(rig);
}

static enum kg_status run_subject(void *user, const struct kg_problem *problem,
                                  void *const *tensors, struct kg_error *error)
{
    const struct kg_built *built = user;
    if (problem->contiguous != built->contiguous)
        built = built->counterpart;
    if (!built)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "there is no kernel for %s tensors",
                            problem->contiguous ? "contiguous" : "strided");
    const struct kg_backend *backend = built->device->backend;
    struct kg_prepared *prepared;
    void *workspace = NULL;
    enum kg_status status = kg_prepared_make(built, problem, &prepared, error);
    size_t bytes = status ? 0 : kg_prepared_workspace(prepared);
    if (bytes > 0)
        status = backend->allocate(built->device, bytes, &workspace, error);
    if (!status)
        status = kg_prepared_run(prepared, tensors, workspace, NULL, error);
    if (workspace)
        backend->release(built->device, workspace);
    kg_prepared_free(prepared);
    return status;
}

struct kg_subject kg_test_rig_subject(struct kg_built *built)
{
    return (struct kg_subject){.name = "generated", .user = built, .run = run_subject};
}
