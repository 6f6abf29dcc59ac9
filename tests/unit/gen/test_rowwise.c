// The rowwise family: softmax, norms and losses per row, in several configs and many sizes.

#include "family_bench.h"

static struct bench bench;

static const char *const flat_sizes[] = {
    "P=1 D=1",  "P=3 D=0",    "P=0 D=5",    "P=2 D=63",   "P=5 D=64",
    "P=7 D=65", "P=31 D=127", "P=3 D=1025", "P=2 D=4099", NULL,
};

static const char *const cube_sizes[] = {
    "N=1 C=1 H=1 W=1", "N=2 C=3 H=5 W=7", "N=3 C=2 H=0 W=4", "N=2 C=4 H=33 W=40", NULL,
};

static const char *const square_sizes[] = {
    "N=1 C=1 H=1 W=1", "N=2 C=3 H=5 W=5", "N=3 C=2 H=0 W=0", "N=2 C=4 H=70 W=70", NULL,
};

static void open_bench(void)
{
    bench_open(&bench);
}

static void check(const char *signature, const char *formula, const char *dtype,
                  const char *const *sizes, uint64_t seed)
{
    char text[768];
    snprintf(text, sizeof text, "op r%s\nparam eps = 1e-5\nwhere T in %s\n{ %s }", signature, dtype,
             formula);
    bench_op(&bench, "rowwise", text, NULL, sizes, seed);
}

#define SOFTMAX                                                                                    \
    "m[p] = max(d) x[p, d] e[p, d] = exp(x[p, d] - m[p])"                                          \
    " y[p, d] = e[p, d] / (sum(d) e[p, d])"

static void softmax(void)
{
    check("(x: T[P, D]) -> (y: T[P, D])", SOFTMAX, "f32", flat_sizes, 1);
    check("(x: T[P, D]) -> (y: T[P, D])", SOFTMAX, "f16", flat_sizes, 2);
    check("(x: T[P, D]) -> (y: T[P, D])", SOFTMAX, "f64", flat_sizes, 3);
    check("(x: T[P, D]) -> (y: T[P, D])",
          "m[p] = max(d) x[p, d] s[p] = sum(d) exp(x[p, d] - m[p])"
          " y[p, d] = x[p, d] - m[p] - log(s[p])",
          "f32", flat_sizes, 4);
    check("(x: T[P, D]) -> (y: T[P])",
          "m[p] = max(d) x[p, d] y[p] = m[p] + log(sum(d) exp(x[p, d] - m[p]))", "bf16", flat_sizes,
          5);
}

static void norms(void)
{
    check("(x: T[P, D], g: T[D]) -> (y: T[P, D])",
          "r[p] = rsqrt((mean(d) x[p, d] * x[p, d]) + eps) y[p, d] = x[p, d] * r[p] * g[d]", "f32",
          flat_sizes, 6);
    check("(x: T[P, D], g: T[D], b: T[D]) -> (y: T[P, D], mu: f32[P], rs: f32[P])",
          "mu[p] = mean(d) x[p, d] c[p, d] = x[p, d] - mu[p]"
          " rs[p] = rsqrt((mean(d) c[p, d] * c[p, d]) + eps)"
          " y[p, d] = c[p, d] * rs[p] * g[d] + b[d]",
          "bf16", flat_sizes, 7);
    check("(x: T[N, C, H, W], g: T[C]) -> (y: T[N, C, H, W])",
          "u[n] = mean(c, h, w) x[n, c, h, w]"
          " v[n] = mean(c, h, w) (x[n, c, h, w] - u[n]) * (x[n, c, h, w] - u[n])"
          " y[n, c, h, w] = (x[n, c, h, w] - u[n]) * rsqrt(v[n] + eps) * g[c]",
          "f32", cube_sizes, 8);
    check(
        "(x: T[N, C, H, W]) -> (y: T[N, C, H, W])",
        "u[n, c] = mean(h, w) x[n, c, h, w] e[n, c, h, w] = x[n, c, h, w] - u[n, c]"
        " y[n, c, h, w] = e[n, c, h, w] * rsqrt((mean(h, w) e[n, c, h, w] * e[n, c, h, w]) + eps)",
        "f32", cube_sizes, 9);
}

// The last pass one row behind the others.
static void check_behind(const char *text, const char *values)
{
    static const char *const sizes[] = {"P=1 D=32", "P=9 D=1056", "P=40 D=2048", "P=3 D=0",
                                        "P=0 D=64", "P=5 D=33",   "P=2 D=4096",  NULL};
    struct kg_config config;
    bench_define(&bench, text, NULL);
    struct kg_problem *problem = bench_problem(&bench, sizes[0], false);
    bench_compile(&bench, problem, "rowwise", NULL);
    CHECK(kg_config_read(&bench.space, values, &config));
    CHECK(bench_compile(&bench, problem, "rowwise", &config));
    for (int s = 0; sizes[s]; s++)
        for (int kind = 0; kind < BENCH_INPUT_KINDS; kind++)
            bench_run(&bench, sizes[s], false, (enum bench_inputs)kind);
    kg_problem_free(problem);
}

