// The search, in a made-up world: what it tries, in which order, and what it makes of failures.

#include "support/made_up_search.h"

static void estimate_measures_nothing(void)
{
    struct kg_search search = new_search(KG_RIGOR_ESTIMATE);
    struct kg_found found;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.choice.configs[0].value[0] == 4 && found.seconds == 0 && seen.count == 0);
    search.rigor = KG_RIGOR_WISDOM;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_ARGUMENT, &error);
}

static void exhaustive_measures_everything(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.space == 90 && found.valid == 87 && found.measured == 87);
    CHECK(found.failed == 0 && found.pruned == 0 && found.complete && !found.ended[0]);
    CHECK(is_near(seconds_found(&found), 1e-3) && is_near(found.seconds, 1e-3));
    CHECK(seen.of_kind[KG_OUTCOME_MEASURED] == 87 && seen.of_kind[KG_OUTCOME_INVALID] == 0);
    CHECK(seen.finals > 1 && seen.outcomes[seen.count - 1].final);
    CHECK(seen.outcomes[seen.count - 1].verdict.passed);
    CHECK_TEXT(seen.texts[seen.count - 1], "a=8 b=4 c=2");
    CHECK(progressed >= 87);
}

// A fifth of the space is enough to come within three percent of the best. Where the guess is as
// wrong as can be, it takes more patience.
static void measure_comes_close(void)
{
    static const int64_t bests[][3] = {{8, 4, 2}, {1, 4, 0}, {16, 1, 1}, {4, 3, 1}, {2, 6, 2}};
    for (size_t i = 0; i < sizeof bests / sizeof bests[0]; i++) {
        struct kg_search search = new_search(KG_RIGOR_MEASURE);
        struct kg_found found;
        memcpy(world.best, bests[i], sizeof world.best);
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        CHECK(seconds_found(&found) <= 1e-3 / 0.97);
        CHECK(found.measured <= 87 / 5 && found.complete);
        CHECK(seen.finals >= 1);
    }
    struct kg_search search = new_search(KG_RIGOR_PATIENT);
    struct kg_found found;
    memcpy(world.best, (int64_t[]){1, 8, 0}, sizeof world.best);
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3) && found.measured <= 87 / 2);
}

// What the family expects is followed, and what it does not know is learnt.
static void expected_times_lead(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.expected = true;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured <= 16 && found.complete);
    CHECK(found.seconds < 1.001 * seconds_of(world.best));
    for (int i = 0; i < seen.count; i++) // what patterns learn from
        CHECK(seen.outcomes[i].kind != KG_OUTCOME_MEASURED || seen.outcomes[i].estimate > 0);
    CHECK(seen.finals > 0);
    world.expected = false;
}

static void bounds_prune(void)
{
    struct kg_search search = new_search(KG_RIGOR_PATIENT);
    struct kg_found found;
    world.bound_share = 0.95;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3));
    CHECK(found.pruned > 40 && seen.of_kind[KG_OUTCOME_PRUNED] == found.pruned);
    CHECK(found.measured < 40);
    // Bounds above the truth would drop the best; the first measurement shows them up.
    search = new_search(KG_RIGOR_PATIENT);
    world.bound_share = 3;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3));
}

static enum ill many_ills(const int64_t *value)
{
    if (value[2] != 1)
        return FINE;
    switch (value[1]) {
    case 1:
        return value[0] == 1 ? HANGS : FINE;
    case 2:
        return CRASHES;
    case 4:
        return IS_WRONG;
    case 6:
        return NO_COMPILE;
    case 8:
        return value[0] == 2 ? WRITES_INPUT : value[0] == 4 ? UNSTEADY : FINE;
    default:
        return FINE;
    }
}

static const char *reason_of(const char *choice)
{
    for (int i = 0; i < seen.count; i++)
        if (strcmp(seen.texts[i], choice) == 0)
            return seen.reasons[i];
    return "not recorded";
}

