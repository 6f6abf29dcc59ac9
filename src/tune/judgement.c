// What happens to one candidate. Everything that runs generated code runs in the child: see
// worker.h. The child inherits the inputs, the gate's cases and the loaded kernels; only its own
// outputs are new.
//
// Order in the child: the gate; one run on poisoned outputs at the size to tune for, whose outputs
// are compared with the reference where that is affordable; timing; and then outputs and inputs
// must be what they were before.

#include "tune/judgement.h"
#include "tune/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_SEED 1
#define POISON 0xA5
#define MOST_VERIFIED 16
// The interpreter does some 10^7 operations per second; beyond this a search would spend more time
// there than on the clock. The gate has verified the candidate at smaller sizes in any case.
#define VERIFY_OPERATIONS 1e7

struct kg_judge {
    const struct kg_search *search;
    const struct kg_problem *problem;
    struct kg_device *device;
    void *inputs[KG_MAX_TENSORS]; // device memory
    uint64_t input_checksums[KG_MAX_TENSORS];
    // Outputs that equal these were compared with the reference before.
    uint64_t verified[MOST_VERIFIED];
    int verified_count;
};

// The tensors of one child.
struct tensors {
    void *pointers[KG_MAX_TENSORS]; // inputs, then outputs
    void *workspace;
};

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

// Fast rather than strong: tells accidents, not attacks. Four lanes hide the multiplications.
static uint64_t checksum(uint64_t seed, const void *bytes, size_t length)
{
    static const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t lanes[4] = {seed, seed ^ prime, ~seed, seed + prime};
    const char *at = bytes;
    for (; length >= 32; at += 32, length -= 32) {
        uint64_t words[4];
        memcpy(words, at, 32);
        for (int i = 0; i < 4; i++)
            lanes[i] = rotate(lanes[i] ^ words[i], 29) * prime;
    }
    uint64_t sum = length * prime;
    for (; length > 0; at++, length--)
        sum = rotate(sum ^ (unsigned char)*at, 11) * prime;
    for (int i = 0; i < 4; i++)
        sum = rotate(sum ^ lanes[i], 31) * prime;
    return sum ^ sum >> 32;
}

// A tensor's bytes where the CPU can read them: in place, or a copy that `*copy` owns.
static enum kg_status view(const struct kg_judge *judge, int tensor, const void *memory,
                           const void **bytes, void **copy, struct kg_error *error)
{
    size_t size = judge->problem->layouts[tensor].bytes;
    *copy = NULL;
    *bytes = memory;
    if (judge->device->backend->shares_memory)
        return KG_OK;
    *bytes = *copy = malloc(size ? size : 1);
    if (!*copy)
        return kg_error_memory(error, "a tensor");
    return judge->device->backend->copy(judge->device, *copy, memory, size, error);
}

static enum kg_status add_checksum(const struct kg_judge *judge, int tensor, const void *memory,
                                   uint64_t *sum, struct kg_error *error)
{
    const void *bytes;
    void *copy;
    enum kg_status status = view(judge, tensor, memory, &bytes, &copy, error);
    if (!status)
        *sum = checksum(*sum, bytes, judge->problem->layouts[tensor].bytes);
    free(copy);
    return status;
}

static enum kg_status checksum_outputs(const struct kg_judge *judge, const struct tensors *tensors,
                                       uint64_t *sum, struct kg_error *error)
{
    const struct kg_op *op = judge->problem->op;
    *sum = 0;
    for (int i = 0; i < op->output_count; i++) {
        int tensor = op->input_count + i;
        enum kg_status status = add_checksum(judge, tensor, tensors->pointers[tensor], sum, error);
        if (status)
            return status;
    }
    return KG_OK;
}

