// Element-wise formulas whose inner loop goes by runs on the host: divisions of its index by
// constants, and elements of four bits, at sizes that are whole runs and that are not, whole pieces
// and less; rows that begin in the middle of a byte; tensors with gaps.

#include "family_bench.h"

static struct bench bench;

static const char *const sizes[] = {
    "P=1 D=1", "P=3 D=95", "P=2 D=256", "P=5 D=311", "P=1 D=5000", "P=4 D=0", NULL,
};

// Runs of 2, 3, 8, of 12 for two divisors, of 48, and of more than there are.
static void test_divisors(void)
{
    static const struct {
        const char *text, *dtype;
    } ops[] = {
        {"op r(w: u8[P, ceil(D/2)], e: u8[D]) -> (y: u8[P, D])\n"
         "{ y[p, d] = (w[p, d/2] >> 4 * (d % 2) & 15) + e[d] }",
         NULL},
        {"op r(x: T[P, ceil(D/3)], e: T[D]) -> (y: T[P, D]) where T in f32 f16 bf16\n"
         "{ y[p, d] = x[p, d/3] * (d % 3) + e[d] }",
         "f32"},
        {"op r(w: u32[P, ceil(D/8)], s: T[D]) -> (y: T[P, D]) where T in f32 f16 bf16\n"
         "{ y[p, d] = ((w[p, d/8] >> 4 * (d % 8) & 15) - 8) * s[d] }",
         "f16"},
        {"op r(x: T[P, D], a: T[ceil(D/4)], b: T[P, ceil(D/6)]) -> (y: T[P, D]) where T in f32 "
         "f16\n"
         "{ y[p, d] = x[p, d] * a[d/4] + b[p, d/6] * (d % 4) - d % 6 }",
         "f16"},
        {"op r(x: T[P, D], s: T[P, ceil(D/48)]) -> (y: T[P, D], z: T[P, D]) where T in f32 bf16\n"
         "{ t[p, d] = x[p, d] * s[p, d/48]\n  y[p, d] = t[p, d] + 1\n  z[p, d] = relu(t[p, d]) }",
         "bf16"},
        {"op r(x: T[P, D], s: T[P, ceil(D/300)]) -> (y: T[P, D]) where T in f32\n"
         "{ y[p, d] = x[p, d] * s[p, d/300] }",
         "f32"},
        {"op r(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16\n"
         "{ y[p, d] = where(d % 2 == 0, -pad(x[p, d+1], 0), x[p, d]) }",
         "f16"},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        bench_op(&bench, "pointwise", ops[i].text, ops[i].dtype, sizes, i + 1);
}

// Rows of an odd length begin in the middle of a byte, every second one.
static void test_shared_bytes(void)
{
    static const char lone[] = "op r(w: i4[D]) -> (y: f32[D])\n{ y[d] = w[d] }";
    static const char rows[] =
        "op r(w: u4[P, D], z: i4[ceil(P/2), D], s: T[P]) -> (y: T[P, D]) where T in f32 f16\n"
        "{ y[p, d] = (w[p, d] - z[p/2, d]) * s[p] }";
    static const char groups[] =
        "op r(w: u4[P, D], s: T[P, ceil(D/32)]) -> (y: T[P, D]) where T in f32 bf16\n"
        "{ y[p, d] = (w[p, d] - 8) * s[p, d/32] }";
    bench_op(&bench, "pointwise", lone, NULL, (const char *const[]){"D=1", "D=97", "D=5000", NULL},
             11);
    bench_op(&bench, "pointwise", rows, "f32", sizes, 12);
    bench_op(&bench, "pointwise", rows, "f16", sizes, 13);
    bench_op(&bench, "pointwise", groups, "bf16", sizes, 14);
    bench_strided(&bench, "pointwise", groups, "f32", "P=3 D=77");
}

// What the source says of runs.
static void test_choice(void)
{
    static const struct {
        const char *text;
        int step;
    } cases[] = {
        {"op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] * (d % 6) + d / 4 }", 12},
        {"op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] * (p % 8) }", 0},
        {"op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] * ((d + 1) % 8) }", 0},
        {"op r(x: u4[P, D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] }", 2},
        {"op r(x: u4[P, D]) -> (y: f32[P, D])\n{ y[p, d] = pad(x[p, d+1], 0) }", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_text source = {0};
        struct kg_config guess;
        char line[32];
        bench_define(&bench, cases[i].text, NULL);
        struct kg_problem *problem = bench_problem(&bench, "P=3 D=700", false);
        struct kg_group group = bench_group(problem);
        const struct kg_match *match = kg_match_find(kg_target_family(&kg_target_host, "pointwise"),
                                                     &group, &bench.device->facts, NULL);
        CHECK(match != NULL);
        match->family->guess(match, &guess);
        CHECK(match->family->emit(match, &guess, "kernel", &source));
        snprintf(line, sizeof line, "enum { STEP = %d };", cases[i].step);
        const char *text = kg_text_string(&source);
        CHECK(cases[i].step ? strstr(text, line) != NULL : !strstr(text, "STEP"));
        kg_text_free(&source);
        kg_problem_free(problem);
    }
}

int main(void)
{
    bench_open(&bench);
    test_choice();
    test_divisors();
    test_shared_bytes();
    bench_close(&bench);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
