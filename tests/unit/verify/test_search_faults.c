// What a search finds among numbers that are all small, and behind a product: a kernel that is
// wrong there only must be refused with any seed, and the same kernel without its fault must pass.

#include "test.h"
#include "unit/verify/judge.h"

#include <float.h>
#include <math.h>

#define SEEDS 5

// y[p] = max(d) x[p, d]. Fault 1 takes numbers below the normal ones for zero.
static enum kg_status largest(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    bool flushes = *(const int *)user == 1;
    const int64_t *shape = problem->layouts[0].shape;
    for (int64_t p = 0; p < shape[0]; p++) {
        double best = -INFINITY;
        for (int64_t d = 0; d < shape[1]; d++) {
            double value = get(problem, tensors, 0, p, d);
            value = flushes && fabs(value) < FLT_MIN ? copysign(0, value) : value;
            best = isnan(best) || value <= best ? best : value;
        }
        put(problem, tensors, 1, p, 0, best);
    }
    return KG_OK;
}

// y[p] = max(n) sum(k) a[p, k] * b[n, k]. Fault 1 gives zero where all of a row of `a` is -inf.
static enum kg_status nearest(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)error;
    const int64_t *a = problem->layouts[0].shape, *b = problem->layouts[1].shape;
    for (int64_t p = 0; p < a[0]; p++) {
        double best = -INFINITY;
        bool masked = a[1] > 0;
        for (int64_t k = 0; k < a[1]; k++)
            masked &= get(problem, tensors, 0, p, k) == -INFINITY;
        for (int64_t n = 0; n < b[0]; n++) {
            double sum = 0;
            for (int64_t k = 0; k < a[1]; k++)
                sum += get(problem, tensors, 0, p, k) * get(problem, tensors, 1, n, k);
            best = isnan(best) || sum <= best ? best : sum;
        }
        put(problem, tensors, 2, p, 0, masked && *(const int *)user == 1 ? 0 : best);
    }
    return KG_OK;
}

static void try_both(const char *text, subject_run *run)
{
    struct made made = make(text, "P=40 D=300 K=30 N=20");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (int fault = 0; fault < 2; fault++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const struct kg_policy policy = {.seed = seed};
            struct kg_verdict verdict = judge(made.op, &policy, run, &fault);
            CHECK(verdict.passed == (fault == 0));
        }
    unmake(&made);
}

static void small_numbers(void)
{
    try_both("op f(x: f32[P, D]) -> (y: f32[P]) { y[p] = max(d) x[p, d] }", largest);
}

static void behind_a_product(void)
{
    try_both("op f(a: f32[P, K], b: f32[N, K]) -> (y: f32[P])\n"
             "{ s[p, n] = sum(k) a[p, k] * b[n, k]  y[p] = max(n) s[p, n] }",
             nearest);
}

TEST_MAIN(small_numbers, behind_a_product)
