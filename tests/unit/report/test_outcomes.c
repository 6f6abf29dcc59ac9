// What tables of outcomes say of the times that were expected.

#include "report/outcomes.h"
#include "test.h"

#include <math.h>

static struct kg_outcome outcome_of(double seconds, double spread, double estimate)
{
    struct kg_outcome outcome = {.kind = KG_OUTCOME_MEASURED, .choice = "c", .estimate = estimate};
    outcome.timing.median = seconds;
    outcome.timing.spread = spread;
    return outcome;
}

static void pairs_are_counted(void)
{
    struct kg_outcome list[] = {outcome_of(1.00, 0.01, 1), outcome_of(1.01, 0.01, 2.5),
                                outcome_of(2.00, 0.01, 3), outcome_of(3.00, 0.01, 2),
                                outcome_of(4.00, 0.01, 3)};
    struct kg_outcomes outcomes = {.count = 5, .list = list, .by_kind = {5}};
    // The first two are too close. A tie: the third and the last; wrong: the fourth, after two.
    CHECK(fabs(kg_outcomes_order(&outcomes) - 6.5 / 9) < 1e-9);
    struct kg_text text = {0};
    kg_outcomes_markdown(&outcomes, &(struct kg_outcomes_view){0, 1e-6, NULL}, &text);
    CHECK(strstr(kg_text_string(&text), "expected / time") != NULL);
    kg_text_cut(&text, 0);
    for (int i = 0; i < 5; i++)
        list[i].estimate = 0;
    CHECK(kg_outcomes_order(&outcomes) < 0);
    kg_outcomes_markdown(&outcomes, &(struct kg_outcomes_view){0, 1e-6, NULL}, &text);
    CHECK(strstr(kg_text_string(&text), "expected") == NULL);
    kg_text_free(&text);
}

// The chosen line is marked, a reason stands where it is not the first, and small shares keep a
// digit.
static void the_chosen_one(void)
{
    struct kg_outcome list[] = {outcome_of(1.00, 0.01, 0), outcome_of(2.00, 0.01, 0)};
    list[0].choice = "fast";
    list[1].choice = "steady";
    struct kg_outcomes outcomes = {.count = 2, .list = list, .by_kind = {2}};
    static const struct {
        const char *chosen, *marked, *reason;
    } expected[] = {{"fast", "| fast **(chosen)** |", NULL},
                    {"steady", "| steady **(chosen)** |", "is not the first line"},
                    {"other", NULL, "`other`, is none of these"},
                    {NULL, NULL, NULL}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct kg_text text = {0};
        const struct kg_outcomes_view view = {.roofline = 0.004, .chosen = expected[i].chosen};
        kg_outcomes_markdown(&outcomes, &view, &text);
        const char *shown = kg_text_string(&text), *chosen = strstr(shown, "chosen");
        CHECK(!expected[i].marked || strstr(shown, expected[i].marked));
        CHECK(expected[i].reason ? strstr(shown, expected[i].reason) != NULL
                                 : !strstr(shown, "The chosen one"));
        CHECK((chosen != NULL) == (expected[i].chosen != NULL));
        CHECK(strstr(shown, "| 1.0% | 0.4% |") && strstr(shown, "| 0.5% | 0.2% |"));
        kg_text_free(&text);
    }
}

TEST_MAIN(pairs_are_counted, the_chosen_one)
