// The sizes of generated cases: most outputs have elements, whatever the definition demands of its
// sizes, and no case is beyond the limits on memory.

#include "test.h"
#include "unit/verify/judge.h"
#include "verify/case.h"
#include "verify/case_sizes.h"

static int64_t elements_of(const struct kg_problem *problem)
{
    int64_t elements = 0;
    for (int o = 0; o < problem->op->output_count; o++)
        elements += problem->layouts[problem->op->input_count + o].elements;
    return elements;
}

static const char *const windowed[] = {
    "op conv(x: f32[B, C, H, W], w: f32[O, C, R, S]) -> (y: f32[B, O, H - R + 1, W - S + 1])\n"
    "{ y[b, o, h, v] = sum(c, r, s) x[b, c, h + r, v + s] * w[o, c, r, s] }",
    "op strided(x: f32[B, C, H, W], w: f32[O, C, R, S])\n"
    "    -> (y: f32[B, O, (H - R) / 2 + 1, (W - S) / 2 + 1])\n"
    "{ y[b, o, h, v] = sum(c, r, s) x[b, c, 2 * h + r, 2 * v + s] * w[o, c, r, s] }",
    "op dilated(x: f32[B, C, L], w: f32[O, C, R]) -> (y: f32[B, O, L - 3 * (R - 1)])\n"
    "{ y[b, o, l] = sum(c, r) x[b, c, l + 3 * r] * w[o, c, r] }",
    "op pool(x: f32[B, H, W]) -> (y: f32[B, (H - 5) / 3 + 1, (W - 5) / 3 + 1])\n"
    "{ y[b, i, j] = max(r in 0..5, s in 0..5) x[b, 3 * i + r, 3 * j + s] }",
    "op difference(x: f32[N]) -> (y: f32[N - 17]) { y[i] = x[i + 17] - x[i] }",
    "op cut(x: f32[N], y: f32[M]) -> (z: f32[N - 2 * M]) { z[i] = x[i + M] + y[0] }",
    "op inner(x: f32[A, B], k: f32[C]) -> (y: f32[A - C + 1, B - 2 * C + 1])\n"
    "{ y[a, b] = sum(c) x[a + c, b + 2 * c] * k[c] }",
};

static void outputs_with_elements(void)
{
    for (size_t i = 0; i < sizeof windowed / sizeof windowed[0]; i++) {
        struct made made = make(windowed[i], "");
        struct kg_error error = {0};
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct kg_cases cases = {.count = 0};
            const struct kg_policy policy = {.seed = seed, .strided = true};
            int full = 0;
            CHECK(made.op != NULL);
            CHECK_STATUS(kg_cases_make(&cases, made.op, &policy, seed, &error), KG_OK, &error);
            for (int c = 0; c < cases.count; c++)
                full += elements_of(cases.items[c]->problem) > 0;
            if (3 * full < 2 * cases.count)
                fprintf(stderr, "%.20s: %d of %d cases have outputs\n", windowed[i], full,
                        cases.count);
            CHECK(cases.count >= 20 && 3 * full >= 2 * cases.count);
            kg_cases_free(&cases);
        }
        unmake(&made);
    }
}

static void no_sizes(void)
{
    struct made made = make("op f(x: f32[N]) -> (y: f32[N - N]) { y[i] = x[i] }", "N=4");
    struct kg_error error = {0};
    struct kg_gate *gate;
    CHECK_STATUS(kg_gate_make(&plain_device, made.op, NULL, &gate, &error), KG_ERROR_SHAPE, &error);
    CHECK(strstr(error.text, "no sizes were found for which f has a result"));
    CHECK(strstr(error.text, "verify ..."));
    unmake(&made);
}

// Cheap for the reference, not for memory: no output, or nothing to sum.
static void bytes_are_bounded(void)
{
    struct made made = make("op f(x: f32[A, B, C, D, E], k: f32[Z]) -> (y: f32[Z])\n"
                            "{ y[z] = k[z] * (sum(i in 0..(A * 0)) x[i, 0, 0, 0, 0]) }",
                            "A=1 B=1 C=1 D=1 E=1 Z=1");
    struct kg_error error = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct kg_cases cases = {.count = 0};
        const struct kg_policy policy = {.seed = seed};
        CHECK_STATUS(kg_cases_make(&cases, made.op, &policy, seed, &error), KG_OK, &error);
        CHECK(cases.count > 5 && cases.bytes < 8e8);
        for (int c = 0; c < cases.count; c++)
            CHECK(cases.items[c]->image.room < 1 << 26);
        kg_cases_free(&cases);
    }
    unmake(&made);
}

// Required sizes beyond the limit are left out, and the verdict says so.
static void too_large(void)
{
    struct made made =
        make("op f(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = x[p, d] + 1 }", "P=100000 D=100000");
    const struct kg_policy policy = {.shapes = made.problem->sizes, .shape_count = 1};
    struct kg_verdict verdict = judge(made.op, &policy, honest, NULL);
    CHECK(verdict.passed);
    CHECK(strstr(verdict.remarks, "left out: P=100000 D=100000, normal values (too large, "));
    unmake(&made);
}

static void results_that_never_change(void)
{
    struct made made = make("op f(x: f32[N]) -> (y: i32[N]) { y[i] = where(x[i] == 7, 3, 3) }", "");
    struct kg_verdict verdict = judge(made.op, NULL, honest, NULL);
    CHECK(verdict.passed);
    CHECK_TEXT(verdict.remarks, "every result of f is 3, whatever the inputs are");
    unmake(&made);
}

TEST_MAIN(outputs_with_elements, no_sizes, bytes_are_bounded, too_large, results_that_never_change)
