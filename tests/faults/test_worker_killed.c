// Somebody kills the process in which a candidate is judged or timed, as the kernel does when
// memory runs out: that is the candidate's outcome, the next one has a new process, and the search
// ends as it would have.

#include "support/made_up_search.h"

#include <math.h>

static enum ill some_are_killed(const int64_t *value)
{
    if (value[2] != 1)
        return FINE;
    return value[0] == 1 ? KILLED_JUDGED : value[0] == 2 ? KILLED_TIMED : FINE;
}

static enum ill the_race_is_killed(const int64_t *value)
{
    (void)value;
    return KILLED_RACING;
}

static void search(enum ill (*ill)(const int64_t *value), int killed)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.ill = ill;
    world.race_after = 87;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.complete && fabs(found.seconds - 1e-3) < 1e-5);
    CHECK(found.failed == killed && found.measured == 87 - killed);
    CHECK(seen.of_kind[KG_OUTCOME_FAULT] == killed);
    for (int i = 0; i < seen.count; i++)
        if (seen.outcomes[i].kind == KG_OUTCOME_FAULT)
            CHECK(strstr(seen.reasons[i], "SIGKILL") != NULL);
}

// Of the 90 configs 12 have c = 1 and a = 1 or 2.
static void in_a_worker(void)
{
    isolation = KG_ISOLATION_WORKER;
    search(some_are_killed, 12);
    CHECK(*fillings == 12 || *fillings == 13); // each new worker fills; the last may be killed
    search(the_race_is_killed, 0);
    CHECK(*fillings == 1);
}

static void in_forks(void)
{
    isolation = KG_ISOLATION_AUTO;
    search(some_are_killed, 12);
    search(the_race_is_killed, 0);
}

static void finish(void)
{
    unmake(&sample);
}

TEST_MAIN(make_sample, in_a_worker, in_forks, finish)
