// The gate lets honest kernels through, and turns every kind of dishonest one away, saying where.

#include "test.h"
#include "unit/verify/far_device.h"

#include <math.h>

#define BIAS_RELU                                                                                  \
    "op bias_relu(x: T[P, D], bias: T[D]) -> (y: T[P, D]) where T in f32 f16\n"                    \
    "{ y[p, d] = relu(x[p, d] + bias[d]) }\n"                                                      \
    "goal { verify P D = 3 200, 0 9 }"
#define SOFTMAX                                                                                    \
    "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16\n"                                  \
    "{ m[p] = max(d) x[p, d]\n e[p, d] = exp(x[p, d] - m[p])\n"                                    \
    "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }"
#define MATMUL                                                                                     \
    "op matmul(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32 f16\n"                       \
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }"

static const struct kg_policy strided = {.strided = true};

// What may go wrong in a kernel of a test.
enum fault {
    NONE,
    ONE_WRONG,
    LAST_UNWRITTEN,
    BEFORE_OUTPUT,
    PAST_OUTPUT,
    INTO_GAP,
    CHANGES_INPUT,
    WANDERS,
    DROPS_NAN,
    CLIPS_INFINITY,
    COARSE,
    FAILS,
    DENSE_ONLY,
    NO_CASE,
    REMEMBERS,
    FAULT_COUNT
};

static void damage(enum fault fault, const struct kg_problem *problem, void *const *tensors,
                   int64_t rows, int64_t columns)
{
    static int calls;
    float *output = tensors[2];
    size_t elements = problem->layouts[2].bytes / sizeof *output;
    if (fault == ONE_WRONG && rows > 4 && columns > 12)
        put(problem, tensors, 2, 4, 11, get(problem, tensors, 2, 4, 11) + 0.001);
    rows *= columns > 0;
    if (fault == BEFORE_OUTPUT && rows > 4)
        output[-1] = 0;
    if (fault == PAST_OUTPUT && rows > 4)
        output[elements] = 1;
    if (fault == INTO_GAP && !problem->layouts[2].contiguous && columns > 1)
        output[1] = 0;
    if (fault == CHANGES_INPUT && rows > 4 && columns > 1)
        put(problem, tensors, 1, 1, 0, 0.25);
    if (fault == WANDERS && rows > 4 && calls++ % 2)
        put(problem, tensors, 2, 1, 0, get(problem, tensors, 2, 1, 0) * (1 + 0x1p-23));
}

// Gives the output of the first call with the same address and sizes.
static void remember(const struct kg_problem *problem, void *const *tensors)
{
    enum { MAX = 200 };
    static struct {
        void *output;
        int64_t rows, columns;
        char *bytes;
    } calls[MAX];
    const struct kg_layout *layout = &problem->layouts[2];
    for (int i = 0; i < MAX && layout->contiguous; i++) {
        if (!calls[i].bytes) {
            calls[i].output = tensors[2];
            calls[i].rows = layout->shape[0];
            calls[i].columns = layout->shape[1];
            calls[i].bytes = malloc(layout->bytes + 1);
            memcpy(calls[i].bytes, tensors[2], layout->bytes);
            return;
        }
        if (calls[i].output == tensors[2] && calls[i].rows == layout->shape[0] &&
            calls[i].columns == layout->shape[1]) {
            memcpy(tensors[2], calls[i].bytes, layout->bytes);
            return;
        }
    }
}

static enum kg_status bias_relu(void *user, const struct kg_problem *problem, void *const *tensors,
                                struct kg_error *error)
{
    enum fault fault = *(const enum fault *)user;
    int64_t rows = problem->layouts[2].shape[0], columns = problem->layouts[2].shape[1];
    if (fault == FAILS && rows > 4)
        return kg_error_set(error, KG_ERROR_FAULT, "the launch was refused");
    if (fault == NO_CASE || (fault == DENSE_ONLY && !problem->contiguous))
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "not these");
    for (int64_t p = 0; p < rows; p++)
        for (int64_t d = 0; d < columns; d++) {
            float sum =
                (float)get(problem, tensors, 0, p, d) + (float)get(problem, tensors, 1, d, 0);
            float value = sum < 0 ? 0 : sum;
            if (fault == DROPS_NAN)
                value = fmaxf(sum, 0);
            if (fault == CLIPS_INFINITY && isinf(sum))
                value = 65504;
            if (fault == COARSE)
                value = (float)kg_dtype_round(KG_F16, (double)value);
            if (fault == LAST_UNWRITTEN && p == rows - 1 && d == columns - 1)
                continue;
            put(problem, tensors, 2, p, d, (double)value);
        }
    damage(fault, problem, tensors, rows, columns);
    if (fault == REMEMBERS)
        remember(problem, tensors);
    return KG_OK;
}

