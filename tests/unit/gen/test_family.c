// Groups by rule and choices of the host.

#include "gen/built.h"
#include "gen/grouping.h"
#include "gen/shared/emit.h"
#include "support/sample_problem.h"
#include "test.h"

static const struct kg_device_facts facts = {
    .units = 2, .bandwidth = 2e10, .cache = {0, 32768, 524288, 33554432}, .vector_bytes = 32};

// "pointwise*2 direct": the families of a definition's groups.
static void check_groups(const char *body, const char *expected)
{
    struct kg_text text = {0}, found = {0};
    kg_text_format(&text, "op f(x: f32[P, D], b: f32[D], i: i32[P]) -> (y: f32[P, D])\n{\n%s}\n",
                   body);
    struct made made = make(kg_text_string(&text), "P=64 D=4096");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        struct kg_choice choice;
        kg_choice_guess(made.problem, &facts, &kg_target_host, &choice);
        for (int i = 0; i < choice.count; i++) {
            struct kg_text source = {0};
            CHECK(kg_choice_source(&choice, i, "kernel", &source));
            kg_text_free(&source);
            kg_text_format(&found, "%s%s*%d", i ? " " : "", choice.matches[i]->family->name,
                           choice.matches[i]->group.count);
        }
        CHECK_TEXT(kg_text_string(&found), expected);
    }
    unmake(&made);
    kg_text_free(&text);
    kg_text_free(&found);
}

static void test_groups(void)
{
    check_groups("y[p, d] = relu(x[p, d] + b[d])\n", "pointwise*1");
    // A chain of the same axes is one loop; a value read elsewhere is not.
    check_groups("v[p, d] = exp(x[p, d])\ny[p, d] = v[p, d] * b[d] + v[p, d]\n", "pointwise*2");
    check_groups("v[p, d] = exp(x[p, d])\ny[p, d] = pad(v[p, d - 1], 0) + v[p, d]\n",
                 "pointwise*1 pointwise*1");
    check_groups("v[d] = exp(b[d])\ny[p, d] = x[p, d] * v[d]\n", "pointwise*1 pointwise*1");
    check_groups("y[p, d] = x[i[p], d]\n", "pointwise*1");
    check_groups("v[p, d] = exp(x[p, d])\ny[p, d] = v[p, d] + x[i[p], d]\n", "pointwise*2");
    // No family but the last takes a reduction whose length changes from element to element.
    check_groups("y[p, d] = max(j in 0..3, k <= d) x[p, k]\n", "direct*1");
}

static void test_every_refusal_has_a_reason(void)
{
    struct made made = make("op f(x: f32[P, D]) -> (y: f32[P, D])\n"
                            "{ y[p, d] = max(j in 0..3, k <= d) x[p, k] }\n",
                            "P=7 D=33");
    struct kg_groupings groupings;
    struct kg_text trace = {0};
    CHECK(kg_groupings_list(made.problem, &facts, &kg_target_host, &groupings, &trace));
    CHECK(strstr(kg_text_string(&trace), "y: not pointwise: y: it reduces\n") != NULL);
    CHECK(strstr(kg_text_string(&trace), ": \n") == NULL);
    kg_text_free(&trace);
    unmake(&made);
}

static void test_locals_in_memory(void)
{
    struct made made = make("op f(x: f32[P]) -> (y: f32[P])\n"
                            "{ u[p] = exp(x[p])\n  v[p] = u[p] * 2\n"
                            "  y[p] = pad(v[p - 1], 0) }\n",
                            "P=7");
    struct kg_choice choice;
    kg_choice_guess(made.problem, &facts, &kg_target_host, &choice);
    CHECK(choice.count == 2);
    CHECK(kg_choice_in_memory(&choice, 0));  // x
    CHECK(kg_choice_in_memory(&choice, 1));  // y
    CHECK(!kg_choice_in_memory(&choice, 2)); // u: within the first loop
    CHECK(kg_choice_in_memory(&choice, 3));  // v: between the two
    unmake(&made);
}

static void test_guesses_are_valid(void)
{
    static const char *const sizes[] = {"P=0 D=5", "P=1 D=1", "P=7 D=513", "P=1048576 D=1024"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct made made = make("op f(x: f32[P, D], b: f32[D]) -> (y: f32[P, D], m: f32[P, D])\n"
                                "{ y[p, d] = relu(x[p, d] + b[d])\n"
                                "  m[p, d] = max(j in 0..3) pad(x[p, d + j], -inf) }\n",
                                sizes[i]);
        struct kg_choice choice, back;
        struct kg_text text = {0};
        kg_choice_guess(made.problem, &facts, &kg_target_host, &choice);
        kg_choice_print(&choice, &text);
        // Reading refuses what is not valid.
        CHECK(kg_choice_read(made.problem, &facts, &kg_target_host, kg_text_string(&text), &back));
        CHECK(back.count == choice.count);
        for (int g = 0; g < choice.count; g++) {
            const struct kg_match *match = choice.matches[g];
            double bound = match->family->bound(match, &choice.configs[g]);
            CHECK(bound >= 0 && bound < 10);
        }
        kg_text_free(&text);
        unmake(&made);
    }
}

// 4 GiB read, 4 GiB written, bar what the cache holds.
static void test_the_bound_of_a_large_sum(void)
{
    struct made made = make("op f(x: f32[P, D], b: f32[D]) -> (y: f32[P, D])\n"
                            "{ y[p, d] = relu(x[p, d] + b[d]) }\n",
                            "P=1048576 D=1024");
    struct kg_choice choice;
    kg_choice_guess(made.problem, &facts, &kg_target_host, &choice);
    double bound = choice.matches[0]->family->bound(choice.matches[0], &choice.configs[0]);
    double bytes = 2.0 * 1048576 * 1024 * 4 + 4096 - 33554432;
    CHECK(bound > 0.999 * bytes / 2e10 && bound < 1.001 * bytes / 2e10);
    CHECK(choice.configs[0].value[1] > 0); // streamed
    unmake(&made);
}

TEST_MAIN(test_groups, test_every_refusal_has_a_reason, test_locals_in_memory,
          test_guesses_are_valid, test_the_bound_of_a_large_sum)
