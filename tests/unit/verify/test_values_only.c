// The reference without slack gives the same values as with it, whatever way it takes: products of
// matrices by tiles, sums without compensation, large inputs read where they lie.

#include "test.h"
#include "unit/verify/judge.h"

#include "verify/reference.h"

#include <math.h>
#include <stdlib.h>

struct values {
    void *inputs[KG_MAX_TENSORS];
    struct kg_expected full[KG_MAX_TENSORS], alone[KG_MAX_TENSORS];
};

static void evaluate(struct made *made, struct values *values)
{
    struct kg_error error = {0};
    memset(values, 0, sizeof *values);
    for (int i = 0; i < made->op->input_count; i++) {
        values->inputs[i] = malloc(made->problem->layouts[i].bytes + 1);
        kg_verify_fill(made->problem, i, 5, values->inputs[i]);
    }
    const void *const *inputs = (const void *const *)values->inputs;
    CHECK_STATUS(kg_reference_run(made->problem, inputs, 2, NULL, values->full, &error), KG_OK,
                 &error);
    CHECK_STATUS(kg_reference_values(made->problem, inputs, NULL, 2, NULL, values->alone, &error),
                 KG_OK, &error);
}

static void forget(struct made *made, struct values *values)
{
    for (int i = 0; i < made->op->input_count; i++)
        free(values->inputs[i]);
    kg_expected_free(values->full, made->op->output_count);
    kg_expected_free(values->alone, made->op->output_count);
}

static bool agree(const struct kg_expected *full, const struct kg_expected *alone, int64_t n)
{
    if (full->integer)
        return isinf(full->slack[n]) || full->integer[n] == alone->integer[n];
    double a = full->value[n], b = alone->value[n];
    return (isnan(a) && isnan(b)) || a == b ||
           fabs(a - b) <= full->slack[n] + 0x1p-40 * fabs(a) + 0x1p-40;
}

static void same_values(const char *text, const char *sizes)
{
    struct made made = make(text, sizes);
    struct values values;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    evaluate(&made, &values);
    for (int o = 0; o < made.op->output_count; o++) {
        const struct kg_expected *full = &values.full[o], *alone = &values.alone[o];
        int64_t wrong = 0;
        CHECK(full->count == alone->count && full->count > 0 && !alone->slack);
        for (int64_t n = 0; n < full->count; n++)
            wrong += !agree(full, alone, n);
        if (wrong)
            fprintf(stderr, "%s: %lld of %lld differ\n", text, (long long)wrong,
                    (long long)full->count);
        CHECK(wrong == 0);
    }
    forget(&made, &values);
    unmake(&made);
}

static void products(void)
{
    same_values("op f(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
                "M=131 K=300 N=141");
    same_values("op f(a: f16[B, K, M], w: f32[N, K]) -> (c: f32[N, B, M])\n"
                "{ c[n, b, m] = relu((sum(k) (a[b, k, m] + 1) * w[n, k]) - 3) }",
                "B=3 M=20 K=65 N=9");
    same_values("op f(x: f32[B, H], w: f32[O, R]) -> (y: f32[B, O, H - R + 1])\n"
                "{ y[b, o, h] = sum(r) x[b, h + r] * w[o, r] }",
                "B=2 H=40 O=17 R=9");
    same_values("op f(a: f32[M, K], b: f32[K, N], s: f32[K, 4]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k, j) (a[m, k] * s[k, j]) * b[k, n] }",
                "M=17 K=33 N=8");
    // Too few columns for tiles, no common depth, and a scan.
    same_values("op f(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
                "M=5 K=300 N=3");
    same_values("op f(a: f32[M, K], b: f32[N]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k) a[m, k] * b[n] }",
                "M=9 K=30 N=12");
    same_values("op f(a: f32[M, N], b: f32[N]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k <= n) a[m, k] * b[k] }",
                "M=9 N=40");
}

static void reductions(void)
{
    same_values("op f(x: f32[P, D]) -> (s: f32[P], m: f32[P], a: f32[P], i: i32[P])\n"
                "{ s[p] = sum(d) x[p, d]\n m[p] = max(d) x[p, d]\n a[p] = mean(d) x[p, d]\n"
                "  i[p] = argmin(d) x[p, d] }",
                "P=7 D=1000");
    same_values("op f(x: bf16[P, D]) -> (s: f32[D], m: f32[D])\n"
                "{ s[d] = sum(p) x[p, d]\n m[d] = min(p) x[p, d] }",
                "P=300 D=131");
    same_values("op f(x: f16[P, D]) -> (y: f16[P, D])\n"
                "{ m[p] = max(d) x[p, d]\n e[p, d] = exp(x[p, d] - m[p])\n"
                "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }",
                "P=33 D=129");
}

static void large_inputs(void)
{
    same_values("op f(x: bf16[P, D], i: i32[P]) -> (y: bf16[D, P], s: f32[], g: bf16[P])\n"
                "{ y[d, p] = 2 * x[p, d]\n s[] = sum(p, d) x[p, d]\n g[p] = x[i[p], 3] }",
                "P=2100 D=2111");
    same_values("op f(x: i8[P, D]) -> (y: i32[P], z: i8[P, D])\n"
                "{ y[p] = sum(d) cast(i32, x[p, d])\n z[p, d] = x[p, d] + 1 }",
                "P=2100 D=2111");
}

// y[p, d] = x[p, (d + D / 2) % D] + pad(x[p - 1, k[d] + 1], 7) + x[d / 3 % P, k[d]]
static double gathered(const float *x, const int32_t *k, int64_t P, int64_t D, int64_t p, int64_t d)
{
    int64_t within = k[d] < 0 ? 0 : k[d] >= D ? D - 1 : k[d];
    bool pads = p == 0 || k[d] + 1 < 0 || k[d] + 1 >= D;
    return ((double)x[p * D + (d + D / 2) % D] + (pads ? 7 : (double)x[(p - 1) * D + k[d] + 1])) +
           (double)x[d / 3 % P * D + within];
}

// Subscripts that differ in every lane, beside ones that lanes share, inside and outside; of inputs
// that are decoded, and of ones that are read where they lie.
static void gathers(void)
{
    static const char *const sizes[] = {"P=21 D=34", "P=2100 D=2112"};
    for (int i = 0; i < 2; i++) {
        struct made made = make("op f(x: f32[P, D], k: i32[D]) -> (y: f64[P, D])\n"
                                "{ y[p, d] = cast(f64, x[p, (d + D / 2) % D])\n"
                                "    + cast(f64, pad(x[p - 1, k[d] + 1], 7))\n"
                                "    + cast(f64, x[d / 3 % P, k[d]]) }",
                                sizes[i]);
        struct values values;
        CHECK_STATUS(made.status, KG_OK, &made.error);
        evaluate(&made, &values);
        const int64_t *shape = made.problem->layouts[0].shape;
        int64_t wrong = 0;
        for (int64_t n = 0; n < values.alone[0].count; n++) {
            double wanted = gathered(values.inputs[0], values.inputs[1], shape[0], shape[1],
                                     n / shape[1], n % shape[1]);
            wrong += values.alone[0].value[n] != wanted || values.full[0].value[n] != wanted;
        }
        CHECK(values.alone[0].count > 0 && wrong == 0);
        forget(&made, &values);
        unmake(&made);
    }
}

TEST_MAIN(products, reductions, large_inputs, gathers)
