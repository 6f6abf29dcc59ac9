// The digits of a linear index: in 32 bits where these count all elements.

#include "gen/cuda/cuda_frame.h"
#include "support/sample_problem.h"
#include "test.h"

static const char definitions[] =
    "op copy(x: f32[A, B, C]) -> (y: f32[A, B, C])\n{\n    y[a, b, c] = x[a, b, c]\n}\n";

static void check_axes(const char *sizes, int first, int last, const char *wanted)
{
    struct kg_text text = {0};
    struct kg_code code = {.text = &text};
    struct made made = make_strided(definitions, "copy", sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK)
        kg_cuda_axes_between(&code, made.problem->nests[0], first, last, "rest", "item");
    CHECK_TEXT(kg_text_string(&text), wanted);
    kg_text_free(&text);
    unmake(&made);
}

static void digits(void)
{
    check_axes("A=7 B=5 C=3", 1, 0, "");
    check_axes("A=7 B=5 C=3", 1, 1, "const int64_t i1 = item;\n");
    check_axes("A=7 B=5 C=3", 0, 2,
               "int rest = (int)(item);\n"
               "const int64_t i2 = kg_take(&rest, C);\n"
               "const int64_t i1 = kg_take(&rest, B);\n"
               "const int64_t i0 = rest;\n");
}

// A tile may reach as far again beyond the last element.
static void width(void)
{
    check_axes("A=32767 B=32767 C=8", 0, 1,
               "int rest = (int)(item);\n"
               "const int64_t i1 = kg_take(&rest, B);\n"
               "const int64_t i0 = rest;\n");
    check_axes("A=32768 B=32768 C=1", 0, 1,
               "int64_t rest = (int64_t)(item);\n"
               "const int64_t i1 = kg_take(&rest, B);\n"
               "const int64_t i0 = rest;\n");
}

// Those of a run are gone through as one.
static void runs(void)
{
    struct kg_text text = {0};
    struct kg_code code = {.text = &text};
    struct made made = make_strided(definitions, "copy", "A=7 B=5 C=3", NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_cuda_run_axes(&code, made.problem->nests[0], 0, 2, 2, "column", " + lane");
        kg_cuda_run_axes(&code, made.problem->nests[0], 2, 2, 2, "column", " + lane");
    }
    CHECK_TEXT(kg_text_string(&text), "int more = (int)(column);\n"
                                      "const int64_t i2 = kg_take(&more, length) + lane;\n"
                                      "int rest = (int)(more);\n"
                                      "const int64_t i1 = kg_take(&rest, B);\n"
                                      "const int64_t i0 = rest;\n"
                                      "const int64_t i2 = column + lane;\n");
    kg_text_free(&text);
    unmake(&made);
}

TEST_MAIN(digits, width, runs)
