// Who is admitted to the last race of a search.

#include "test.h"
#include "tune/finals.h"

enum { TRIALS = 7 };

static int twin; // this trial runs the same code as the best one; 0: none does

static int choose(const double *seconds, int most, double margin, int *finalists)
{
    struct kg_trial items[TRIALS] = {{.text = NULL}};
    struct kg_trials trials = {.count = TRIALS, .items = items};
    for (int i = 0; i < TRIALS; i++) {
        items[i].twin = i > 0 && i == twin ? 1 : -1;
        items[i].kind = seconds[i] > 0 ? KG_OUTCOME_MEASURED : KG_OUTCOME_WRONG;
        items[i].timing = (struct kg_timing){.samples = 9, .median = seconds[i]};
        if (seconds[i] > 0 &&
            (items[trials.best].kind != KG_OUTCOME_MEASURED || seconds[i] < seconds[trials.best]))
            trials.best = i;
    }
    return kg_finals_choose(&trials, most, margin, finalists);
}

static void near_ones_are_admitted(void)
{
    static const double seconds[TRIALS] = {1.1, 1.0, 1.3, 0, 1.12, 1.05, 1.2};
    int finalists[KG_MAX_FINALISTS];
    CHECK(choose(seconds, 8, 0.15, finalists) == 4);
    CHECK(finalists[0] == 0 && finalists[1] == 1 && finalists[2] == 4 && finalists[3] == 5);
    CHECK(choose(seconds, 8, 0.001, finalists) == 2); // and the guess
    CHECK(finalists[0] == 0 && finalists[1] == 1);
}

static void the_guess_keeps_its_place(void)
{
    static const double slow[TRIALS] = {1.9, 1.1, 1.05, 1.04, 1.0, 1.02, 1.03};
    static const double hopeless[TRIALS] = {2.1, 1.1, 1.05, 1.04, 1.0, 1.02, 1.03};
    static const double wrong[TRIALS] = {0, 1.1, 1.05, 1.04, 1.0, 1.02, 1.03};
    int finalists[KG_MAX_FINALISTS];
    CHECK(choose(slow, 3, 0.15, finalists) == 3);
    CHECK(finalists[0] == 0 && finalists[1] == 4 && finalists[2] == 5);
    CHECK(choose(hopeless, 3, 0.15, finalists) == 3);
    CHECK(finalists[0] == 4 && finalists[1] == 5 && finalists[2] == 6);
    CHECK(choose(wrong, 3, 0.15, finalists) == 3);
    CHECK(finalists[0] == 4 && finalists[1] == 5 && finalists[2] == 6);
}

// One alone has a rival in the race, in the order in which they were tried.
static void the_best_is_not_alone(void)
{
    static const double late[TRIALS] = {5, 1.0, 0, 3, 2, 2.5, 4}, early[TRIALS] = {2.5, 0, 3, 1, 4};
    static const double alone[TRIALS] = {0, 0, 1.0, 0, 0, 0, 0};
    int finalists[KG_MAX_FINALISTS];
    CHECK(choose(late, 8, 0.15, finalists) == 2);
    CHECK(finalists[0] == 1 && finalists[1] == 4);
    CHECK(choose(early, 8, 0.15, finalists) == 2);
    CHECK(finalists[0] == 0 && finalists[1] == 3);
    CHECK(choose(alone, 8, 0.15, finalists) == 1 && finalists[0] == 2);
    twin = 4;
    CHECK(choose(late, 8, 0.15, finalists) == 2);
    CHECK(finalists[0] == 1 && finalists[1] == 5);
    twin = 0;
}

TEST_MAIN(near_ones_are_admitted, the_guess_keeps_its_place, the_best_is_not_alone)
