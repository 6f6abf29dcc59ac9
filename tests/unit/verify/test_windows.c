// Where the windows of large outputs stand, and what they cost.

#include "support/sample_problem.h"
#include "test.h"
#include "verify/case.h"

#include <math.h>

#define EFFORT 1e5

struct cut {
    struct made made;
    struct kg_window windows[KG_MAX_WINDOWS][KG_MAX_TENSORS];
    int count;
};

static struct cut cut_make(const char *text, const char *sizes, uint64_t seed)
{
    struct cut cut = {.made = make(text, sizes)};
    CHECK_STATUS(cut.made.status, KG_OK, &cut.made.error);
    CHECK_STATUS(
        kg_case_windows(cut.made.problem, EFFORT, seed, cut.windows, &cut.count, &cut.made.error),
        KG_OK, &cut.made.error);
    return cut;
}

// Elements that one output needs of another lie in its window, so that all together are cheap.
static void same_place(void)
{
    const char *text = "op f(x: f32[N, M]) -> (s: f32[N], y: f32[N, M], z: f32[N, M])\n"
                       "{ s[i] = sum(j) x[i, j]\n y[i, j] = x[i, j] / s[i]\n"
                       "  z[i, j] = y[i, j] + 1 }";
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct cut cut = cut_make(text, "N=60000 M=50", seed);
        CHECK(cut.count == KG_MAX_WINDOWS);
        for (int w = 0; w < cut.count; w++) {
            double cost = INFINITY;
            kg_reference_cost(cut.made.problem, cut.windows[w], &cost, NULL);
            CHECK(cost < EFFORT);
            CHECK(cut.windows[w][1].low[0] == cut.windows[w][2].low[0]);
        }
        CHECK(cut.windows[0][1].low[0] == 0);
        CHECK(cut.windows[1][1].low[0] + cut.windows[1][1].extent[0] == 60000);
        unmake(&cut.made);
    }
}

// The one in between is anywhere.
static void anywhere(void)
{
    double least = INFINITY, most = 0;
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct cut cut =
            cut_make("op f(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) }", "N=9000000", seed);
        double low = (double)cut.windows[2][0].low[0];
        least = fmin(least, low);
        most = fmax(most, low);
        CHECK(low + (double)cut.windows[2][0].extent[0] <= 9e6);
        unmake(&cut.made);
    }
    CHECK(least < 1.5e6 && most > 7.5e6);
}

// What is cheap is not cut.
static void whole(void)
{
    struct cut cut = cut_make("op f(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) }", "N=9", 1);
    CHECK(cut.count == 0);
    unmake(&cut.made);
}

TEST_MAIN(same_place, anywhere, whole)