static void broken_candidates_are_outcomes(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.ill = many_ills;
    search.run_limit = 3; // one hangs as long; the others are far from it on any machine
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3) && found.complete);
    CHECK(seen.of_kind[KG_OUTCOME_TIMEOUT] == 1);
    CHECK(seen.of_kind[KG_OUTCOME_FAULT] == 5);
    CHECK(seen.of_kind[KG_OUTCOME_WRONG] == 5 + 2);
    CHECK(seen.of_kind[KG_OUTCOME_COMPILE] == 5);
    CHECK(found.failed == 18 && found.measured == 87 - 18);
    CHECK(strstr(reason_of("a=1 b=1 c=1"), "3 s"));
    CHECK(strstr(reason_of("a=1 b=2 c=1"), "SIGSEGV"));
    CHECK_TEXT(reason_of("a=1 b=4 c=1"), "y[3] is 4, not 5");
    CHECK_TEXT(reason_of("a=1 b=6 c=1"), "no way to compile");
    CHECK_TEXT(reason_of("a=2 b=8 c=1"), "the input x was changed");
    CHECK(strstr(reason_of("a=4 b=8 c=1"), "other outputs"));
}

static enum ill some_break_the_device(const int64_t *value)
{
    return value[0] == 1 && value[1] < 3 ? BREAKS_DEVICE : FINE;
}

// What is broken stays broken for the process, and only for it.
static void a_broken_device_is_one_candidates_fault(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.ill = some_break_the_device;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seen.of_kind[KG_OUTCOME_FAULT] == 6 && found.failed == 6 && found.measured == 81);
    CHECK_TEXT(reason_of("a=1 b=2 c=0"), "the device is broken");
    CHECK(is_near(seconds_found(&found), 1e-3));
}

static void nothing_right_is_an_error(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.all_wrong = true;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_WRONG, &error);
    CHECK(strstr(error.text, "a=4 b=3 c=1: y[3] is 4, not 5"));
    CHECK(found.measured == 0 && found.failed > 4 && seen.finals == 0);
}

static enum ill no_compiler(const int64_t *value)
{
    (void)value;
    return NO_COMPILER;
}

static void a_missing_compiler_ends_it(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.ill = no_compiler;
    builds = 0;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_MISSING, &error);
    CHECK_TEXT(error.text, "no way to compile");
    CHECK(builds <= 4);
}

static enum ill until_the_disk_is_full(const int64_t *value)
{
    (void)value;
    return builds < 20 ? FINE : NO_COMPILER;
}

static void a_compiler_that_is_lost_ends_it_with_what_is_known(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.ill = until_the_disk_is_full;
    builds = 0;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured > 0 && found.measured <= 20 && found.failed == 0 && !found.complete);
    CHECK(found.seconds > 0 && is_near(found.seconds, seconds_found(&found)));
    CHECK_TEXT(found.ended, "no way to compile");
    CHECK(seen.of_kind[KG_OUTCOME_COMPILE] == 0);
}

static void an_interrupted_search_goes_on(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    cancel_after = 30;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_CANCELLED, &error);
    CHECK(found.measured == 30 && !found.complete && found.seconds > 0);
    earlier = seen;
    search = new_search(KG_RIGOR_EXHAUSTIVE);
    search.known = recall_earlier;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured == 87 && seen.of_kind[KG_OUTCOME_MEASURED] == 57);
    CHECK(is_near(seconds_found(&found), 1e-3));
    // With everything known only the finalists run again.
    int count = earlier.count;
    for (int i = 0; i < seen.count; i++) {
        memcpy(earlier.texts[count + i], seen.texts[i], sizeof seen.texts[i]);
        memcpy(earlier.reasons[count + i], seen.reasons[i], sizeof seen.reasons[i]);
        earlier.outcomes[count + i] = seen.outcomes[i];
    }
    earlier.count += seen.count;
    search = new_search(KG_RIGOR_EXHAUSTIVE);
    search.known = recall_earlier;
    builds = 0;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seen.count == seen.finals && seen.finals >= 1 && builds <= 8);
    CHECK(is_near(seconds_found(&found), 1e-3));
}

