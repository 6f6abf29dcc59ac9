// Problems and documents when memory runs out: an error or a document, never a crash or a leak.

#include "analyze/roofline.h"
#include "faults/fail_alloc.h"
#include "support/sample_problem.h"
#include "test.h"

static const char text[] = "op f(x: f16[P, D], b: f16[D]) -> (m: f16[P], y: f16[P, D])\n"
                           "{\n"
                           "    m[p] = max(d) x[p, d]\n"
                           "    y[p, d] = pad(x[p, d + 1], 0) - m[p] + (sum(j <= d) x[p, j])\n"
                           "        / (mean(k) (x[p, k] * b[k]))\n"
                           "}\n";

static void test_problem(void)
{
    struct made made = make(text, "P=3 D=5");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const int64_t sizes[] = {3, 5};
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_problem *problem = NULL;
        struct kg_error error = {0};
        fail_alloc_at(n);
        enum kg_status status = kg_problem_make(made.op, sizes, NULL, &problem, &error);
        fail_alloc_never();
        CHECK(status == (fail_alloc_happened() ? KG_ERROR_MEMORY : KG_OK));
        CHECK((status == KG_OK) == (problem != NULL));
        kg_problem_free(problem);
    }
    unmake(&made);
}

static void test_documents(void)
{
    struct made made = make(text, "P=3 D=5");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_text document = {0};
        fail_alloc_at(n);
        kg_analyze_document(&document, made.problem, NULL, KG_CHINESE);
        kg_analyze_document_json(&document, made.problem, NULL);
        fail_alloc_never();
        kg_text_free(&document);
    }
    unmake(&made);
}

// A refusal needs memory for its words; without, it is still a refusal.
static void test_refusal(void)
{
    struct made made = make("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i + 1] }\n", "N=0");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const int64_t sizes[] = {5};
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_problem *problem = NULL;
        struct kg_error error = {0};
        fail_alloc_at(n);
        enum kg_status status = kg_problem_make(made.op, sizes, NULL, &problem, &error);
        fail_alloc_never();
        CHECK(status == KG_ERROR_SHAPE || status == KG_ERROR_MEMORY);
        CHECK(problem == NULL && error.text[0] != '\0');
    }
    unmake(&made);
}

TEST_MAIN(test_problem, test_documents, test_refusal)
