// The gate and floats of 8 bits, one of which has no infinities: a kernel that stores them as the
// language does passes, and whoever saturates, rounds otherwise or loses NaN is turned away.

#include "test.h"
#include "unit/verify/judge.h"

#include <math.h>

#define NARROW                                                                                     \
    "op narrow(x: f32[P, D], s: f32[P]) -> (y: T[P, D]) where T in f8e4m3 f8e5m2\n"                \
    "{ y[p, d] = x[p, d] * s[p] }\ngoal { verify P D = 3 200 }"
#define WIDEN                                                                                      \
    "op widen(x: T[P, D], s: f32[P]) -> (y: f32[P, D]) where T in f8e4m3 f8e5m2\n"                 \
    "{ y[p, d] = x[p, d] * s[p] }"
#define TURN "op turn(x: T[N]) -> (y: T[N]) where T in f8e4m3 f8e5m2 { y[n] = -x[n] }"

enum fault {
    NONE,
    SATURATES,      // NVIDIA's conversion: the largest value instead of NaN or infinity
    NAN_AT_LARGEST, // too early by half a step
    TRUNCATES,      // towards zero
    TIES_AWAY,      // ties to odd ones
    FLUSHES,        // denormals to zero
    DROPS_NAN,
    FAULT_COUNT
};

static double faulty(enum fault fault, const struct kg_dtype_info *info, enum kg_dtype dtype,
                     double value)
{
    double right = kg_dtype_round(dtype, value);
    switch (fault) {
    case SATURATES:
        return isfinite(right) || isnan(value) ? right : copysign(info->largest, value);
    case NAN_AT_LARGEST:
        return fabs(value) >= info->largest ? copysign(INFINITY, value) : right;
    case TRUNCATES:
        if (fabs(right) <= fabs(value) || !isfinite(right))
            return right;
        return right - copysign(fmax(exp2(ilogb(value)), info->smallest) * info->epsilon, right);
    case TIES_AWAY: {
        double step = fmax(exp2(ilogb(value)), info->smallest) * info->epsilon;
        return isfinite(right) && fabs(value - right) == step / 2 ? 2 * value - right : right;
    }
    case FLUSHES:
        return fabs(right) < info->smallest ? copysign(0, right) : right;
    case DROPS_NAN:
        return isnan(value) ? 0 : right;
    default:
        return right;
    }
}

static enum kg_status scale(void *user, const struct kg_problem *problem, void *const *tensors,
                            struct kg_error *error)
{
    (void)error;
    enum fault fault = *(const enum fault *)user;
    int64_t rows = problem->layouts[2].shape[0], columns = problem->layouts[2].shape[1];
    enum kg_dtype dtype = problem->op->tensors[2]->type.dtype;
    for (int64_t p = 0; p < rows; p++)
        for (int64_t d = 0; d < columns; d++) {
            float value =
                (float)get(problem, tensors, 0, p, d) * (float)get(problem, tensors, 1, p, 0);
            put(problem, tensors, 2, p, d, faulty(fault, &kg_dtypes[dtype], dtype, (double)value));
        }
    return KG_OK;
}

static enum kg_status turn(void *user, const struct kg_problem *problem, void *const *tensors,
                           struct kg_error *error)
{
    (void)error;
    enum fault fault = *(const enum fault *)user;
    enum kg_dtype dtype = problem->op->tensors[1]->type.dtype;
    for (int64_t n = 0; n < problem->layouts[1].shape[0]; n++) {
        double value = -get(problem, tensors, 0, n, 0);
        put(problem, tensors, 1, n, 0, faulty(fault, &kg_dtypes[dtype], dtype, value));
    }
    return KG_OK;
}

static void check(const char *text, const char *choices, subject_run *run, enum fault fault,
                  bool passes)
{
    const struct kg_policy strided = {.strided = true};
    struct made made = make(text, choices);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_verdict verdict = judge(made.op, &strided, run, &fault);
    if (verdict.passed != passes)
        fprintf(stderr, "%s, %s, fault %d: passed %d: %s\n", made.op->name, choices, (int)fault,
                verdict.passed, verdict.reason);
    CHECK(verdict.passed == passes);
    CHECK(!passes || (verdict.impostors >= 10 && verdict.worst_rms < 1.1));
    unmake(&made);
}

static void stores(void)
{
    for (int fault = NONE; fault < FAULT_COUNT; fault++) {
        if (fault == NAN_AT_LARGEST) // few products lie between the largest value and the edge
            continue;
        // The odd neighbour of a tie is as near as the even one.
        bool passes = fault == NONE || fault == TIES_AWAY;
        check(NARROW, "T=f8e4m3", scale, (enum fault)fault, passes);
        check(NARROW, "T=f8e5m2", scale, (enum fault)fault, passes);
    }
}

static void loads(void)
{
    check(WIDEN, "T=f8e4m3", scale, NONE, true);
    check(WIDEN, "T=f8e5m2", scale, NONE, true);
    check(WIDEN, "T=f8e4m3", scale, DROPS_NAN, false);
    check(WIDEN, "T=f8e5m2", scale, DROPS_NAN, false);
}

// Largest values come in and go out, and infinities where there are some.
static void largest_values(void)
{
    check(TURN, "T=f8e4m3", turn, NONE, true);
    check(TURN, "T=f8e5m2", turn, NONE, true);
    check(TURN, "T=f8e4m3", turn, NAN_AT_LARGEST, false);
    check(TURN, "T=f8e5m2", turn, NAN_AT_LARGEST, false);
    check(TURN, "T=f8e5m2", turn, SATURATES, false);
}

TEST_MAIN(stores, loads, largest_values)
