// Faults that show at few values only: each must be refused with any seed, and the same kernel
// without it must pass.

#include "test.h"
#include "unit/verify/judge.h"

#include <float.h>
#include <math.h>

// Sanitizers look for errors of memory, which no seed brings about.
#ifdef __SANITIZE_ADDRESS__
#define SEEDS 2
#else
#define SEEDS 20
#endif

// y[p] = log(sum(d) exp(x[p, d])). Fault 1 takes numbers below the normal ones for zero, which
// shows where a row is one number.
static enum kg_status logarithm_of_sum(void *user, const struct kg_problem *problem,
                                       void *const *tensors, struct kg_error *error)
{
    (void)error;
    const int64_t *shape = problem->layouts[0].shape;
    for (int64_t p = 0; p < shape[0]; p++) {
        double most = -INFINITY, sum = 0;
        for (int turn = 0; turn < 2; turn++)
            for (int64_t d = 0; d < shape[1]; d++) {
                double value = get(problem, tensors, 0, p, d);
                value = *(const int *)user == 1 && fabs(value) < 0x1p-14 ? 0 : value;
                most = turn || isnan(most) || value <= most ? most : value;
                sum += turn ? exp(value - most) : 0;
            }
        put(problem, tensors, 1, p, 0, log(sum) + most);
    }
    return KG_OK;
}

// y[n] = pow(x[n], z[n]). Fault 1 loses the sign of zero, which shows below odd whole numbers.
static enum kg_status power(void *user, const struct kg_problem *problem, void *const *tensors,
                            struct kg_error *error)
{
    (void)error;
    for (int64_t n = 0; n < problem->layouts[0].shape[0]; n++) {
        double x = get(problem, tensors, 0, n, 0), z = get(problem, tensors, 1, n, 0);
        put(problem, tensors, 2, n, 0, pow(*(const int *)user == 1 && x == 0 ? 0 : x, z));
    }
    return KG_OK;
}

// y[p] = x[p, argmax(d) score[p, d]]. Fault 1 takes a special value of x for another one.
static double infinity_lost(double value)
{
    return isinf(value) ? copysign(65504, value) : value;
}

static double nan_lost(double value)
{
    return isnan(value) ? 0 : value;
}

static double clipped(double value)
{
    return isfinite(value) && fabs(value) > 16384 ? copysign(16384, value) : value;
}

struct losing {
    int fault; // where judge's user finds it
    double (*lose)(double value);
};

static enum kg_status pick(void *user, const struct kg_problem *problem, void *const *tensors,
                           struct kg_error *error)
{
    (void)error;
    const struct losing *losing = user;
    const int64_t *shape = problem->layouts[0].shape;
    for (int64_t p = 0; p < shape[0]; p++) {
        int64_t best = 0;
        for (int64_t d = 1; d < shape[1]; d++) {
            double most = get(problem, tensors, 0, p, best), value = get(problem, tensors, 0, p, d);
            best = !isnan(most) && (isnan(value) || value > most) ? d : best;
        }
        double value = get(problem, tensors, 1, p, best);
        put(problem, tensors, 2, p, 0, losing->fault ? losing->lose(value) : value);
    }
    return KG_OK;
}

