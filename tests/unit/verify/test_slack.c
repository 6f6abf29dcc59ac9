// Slack: an honest evaluation in f32 stays within it, a dishonest one does not, and whatever
// rounding may turn is called undecidable.

#include "test.h"
#include "unit/verify/bench.h"

#include <math.h>

static uint64_t state = 12345;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

// Signed, over a few orders of magnitude, exact in f32.
static float sample(void)
{
    return (float)((uniform() * 2 - 1) * exp(uniform() * 4 - 2));
}

static void fill(struct bench *bench, int input)
{
    for (int64_t i = 0; i < bench->problem.layouts[input].elements; i++)
        kg_dtype_store(bench->instance->tensors[input]->type.dtype, bench->inputs[input], (size_t)i,
                       (double)sample());
}

// The largest |got - value| / slack; `got` in f32.
static double worst(const struct kg_expected *expected, const float *got)
{
    double result = 0;
    for (int64_t i = 0; i < expected->count; i++) {
        double error = fabs((double)got[i] - expected->value[i]);
        if (error > 0)
            result = fmax(result, error / expected->slack[i]);
    }
    return result;
}

static float half(float x)
{
    return (float)kg_dtype_round(KG_F16, (double)x);
}

static void sums(void)
{
    enum { M = 4, N = 130, K = 700 };
    struct bench bench;
    bench_make(&bench,
               "op f(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
               "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
               NULL, "M=4 N=130 K=700");
    fill(&bench, 0);
    fill(&bench, 1);
    bench_run(&bench);
    const float *a = bench.inputs[0], *b = bench.inputs[1];
    static float full[M * N], low[M * N], dropped[M * N];
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            for (int k = 0; k < K; k++) {
                float term = a[m * K + k] * b[k * N + n];
                full[m * N + n] += term;
                low[m * N + n] = half(low[m * N + n] + term);
                dropped[m * N + n] += k == 77 ? 0 : term;
            }
    CHECK(worst(&bench.outputs[0], full) <= 1);
    CHECK(worst(&bench.outputs[0], full) > 0.001); // or the bound says nothing
    CHECK(worst(&bench.outputs[0], low) > 100);
    CHECK(worst(&bench.outputs[0], dropped) > 100);
    bench_free(&bench);
}

// All positive and in one lane: the worst case of honest summation.
static void long_sum(void)
{
    enum { N = 100000 };
    struct bench bench;
    bench_make(&bench,
               "op f(x: f32[N]) -> (s: f32[], m: f32[])\n"
               "{ s[] = sum(i) abs(x[i])\n m[] = mean(i) abs(x[i]) }",
               NULL, "N=100000");
    fill(&bench, 0);
    bench_run(&bench);
    const float *x = bench.inputs[0];
    float sum = 0, low = 0, missing = 0;
    for (int i = 0; i < N; i++) {
        sum += fabsf(x[i]);
        low = half(low + fabsf(x[i]));
        missing += i < N - 100 ? fabsf(x[i]) : 0;
    }
    float mean = sum / N;
    CHECK(worst(&bench.outputs[0], &sum) <= 1);
    CHECK(worst(&bench.outputs[1], &mean) <= 1);
    CHECK(worst(&bench.outputs[0], &low) > 100);
    CHECK(worst(&bench.outputs[0], &missing) > 1);
    bench_free(&bench);
}

static void normalisation(void)
{
    enum { P = 20, D = 300 };
    struct bench bench;
    bench_make(&bench,
               "op f(x: f32[P, D]) -> (y: f32[P, D], s: f32[P, D])\n"
               "{ u[p] = mean(d) x[p, d]\n v[p] = mean(d) (x[p, d] - u[p]) * (x[p, d] - u[p])\n"
               "  y[p, d] = (x[p, d] - u[p]) * rsqrt(v[p] + 1e-5)\n"
               "  m[p] = max(d) x[p, d]\n e[p, d] = exp(x[p, d] - m[p])\n"
               "  s[p, d] = e[p, d] / (sum(d) e[p, d]) }",
               NULL, "P=20 D=300");
    fill(&bench, 0);
    bench_run(&bench);
    static float y[P * D], s[P * D];
    for (int p = 0; p < P; p++) {
        const float *x = (const float *)bench.inputs[0] + p * D;
        float mean = 0, variance = 0, most = -INFINITY, sum = 0;
        for (int d = 0; d < D; d++) {
            mean += x[d];
            most = fmaxf(most, x[d]);
        }
        mean /= D;
        for (int d = 0; d < D; d++) {
            variance += (x[d] - mean) * (x[d] - mean);
            sum += s[p * D + d] = expf(x[d] - most);
        }
        for (int d = 0; d < D; d++) {
            y[p * D + d] = (x[d] - mean) * (1 / sqrtf(variance / D + 1e-5f));
            s[p * D + d] /= sum;
        }
    }
    CHECK(worst(&bench.outputs[0], y) <= 1);
    CHECK(worst(&bench.outputs[1], s) <= 1);
    CHECK(worst(&bench.outputs[0], y) > 0.01);
    CHECK(worst(&bench.outputs[1], s) > 0.01);
    bench_free(&bench);
}

