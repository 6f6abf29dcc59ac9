// The reference and the gate when memory runs out: an error or a verdict, never a crash or a leak.

#include "faults/fail_alloc.h"
#include "test.h"
#include "unit/verify/judge.h"

static const char text[] = "op f(x: f16[P, D], b: f16[D]) -> (m: f16[P], i: i64[P], y: f16[P, D])\n"
                           "{\n"
                           "    m[p] = max(d) x[p, d]\n"
                           "    i[p] = argmax(d) (x[p, d] + b[d])\n"
                           "    y[p, d] = pad(x[p, d + 1], 0) - m[p] + (sum(j <= d) x[p, j])\n"
                           "        * (mean(k) (x[p, k] * b[k]))\n"
                           "}\n";

static void reference(void)
{
    struct made made = make(text, "P=3 D=200");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    void *inputs[] = {malloc(2 * 600), malloc(2 * 200)};
    for (int i = 0; i < 2; i++)
        kg_verify_fill(made.problem, i, 1, inputs[i]);
    struct kg_expected expected[3];
    struct kg_error error = {0};
    // Tables that decode floats are made once; without memory for them decoding is only slower.
    CHECK_STATUS(
        kg_reference_run(made.problem, (const void *const *)inputs, 2, NULL, expected, &error),
        KG_OK, &error);
    kg_expected_free(expected, 3);
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status =
            kg_reference_run(made.problem, (const void *const *)inputs, 2, NULL, expected, &error);
        fail_alloc_never();
        CHECK(status == (fail_alloc_happened() ? KG_ERROR_MEMORY : KG_OK));
        CHECK((status == KG_OK) == (expected[0].value != NULL));
        kg_expected_free(expected, 3);
    }
    free(inputs[0]);
    free(inputs[1]);
    unmake(&made);
}

// A gate makes thousands of allocations, most of them alike: beyond the first few hundred, some.
static void gate(void)
{
    struct made made = make(text, "P=3 D=5");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_policy policy = {.seed = 1, .strided = true, .effort = 0.004};
    struct kg_subject subject = {.name = "honest", .run = honest};
    for (long n = 1; fail_alloc_sweep(n); n += n < 300 ? 1 : 41) {
        struct kg_gate *made_gate;
        struct kg_verdict verdict = {0};
        struct kg_error error = {0};
        fail_alloc_at(n);
        enum kg_status status = kg_gate_make(&plain_device, made.op, &policy, &made_gate, &error);
        CHECK((status == KG_OK) == (made_gate != NULL));
        if (status == KG_OK)
            status = kg_gate_judge(made_gate, &subject, &verdict, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || (status == KG_ERROR_MEMORY && error.text[0]));
        CHECK(fail_alloc_happened() || (status == KG_OK && verdict.passed));
        kg_gate_free(made_gate);
    }
    unmake(&made);
}

TEST_MAIN(reference, gate)