static enum kg_status check_inputs(const struct kg_judge *judge, struct kg_error *error)
{
    for (int i = 0; i < judge->problem->op->input_count; i++) {
        uint64_t sum = 0;
        enum kg_status status = add_checksum(judge, i, judge->inputs[i], &sum, error);
        if (status)
            return status;
        if (sum != judge->input_checksums[i])
            return kg_error_set(error, KG_ERROR_WRONG, "the input %s was changed",
                                judge->problem->op->tensors[i]->name);
    }
    return KG_OK;
}

// Fills every output with bytes no kernel would write.
static enum kg_status poison(const struct kg_judge *judge, const struct tensors *tensors,
                             struct kg_error *error)
{
    const struct kg_op *op = judge->problem->op;
    for (int tensor = op->input_count; tensor < op->input_count + op->output_count; tensor++) {
        size_t size = judge->problem->layouts[tensor].bytes;
        if (judge->device->backend->shares_memory) {
            memset(tensors->pointers[tensor], POISON, size);
            continue;
        }
        void *bytes = malloc(size ? size : 1);
        if (!bytes)
            return kg_error_memory(error, "a tensor");
        memset(bytes, POISON, size);
        enum kg_status status = judge->device->backend->copy(
            judge->device, tensors->pointers[tensor], bytes, size, error);
        free(bytes);
        if (status)
            return status;
    }
    return KG_OK;
}

// Outputs, and a workspace large enough for every candidate given. The child ends without freeing.
static enum kg_status allocate(const struct kg_judge *judge, struct kg_built *const *built,
                               int count, struct tensors *tensors, struct kg_error *error)
{
    const struct kg_problem *problem = judge->problem;
    const struct kg_backend *backend = judge->device->backend;
    int inputs = problem->op->input_count;
    *tensors = (struct tensors){0};
    memcpy(tensors->pointers, judge->inputs, (size_t)inputs * sizeof judge->inputs[0]);
    for (int tensor = inputs; tensor < inputs + problem->op->output_count; tensor++) {
        enum kg_status status = backend->allocate(judge->device, problem->layouts[tensor].bytes,
                                                  &tensors->pointers[tensor], error);
        if (status)
            return status;
    }
    size_t workspace = 0;
    for (int i = 0; i < count; i++) {
        size_t wanted = kg_built_workspace(built[i], problem);
        workspace = wanted > workspace ? wanted : workspace;
    }
    return backend->allocate(judge->device, workspace, &tensors->workspace, error);
}

// One candidate on one set of tensors, as the clock sees it.
struct runner {
    const struct kg_judge *judge;
    struct kg_built *built;
    const struct tensors *tensors;
};

static enum kg_status run(void *user, struct kg_error *error)
{
    const struct runner *runner = user;
    return kg_built_run(runner->built, runner->judge->problem, runner->tensors->pointers,
                        runner->tensors->workspace, NULL, error);
}

// One run on poisoned outputs, and their checksum.
static enum kg_status run_fresh(struct runner *runner, uint64_t *sum, struct kg_error *error)
{
    enum kg_status status = poison(runner->judge, runner->tensors, error);
    if (!status)
        status = run(runner, error);
    if (!status)
        status = checksum_outputs(runner->judge, runner->tensors, sum, error);
    return status;
}

static bool is_verified(const struct kg_judge *judge, uint64_t sum)
{
    for (int i = 0; i < judge->verified_count; i++)
        if (judge->verified[i] == sum)
            return true;
    return false;
}

// Compares the outputs with the reference, unless that costs too much or equal ones were compared.
static enum kg_status verify(const struct kg_judge *judge, const struct tensors *tensors,
                             uint64_t sum, bool *verified, struct kg_error *error)
{
    const struct kg_problem *problem = judge->problem;
    int count = problem->op->input_count + problem->op->output_count;
    const void *bytes[KG_MAX_TENSORS];
    void *copies[KG_MAX_TENSORS] = {0};
    struct kg_verdict verdict = {0};
    *verified = false;
    if (problem->operations + problem->write_bytes > VERIFY_OPERATIONS || is_verified(judge, sum))
        return KG_OK;
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++)
        status = view(judge, i, tensors->pointers[i], &bytes[i], &copies[i], error);
    if (!status)
        status =
            kg_verify_outputs(problem, bytes, bytes + problem->op->input_count, &verdict, error);
    if (!status && !verdict.passed)
        status = kg_error_set(error, KG_ERROR_WRONG, "%s", verdict.reason);
    for (int i = 0; i < count; i++)
        free(copies[i]);
    *verified = status == KG_OK;
    return status;
}