static const struct {
    enum fault fault;
    bool passes;
    const char *reason; // part of it
} expectations[] = {
    {NONE, true, ""},
    {ONE_WRONG, false, "y[4, 11]: expected"},
    {LAST_UNWRITTEN, false, "got"},
    {BEFORE_OUTPUT, false, "wrote 4 bytes before y"},
    {PAST_OUTPUT, false, "past the end of y"},
    {INTO_GAP, false, "between the elements of output y"},
    {CHANGES_INPUT, false, "input bias"},
    {WANDERS, false, "two runs differ in y[1, 0]"},
    {DROPS_NAN, false, "nan, got 0"},
    {CLIPS_INFINITY, false, "got 65504"},
    {COARSE, false, "y"}, // an element, or the output as a whole
    {FAILS, false, "the launch was refused"},
    {DENSE_ONLY, true, ""},
    {NO_CASE, false, "ran none of the"},
    {REMEMBERS, false, "y["},
};

static void faults(void)
{
    struct made made = make(BIAS_RELU, "P=1 D=1");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(sizeof expectations / sizeof expectations[0] == FAULT_COUNT);
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
        enum fault fault = expectations[i].fault;
        struct kg_verdict verdict = judge(made.op, &strided, bias_relu, &fault);
        if (verdict.passed != expectations[i].passes ||
            !strstr(verdict.reason, expectations[i].reason))
            fprintf(stderr, "fault %d: passed %d: %s\n", (int)fault, verdict.passed,
                    verdict.reason);
        CHECK(verdict.passed == expectations[i].passes);
        CHECK(strstr(verdict.reason, expectations[i].reason));
        CHECK(verdict.passed || fault == NO_CASE || strncmp(verdict.reason, "case ", 5) == 0);
        CHECK(verdict.seed != 0);
        CHECK(verdict.impostors >= 10);
        if (fault == NONE) {
            CHECK(verdict.skipped == 0 && verdict.cases > 30 && verdict.elements > 1000);
            CHECK(verdict.worst_relative <= 1 && verdict.worst_rms <= 3);
        }
        if (fault == DENSE_ONLY)
            CHECK(verdict.skipped > 0 && verdict.cases > 30);
    }
    unmake(&made);
}

// What an honest kernel left on the device helps no dishonest one, and what a dishonest one did
// there is not blamed on the next.
static void faults_far_away(void)
{
    static const enum fault none = NONE;
    struct made made = make(BIAS_RELU, "P=1 D=1");
    struct kg_error error = {0};
    struct kg_gate *gate;
    struct kg_verdict verdict;
    const struct kg_subject right = {.name = "right", .user = (void *)&none, .run = bias_relu};
    CHECK_STATUS(kg_gate_make(&far_device, made.op, NULL, &gate, &error), KG_OK, &error);
    fetched = 0;
    CHECK_STATUS(kg_gate_judge(gate, &right, &verdict, &error), KG_OK, &error);
    CHECK(verdict.passed);
    struct kg_verdict first = verdict;
    size_t fetched_first = fetched;
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
        enum fault fault = expectations[i].fault;
        const struct kg_subject subject = {.name = "wrong", .user = &fault, .run = bias_relu};
        if (fault == INTO_GAP || fault == DENSE_ONLY) // of strided cases
            continue;
        CHECK_STATUS(kg_gate_judge(gate, &subject, &verdict, &error), KG_OK, &error);
        if (!strstr(verdict.reason, expectations[i].reason))
            fprintf(stderr, "fault %d: passed %d: %s\n", (int)fault, verdict.passed,
                    verdict.reason);
        CHECK(verdict.passed == expectations[i].passes);
        CHECK(strstr(verdict.reason, expectations[i].reason));
        CHECK_STATUS(kg_gate_judge(gate, &right, &verdict, &error), KG_OK, &error);
        CHECK(verdict.passed && verdict.cases == first.cases);
        CHECK(verdict.elements == first.elements);
        CHECK(verdict.worst_relative == first.worst_relative);
        fetched = 0;
        CHECK_STATUS(kg_gate_judge(gate, &right, &verdict, &error), KG_OK, &error);
        // Only cases that share memory are fetched: two classes of inputs at two sizes.
        CHECK(verdict.passed && verdict.elements == first.elements && fetched < fetched_first / 2);
    }
    kg_gate_free(gate);
    unmake(&made);
}

