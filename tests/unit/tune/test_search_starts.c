// What a search tries first: hints, configs that were good for other problems, and what is known of
// values from elsewhere.

#include "support/made_up_search.h"

static void hints_come_first(void)
{
    static const char *const hints[] = {"nonsense", "a=8 b=4 c=2"};
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.hints = hints;
    search.hint_count = 2;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seen.count > 2);
    CHECK_TEXT(seen.texts[0], "a=4 b=3 c=1");
    CHECK_TEXT(seen.texts[1], "a=8 b=4 c=2");
    CHECK(is_near(seconds_found(&found), 1e-3));
}

// What is best elsewhere may be slow here: it is measured, and loses.
static void a_slow_hint_loses(void)
{
    static const char *const hints[] = {"a=1 b=1 c=0"};
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.hints = hints;
    search.hint_count = 1;
    world.best[0] = 4, world.best[1] = 3, world.best[2] = 1; // the guess is right
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK_TEXT(seen.texts[1], "a=1 b=1 c=0");
    CHECK(seen.outcomes[1].kind == KG_OUTCOME_MEASURED);
    CHECK(found.choice.configs[0].value[0] == 4 && found.choice.configs[0].value[1] == 3);
}

static void offer(void *user, const char *name, int max,
                  bool (*fits)(void *fitting, const char *config), void *fitting)
{
    const char *const *of = user; // a family, and two configs of it
    for (int i = 1; strcmp(name, of[0]) == 0 && i < 3 && of[i] && max > 0; i++)
        max -= fits(fitting, of[i]);
}

// Two configs that were good for other problems come first, each once, and then the guess; without
// those that are another family's or do not fit.
static void favourites_come_first(void)
{
    static const char guess[] = "a=4 b=3 c=1";
    static const struct {
        const char *of[3], *tried[3];
    } cases[] = {
        {{"fake", "a=8 b=4 c=2", "a=1 b=1 c=0"}, {"a=8 b=4 c=2", "a=1 b=1 c=0", guess}},
        {{"fake", guess, "a=8 b=4 c=2"}, {guess, "a=8 b=4 c=2"}},
        {{"fake", "a=8 b=nonsense", "a=8 b=4 c=2"}, {"a=8 b=4 c=2", guess}},
        {{"fake", "a=8 b=nonsense", NULL}, {guess}},
        {{"others", "a=8 b=4 c=2", NULL}, {guess}},
        {{"fake", NULL, NULL}, {guess}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *of[] = {cases[i].of[0], cases[i].of[1], cases[i].of[2]};
        struct kg_search search = new_search(KG_RIGOR_MEASURE);
        struct kg_found found;
        search.user = of;
        search.favourites = offer;
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        for (int k = 0; k < 3 && cases[i].tried[k]; k++)
            CHECK_TEXT(seen.texts[k], cases[i].tried[k]);
        CHECK(i < 3 || strcmp(seen.texts[1], "a=8 b=4 c=2") != 0);
    }
}

// A favourite that is expected to take much longer than the guess is not tried, and the next one
// takes its place.
static void slow_favourites_are_left_out(void)
{
    static const char guess[] = "a=4 b=3 c=1", slow[] = "a=1 b=1 c=0", good[] = "a=8 b=4 c=2";
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        const char *of[] = {"fake", slow, good};
        struct kg_search search = new_search(KG_RIGOR_MEASURE);
        struct kg_found found;
        search.user = of;
        search.favourites = offer;
        world.expected = true;
        if (!is_slow) // the very best
            world.best[0] = 1, world.best[1] = 1, world.best[2] = 0;
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        CHECK_TEXT(seen.texts[0], is_slow ? good : slow);
        CHECK_TEXT(seen.texts[1], is_slow ? guess : good);
    }
    world.expected = false;
}

// The caller's best often is the very guess the search begins with, and hints may repeat.
static void a_hint_may_be_the_guess(void)
{
    static const char *const hints[] = {"a=4 b=3 c=1", "a=8 b=4 c=2", "a=8 b=4 c=2"};
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.hints = hints;
    search.hint_count = 3;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    for (int i = 0; i < seen.count; i++)
        CHECK(strstr(seen.reasons[i], "the same source as") == NULL);
}

// What is known of values from elsewhere: these are twice as fast as others; NULL: nothing is
// known.
static const int64_t *taught;

static double prior_of(void *user, const char *name, const char *parameter, int64_t value,
                       bool beyond)
{
    (void)beyond;
    (void)user;
    (void)name;
    return parameter && taught && value == taught[*parameter - 'a'] ? -0.7 : 0;
}

static void what_is_known_comes_first(void)
{
    static const int64_t best[] = {16, 1, 1}, worst[] = {1, 8, 2};
    struct kg_found found;
    static char alone[400][64];
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    memcpy(world.best, best, sizeof world.best);
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    int count = seen.count;
    memcpy(alone, seen.texts, sizeof alone);
    // Nothing is known: the same candidates in the same order.
    search = new_search(KG_RIGOR_MEASURE);
    memcpy(world.best, best, sizeof world.best);
    search.prior = prior_of;
    taught = NULL;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seen.count == count && memcmp(alone, seen.texts, sizeof alone) == 0);
    // The best is known: it is first, and the rule's guess second.
    search = new_search(KG_RIGOR_MEASURE);
    memcpy(world.best, best, sizeof world.best);
    search.prior = prior_of;
    taught = best;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK_TEXT(seen.texts[0], "a=16 b=1 c=1");
    CHECK_TEXT(seen.texts[1], "a=4 b=3 c=1");
    CHECK(is_near(seconds_found(&found), 1e-3));
    // What is known is wrong: the search comes as close as without it.
    search = new_search(KG_RIGOR_MEASURE);
    memcpy(world.best, best, sizeof world.best);
    search.prior = prior_of;
    taught = worst;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seconds_found(&found) <= 1e-3 / 0.97 && found.measured <= 87 / 5);
}

static void estimates_are_corrected(void)
{
    static const int64_t best[] = {16, 1, 1};
    struct kg_found found;
    struct kg_search search = new_search(KG_RIGOR_ESTIMATE);
    search.prior = prior_of;
    taught = NULL;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.choice.configs[0].value[0] == 4 && found.choice.configs[0].value[1] == 3);
    taught = best;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(memcmp(found.choice.configs[0].value, best, sizeof best) == 0 && seen.count == 0);
    // An expected time is corrected by the factor, not replaced: that of a and b is right here.
    memcpy(world.best, (int64_t[]){4, 4, 0}, sizeof world.best);
    world.expected = true;
    taught = (int64_t[]){-1, -1, 0};
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(memcmp(found.choice.configs[0].value, world.best, sizeof world.best) == 0);
    world.expected = false;
    taught = NULL;
}

TEST_MAIN(make_sample, hints_come_first, a_slow_hint_loses, favourites_come_first,
          slow_favourites_are_left_out, a_hint_may_be_the_guess, what_is_known_comes_first,
          estimates_are_corrected)
