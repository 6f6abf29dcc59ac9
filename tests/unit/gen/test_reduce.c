// The reduce family: every reduction, along every axis, in several configs and many sizes.

#include "family_bench.h"

static struct bench bench;

static const char *const flat_sizes[] = {
    "P=1 D=1",  "P=3 D=0",    "P=0 D=5",    "P=2 D=63",    "P=5 D=64",    "P=7 D=65",
    "P=1 D=13", "P=97 D=127", "P=3 D=4097", "P=1031 D=37", "P=2 D=40009", NULL,
};

static const char *const cube_sizes[] = {
    "A=1 B=1 C=1", "A=0 B=3 C=2",   "A=3 B=0 C=2",    "A=2 B=3 C=0",
    "A=5 B=7 C=3", "A=3 B=129 C=4", "A=67 B=5 C=131", NULL,
};

static void open_bench(void)
{
    bench_open(&bench);
}

static void check(const char *signature, const char *formula, const char *dtype,
                  const char *const *sizes, uint64_t seed)
{
    bench_formula(&bench, "reduce", signature, formula, dtype, sizes, seed);
}

static void last_axis(void)
{
    const char *signature = "(x: T[P, D]) -> (y: T[P])";
    check(signature, "y[p] = sum(d) x[p, d]", "f32", flat_sizes, 1);
    check(signature, "y[p] = prod(d) x[p, d]", "f32", flat_sizes, 2);
    check(signature, "y[p] = max(d) x[p, d]", "f32", flat_sizes, 3);
    check(signature, "y[p] = min(d) x[p, d]", "f64", flat_sizes, 4);
    check(signature, "y[p] = mean(d) x[p, d]", "f16", flat_sizes, 5);
    check(signature, "y[p] = sum(d) x[p, d]", "f64", flat_sizes, 6);
    check(signature, "y[p] = sum(d) x[p, d]", "i32", flat_sizes, 7);
    check(signature, "y[p] = max(d) x[p, d]", "u8", flat_sizes, 8);
    check(signature, "y[p] = min(d) x[p, d]", "u16", flat_sizes, 130);
    check("(x: T[P, D]) -> (y: i64[P])", "y[p] = sum(d) x[p, d]", "u32", flat_sizes, 131);
    check(signature, "y[p] = sum(d) (x[p, d] << 3 ^ x[p, d])", "i16", flat_sizes, 132);
    check("(x: T[P, D]) -> (y: f32[P])", "y[p] = mean(d) x[p, d]", "i32", flat_sizes, 9);
    check("(x: T[P, D]) -> (y: bool[P])", "y[p] = any(d) (x[p, d] > 6.5)", "f32", flat_sizes, 10);
    check("(x: T[P, D]) -> (y: bool[P])", "y[p] = all(d) (x[p, d] > -6.5)", "f32", flat_sizes, 11);
}

static void first_axis(void)
{
    const char *signature = "(x: T[D, P]) -> (y: T[P])";
    check(signature, "y[p] = sum(d) x[d, p]", "f32", flat_sizes, 12);
    check(signature, "y[p] = max(d) x[d, p]", "bf16", flat_sizes, 13);
    check(signature, "y[p] = prod(d) x[d, p]", "f64", flat_sizes, 14);
    check("(x: T[D, P]) -> (y: i64[P])", "y[p] = argmin(d) x[d, p]", "f32", flat_sizes, 15);
    check("(x: T[D, P]) -> (y: bool[P])", "y[p] = any(d) (x[d, p] > 6)", "i32", flat_sizes, 16);
}

static void places(void)
{
    const char *signature = "(x: T[P, D]) -> (y: i64[P])";
    check(signature, "y[p] = argmax(d) x[p, d]", "f32", flat_sizes, 17);
    check(signature, "y[p] = argmin(d) x[p, d]", "f64", flat_sizes, 18);
    check(signature, "y[p] = argmax(d) x[p, d]", "u8", flat_sizes, 19);
    const char *cube = "(x: T[A, B, C]) -> (y: i64[A])", *outer = "(x: T[A, B, C]) -> (y: i64[C])";
    check(cube, "y[a] = argmax(b, c) x[a, b, c]", "f32", cube_sizes, 120);
    check(cube, "y[a] = argmin(c, b) x[a, b, c]", "f64", cube_sizes, 121);
    check(cube, "y[a] = argmin(b in 1..B, c in 2..C) x[a, b, c]", "f32", cube_sizes + 4, 122);
    check(outer, "y[c] = argmax(a, b) x[a, b, c]", "f32", cube_sizes, 123);
    check(outer, "y[c] = argmin(a in 2..A, b in 1..B) x[a, b, c]", "i32", cube_sizes + 4, 124);
    check("(x: T[A, B, C]) -> (y: i64[B])", "y[b] = argmax(a, c) x[a, b, c]", "f32", cube_sizes,
          125);
    // Plain loops, which also take what the family refuses.
    bench_formula(&bench, "direct", cube, "y[a] = argmax(b, c) x[a, b, c]", "f32", cube_sizes, 127);
    bench_formula(&bench, "direct", cube, "y[a] = argmin(b in 1..B, c in 2..C) x[a, b, c]", "f32",
                  cube_sizes + 4, 128);
    bench_formula(&bench, "direct", outer, "y[c] = argmax(a, b, k <= c) x[a, b, k]", "f32",
                  cube_sizes, 129);
    check("(x: T[A, B, C]) -> (y: i64[])", "y[] = argmin(a, b, c) x[a, b, c]", "f32", cube_sizes,
          126);
}