static float gelu(float x)
{
    return 0.5f * x * (1 + erff(x * 0.70710678f));
}

static float gelu_tanh(float x)
{
    return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static float silu(float x)
{
    return x / (1 + expf(-x));
}

static float softplus(float x)
{
    return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
}

static float exp_by_exp2(float x)
{
    return exp2f(x * 1.44269504f);
}

// Each function as a kernel would evaluate it, alone and after an inexact step.
static void functions(void)
{
    static const struct {
        const char *name;
        float (*function)(float);
    } rows[] = {{"gelu", gelu},         {"gelu_tanh", gelu_tanh},
                {"sigmoid", sigmoid},   {"silu", silu},
                {"softplus", softplus}, {"exp", expf},
                {"exp", exp_by_exp2},   {"exp2", exp2f},
                {"expm1", expm1f},      {"tanh", tanhf},
                {"erf", erff},          {"sin", sinf},
                {"cos", cosf},          {"floor", floorf},
                {"round", rintf},       {"ceil", ceilf},
                {"abs", fabsf}};
    enum { N = 2000 };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        char text[200];
        snprintf(text, sizeof text,
                 "op f(x: f32[N]) -> (y: f32[N], z: f32[N])\n"
                 "{ y[i] = %s(x[i])\n z[i] = %s(x[i] * 1.1 + 0.3) }",
                 rows[r].name, rows[r].name);
        struct bench bench;
        bench_make(&bench, text, NULL, "N=2000");
        fill(&bench, 0);
        bench_run(&bench);
        static float y[N], z[N];
        for (int i = 0; i < N; i++) {
            float x = ((const float *)bench.inputs[0])[i];
            y[i] = rows[r].function(x);
            z[i] = rows[r].function(x * 1.1f + 0.3f);
        }
        double alone = worst(&bench.outputs[0], y), after = worst(&bench.outputs[1], z);
        if (alone > 1 || after > 1)
            fprintf(stderr, "%s: %g alone, %g after\n", rows[r].name, alone, after);
        CHECK(alone <= 1);
        CHECK(after <= 1);
        bench_free(&bench);
    }
}

// Slack of the first output for one element of input.
static double slack_of(const char *text, double x)
{
    struct bench bench;
    bench_make(&bench, text, NULL, "N=1");
    bench_input(&bench, 0, &x);
    bench_run(&bench);
    double slack = bench.outputs[0].slack[0];
    bench_free(&bench);
    return slack;
}

#define OF_X(type, expression) "op f(x: f32[N]) -> (y: " type "[N]) { y[i] = " expression " }"
#define PRODUCT_OF_X(a, b)                                                                         \
    OF_X("f32", "prod(k in 0..3) where(k == 0, " a ", where(k == 1, " b ", x[i]))")
#define SUM_OF_X(a, b)                                                                             \
    OF_X("f32", "sum(k in 0..3) where(k == 0, " a ", where(k == 1, " b ", x[i]))")
#define TINY "5.42101086242752217e-20" // 2^-64: nothing is lost by writing it so