static enum ill all_hang(const int64_t *value)
{
    (void)value;
    return HANGS;
}

static void time_limits_hold(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.seconds = 1e-6; // the guess is judged all the same: nothing unproved is chosen
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.seconds > 0 && !found.complete && seen.count >= 1);
    world.ill = all_hang;
    search.run_limit = 0.4;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_TIMEOUT, &error);
    CHECK(found.seconds == 0 && strstr(error.text, "1 failed"));
}

// Two kernels have half of the time that is left, each: what does not fit says nothing of them.
static void short_time_is_no_failure(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.groups = 2;
    world.compile_seconds = 20;
    search.seconds = 30;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.seconds > 0 && !found.complete && found.failed == 0 && found.measured == 1);
    CHECK(seen.of_kind[KG_OUTCOME_COMPILE] == 0);
    world.groups = 1;
    world.compile_seconds = 0;
    // A kernel that takes longer than any may is refused.
    search = new_search(KG_RIGOR_MEASURE);
    world.compile_seconds = 20;
    search.run_limit = 10;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_WRONG, &error);
    CHECK(seen.of_kind[KG_OUTCOME_COMPILE] > 0);
    world.compile_seconds = 0;
}

// All of it again, with one process for all candidates. It is replaced when one has broken it: here
// by hanging once and crashing five times; and where a candidate has changed an input, that is put
// right.
static void the_same_in_a_worker(void)
{
    isolation = KG_ISOLATION_WORKER;
    exhaustive_measures_everything();
    CHECK(*fillings == 1);
    measure_comes_close();
    broken_candidates_are_outcomes();
    CHECK(*fillings == 1 + 1 + 5 + 1);
    a_broken_device_is_one_candidates_fault();
    CHECK(*fillings == 6 || *fillings == 7); // the last candidate may be a broken one
    nothing_right_is_an_error();
    an_interrupted_search_goes_on();
    time_limits_hold();
    isolation = KG_ISOLATION_AUTO;
}

static enum ill some_are_wrong(const int64_t *value)
{
    return value[1] == 2 ? IS_WRONG : value[1] == 4 ? NO_COMPILE : FINE;
}

static void the_same_in_this_process(void)
{
    isolation = KG_ISOLATION_NONE;
    exhaustive_measures_everything();
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.ill = some_are_wrong;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.failed == 30 && found.measured == 57 && *fillings == 1);
    isolation = KG_ISOLATION_AUTO;
}

// A worker that cannot even be made ready is no candidate's fault.
static void a_missing_device_ends_it(void)
{
    isolation = KG_ISOLATION_WORKER;
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    device_missing = true;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "no such device"));
    CHECK(seen.count == 0);
    device_missing = false;
    isolation = KG_ISOLATION_AUTO;
}

static void twins_are_measured_once(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.twins = true;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured == 29 && found.pruned == 58);
    CHECK(strstr(reason_of("a=1 b=1 c=2"), "the same source as a=1 b=1 c="));
}

static void groups_are_searched_one_by_one(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.groups = 2;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.space == 180 && found.valid == 174 && found.measured <= 2 * 87 / 5);
    for (int group = 0; group < 2; group++)
        CHECK(seconds_of(found.choice.configs[group].value) <= 1e-3 / 0.95);
}

