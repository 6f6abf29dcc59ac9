// A device that is plain memory, and gates on it, for tests.

#ifndef KG_TESTS_JUDGE_H
#define KG_TESTS_JUDGE_H

#include "support/sample_problem.h"
#include "tune/worker.h"
#include "verify/gate.h"

#include <stdio.h>

static inline enum kg_status plain_allocate(struct kg_device *device, size_t bytes, void **memory,
                                            struct kg_error *error)
{
    (void)device;
    *memory = malloc(bytes);
    return *memory ? KG_OK : kg_error_memory(error, "a test");
}

static inline void plain_release(struct kg_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static inline enum kg_status plain_copy(struct kg_device *device, void *to, const void *from,
                                        size_t bytes, struct kg_error *error)
{
    (void)device, (void)error;
    memcpy(to, from, bytes);
    return KG_OK;
}

static const struct kg_backend plain_backend = {.name = "plain",
                                                .shares_memory = true,
                                                .allocate = plain_allocate,
                                                .release = plain_release,
                                                .copy = plain_copy};
static struct kg_device plain_device = {.backend = &plain_backend};

typedef enum kg_status subject_run(void *user, const struct kg_problem *problem,
                                   void *const *tensors, struct kg_error *error);

struct judging {
    const struct kg_gate *gate;
    const struct kg_subject *subject;
};

static inline enum kg_status judge_in_child(void *user, void *result, size_t size,
                                            struct kg_error *error)
{
    const struct judging *judging = user;
    (void)size;
    return kg_gate_judge(judging->gate, judging->subject, result, error);
}

// Makes a gate and judges one subject by it, in a process of its own, which the subject may end.
static inline struct kg_verdict judge(const struct kg_op *op, const struct kg_policy *policy,
                                      subject_run *run, void *user)
{
    struct kg_error error = {0};
    struct kg_gate *gate;
    struct kg_verdict verdict = {0};
    struct kg_subject subject = {.name = "a test's kernel", .user = user, .run = run};
    enum kg_status status = kg_gate_make(&plain_device, op, policy, &gate, &error);
    struct judging judging = {gate, &subject};
    if (!status)
        status =
            kg_worker_run(judge_in_child, &judging, 60, NULL, &verdict, sizeof verdict, &error);
    if (status == KG_ERROR_FAULT || status == KG_ERROR_TIMEOUT) {
        snprintf(verdict.reason, sizeof verdict.reason, "%.600s", error.text);
        kg_gate_explain_end(gate, &verdict);
    } else if (status) {
        fprintf(stderr, "gate: %s\n", error.text);
    }
    kg_gate_free(gate);
    return verdict;
}

// Element `at` of a tensor by its place, as the layout says; as double, whatever the dtype.
static inline size_t place_of(const struct kg_problem *problem, int tensor, int64_t i, int64_t j)
{
    const int64_t *stride = problem->layouts[tensor].stride;
    int rank = problem->op->tensors[tensor]->rank;
    return (size_t)((rank > 0 ? i * stride[0] : 0) + (rank > 1 ? j * stride[1] : 0));
}

static inline double get(const struct kg_problem *problem, void *const *tensors, int tensor,
                         int64_t i, int64_t j)
{
    return kg_dtype_load(problem->op->tensors[tensor]->type.dtype, tensors[tensor],
                         place_of(problem, tensor, i, j));
}

static inline void put(const struct kg_problem *problem, void *const *tensors, int tensor,
                       int64_t i, int64_t j, double value)
{
    kg_dtype_store(problem->op->tensors[tensor]->type.dtype, tensors[tensor],
                   place_of(problem, tensor, i, j), value);
}

// The honest kernel for any op: the definition, rounded to the outputs' dtypes.
static inline enum kg_status honest(void *user, const struct kg_problem *problem,
                                    void *const *tensors, struct kg_error *error)
{
    (void)user;
    const struct kg_op *op = problem->op;
    struct kg_expected expected[KG_MAX_TENSORS];
    enum kg_status status =
        kg_reference_run(problem, (const void *const *)tensors, 1, NULL, expected, error);
    for (int o = 0; o < op->output_count && status == KG_OK; o++) {
        int tensor = op->input_count + o;
        const struct kg_layout *layout = &problem->layouts[tensor];
        for (int64_t n = 0; n < expected[o].count; n++) {
            int64_t at = 0, rest = n;
            for (int d = op->tensors[tensor]->rank - 1; d >= 0; d--) {
                at += rest % layout->shape[d] * layout->stride[d];
                rest /= layout->shape[d];
            }
            enum kg_dtype dtype = op->tensors[tensor]->type.dtype;
            if (expected[o].integer)
                kg_dtype_store_integer(dtype, tensors[tensor], (size_t)at, expected[o].integer[n]);
            else
                kg_dtype_store(dtype, tensors[tensor], (size_t)at, expected[o].value[n]);
        }
    }
    if (status == KG_OK)
        kg_expected_free(expected, op->output_count);
    return status;
}

#endif
