// Outputs that are too large for the reference with slack are judged in full all the same: what is
// wrong outside the windows is found, and honest kernels pass.

#include "test.h"
#include "unit/verify/far_device.h"

#include <math.h>

#define BIAS_RELU                                                                                  \
    "op bias_relu(x: T[P, D], bias: T[D]) -> (y: T[P, D]) where T in f32 f16 bf16 i32\n"           \
    "{ y[p, d] = relu(x[p, d] + bias[d]) }"
#define SOFTMAX                                                                                    \
    "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16\n"                                  \
    "{ m[p] = max(d) x[p, d]\n e[p, d] = exp(x[p, d] - m[p])\n"                                    \
    "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }"
#define MATMUL                                                                                     \
    "op matmul(a: T[P, K], b: T[K, D]) -> (c: T[P, D]) where T in f32 f16\n"                       \
    "{ c[p, d] = sum(k) a[p, k] * b[k, d] }"
#define ARGMAX                                                                                     \
    "op best(x: T[P, D]) -> (i: i32[P]) where T in f32 f16\n"                                      \
    "{ i[p] = argmax(d) x[p, d] }"

enum { ROWS = 300, COLUMNS = 400, DEPTH = 40 };

// Wrong at the given sizes only, and nowhere near the windows at the beginning and the end.
enum place { NOWHERE, ROWS_WITHIN, ONE_ELEMENT, ONE_COLUMN, EVERY_64TH, A_TILE, PLACE_COUNT };

static bool is_at(enum place place, int64_t row, int64_t column)
{
    switch (place) {
    case ROWS_WITHIN:
        return row >= 11 && row < ROWS - 17;
    case ONE_ELEMENT:
        return row == 171 && column == 203;
    case ONE_COLUMN:
        return column == 117;
    case EVERY_64TH:
        return (row * COLUMNS + column) % 64 == 63;
    case A_TILE:
        return row / 8 == 19 && column / 8 == 23;
    default:
        return false;
    }
}

struct fault {
    enum place place;
    double factor, shift; // a wrong value is farther from 0: factor * |value| + shift
};

static enum kg_status spoilt(void *user, const struct kg_problem *problem, void *const *tensors,
                             struct kg_error *error)
{
    const struct fault *fault = user;
    enum kg_status status = honest(NULL, problem, tensors, error);
    int tensor = problem->op->input_count;
    const struct kg_layout *layout = &problem->layouts[tensor];
    bool is_row = problem->op->tensors[tensor]->rank == 1;
    if (layout->shape[0] != ROWS || (!is_row && layout->shape[1] != COLUMNS))
        return status;
    for (int64_t p = 0; p < ROWS; p++)
        for (int64_t d = 0; d < (is_row ? 1 : COLUMNS); d++)
            if (is_at(fault->place, p, is_row ? 203 : d)) {
                double value = get(problem, tensors, tensor, p, d);
                put(problem, tensors, tensor, p, d,
                    copysign(fault->factor * fabs(value) + fault->shift, value));
            }
    return status;
}

static struct kg_verdict judge_at_size(const char *text, const char *dtype, struct fault fault)
{
    char bindings[64];
    snprintf(bindings, sizeof bindings, "P=%d D=%d T=%s%s", ROWS, COLUMNS, dtype,
             strstr(text, "K") ? " K=40" : "");
    struct made made = make(text, bindings);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    // So little effort that these sizes are too large for the reference.
    const struct kg_policy policy = {
        .shapes = made.problem->sizes, .shape_count = 1, .effort = 0.005};
    struct kg_verdict verdict = judge(made.op, &policy, spoilt, &fault);
    if (verdict.passed != (fault.place == NOWHERE))
        fprintf(stderr, "%.15s... %s, place %d, seed %llu: passed %d: %s %s\n", text, dtype,
                (int)fault.place, (unsigned long long)verdict.seed, verdict.passed, verdict.reason,
                verdict.remarks);
    CHECK(verdict.passed == (fault.place == NOWHERE));
    CHECK(verdict.passed || strstr(verdict.reason, "P=300"));
    unmake(&made);
    return verdict;
}

static void faults_outside_windows(void)
{
    // Larger than the tolerances of small and of large values.
    static const struct {
        const char *text, *dtype;
        struct fault wrong;
    } ops[] = {
        {BIAS_RELU, "f32", {.factor = 1.01, .shift = 1e-3}},
        {BIAS_RELU, "bf16", {.factor = 1.1, .shift = 1}},
        {BIAS_RELU, "i32", {.factor = 1, .shift = 1}},
        {SOFTMAX, "f32", {.factor = 1, .shift = 1e-5}},
        {SOFTMAX, "f16", {.factor = 1.002, .shift = 1e-3}},
        {MATMUL, "f32", {.factor = 1.01, .shift = 0.1}},
        {MATMUL, "f16", {.factor = 1.1, .shift = 16}},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int place = 0; place < PLACE_COUNT; place++) {
            struct fault fault = ops[i].wrong;
            fault.place = (enum place)place;
            struct kg_verdict verdict = judge_at_size(ops[i].text, ops[i].dtype, fault);
            CHECK(place != NOWHERE || verdict.elements > ROWS * COLUMNS);
        }
    judge_at_size(ARGMAX, "f16", (struct fault){.place = NOWHERE});
    judge_at_size(ARGMAX, "f16", (struct fault){ONE_ELEMENT, 1, 1});
}

