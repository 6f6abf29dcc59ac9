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
    kg_outcomes_markdown(&outcomes, 0, &text);
    CHECK(strstr(kg_text_string(&text), "expected / time") != NULL);
    kg_text_cut(&text, 0);
    for (int i = 0; i < 5; i++)
        list[i].estimate = 0;
    CHECK(kg_outcomes_order(&outcomes) < 0);
    kg_outcomes_markdown(&outcomes, 0, &text);
    CHECK(strstr(kg_text_string(&text), "expected") == NULL);
    kg_text_free(&text);
}

TEST_MAIN(pairs_are_counted)