// What the parent hands to a child that judges one candidate, and what comes back.
struct single {
    const struct kg_judge *judge;
    struct kg_built *built;
    double incumbent;
};
struct answer {
    struct kg_verdict verdict;
    struct kg_timing timing;
    uint64_t checksum;
    bool verified;
};

// KG_ERROR_WRONG with the reason, whichever check said so.
static enum kg_status judge_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct single *single = user;
    const struct kg_judge *judge = single->judge;
    struct answer *answer = result;
    struct kg_subject subject = kg_judge_subject(single->built);
    enum kg_status status = kg_gate_judge(judge->search->gate, &subject, &answer->verdict, error);
    if (!status && !answer->verdict.passed)
        return kg_error_set(error, KG_ERROR_WRONG, "%s", answer->verdict.reason);

    struct tensors tensors;
    struct runner runner = {judge, single->built, &tensors};
    struct kg_timed timed = {&runner, run};
    uint64_t after = 0;
    if (!status)
        status = allocate(judge, &single->built, 1, &tensors, error);
    if (!status)
        status = run_fresh(&runner, &answer->checksum, error);
    if (!status)
        status = verify(judge, &tensors, answer->checksum, &answer->verified, error);
    if (!status)
        status = kg_time_one(judge->device, &judge->search->protocol, &timed, single->incumbent,
                             NULL, &answer->timing, error);
    if (!status)
        status = checksum_outputs(judge, &tensors, &after, error);
    if (!status && after != answer->checksum)
        status = kg_error_set(error, KG_ERROR_WRONG,
                              "the timed runs gave other outputs than the run before them");
    return status ? status : check_inputs(judge, error);
}

struct race {
    const struct kg_judge *judge;
    struct kg_built *const *built;
    int count;
};

// All run on the same tensors, so that none is favoured by where its outputs happen to lie.
static enum kg_status race_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct race *race = user;
    const struct kg_judge *judge = race->judge;
    struct tensors tensors;
    struct runner *runners = calloc((size_t)race->count, sizeof *runners);
    struct kg_timed *timed = calloc((size_t)race->count, sizeof *timed);
    uint64_t *before = calloc((size_t)race->count, sizeof *before);
    if (!runners || !timed || !before)
        return kg_error_memory(error, "a race");
    enum kg_status status = allocate(judge, race->built, race->count, &tensors, error);
    for (int i = 0; i < race->count && !status; i++) {
        runners[i] = (struct runner){judge, race->built[i], &tensors};
        timed[i] = (struct kg_timed){&runners[i], run};
        status = run_fresh(&runners[i], &before[i], error);
    }
    if (!status)
        status = kg_time_race(judge->device, &judge->search->protocol, timed, race->count, NULL,
                              result, error);
    for (int i = 0; i < race->count && !status; i++) {
        uint64_t sum = 0;
        status = run_fresh(&runners[i], &sum, error);
        if (!status && sum != before[i])
            status = kg_error_set(error, KG_ERROR_WRONG, "a finalist's outputs changed");
    }
    return status ? status : check_inputs(judge, error);
}

static enum kg_status fill_input(struct kg_judge *judge, int input, struct kg_error *error)
{
    const struct kg_backend *backend = judge->device->backend;
    size_t size = judge->problem->layouts[input].bytes;
    enum kg_status status = backend->allocate(judge->device, size, &judge->inputs[input], error);
    if (status)
        return status;
    if (backend->shares_memory) {
        memset(judge->inputs[input], 0, size); // gaps of strided layouts
        kg_verify_fill(judge->problem, input, INPUT_SEED, judge->inputs[input]);
    } else {
        void *bytes = calloc(1, size ? size : 1);
        if (!bytes)
            return kg_error_memory(error, "an input");
        kg_verify_fill(judge->problem, input, INPUT_SEED, bytes);
        status = backend->copy(judge->device, judge->inputs[input], bytes, size, error);
        free(bytes);
    }
    if (!status)
        status =
            add_checksum(judge, input, judge->inputs[input], &judge->input_checksums[input], error);
    return status;
}