// A run of elements whose errors are all within the tolerance, but as a whole are not.
static void low_precision(void)
{
    judge_at_size(BIAS_RELU, "f32", (struct fault){ROWS_WITHIN, 1 + 0x1p-20, 0});
}

// Values that are not finite, and values that rounding makes infinite.
static void special_values(void)
{
    judge_at_size("op f(x: T[P, D]) -> (y: T[P, D]) where T in f16\n"
                  "{ y[p, d] = where(p == 100, 60000 * x[p, d] * x[p, d], "
                  "where(p == 200, sqrt(x[p, d]), 1 / (x[p, d] - x[p, d]))) }",
                  "f16", (struct fault){.place = NOWHERE});
}

static enum kg_status changes_input(void *user, const struct kg_problem *problem,
                                    void *const *tensors, struct kg_error *error)
{
    (void)user;
    enum kg_status status = honest(NULL, problem, tensors, error);
    if (problem->layouts[0].shape[0] == ROWS)
        put(problem, tensors, 0, 170, 200, 0.375);
    return status;
}

// The inputs of a large case have no copy. Where they can be written, a change is found, and the
// next subject gets them as they were.
static void changed_inputs(void)
{
    struct made made = make(BIAS_RELU, "P=300 D=400 T=f32");
    const struct kg_policy policy = {
        .shapes = made.problem->sizes, .shape_count = 1, .effort = 0.005};
    const struct kg_subject wrong = {.name = "wrong", .run = changes_input};
    const struct kg_subject right = {.name = "right", .run = honest};
    struct kg_error error = {0};
    struct kg_gate *gate;
    struct kg_verdict verdict;
    CHECK_STATUS(kg_gate_make(&far_device, made.op, &policy, &gate, &error), KG_OK, &error);
    for (int turn = 0; turn < 2; turn++) {
        CHECK_STATUS(kg_gate_judge(gate, &wrong, &verdict, &error), KG_OK, &error);
        CHECK(!verdict.passed && strstr(verdict.reason, "changed input x"));
        CHECK_STATUS(kg_gate_judge(gate, &right, &verdict, &error), KG_OK, &error);
        CHECK(verdict.passed && verdict.elements > ROWS * COLUMNS);
    }
    kg_gate_free(gate);
    unmake(&made);
}

// Far from the host's results in rows that rounding decides, which is right, and 100 more than they
// in a few later rows, which is wrong.
static enum kg_status among_undecidable(void *user, const struct kg_problem *problem,
                                        void *const *tensors, struct kg_error *error)
{
    int wrong_rows = *(const int *)user;
    enum kg_status status = honest(NULL, problem, tensors, error);
    for (int64_t p = 0; p < ROWS && problem->layouts[1].shape[0] == ROWS; p++)
        for (int64_t d = 0; d < COLUMNS; d++) {
            bool is_wrong = p >= 211 && p < 211 + wrong_rows && d % 128 > 40;
            double more = p < 100 ? 1e6 : is_wrong ? 100 : 0;
            put(problem, tensors, 1, p, d, get(problem, tensors, 1, p, d) + more);
        }
    return status;
}

// Thousands of suspects that are right do not hide those that are wrong.
static void many_suspects(void)
{
    struct made made = make("op f(x: f32[P, D]) -> (y: i32[P, D])\n"
                            "{ y[p, d] = where(p < 100 && P == 300, "
                            "cast(i32, x[p, d] * 1.2345e15), 1000000 * d) }",
                            "P=300 D=400");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_policy policy = {
        .shapes = made.problem->sizes, .shape_count = 1, .effort = 0.005};
    for (int wrong_rows = 0; wrong_rows <= 5; wrong_rows += 5) {
        struct kg_verdict verdict = judge(made.op, &policy, among_undecidable, &wrong_rows);
        if (verdict.passed != (wrong_rows == 0))
            fprintf(stderr, "%d: %s %s\n", wrong_rows, verdict.reason, verdict.remarks);
        CHECK(verdict.passed == (wrong_rows == 0));
        CHECK(wrong_rows > 0 || strstr(verdict.remarks, "whose errors are larger than usual"));
        CHECK(wrong_rows == 0 || strstr(verdict.reason, "y[2"));
    }
    unmake(&made);
}

// What costs too much even without slack is said to be left out.
static void what_is_left_out(void)
{
    struct made made = make(BIAS_RELU, "P=3000 D=4000 T=f32");
    const struct kg_policy policy = {
        .shapes = made.problem->sizes, .shape_count = 1, .effort = 0.001};
    struct fault none = {.place = NOWHERE};
    struct kg_verdict verdict = judge(made.op, &policy, spoilt, &none);
    CHECK(verdict.passed);
    CHECK(strstr(verdict.remarks, "P=3000 D=4000"));
    unmake(&made);
}

TEST_MAIN(faults_outside_windows, low_precision, special_values, changed_inputs, many_suspects,
          what_is_left_out)