static void undecidable(void)
{
    double third = (double)(1.0f / 3);
    // Exact comparisons of inputs are decided; those of rounded values are not, at the threshold.
    CHECK(slack_of(OF_X("bool", "x[i] < 1"), 1) == 0);
    CHECK(isinf(slack_of(OF_X("bool", "x[i] * 3 < 1"), third)));
    CHECK(slack_of(OF_X("bool", "x[i] * 3 < 1"), 0.25) == 0);
    CHECK(isinf(slack_of(OF_X("i32", "cast(i32, x[i] * 3)"), third)));
    CHECK(slack_of(OF_X("i32", "cast(i32, x[i] * 3)"), 0.5) == 0);
    // Where the two sides meet, either is nearly right.
    CHECK(slack_of(OF_X("f32", "where(x[i] * 3 < 1, 1, x[i] * 3)"), third) < 1e-6);
    CHECK(slack_of(OF_X("f32", "where(x[i] * 3 < 1, 5, x[i])"), third) > 4);
    CHECK(slack_of(OF_X("f32", "floor(x[i] * 3)"), third) >= 1);
    CHECK(slack_of(OF_X("f32", "floor(x[i] * 3)"), 0.5) == 0);
    CHECK(slack_of(OF_X("f32", "relu(x[i])"), -1) == 0);
    CHECK(isinf(slack_of(OF_X("f32", "1 / (x[i] * 3 - 1)"), third)));
    CHECK(isinf(slack_of(OF_X("f32", "sqrt(x[i] * 3 - 1)"), third)));
    // A finite f64 that f32 cannot hold: stored it is infinity, in between nobody knows.
    CHECK(slack_of(OF_X("f32", "x[i] * x[i]"), 1e30) < 1e60);
    CHECK(isinf(slack_of(OF_X("f32", "x[i] * x[i] / x[i]"), (double)1e30f)));
    // A kernel may add the product of two f64 to a sum without rounding it in between.
    CHECK(isinf(slack_of(OF_X("f64", "cast(f64, x[i]) * 1e300 * 1e300 + 1"), 2)));
    CHECK(slack_of(OF_X("f64", "cast(f64, x[i]) * 1e300 * 1e300"), 2) == 0); // is stored as it is
    CHECK(isinf(slack_of("op f(x: f32[N]) -> (y: f32[N])\n"
                         "{ big[i] = cast(f64, x[i]) * 1e308 * 1e308\n"
                         "  y[i] = cast(f32, big[i] - big[i]) }",
                         1)));
    CHECK(isinf(slack_of("op f(x: f32[N]) -> (y: bool[N])\n"
                         "{ big[i] = cast(f64, x[i]) * 1e308 * 1e308\n"
                         "  y[i] = cast(bool, big[i] - big[i]) }",
                         1)));
    // NaN for sure, or only if the factors overflow.
    CHECK(slack_of(PRODUCT_OF_X("2", "0.5"), NAN) == 0);
    CHECK(isinf(
        slack_of("op f(x: f32[N]) -> (y: f64[N])\n{ big[i] = cast(f64, x[i]) * 1e308 * 1e308\n"
                 "  y[i] = prod(k) (big[k] - big[k]) }",
                 1)));
    // Of an infinity that may be none nothing follows.
    CHECK(isinf(slack_of(OF_X("f64", "min(cast(f64, x[i]) * 1e300 * 1e300, 5)"), 2)));
    CHECK(isinf(slack_of(OF_X("f64", "max(cast(f64, x[i]) * 1e300 * -1e300, 5)"), 2)));
    // Nothing is uncertain about infinity and NaN that come from the input.
    CHECK(slack_of(OF_X("f32", "exp(x[i]) * 2 + 1"), INFINITY) == 0);
    CHECK(slack_of(OF_X("f32", "exp(x[i]) * 2 + 1"), NAN) == 0);
    CHECK(slack_of(OF_X("f32", "1 / x[i]"), 0) == 0);
    CHECK(slack_of(OF_X("f32", "log(x[i])"), 0) == 0);
    CHECK(slack_of(OF_X("f32", "log1p(x[i])"), -1) == 0);
    CHECK(slack_of("op f(x: f32[N]) -> (y: f32[N]) { y[i] = mean(k) x[k] + x[i] }", INFINITY) == 0);
    // Unless the other terms may overflow before they meet it.
    CHECK(slack_of(SUM_OF_X("1e38", "1e38"), -INFINITY) == 0);
    CHECK(isinf(slack_of(SUM_OF_X("3e38", "3e38"), -INFINITY)));
    // In whatever order infinity meets the other factors; but they may vanish before.
    CHECK(slack_of(PRODUCT_OF_X("2", "0.5"), INFINITY) == 0);
    CHECK(slack_of(PRODUCT_OF_X("2", "0"), INFINITY) == 0);
    CHECK(isinf(slack_of(PRODUCT_OF_X("1e30", "1e30"), INFINITY)));
    CHECK(slack_of(PRODUCT_OF_X(TINY, "1"), INFINITY) == 0);
    CHECK(isinf(slack_of(PRODUCT_OF_X(TINY, TINY), INFINITY)));
}

static void nearly_equal(void)
{
    double x[] = {0.1f, 0.3f, 0.1f + 0x1p-27f};
    struct bench bench;
    bench_make(&bench,
               "op f(x: f32[N]) -> (exact: i64[], rounded: i64[], most: f32[])\n"
               "{ exact[] = argmin(i) x[i]\n rounded[] = argmin(i) x[i] * 1.1\n"
               "  most[] = min(i) x[i] * 1.1 }",
               NULL, "N=3");
    bench_input(&bench, 0, x);
    bench_run(&bench);
    CHECK(bench.outputs[0].integer[0] == 0 && bench.outputs[0].slack[0] == 0);
    CHECK(isinf(bench.outputs[1].slack[0]));
    CHECK(bench.outputs[2].slack[0] > 0 && bench.outputs[2].slack[0] < 1e-7);
    bench_free(&bench);
}

// Equal terms in one accumulator: every addition may round to the same side.
static void equal_terms(void)
{
    enum { N = 2000 };
    for (int value = 0; value < 50; value++) {
        struct bench bench;
        bench_make(&bench, "op f(x: f32[N]) -> (y: f32[]) { y[] = sum(i) x[i] * 1.1 }", NULL,
                   "N=2000");
        float *x = bench.inputs[0], full = 0, dropped = 0, low = 0;
        for (int i = 0; i < N; i++) {
            x[i] = 1 + 0.013f * (float)value;
            full += x[i] * 1.1f;
            dropped += i == 77 ? 0 : x[i] * 1.1f;
            low = half(low + x[i] * 1.1f);
        }
        bench_run(&bench);
        CHECK(worst(&bench.outputs[0], &full) <= 1);
        CHECK(worst(&bench.outputs[0], &dropped) > 1);
        CHECK(worst(&bench.outputs[0], &low) > 1);
        bench_free(&bench);
    }
}

TEST_MAIN(sums, long_sum, equal_terms, normalisation, functions, undecidable, nearly_equal)