static void try_losing(const char *text, const char *sizes, subject_run *run,
                       double (*lose)(double value), int faults)
{
    struct losing user = {.lose = lose};
    struct made made = make(text, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (user.fault = 0; user.fault <= faults; user.fault++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const struct kg_policy policy = {.seed = seed};
            struct kg_verdict verdict = judge(made.op, &policy, run, &user);
            if (verdict.passed != (user.fault == 0))
                fprintf(stderr, "seed %d, fault %d: %s\n", (int)seed, user.fault, verdict.reason);
            CHECK(verdict.passed == (user.fault == 0));
        }
    unmake(&made);
}

static void try_both(const char *text, const char *sizes, subject_run *run)
{
    try_losing(text, sizes, run, NULL, 1);
}

static void rows_of_one(void)
{
    try_both("op f(x: f16[P, D]) -> (y: f16[P])\n"
             "{ m[p] = max(d) x[p, d]\n"
             "  y[p] = log(sum(d) exp(x[p, d] - m[p])) + m[p] }",
             "P=40 D=300", logarithm_of_sum);
}

static void signs_of_zero(void)
{
    try_both("op f(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[n] = pow(x[n], z[n]) }\n"
             "goal { verify N = 3000 }",
             "N=300", power);
}

// One element of a row is read, and few are special.
static void chosen_elements(void)
{
    double (*const losses[])(double) = {infinity_lost, nan_lost, clipped};
    for (int i = 0; i < 3; i++)
        try_losing("op f(score: f16[P, D], x: f16[P, D]) -> (y: f16[P])\n"
                   "{ best[p] = argmax(d) score[p, d]\n  y[p] = x[p, best[p]] }\n"
                   "goal { verify P D = 7 513, 65 1024 }",
                   "P=264 D=163", pick, losses[i], 1);
}

// l[p] = m[p] + log(sum(d) exp(x[p, d] - m[p])) - x[p, id[p]] with m[p] = max(d) x[p, d], or their
// mean. Infinite where the chosen element is -inf, and no element of any row is +inf: one such row
// makes the mean NaN.
static double cross_entropy_of(const struct kg_problem *problem, void *const *tensors, int64_t p)
{
    int64_t length = problem->layouts[0].shape[1];
    double most = -INFINITY, sum = 0;
    for (int turn = 0; turn < 2; turn++)
        for (int64_t d = 0; d < length; d++) {
            double value = get(problem, tensors, 0, p, d);
            most = turn || isnan(most) || value <= most ? most : value;
            sum += turn ? exp(value - most) : 0;
        }
    int64_t chosen = ((const int32_t *)tensors[1])[place_of(problem, 1, p, 0)];
    chosen = chosen < 0 ? 0 : chosen >= length ? length - 1 : chosen;
    return most + log(sum) - get(problem, tensors, 0, p, chosen);
}

static enum kg_status cross_entropy(void *user, const struct kg_problem *problem,
                                    void *const *tensors, struct kg_error *error)
{
    (void)error;
    const struct losing *losing = user;
    int64_t rows = problem->layouts[0].shape[0];
    bool each = problem->op->tensors[2]->rank > 0;
    double sum = 0;
    for (int64_t p = 0; p < rows; p++) {
        double value = cross_entropy_of(problem, tensors, p);
        sum += value;
        if (each)
            put(problem, tensors, 2, p, 0, losing->fault ? losing->lose(value) : value);
    }
    sum /= (double)rows;
    if (!each)
        put(problem, tensors, 2, 0, 0, losing->fault ? losing->lose(sum) : sum);
    return KG_OK;
}

static void infinities_of_one_sign(void)
{
    try_losing("op f(x: f16[P, D], id: i32[P]) -> (l: f32[P])\n"
               "{ m[p] = max(d) x[p, d]\n  s[p] = log(sum(d) exp(x[p, d] - m[p]))\n"
               "  l[p] = m[p] + s[p] - x[p, id[p]] }",
               "P=264 D=163", cross_entropy, infinity_lost, 1);
    try_losing("op f(x: f16[P, D], id: i32[P]) -> (l: f32[])\n"
               "{ m[p] = max(d) x[p, d]\n  s[p] = log(sum(d) exp(x[p, d] - m[p]))\n"
               "  l[] = mean(p) (m[p] + s[p] - x[p, id[p]]) }",
               "P=264 D=163", cross_entropy, infinity_lost, 1);
}

// y[] = sum(n) x[n] + sum(n) z[n]: infinite where all infinities of both tensors have one sign.
static double positive_lost(double value)
{
    return value > 0 ? infinity_lost(value) : value;
}

static double negative_lost(double value)
{
    return value < 0 ? infinity_lost(value) : value;
}

static double positive_clipped(double value)
{
    return value > 0 ? clipped(value) : value;
}

static double negative_clipped(double value)
{
    return value < 0 ? clipped(value) : value;
}

static enum kg_status sum_of_both(void *user, const struct kg_problem *problem,
                                  void *const *tensors, struct kg_error *error)
{
    (void)error;
    const struct losing *losing = user;
    double sum[2] = {0, 0};
    for (int tensor = 0; tensor < 2; tensor++)
        for (int64_t n = 0; n < problem->layouts[0].shape[0]; n++) {
            double value = get(problem, tensors, tensor, n, 0);
            // One fault for each tensor.
            sum[tensor] += losing->fault == tensor + 1 ? losing->lose(value) : value;
        }
    put(problem, tensors, 2, 0, 0, sum[0] + sum[1]);
    return KG_OK;
}

static void signs_of_special_values(void)
{
    double (*const losses[])(double) = {positive_lost, negative_lost, positive_clipped,
                                        negative_clipped};
    for (int i = 0; i < 4; i++)
        try_losing("op f(x: f16[N], z: f16[N]) -> (y: f32[])\n"
                   "{ a[] = sum(n) x[n]\n  b[] = sum(n) z[n]\n  y[] = a[] + b[] }",
                   "N=300", sum_of_both, losses[i], 2);
}

// y[b] = sum(n) where(n < length[b], 1, 0) * x[b, n]: infinite where a row's infinities have one
// sign and all of them are in front of its length, NaN where one is behind it.
static enum kg_status sum_up_to(void *user, const struct kg_problem *problem, void *const *tensors,
                                struct kg_error *error)
{
    (void)error;
    const struct losing *losing = user;
    const int64_t *shape = problem->layouts[0].shape;
    for (int64_t b = 0; b < shape[0]; b++) {
        double sum = 0;
        int32_t length = ((const int32_t *)tensors[1])[place_of(problem, 1, b, 0)];
        for (int64_t n = 0; n < shape[1]; n++)
            sum += (n < length) * get(problem, tensors, 0, b, n);
        put(problem, tensors, 2, b, 0, losing->fault ? losing->lose(sum) : sum);
    }
    return KG_OK;
}

static void hidden_elements(void)
{
    double (*const losses[])(double) = {infinity_lost, positive_lost, negative_lost};
    for (int i = 0; i < 3; i++)
        try_losing("op f(x: f16[B, N], length: i32[B]) -> (y: f32[B])\n"
                   "{ y[b] = sum(n) where(n < length[b], 1.0, 0.0) * x[b, n] }",
                   "B=8 N=24", sum_up_to, losses[i], 1);
}

TEST_MAIN(rows_of_one, signs_of_zero, chosen_elements, infinities_of_one_sign,
          signs_of_special_values, hidden_elements)