enum kg_status kg_judge_make(const struct kg_search *search, struct kg_judge **out,
                             struct kg_error *error)
{
    *out = NULL;
    struct kg_judge *judge = calloc(1, sizeof *judge);
    if (!judge)
        return kg_error_memory(error, "the tensors to tune with");
    judge->search = search;
    judge->problem = search->problem;
    judge->device = search->device;
    for (int i = 0; i < judge->problem->op->input_count; i++) {
        enum kg_status status = fill_input(judge, i, error);
        if (status) {
            kg_judge_free(judge);
            return status;
        }
    }
    // What the device needs for a flush is made here once, not in every child again.
    if (search->protocol.cache == KG_COLD)
        judge->device->backend->flush(judge->device);
    *out = judge;
    return KG_OK;
}

void kg_judge_free(struct kg_judge *judge)
{
    if (!judge)
        return;
    for (int i = 0; i < judge->problem->op->input_count; i++)
        if (judge->inputs[i])
            judge->device->backend->release(judge->device, judge->inputs[i]);
    free(judge);
}

enum kg_status kg_judge_one(struct kg_judge *judge, struct kg_built *built, double seconds,
                            double incumbent, struct kg_judgement *judgement,
                            struct kg_error *error)
{
    struct single single = {judge, built, incumbent};
    struct answer answer;
    struct kg_error own = {0};
    *judgement = (struct kg_judgement){0};
    enum kg_status status = kg_worker_run(judge_in_child, &single, seconds, judge->search->cancel,
                                          &answer, sizeof answer, &own);
    if (status == KG_ERROR_CANCELLED)
        return kg_error_set(error, status, "%s", own.text);
    judgement->verdict = answer.verdict;
    judgement->timing = answer.timing;
    judgement->kind = status == KG_OK              ? KG_OUTCOME_MEASURED
                      : status == KG_ERROR_WRONG   ? KG_OUTCOME_WRONG
                      : status == KG_ERROR_TIMEOUT ? KG_OUTCOME_TIMEOUT
                                                   : KG_OUTCOME_FAULT;
    snprintf(judgement->reason, sizeof judgement->reason, "%s", own.text);
    if (!status && answer.verified && judge->verified_count < MOST_VERIFIED)
        judge->verified[judge->verified_count++] = answer.checksum;
    return KG_OK;
}

enum kg_status kg_judge_race(struct kg_judge *judge, struct kg_built *const *built, int count,
                             double seconds, struct kg_timing *timings, struct kg_error *error)
{
    struct race race = {judge, built, count};
    return kg_worker_run(race_in_child, &race, seconds, judge->search->cancel, timings,
                         (size_t)count * sizeof *timings, error);
}

static enum kg_status run_subject(void *user, const struct kg_problem *problem,
                                  void *const *tensors, struct kg_error *error)
{
    struct kg_built *built = user;
    if (problem->contiguous != built->contiguous)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "the kernel is for %s tensors",
                            built->contiguous ? "contiguous" : "strided");
    void *workspace = NULL;
    enum kg_status status = built->device->backend->allocate(
        built->device, kg_built_workspace(built, problem), &workspace, error);
    if (!status)
        status = kg_built_run(built, problem, tensors, workspace, NULL, error);
    if (workspace)
        built->device->backend->release(built->device, workspace);
    return status;
}

struct kg_subject kg_judge_subject(struct kg_built *built)
{
    return (struct kg_subject){.name = "generated", .user = built, .run = run_subject};
}