// Honest kernels in f32, with their own order of summation; and dishonest sums.
enum summing { HONEST, IN_HALF, LAST_TERM_MISSING };

static enum kg_status matmul(void *user, const struct kg_problem *problem, void *const *tensors,
                             struct kg_error *error)
{
    (void)error;
    enum summing summing = *(const enum summing *)user;
    int64_t rows = problem->layouts[0].shape[0], terms = problem->layouts[0].shape[1];
    int64_t columns = problem->layouts[1].shape[1];
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < columns; n++) {
            float sum = 0;
            for (int64_t k = 0; k < terms - (summing == LAST_TERM_MISSING && terms > 20); k++) {
                sum +=
                    (float)get(problem, tensors, 0, m, k) * (float)get(problem, tensors, 1, k, n);
                if (summing == IN_HALF)
                    sum = (float)kg_dtype_round(KG_F16, (double)sum);
            }
            put(problem, tensors, 2, m, n, (double)sum);
        }
    return KG_OK;
}

static enum kg_status softmax(void *user, const struct kg_problem *problem, void *const *tensors,
                              struct kg_error *error)
{
    (void)user, (void)error;
    int64_t rows = problem->layouts[0].shape[0], columns = problem->layouts[0].shape[1];
    for (int64_t p = 0; p < rows; p++) {
        float most = -INFINITY, sum = 0;
        for (int64_t d = 0; d < columns; d++) {
            float x = (float)get(problem, tensors, 0, p, d);
            most = isnan(x) || x > most ? x : most;
        }
        for (int64_t d = 0; d < columns; d++)
            sum += expf((float)get(problem, tensors, 0, p, d) - most);
        for (int64_t d = 0; d < columns; d++)
            put(problem, tensors, 1, p, d,
                (double)(expf((float)get(problem, tensors, 0, p, d) - most) / sum));
    }
    return KG_OK;
}

static void check_subject(const char *text, const char *choices, subject_run *run, int kind,
                          bool passes)
{
    struct made made = make(text, choices);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_verdict verdict = judge(made.op, &strided, run, &kind);
    if (verdict.passed != passes)
        fprintf(stderr, "%s, %s, kind %d: passed %d: %s\n", made.op->name, choices, kind,
                verdict.passed, verdict.reason);
    CHECK(verdict.passed == passes);
    unmake(&made);
}

static void sums(void)
{
    check_subject(MATMUL, "T=f32", matmul, HONEST, true);
    check_subject(MATMUL, "T=f16", matmul, HONEST, true);
    check_subject(MATMUL, "T=f32", matmul, IN_HALF, false);
    check_subject(MATMUL, "T=f16", matmul, IN_HALF, false);
    check_subject(MATMUL, "T=f32", matmul, LAST_TERM_MISSING, false);
    check_subject(MATMUL, "T=f16", matmul, LAST_TERM_MISSING, false);
    check_subject(SOFTMAX, "T=f32", softmax, 0, true);
    check_subject(SOFTMAX, "T=f16", softmax, 0, true);
}

// Every element two steps of bf16 off: inside the element-wise tolerance, outside the other bound.
static enum kg_status two_steps_off(void *user, const struct kg_problem *problem,
                                    void *const *tensors, struct kg_error *error)
{
    enum kg_status status = honest(user, problem, tensors, error);
    uint16_t *output = tensors[1];
    for (int64_t n = 0; n < problem->layouts[1].shape[0]; n++) {
        double value = get(problem, tensors, 1, n, 0);
        if (isfinite(value) && fabs(value) > 1e-30 && fabs(value) < 1e30)
            output[place_of(problem, 1, n, 0)] += 2;
    }
    return status;
}

