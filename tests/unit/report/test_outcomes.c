// What tables of outcomes say of the times that were expected.

#include "report/fates.h"
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

// One line for each candidate, the kept one first, with the reason and what differs.
static void fates(void)
{
    static const struct {
        enum kg_outcome_kind kind;
        double seconds;
        bool final, abandoned;
        const char *choice, *reason, *line;
    } rows[] = {
        {KG_OUTCOME_MEASURED, 0.92e-3, false, false, "a: x=1 y=2; b: z=4", NULL,
         "\n    920 us  8.0% faster alone, never in a race        kernel 2: z=4\n"},
        {KG_OUTCOME_MEASURED, 0.98e-3, true, false, "a: x=2 y=2; b: z=3", NULL,
         "\n    980 us  lost the final race, within the noise     kernel 1: x=2\n"},
        {KG_OUTCOME_MEASURED, 1e-3, true, false, "a: x=1 y=2; b: z=3", NULL,
         "   1.00 ms  kept: none is faster beyond the noise\n"},
        {KG_OUTCOME_MEASURED, 1.05e-3, true, false, "a: x=1 y=3; b: z=44", NULL,
         "\n   1.05 ms  lost the final race, 5.0% slower          kernel 1: y=3; kernel 2: z=44\n"},
        {KG_OUTCOME_MEASURED, 1.5e-3, false, false, "c: x=1", NULL,
         "\n   1.50 ms  50% slower                                c: x=1\n"},
        {KG_OUTCOME_MEASURED, 3.5e-3, false, false, "a: x=1 y=2; c: z=3", NULL,
         "\n   3.50 ms  3.5 times as slow                         a: x=1 y=2; c: z=3\n"},
        {KG_OUTCOME_MEASURED, 2.5e-3, false, true, "a: x=11 y=2; b: z=3", NULL,
         "\n   2.50 ms  given up: its first runs were twice as slow  kernel 1: x=11\n"},
        {KG_OUTCOME_PRUNED, 0, false, false, "a: x=5 y=2; b: z=3", "the bound is 2 ms",
         "\n            pruned: the bound is 2 ms                 kernel 1: x=5\n"},
        {KG_OUTCOME_COMPILE, 0, false, false, "a: x=1 y=2", "cc says\nmuch", "compile: cc says   "},
    };
    enum { COUNT = sizeof rows / sizeof rows[0] };
    struct kg_outcome list[COUNT];
    for (int i = 0; i < COUNT; i++) {
        list[i] = outcome_of(rows[i].seconds, 0.01, 0);
        list[i].kind = rows[i].kind;
        list[i].choice = rows[i].choice;
        list[i].reason = rows[i].reason;
        list[i].final = rows[i].final;
        list[i].timing.abandoned = rows[i].abandoned;
    }
    struct kg_outcomes outcomes = {.count = COUNT, .list = list, .by_kind = {7, 1, 0, 1}};
    struct kg_text text = {0};
    kg_outcomes_fates(&outcomes, "a: x=1 y=2; b: z=3", &text);
    int lines = 0;
    for (const char *at = kg_text_string(&text); (at = strchr(at, '\n')); at++)
        lines++;
    CHECK(lines == COUNT);
    CHECK(strncmp(kg_text_string(&text), rows[2].line, strlen(rows[2].line)) == 0);
    for (int i = 0; i < COUNT; i++) {
        bool said = strstr(kg_text_string(&text), rows[i].line) != NULL;
        CHECK(said);
        if (!said)
            fprintf(stderr, "'%s' is not in\n%s", rows[i].line, kg_text_string(&text));
    }
    kg_text_cut(&text, 0);
    kg_outcomes_json(&outcomes, "c: x=1", &text);
    CHECK(strstr(kg_text_string(&text), "\"kept: none is faster beyond the noise\""));
    CHECK(strstr(kg_text_string(&text), "\"39% faster alone, never in a race\""));
    kg_text_free(&text);
}

TEST_MAIN(pairs_are_counted, the_chosen_one, fates)