// Another grouping that is expected to take at most twice as long is measured too: here one kernel
// takes half the time of two, whatever was expected.
static void other_groupings_race(void)
{
    static const struct {
        double expected;
        int groups; // of what is found
    } cases[] = {{0.8e-3, 1}, {1.9e-3, 1}, {2.1e-3, 2}, {0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_search search = new_search(KG_RIGOR_MEASURE);
        struct kg_found found;
        world.groups = 2;
        world.rival_groups = 1;
        world.rival_expected = cases[i].expected;
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        CHECK(found.choice.count == cases[i].groups && found.complete);
        CHECK_TEXT(seen.texts[0], "a=4 b=3 c=1; a=4 b=3 c=1"); // the guess comes first
        bool is_tried = strcmp(seen.texts[1], "a=4 b=3 c=1") == 0;
        CHECK(is_tried == (cases[i].groups == 1));
        // What is searched then is the grouping that won.
        CHECK(found.space == 90 * cases[i].groups);
    }
    // One that loses changes nothing.
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.rival_groups = 2;
    world.rival_expected = 0.5e-3;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.choice.count == 1 && seconds_found(&found) <= 1e-3 / 0.97);
}

// Of another grouping whose first config takes about as long the configs are searched, too.
static void near_groupings_are_searched(void)
{
    static const struct {
        double share; // of two groups
        bool is_near;
    } cases[] = {{0.45, true}, {0.52, true}, {0.56, true}, {0.6, false}, {0.4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_search search = new_search(KG_RIGOR_MEASURE);
        struct kg_found found;
        world.rival_groups = 2;
        world.rival_expected = 1e-3;
        world.split_share = cases[i].share;
        bool one_wins = cases[i].share > 0.5;
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        CHECK(found.choice.count == (one_wins ? 1 : 2) && found.complete);
        CHECK(found.space == 90 * (cases[i].is_near ? 3 : one_wins ? 1 : 2));
        CHECK(seconds_found(&found) <= 1e-3 / 0.95);
    }
}

// What earlier searches measured without a limit, and that it takes one register.
static bool recall_unlimited(void *user, const char *choice, struct kg_outcome *outcome)
{
    (void)user;
    int a, b, c;
    if (sscanf(choice, "a=%d b=%d c=%d", &a, &b, &c) != 3 || c != 0)
        return false;
    *outcome = (struct kg_outcome){.kind = KG_OUTCOME_MEASURED, .choice = choice};
    outcome->timing.median = outcome->timing.least = seconds_of((int64_t[]){a, b, c});
    outcome->forecast.registers = 1;
    return true;
}

static void limits_that_change_nothing_are_not_compiled(void)
{
    struct kg_search search = new_search(KG_RIGOR_PATIENT);
    struct kg_found found;
    world.limits = true;
    search.known = recall_unlimited;
    builds = 0;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    int useless = 0, limited = 0;
    for (int i = 0; i < seen.count; i++) {
        useless += strcmp(seen.reasons[i], "no limit: 1 registers are all it uses") == 0;
        limited += seen.outcomes[i].kind == KG_OUTCOME_MEASURED && !seen.outcomes[i].final &&
                   !strstr(seen.texts[i], "c=0");
    }
    CHECK(useless > 20 && limited == 1); // the guess has one
    CHECK(builds <= 1 + 12);             // beside finalists
    // The judge of the others takes nothing for granted.
    search = new_search(KG_RIGOR_EXHAUSTIVE);
    search.known = recall_unlimited;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured == 87);
    world.limits = false;
}

TEST_MAIN(make_sample, estimate_measures_nothing, exhaustive_measures_everything,
          measure_comes_close, expected_times_lead, bounds_prune, broken_candidates_are_outcomes,
          a_broken_device_is_one_candidates_fault, nothing_right_is_an_error,
          a_missing_compiler_ends_it, a_compiler_that_is_lost_ends_it_with_what_is_known,
          an_interrupted_search_goes_on, time_limits_hold, short_time_is_no_failure,
          the_same_in_a_worker, the_same_in_this_process, a_missing_device_ends_it,
          twins_are_measured_once, groups_are_searched_one_by_one, other_groupings_race,
          near_groupings_are_searched, limits_that_change_nothing_are_not_compiled)
