// The family of windows that move along rows: what it takes, and what its kernels compute at the
// edges of rows and of steps over lanes.

#include "family_bench.h"
#include "gen/families.h"

static struct bench bench;

static const char *const rows[] = {"C=1 W=1",  "C=2 W=3",   "C=3 W=31",  "C=2 W=64",
                                   "C=1 W=65", "C=2 W=129", "C=1 W=700", NULL};
static const char *const images[] = {"H=5 W=7", "H=1 W=33", "H=4 W=300", "H=3 W=0", NULL};

static void open_bench(void)
{
    bench_open(&bench);
}

static void check(const char *signature, const char *formula, const char *dtype,
                  const char *const *sizes, uint64_t seed)
{
    bench_formula(&bench, "window", signature, formula, dtype, sizes, seed);
}

static void strides_and_dilations(void)
{
    const char *signature = "(x: T[C, W]) -> (y: T[C, (W + 1) / 2])";
    check(signature, "y[c, w] = max(t in 0..3) pad(x[c, w * 2 + t - 1], -inf)", "f32", rows, 1);
    check(signature, "y[c, w] = mean(t in 0..3) pad(x[c, w * 2 + t - 1], 0)", "f16", rows, 2);
    check("(x: T[C, W]) -> (y: T[C, W])", "y[c, w] = sum(t in 0..4) pad(x[c, w + t * 3 - 5], 1)",
          "bf16", rows, 3);
    check("(x: T[C, W]) -> (y: T[C, W])",
          "y[c, w] = min(t in 1..4) pad(x[c, w * 3 + t * 2 - 2], inf)", "f16", rows, 4);
    // No padding: the row ends where the window does.
    check("(x: T[C, W]) -> (y: T[C, W / 2])", "y[c, w] = max(t in 0..2) x[c, w * 2 + t]", "f16",
          rows, 5);
}

static void planes(void)
{
    const char *signature = "(x: T[H, W]) -> (y: T[H, W])";
    check(signature, "y[h, w] = mean(r in 0..3, t in 0..3) pad(x[h + r - 1, w + t - 1], 0)", "f32",
          images, 6);
    check("(x: T[H, W]) -> (y: u8[H, W])",
          "y[h, w] = argmax(r in 0..3, t in 0..3) pad(x[h + r - 1, w + t - 1], -inf)", "f16",
          images, 7);
    check("(x: T[H, W], k: T[H, 3]) -> (y: T[H, W])",
          "y[h, w] = sum(r in 0..2, t in 0..3) pad(x[h + r, w + t - 2], 0) * k[h, t]", "f16",
          images, 8);
}

// The number of places is a size of the problem.
static void sizes_of_windows(void)
{
    static const char *const sizes[] = {"C=2 W=9 V=3", "C=1 W=200 V=70", "C=1 W=5 V=0", NULL};
    check("(x: T[C, W], k: T[C, V]) -> (y: T[C, W])",
          "y[c, w] = sum(v) pad(x[c, w + v - (V - 1)], 0) * k[c, v]", "f32", sizes, 9);
    // Without a place, nothing of the row is read: it may be empty.
    static const char *const empty[] = {"C=1 N=0 V=0 P=4000", "C=2 N=9 V=2 P=7", NULL};
    check("(x: T[C, N], k: T[C, V], q: T[P]) -> (y: T[C, P])",
          "y[c, p] = sum(v) x[c, p + 2 * v] * k[c, v] * q[p]", "f32", empty, 10);
}

static void refusals(void)
{
    static const char *const no_window =
        "it takes one read of f32 or less that goes along its last dimension "
        "with the last output axis and the last reduced axis";
    bench_refusal(&bench, "window", "op r(x: f32[C, W]) -> (y: f32[C])\n{ y[c] = sum(w) x[c, w] }",
                  "C=3 W=5", no_window);
    bench_refusal(&bench, "window",
                  "op r(x: f32[W], k: f32[W, V]) -> (y: f32[W])\n"
                  "{ y[w] = sum(v in 0..V) pad(x[w * V + v], 0) * k[w, v] }",
                  "W=5 V=2", no_window);
    bench_refusal(&bench, "window",
                  "op r(x: i32[W]) -> (y: i32[W])\n{ y[w] = max(t in 0..3) pad(x[w + t], 0) }",
                  "W=5", no_window);
    bench_refusal(&bench, "window", "op r(x: f32[W]) -> (y: f32[W])\n{ y[w] = relu(x[w]) }", "W=5",
                  "it reduces windows of contiguous tensors");
}

static void close_bench(void)
{
    bench_close(&bench);
}

TEST_MAIN(open_bench, strides_and_dilations, planes, sizes_of_windows, refusals, close_bench)