static void middle_axis(void)
{
    check("(x: T[A, B, C]) -> (y: T[A, C])", "y[a, c] = sum(b) x[a, b, c]", "f32", cube_sizes, 20);
    check("(x: T[A, B, C]) -> (y: T[B])", "y[b] = mean(a, c) x[a, b, c]", "f32", cube_sizes, 21);
    check("(x: T[A, B, C]) -> (y: T[A])", "y[a] = max(b, c) x[a, b, c]", "f32", cube_sizes, 22);
    check("(x: T[A, B, C]) -> (y: T[C])", "y[c] = min(a, b) x[a, b, c]", "i64", cube_sizes, 23);
    check("(x: T[A, B, C]) -> (y: T[C, A])", "y[c, a] = sum(b) x[a, b, c]", "f64", cube_sizes, 24);
}

static void all_axes(void)
{
    static const char *const line_sizes[] = {"N=0", "N=1", "N=67", "N=16384", "N=50021", NULL};
    check("(x: T[A, B, C]) -> (y: T[])", "y[] = sum(a, b, c) x[a, b, c]", "f32", cube_sizes, 25);
    check("(x: T[N]) -> (y: T[])", "y[] = mean(n) x[n]", "f32", line_sizes, 26);
    check("(x: T[N]) -> (y: i64[])", "y[] = argmax(n) x[n]", "f32", line_sizes, 27);
    check("(x: T[N]) -> (y: i64[])", "y[] = argmin(n in 1..N) x[n]", "f64", line_sizes, 28);
}

static void neighbours(void)
{
    check("(x: T[P, D], z: T[P, D], w: T[P]) -> (y: T[P], s: T[P])",
          "e[p, d] = x[p, d] - z[p, d] q[p] = sum(d) e[p, d] * e[p, d]\n"
          "y[p] = sqrt(q[p]) * w[p] s[p] = q[p] + 1",
          "f32", flat_sizes, 29);
    check("(x: T[P, D], w: T[P]) -> (y: T[P])", "y[p] = (sum(d in 1..D) x[p, d - 1]) * w[p]", "f32",
          flat_sizes + 3, 30);
    check("(x: T[B, A, C], g: T[C], h: T[A]) -> (y: T[A, C])",
          "y[a, c] = (sum(b) x[b, a, c]) * g[c] + h[a]", "f32", cube_sizes, 33);
}

static void windows_and_products(void)
{
    static const char *const sizes[] = {"H=5 W=7", "H=1 W=33", "H=0 W=3", NULL};
    static const char *const products[] = {"M=3 N=5 K=7", "M=1 N=67 K=33", "M=4 N=4 K=0", NULL};
    check("(x: T[H, W]) -> (y: T[H, W])",
          "y[h, w] = max(r in 0..3, t in 0..3) pad(x[h + r - 1, w + t - 1], -inf)", "f32", sizes,
          31);
    check("(a: T[M, K], b: T[K, N]) -> (c: T[M, N])", "c[m, n] = sum(k) a[m, k] * b[k, n]", "f32",
          products, 32);
}

static void strides(void)
{
    const char *text = "op r(x: f32[P, D, E]) -> (y: f32[P])\n{ y[p] = sum(d, e) x[p, d, e] }";
    bench_strided(&bench, "reduce", text, NULL, "P=3 D=67 E=5");
    text = "op r(x: f16[D, P]) -> (y: f16[P])\n{ y[p] = max(d) x[d, p] }";
    bench_strided(&bench, "reduce", text, NULL, "P=67 D=9");
}

// Partial totals are cut by size alone, so one thread gives the bits of many.
static void refusals(void)
{
    bench_refusal(&bench, "reduce", "op r(x: f32[D]) -> (y: f32[D])\n{ y[d] = sum(j <= d) x[j] }",
                  "D=5", "the range of the reduction depends on an output index");
    bench_refusal(&bench, "reduce", "op r(x: f32[D]) -> (y: f32[D])\n{ y[d] = relu(x[d]) }", "D=5",
                  "no reduction");
    bench_refusal(&bench, "reduce",
                  "op r(x: f32[P, D]) -> (y: f32[P])\n"
                  "{ m[p] = max(d) x[p, d] y[p] = sum(d) exp(x[p, d] - m[p]) }",
                  "P=2 D=5", "more than one reduction");
    bench_refusal(&bench, "reduce",
                  "op r(x: f32[P, D]) -> (y: f32[P, D])\n"
                  "{ m[p] = max(d) x[p, d] y[p, d] = x[p, d] - m[p] }",
                  "P=2 D=5", "what follows the reduction has other axes");
}

static void close_bench(void)
{
    bench_close(&bench);
}

TEST_MAIN(open_bench, last_axis, first_axis, places, middle_axis, all_axes, neighbours,
          windows_and_products, strides, refusals, close_bench)
