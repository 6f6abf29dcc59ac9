// An impostor that stores what a right kernel stores is not judged, because no check tells the two
// apart: each check must agree.

#include "test.h"

#include "unit/verify/judge.h"
#include "verify/case.h"

#include <string.h>

static int numbered(const char *name)
{
    for (int i = 0; i < kg_gate_impostor_count(); i++)
        if (strcmp(kg_gate_impostor_name(i), name) == 0)
            return i;
    CHECK(!"there is such an impostor");
    return 0;
}

// Whether the checks of outputs find nothing.
static bool passes(int impostor, const struct kg_case *item)
{
    struct kg_error error = {0};
    struct kg_verdict verdict = {0};
    struct kg_image_memory memory;
    struct kg_kept kept = {0};
    bool right = true;
    enum kg_status status = kg_image_memory_make(&memory, true, item->image.bytes, &error);
    if (!status)
        status = kg_image_memory_open(&memory, &item->image, &error);
    for (int run = 0; run < 2 && right && !status; run++) {
        kg_image_compose(item, kg_image_fills[run], memory.at);
        kg_impostor_run(impostor, item, memory.at);
        status = kg_case_check(item, run, memory.at, &kept, &verdict, &right, &error);
    }
    CHECK_STATUS(status, KG_OK, &error);
    kg_kept_free(&kept);
    kg_image_memory_free(&memory);
    return right;
}

// Of all impostors on all whole cases of an op; `twin` is right in each case without NaN, and
// `other` in none with more than 16 elements.
static void check(const char *text, const char *choices, const char *twin, const char *other)
{
    struct made made = make(text, choices);
    struct kg_policy policy = {.seed = 7};
    struct kg_cases cases = {.is_guarded = true};
    CHECK_STATUS(kg_cases_make(&cases, made.op, &policy, 7, &made.error), KG_OK, &made.error);
    int found = 0;
    for (int c = 0; c < cases.count; c++) {
        const struct kg_case *item = cases.items[c];
        for (int i = 0; i < kg_gate_impostor_count() && item->whole; i++) {
            if (!kg_impostor_is_right(i, item))
                continue;
            found++;
            CHECK(kg_impostor_equals(i, item) && passes(i, item));
        }
        bool is_normal = item->whole && item->class == KG_INPUT_NORMAL;
        CHECK(!is_normal || kg_impostor_is_right(numbered(twin), item));
        if (is_normal && item->expected[0][0].count > 16)
            CHECK(!kg_impostor_is_right(numbered(other), item));
    }
    CHECK(found > cases.count);
    kg_cases_free(&cases);
    unmake(&made);
}

static void right_ones(void)
{
    check("op relu(x: T[N]) -> (y: T[N]) where T in f16 f8e4m3 { y[n] = relu(x[n]) }", "N=9 T=f16",
          "absolute values", "stale output");
    check("op relu(x: T[N]) -> (y: T[N]) where T in f16 f8e4m3 { y[n] = relu(x[n]) }",
          "N=9 T=f8e4m3", "absolute values", "half of the output");
    check("op copy(x: i16[N]) -> (y: i16[N]) { y[n] = x[n] }", "N=9", "a copy of the first input",
          "negated");
    check("op exp(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = exp(x[p, d]) }", "P=3 D=9",
          "absolute values", "truncated stores");
    check("op sum(x: bf16[P, D]) -> (y: bf16[P]) { y[p] = sum(d) x[p, d] }", "P=3 D=9",
          "NaN becomes 0", "zeros");
}

TEST_MAIN(right_ones)