static void error_as_a_whole(void)
{
    struct made made = make("op f(x: bf16[N]) -> (y: bf16[N]) { y[i] = x[i] * 1.5 }", NULL);
    struct kg_verdict verdict = judge(made.op, &strided, two_steps_off, NULL);
    CHECK(!verdict.passed);
    CHECK(strstr(verdict.reason, "the error as a whole"));
    CHECK(verdict.worst_relative <= 1 && verdict.worst_rms > 3);
    // A coarser tolerance in the goal allows coarser results.
    unmake(&made);
    made = make("op f(x: bf16[N]) -> (y: bf16[N]) { y[i] = x[i] * 1.5 }\n"
                "goal { tolerance bf16 35e-3 1e-5 }",
                NULL);
    verdict = judge(made.op, &strided, two_steps_off, NULL);
    CHECK(verdict.passed);
    unmake(&made);
}

// Gates can be made, prove themselves and pass the definition itself, for all kinds of ops.
static void kinds_of_ops(void)
{
    static const char *const texts[] = {
        "op identity(x: T[N]) -> (y: T[N]) where T in bf16 { y[i] = x[i] }",
        "op total(x: f32[N, M]) -> (s: f32[]) { s[] = mean(i, j) x[i, j] }",
        "op best(x: f16[P, D]) -> (i: i64[P], m: f16[P]) { i[p] = argmax(d) x[p, d]\n"
        " m[p] = max(d) x[p, d] }",
        "op positive(x: f32[N]) -> (y: bool[N]) { y[i] = x[i] > 0 }",
        "op some(x: f32[P, D]) -> (y: bool[P]) { y[p] = any(d) (x[p, d] > 1) }",
        "op cumsum(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = sum(j <= d) x[p, j] }",
        "op embedding(table: T[V, D], ids: i64[B, L]) -> (y: T[B, L, D]) where T in f16\n"
        "{ y[b, l, d] = table[ids[b, l], d] }",
        "op w4a16(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N])\n"
        " -> (y: T[M, N]) param G = 4 where T in f16\n"
        "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }",
        "op pack(x: i32[N]) -> (y: u4[N]) { y[i] = cast(u4, x[i]) }",
        "op pool(x: f32[N, C, H, W]) -> (y: f32[N, C, (H+2-3)/2+1, (W+2-3)/2+1])\n"
        "{ y[n, c, h, w] = max(r in 0..3, t in 0..3) pad(x[n, c, h*2+r-1, w*2+t-1], -inf) }",
        "op conv(x: f16[N, C, H, W], k: f16[O, C, R, S]) -> (y: f16[N, O, H-R+1, W-S+1])\n"
        "{ y[n, o, h, w] = sum(c, r, s) x[n, c, h+r, w+s] * k[o, c, r, s] }",
        "op norm(x: f32[P, D]) -> (y: f32[P, D])\n"
        "{ v[p] = mean(d) x[p, d] * x[p, d]\n y[p, d] = x[p, d] * rsqrt(v[p] + 1e-6) }",
        "op wrap(x: i8[N], z: i8[N]) -> (y: i8[N]) { y[i] = x[i] * z[i] + 3 }",
        "op prod(x: f32[P, D]) -> (y: f32[P]) { y[p] = prod(d) x[p, d] }",
        "op double_gelu(x: f64[N]) -> (y: f64[N]) { y[i] = gelu(x[i]) }",
        "op iota(x: f32[N]) -> (y: i32[N]) { y[i] = i }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct made made = make(texts[i], NULL);
        if (!made.op) {
            fprintf(stderr, "%s\n", made.error.text);
            CHECK(made.op);
            continue;
        }
        struct kg_verdict verdict = judge(made.op, &strided, honest, NULL);
        if (!verdict.passed)
            fprintf(stderr, "%s: %s\n", made.op->name, verdict.reason);
        CHECK(verdict.passed);
        CHECK(verdict.impostors >= 5);
        unmake(&made);
    }
}

