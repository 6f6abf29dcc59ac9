// The rowwise family for CUDA: where exponentials are narrow.

#include "gen/axes.h"
#include "gen/built.h"
#include "support/sample_problem.h"
#include "test.h"

// Where a few units of 2^-18 are nothing to what is stored.
static void narrow(void)
{
#define EXPONENTIALS "{ m[p] = max(d) x[p, d]\ne[p, d] = exp(x[p, d] - m[p])\n"
    static const struct {
        const char *text;
        bool narrow;
    } cases[] = {
        {"op r(x: f16[P, D]) -> (y: f16[P, D])" EXPONENTIALS
         "y[p, d] = e[p, d] / (sum(d) e[p, d]) }",
         true},
        {"op r(x: f32[P, D]) -> (y: bf16[P, D])" EXPONENTIALS
         "y[p, d] = where(x[p, d] > 1, 2 * e[p, d], 0) / (1 + (sum(d) e[p, d])) }",
         true},
        {"op r(x: f16[P, D]) -> (y: f32[P, D])" EXPONENTIALS
         "y[p, d] = e[p, d] / (sum(d) e[p, d]) }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P], e: f32[P, D])" EXPONENTIALS "y[p] = sum(d) e[p, d] }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D])" EXPONENTIALS
         "y[p, d] = e[p, d] - (mean(d) e[p, d]) }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P])" EXPONENTIALS "y[p] = sum(d) x[p, d] * e[p, d] }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P])" EXPONENTIALS "y[p] = log(sum(d) e[p, d]) }", false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D])" EXPONENTIALS
         "y[p, d] = where(e[p, d] > 0.5, e[p, d] / (sum(d) e[p, d]), 0) }",
         false},
        {"op r(x: f16[P, D]) -> (y: f16[P, D])"
         "{ y[p, d] = exp(x[p, d]) / (sum(d) exp(x[p, d])) }",
         false},
        {"op r(x: f16[P, D]) -> (y: i32[P])" EXPONENTIALS "y[p] = argmax(d) e[p, d] }", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made = make(cases[i].text, "P=8 D=1024");
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            const struct kg_group group = {made.problem, 0, made.problem->nest_count};
            CHECK(kg_group_is_narrow(&group) == cases[i].narrow);
            if (kg_group_is_narrow(&group) != cases[i].narrow)
                fprintf(stderr, "%s\n", cases[i].text);
        }
        unmake(&made);
    }
}

TEST_MAIN(narrow)
