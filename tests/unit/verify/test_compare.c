// One element under comparison: what counts as right beside what is expected, at the ends of the
// dtype above all.

#include "test.h"
#include "unit/verify/bench.h"
#include "verify/case.h"

#include <math.h>

static const struct {
    const char *dtype;
    double expected;
    double slack;
    double got;
    bool right;
} cases[] = {
    {"f16", 1, 0, 1, true},
    {"f16", 1, 0, 1.5, false},
    {"f16", 1, 0.5, 1.5, true},
    {"f16", 0, 0, 0x1p-10, false},
    // At the largest value only the side that may be reached may be infinite.
    {"f16", 65504, 0, 65504, true},
    {"f16", 65504, 1e-9, INFINITY, true},
    {"f16", 65504, 1e-9, -INFINITY, false},
    {"f16", 60000, 0, INFINITY, false},
    {"f16", 60000, 6000, INFINITY, true},
    {"f16", -60000, 6000, -INFINITY, true},
    {"f16", -60000, 6000, INFINITY, false},
    {"f16", 1e6, 0, 65504, false},
    {"f16", 1e6, 0, INFINITY, true},
    {"f16", INFINITY, 0, 65504, false},
    // Two huge numbers that cancel leave rounding, of either sign, that the dtype cannot hold.
    {"f16", 0, 1.4e31, INFINITY, true},
    {"f16", 0, 1.4e31, -INFINITY, true},
    {"f16", 1e31, 1.4e32, -INFINITY, true},
    {"f16", 1e31, 1.4e30, -INFINITY, false},
    {"f16", 0, 1.4e31, NAN, false},
    {"f16", 0, 1e4, -INFINITY, false},
    {"bf16", 0, 1e38, -INFINITY, false},
    {"f32", 0, 1e39, -INFINITY, true},
    {"f64", 0, 1e39, -INFINITY, false},
    // Without infinities NaN stands for what is too large, of either sign: past 464, the middle
    // between 448 and what would follow it.
    {"f8e4m3", 448, 0, 448, true},
    {"f8e4m3", 448, 0, NAN, false},
    {"f8e4m3", 448, 20, NAN, true},
    {"f8e4m3", -464, 1e-9, NAN, true},
    {"f8e4m3", -464, 0, NAN, false},
    {"f8e4m3", 464, 0, 448, true},
    {"f8e4m3", 480, 0, 448, false},
    {"f8e4m3", 480, 20, 448, true},
    {"f8e4m3", 480, 0, NAN, true},
    {"f8e4m3", INFINITY, 0, NAN, true},
    {"f8e4m3", INFINITY, 0, 448, false},
    {"f8e4m3", NAN, 0, NAN, true},
    {"f8e4m3", NAN, 0, 448, false},
    {"f8e4m3", 17, 1e-9, 18, true}, // a tie may go either way
    {"f8e4m3", 16.5, 0, 18, false},
    {"f8e5m2", 57344, 0, INFINITY, false},
    {"f8e5m2", 61440, 0, INFINITY, true},
    {"f8e5m2", -61440, 0, INFINITY, false},
    {"f8e5m2", 65536, 0, 57344, false},
    {"f8e5m2", 65536, 0, NAN, false},
    // What is not computed has one right result: the nearest, ties to even.
    {"f8e4m3", 17, 0, 18, false},
    {"f8e4m3", 17, 0, 16, true},
    {"f16", 65504, 0, INFINITY, false},
    {"f16", 65520, 0, INFINITY, true},
    {"f16", 65520, 0, 65504, false},
    {"f16", 1 + 0x1p-11, 0, 1, true},
    {"f16", 1 + 0x1p-11, 0, 1 + 0x1p-10, false},
    {"f16", 1 + 0x1p-11, 0x1p-30, 1 + 0x1p-10, true},
    {"bf16", 1 + 0x1.8p-8, 0, 1, false},
    {"f16", 0x1p-24, 0, 0, false},
    {"f32", 1, 0, 1 + 0x1p-23, false},
    {"f32", 0, 0, -0.0, true}, // the sign of zeros is not compared
    {"f32", NAN, 0, NAN, true},
    {"f32", NAN, 0, 0, false},
};

static void one_element(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench bench;
        bench_make(&bench,
                   "op same(x: f64[N]) -> (y: T[N]) where T in f16 bf16 f32 f64 f8e4m3 f8e5m2\n"
                   "{ y[n] = x[n] }",
                   cases[i].dtype, "N=1");
        bench_input(&bench, 0, &cases[i].expected);
        bench_run(&bench);
        bench.outputs[0].slack[0] = cases[i].slack;
        double memory = 0;
        kg_dtype_store(bench.instance->tensors[1]->type.dtype, &memory, 0, cases[i].got);
        struct kg_verdict verdict = {0};
        const void *outputs[] = {&memory};
        bool right = kg_compare_outputs(&bench.problem, bench.outputs, outputs, &verdict);
        if (right != cases[i].right)
            fprintf(stderr, "%s: %g for %g within %g\n", cases[i].dtype, cases[i].got,
                    cases[i].expected, cases[i].slack);
        CHECK(right == cases[i].right);
        CHECK(right == (verdict.reason[0] == 0));
        bench_free(&bench);
    }
}

TEST_MAIN(one_element)
