// One gate that judges many subjects, each in a process of its own: what one of them does to that
// process changes nothing of what is said of the next.

#include "test.h"

#include "unit/verify/judge.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum kg_status copy(void *user, const struct kg_problem *problem, void *const *tensors,
                           struct kg_error *error)
{
    (void)user, (void)error;
    memcpy(tensors[1], tensors[0], problem->layouts[0].bytes);
    return KG_OK;
}

static enum kg_status change_input(void *user, const struct kg_problem *problem,
                                   void *const *tensors, struct kg_error *error)
{
    copy(user, problem, tensors, error);
    memset(tensors[0], 1, problem->layouts[0].bytes);
    return KG_OK;
}

static enum kg_status crash(void *user, const struct kg_problem *problem, void *const *tensors,
                            struct kg_error *error)
{
    (void)user, (void)problem, (void)tensors, (void)error;
    raise(SIGKILL);
    return KG_OK;
}

static enum kg_status die_at_once(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)user, (void)result, (void)size, (void)error;
    raise(SIGKILL);
    return KG_OK;
}

static struct kg_verdict judge_by(const struct kg_gate *gate, kg_worker_job *job, subject_run *run)
{
    struct kg_error error = {0};
    struct kg_verdict verdict = {0};
    struct kg_subject subject = {.name = "a test's kernel", .run = run};
    struct judging judging = {gate, &subject};
    enum kg_status status =
        kg_worker_run(job, &judging, 60, NULL, &verdict, sizeof verdict, &error);
    if (status == KG_ERROR_FAULT) {
        snprintf(verdict.reason, sizeof verdict.reason, "%.600s", error.text);
        kg_gate_explain_end(gate, &verdict);
    }
    return verdict;
}

static void one_after_the_other(void)
{
    static const struct {
        kg_worker_job *job;
        subject_run *run;
        bool names_a_case;
    } subjects[] = {{judge_in_child, change_input, true},
                    {judge_in_child, crash, true},
                    {die_at_once, crash, false}, // before it ran on any case
                    {judge_in_child, crash, true}};
    struct made made =
        make("op copy(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = x[p, d] }", "P=3 D=5");
    struct kg_policy policy = {.seed = 7};
    struct kg_gate *gate;
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, &policy, &gate, &made.error), KG_OK,
                 &made.error);
    struct kg_verdict first = judge_by(gate, judge_in_child, copy);
    CHECK(first.passed && first.cases > 10);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        struct kg_verdict verdict = judge_by(gate, subjects[i].job, subjects[i].run);
        CHECK(!verdict.passed && verdict.reason[0]);
        CHECK((strncmp(verdict.reason, "case ", 5) == 0) == subjects[i].names_a_case);
    }
    struct kg_verdict last = judge_by(gate, judge_in_child, copy);
    CHECK(memcmp(&last, &first, sizeof first) == 0);
    kg_gate_free(gate);
    unmake(&made);
}

TEST_MAIN(one_after_the_other)