static void behind(void)
{
    check_behind("op r(x: f32[P, D]) -> (y: f32[P, D])\n{" SOFTMAX "}",
                 "lanes=64 keep=1 stream=1 prefetch=1 behind=1");
    check_behind("op r(x: f32[P, D]) -> (y: f32[P, D])\n{" SOFTMAX "}",
                 "lanes=64 keep=1 stream=0 prefetch=1 behind=1");
    check_behind("op r(x: f32[P, D]) -> (y: f32[P, D])\n"
                 "{ m[p] = min(d) x[p, d] s[p] = sum(d) exp(m[p] - x[p, d])"
                 " y[p, d] = x[p, d] - m[p] - log(s[p]) }",
                 "lanes=64 keep=0 stream=1 prefetch=1 behind=1");
    check_behind("op r(x: f32[P, D], g: f32[D]) -> (y: f32[P, D], mu: f32[P], rs: f32[P])\n"
                 "{ mu[p] = mean(d) x[p, d] c[p, d] = x[p, d] - mu[p]"
                 " rs[p] = rsqrt((mean(d) c[p, d] * c[p, d]) + 1e-5)"
                 " y[p, d] = c[p, d] * rs[p] * g[d] }",
                 "lanes=64 keep=1 stream=1 prefetch=1 behind=1");
}

static void losses(void)
{
    check("(x: T[P, D], t: i64[P]) -> (y: f32[P])",
          "m[p] = max(d) x[p, d] y[p] = log(sum(d) exp(x[p, d] - m[p])) + m[p] - x[p, t[p]]", "f32",
          flat_sizes + 3, 10);
    check("(x: T[P, D]) -> (m: T[P], k: i64[P], a: bool[P])",
          "m[p] = max(d) x[p, d] k[p] = argmax(d) x[p, d] a[p] = any(d) (x[p, d] > 6.0)", "f32",
          flat_sizes, 11);
    check("(x: T[N, C, H, W]) -> (m: T[N, C], k: i64[N, C])",
          "m[n, c] = max(h, w) x[n, c, h, w] k[n, c] = argmin(h, w) x[n, c, h, w]", "f32",
          cube_sizes, 14);
    // A place looked for across columns that do not lie behind each other.
    check("(x: T[N, C, H, W]) -> (k: i64[N], s: T[N, C, H, W])",
          "k[n] = argmax(c, h in 0..H, w in 0..W) x[n, c, w, h]"
          " s[n, c, h, w] = where(c * H * W + h * W + w == k[n], x[n, c, w, h], 0.0)",
          "f32", square_sizes, 15);
    check("(x: T[P, D]) -> (y: i64[P, D])",
          "s[p] = sum(d) x[p, d] y[p, d] = s[p] - cast(i64, x[p, d])", "i32", flat_sizes, 12);
    // Masks: the columns that count depend on the row.
    check("(x: T[P, D]) -> (y: T[P, D])",
          "v[p, d] = where(d <= p, x[p, d], -inf) m[p] = max(d) v[p, d]"
          " e[p, d] = exp(v[p, d] - m[p]) y[p, d] = e[p, d] / (sum(d) e[p, d])",
          "f32", flat_sizes, 13);
}

static void strides(void)
{
    const char *text = "op r(x: f32[P, D]) -> (y: f32[P, D])\n{" SOFTMAX "}";
    bench_strided(&bench, "rowwise", text, NULL, "P=3 D=67");
}

static void refusals(void)
{
    bench_refusal(&bench, "rowwise", "op r(x: f32[D]) -> (y: f32[D])\n{ y[d] = relu(x[d]) }", "D=5",
                  "no reduction");
    bench_refusal(&bench, "rowwise",
                  "op r(x: f32[D]) -> (y: f32[D])\n{ y[d] = x[d] / (sum(d) x[d]) }", "D=5",
                  "reduces all there is: no rows to work on apart");
    bench_refusal(&bench, "rowwise",
                  "op r(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sqrt(sum(d) x[p, d] * x[p, d]) }",
                  "P=2 D=5", "a single reduction: reduce does it");
    bench_refusal(&bench, "rowwise",
                  "op r(x: f32[P, D]) -> (y: f32[P, D])\n"
                  "{ m[p] = max(d) x[p, d] y[p, d] = x[p, d] - m[P - 1 - p] }",
                  "P=2 D=5", "an intermediate is read at another place than it is made");
    bench_refusal(&bench, "rowwise",
                  "op r(x: f32[P, D]) -> (y: f32[P, D])\n"
                  "{ m[p] = max(d) x[p, d] y[p, d] = x[p, d] - m[p] }",
                  "P=1 D=100000", "fewer rows than cores, and long ones");
}

static void close_bench(void)
{
    bench_close(&bench);
}

TEST_MAIN(open_bench, softmax, norms, behind, losses, strides, refusals, close_bench)
