// The scan family: running totals along every axis, forward and backward, in several configs.

#include "family_bench.h"

static struct bench bench;

static const char *const flat_sizes[] = {
    "P=1 D=1",  "P=3 D=0",    "P=0 D=5",    "P=2 D=7",    "P=2 D=63",    "P=5 D=64",
    "P=7 D=65", "P=97 D=257", "P=3 D=4097", "P=300 D=37", "P=2 D=40009", NULL,
};

static const char *const cube_sizes[] = {
    "A=1 B=1 C=1", "A=0 B=3 C=2",   "A=3 B=0 C=2",    "A=2 B=3 C=0",
    "A=5 B=7 C=3", "A=3 B=129 C=4", "A=17 B=5 C=131", NULL,
};

static void open_bench(void)
{
    bench_open(&bench);
}

static void check(const char *signature, const char *formula, const char *dtype,
                  const char *const *sizes, uint64_t seed)
{
    bench_formula(&bench, "scan", signature, formula, dtype, sizes, seed);
}

static void last_axis(void)
{
    const char *signature = "(x: T[P, D]) -> (y: T[P, D])";
    check(signature, "y[p, d] = sum(j <= d) x[p, j]", "f32", flat_sizes, 1);
    check(signature, "y[p, d] = sum(j < d) x[p, j]", "f32", flat_sizes, 2);
    check(signature, "y[p, d] = sum(j >= d) x[p, j]", "f32", flat_sizes, 3);
    check(signature, "y[p, d] = sum(j > d) x[p, j]", "f64", flat_sizes, 4);
    check(signature, "y[p, d] = prod(j <= d) x[p, j]", "f32", flat_sizes, 5);
    check(signature, "y[p, d] = max(j <= d) x[p, j]", "f16", flat_sizes, 6);
    check(signature, "y[p, d] = min(j >= d) x[p, j]", "f32", flat_sizes, 7);
    check(signature, "y[p, d] = mean(j <= d) x[p, j]", "bf16", flat_sizes, 8);
    check(signature, "y[p, d] = sum(j <= d) x[p, j]", "i32", flat_sizes, 9);
    check("(x: T[P, D]) -> (y: bool[P, D])", "y[p, d] = any(j < d) (x[p, j] > 6.0)", "f32",
          flat_sizes, 10);
    check("(x: T[P, D]) -> (y: i64[P, D])", "y[p, d] = argmax(j <= d) x[p, j]", "f32", flat_sizes,
          11);
    check("(x: T[P, D]) -> (y: i64[P, D])", "y[p, d] = argmin(j < d) x[p, j]", "i32", flat_sizes,
          12);
}

// Few rows: chunks and their carries.
static void chunks(void)
{
    static const char *const sizes[] = {"N=1", "N=16384", "N=16385", "N=100003", NULL};
    static const char *const relations[] = {"<=", "<", ">=", ">"};
    for (size_t i = 0; i < 4; i++) {
        char formula[64];
        snprintf(formula, sizeof formula, "y[n] = sum(j %s n) x[j]", relations[i]);
        check("(x: T[N]) -> (y: T[N])", formula, i % 2 ? "f64" : "f32", sizes, 13 + i);
    }
    check("(x: T[N]) -> (y: T[N])", "y[n] = max(j <= n) x[j]", "f32", sizes, 17);
    check("(x: T[N]) -> (y: i64[N])", "y[n] = argmax(j <= n) x[j]", "f32", sizes, 18);
}

static void other_axes(void)
{
    const char *signature = "(x: T[A, B, C]) -> (y: T[A, B, C])";
    check(signature, "y[a, b, c] = sum(j <= a) x[j, b, c]", "f32", cube_sizes, 19);
    check(signature, "y[a, b, c] = sum(j >= b) x[a, j, c]", "f32", cube_sizes, 20);
    check(signature, "y[a, b, c] = sum(j < b) x[a, j, c]", "f16", cube_sizes, 21);
    check(signature, "y[a, b, c] = max(j > b) x[a, j, c]", "f64", cube_sizes, 22);
    check(signature, "y[a, b, c] = sum(j <= a) x[j, c, b]", "i64",
          (const char *const[]){"A=5 B=4 C=4", "A=3 B=33 C=33", NULL}, 23);
    check("(x: T[A, B, C]) -> (y: i64[A, B, C])", "y[a, b, c] = argmin(j <= b) x[a, j, c]", "f32",
          cube_sizes, 24);
}

static void neighbours(void)
{
    check("(x: T[P, D], w: T[P, D]) -> (y: T[P, D], s: T[P, D])",
          "e[p, d] = x[p, d] * w[p, d] s[p, d] = sum(j <= d) e[p, j] y[p, d] = s[p, d] + x[p, d]",
          "f32", flat_sizes, 25);
}

static void strides(void)
{
    const char *text = "op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = sum(j <= d) x[p, j] }";
    bench_strided(&bench, "scan", text, NULL, "P=3 D=67");
    text = "op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = sum(j > p) x[j, d] }";
    bench_strided(&bench, "scan", text, NULL, "P=30 D=67");
}

static void refusals(void)
{
    bench_refusal(&bench, "scan", "op r(x: f32[D]) -> (y: f32[D])\n{ y[d] = relu(x[d]) }", "D=5",
                  "no reduction");
    bench_refusal(&bench, "scan", "op r(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }",
                  "P=2 D=5", "the reduction does not depend on an output index");
    bench_refusal(&bench, "scan",
                  "op r(x: f32[D]) -> (y: f32[D])\n{ y[d] = sum(j <= d) x[j] * x[d] }", "D=5",
                  "the formula uses the output index of the scan");
    bench_refusal(&bench, "scan", "op r(x: f32[D]) -> (y: i64[D])\n{ y[d] = argmax(j >= d) x[j] }",
                  "D=5", "places are looked for forward only");
    bench_refusal(&bench, "scan",
                  "op r(x: f32[D], w: f32[E]) -> (y: f32[E])\n{ y[e] = (sum(j <= e) x[j]) * w[e] }",
                  "D=5 E=4", "the reduced index and its bound have different ranges");
}

static void close_bench(void)
{
    bench_close(&bench);
}

TEST_MAIN(open_bench, last_axis, chunks, other_axes, neighbours, strides, refusals, close_bench)