static void impostor_report(void)
{
    struct made made = make("op identity(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }", NULL);
    struct kg_error error = {0};
    struct kg_gate *gate;
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, NULL, &gate, &error), KG_OK, &error);
    struct kg_text text = {0};
    kg_gate_impostor_report(gate, &text);
    CHECK(strstr(kg_text_string(&text), "a copy of the first input: is the op itself"));
    CHECK(strstr(kg_text_string(&text), "zeros: rejected, case "));
    CHECK(!strstr(kg_text_string(&text), "negated: is"));
    CHECK(kg_gate_impostor_name(kg_gate_impostor_count()) == NULL);
    kg_text_free(&text);
    kg_gate_free(gate);
    unmake(&made);
}

// What no gate can prove: nothing here is decidable, so every impostor passes.
static void unprovable(void)
{
    struct made made = make("op noise(x: f32[N]) -> (y: f32[N])\n"
                            "{ y[i] = sin(exp(x[i] * 1.5 + 60) * 3e10) }",
                            NULL);
    struct kg_error error = {0};
    struct kg_gate *gate;
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, NULL, &gate, &error), KG_ERROR_WRONG, &error);
    CHECK(gate == NULL);
    CHECK(strstr(error.text, "rounding decides"));
    unmake(&made);
}

// Goal rows must fit the definition, and dear ones are checked in windows.
static void goal_rows(void)
{
    struct made made = make("op f(x: f32[N]) -> (y: f32[N - 3]) { y[i] = x[i] * 2 }\n"
                            "goal { verify N = 2 }",
                            "N=4");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_error error = {0};
    struct kg_gate *gate;
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, NULL, &gate, &error), KG_ERROR_SHAPE, &error);
    unmake(&made);
    enum summing summing = HONEST;
    made = make(MATMUL "\ngoal { verify M N K = 60 70 50 }", NULL);
    struct kg_policy policy = {.effort = 0.004, .seed = 5};
    struct kg_verdict verdict = judge(made.op, &policy, matmul, &summing);
    CHECK(verdict.passed);
    CHECK(verdict.seed == 5);
    summing = LAST_TERM_MISSING;
    verdict = judge(made.op, &policy, matmul, &summing);
    CHECK(!verdict.passed);
    unmake(&made);
    volatile int cancel = 1;
    policy.cancel = &cancel;
    made = make(MATMUL, NULL);
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, &policy, &gate, &error), KG_ERROR_CANCELLED,
                 &error);
    unmake(&made);
}

static void outside_the_gate(void)
{
    struct made made = make(SOFTMAX, "P=9 D=33 T=f16");
    struct kg_problem *problem = made.problem;
    void *tensors[2];
    for (int i = 0; i < 2; i++)
        tensors[i] = malloc(problem->layouts[i].bytes);
    kg_verify_fill(problem, 0, 42, tensors[0]);
    CHECK_STATUS(softmax(NULL, problem, tensors, &made.error), KG_OK, &made.error);
    struct kg_verdict verdict;
    CHECK_STATUS(kg_verify_outputs(problem, (const void *const *)tensors,
                                   (const void *const *)(tensors + 1), &verdict, &made.error),
                 KG_OK, &made.error);
    CHECK(verdict.passed && verdict.elements == 9 * 33);
    put(problem, tensors, 1, 8, 32, 0.5);
    CHECK_STATUS(kg_verify_outputs(problem, (const void *const *)tensors,
                                   (const void *const *)(tensors + 1), &verdict, &made.error),
                 KG_OK, &made.error);
    CHECK(!verdict.passed && strstr(verdict.reason, "y[8, 32]: expected"));
    memset(tensors[1], 0, problem->layouts[1].bytes);
    CHECK_STATUS(kg_verify_outputs(problem, (const void *const *)tensors,
                                   (const void *const *)(tensors + 1), &verdict, &made.error),
                 KG_OK, &made.error);
    CHECK(!verdict.passed);
    free(tensors[0]);
    free(tensors[1]);
    unmake(&made);
}

TEST_MAIN(faults, faults_far_away, sums, error_as_a_whole, kinds_of_ops, impostor_report,
          unprovable, goal_rows, outside_the_gate)
