// What other problems have taught: the first choice, and the order in which configs are tried.

#include "support/made_up_space.h"

static double known[10];     // of the values of the third parameter, by step
static bool is_known_beyond; // what families expect, and not of the whole time

static double prior_of(void *user, const char *name, const char *parameter, int64_t value,
                       bool beyond)
{
    (void)user;
    (void)name;
    if (beyond != is_known_beyond)
        return 0;
    for (int step = 0; parameter && strcmp(parameter, last_name) == 0 && step < 10; step++)
        if (step * step == value)
            return known[step];
    return 0;
}

// Walks through the space as a search does and writes down the order.
static void walk(struct kg_candidates *candidates, int *order, int count)
{
    int best = kg_candidates_find(candidates, &fake, &guess);
    try_one(candidates, best, 1);
    for (int i = 0; i < count; i++) {
        CHECK(kg_candidates_pick(candidates, best, 1, &order[i]) == 1);
        try_one(candidates, order[i], 1 + 0.01 * ((order[i] * 37) % 11));
    }
}

// Where a family expects times only what is known beyond these counts.
static void expected_times_are_corrected(void)
{
    memset(known, 0, sizeof known);
    known[5] = -0.04;
    last_name = "c";
    for (int beyond = 0; beyond < 2; beyond++) {
        is_known_beyond = beyond;
        struct kg_candidates candidates = list_of_family(0, 0, 16, 5000);
        CHECK(kg_candidates_are_known(&listing, prior_of, NULL));
        CHECK(kg_candidates_advise(&candidates, prior_of, NULL) == beyond);
        int at = kg_candidates_find(&candidates, &listing, &guess);
        const struct kg_candidate *first = &candidates.items[kg_candidates_first(&candidates, at)];
        CHECK(first->config.value[0] == 0 && first->config.value[2] == (beyond ? 25 : 16));
        kg_candidates_free(&candidates);
    }
    is_known_beyond = false;
    last_name = "p";
}

static double prior_of_fours(void *user, const char *name, const char *parameter, int64_t value,
                             bool beyond)
{
    (void)user, (void)name, (void)beyond;
    return parameter && value == 4 ? -0.1 : 0;
}

// Though each of the three would be better alone.
static void two_values_change_at_once(void)
{
    struct kg_candidates candidates = list(16, 25, 36, 5000);
    CHECK(kg_candidates_advise(&candidates, prior_of_fours, NULL));
    int at = kg_candidates_find(&candidates, &fake, &guess), fours = 0;
    const struct kg_candidate *first = &candidates.items[kg_candidates_first(&candidates, at)];
    for (int i = 0; i < 3; i++)
        fours += first->config.value[i] == 4;
    CHECK(fours == 2 && first->distance > 0);
    kg_candidates_free(&candidates);
}

static void without_knowledge_the_order_stays(void)
{
    int before[60], after[60];
    memset(known, 0, sizeof known);
    last_name = "c";
    struct kg_candidates candidates = list(16, 25, 36, 5000);
    walk(&candidates, before, 60);
    kg_candidates_free(&candidates);
    candidates = list(16, 25, 36, 5000);
    CHECK(!kg_candidates_advise(&candidates, prior_of, NULL));
    CHECK(!kg_candidates_are_known(&fake, prior_of, NULL));
    int at = kg_candidates_find(&candidates, &fake, &guess);
    CHECK(kg_candidates_first(&candidates, at) == at);
    walk(&candidates, after, 60);
    CHECK(memcmp(before, after, sizeof before) == 0);
    kg_candidates_free(&candidates);
    last_name = "p";
}

static void what_won_elsewhere_comes_first(void)
{
    int picked;
    memset(known, 0, sizeof known);
    known[2] = -0.4;
    known[6] = 0.3;
    last_name = "c";
    struct kg_candidates candidates = list(16, 25, 36, 5000);
    CHECK(kg_candidates_are_known(&fake, prior_of, NULL));
    CHECK(kg_candidates_advise(&candidates, prior_of, NULL));
    // Before anything is measured: that value, and all else as the rule has it.
    int at = kg_candidates_find(&candidates, &fake, &guess);
    const struct kg_candidate *first = &candidates.items[kg_candidates_first(&candidates, at)];
    CHECK(first->config.value[0] == 16 && first->config.value[1] == 25 &&
          first->config.value[2] == 4);
    // And it is tried first, four steps away.
    try_one(&candidates, at, 1);
    CHECK(kg_candidates_pick(&candidates, at, 1, &picked) == 1);
    CHECK(candidates.items[picked].step[2] == 2);
    // Here it is slower: measurements outweigh what is known from elsewhere.
    try_one(&candidates, picked, 2);
    CHECK(kg_candidates_pick(&candidates, at, 1, &picked) == 1);
    CHECK(candidates.items[picked].step[2] != 2);
    kg_candidates_free(&candidates);
    last_name = "p";
}

// Leaving a value that won elsewhere costs what it was worth; other parameters are tried first.
static void what_won_elsewhere_is_kept(void)
{
    int picked[6];
    memset(known, 0, sizeof known);
    known[6] = -0.4; // the guess's
    last_name = "c";
    struct kg_candidates candidates = list(16, 25, 36, 5000);
    kg_candidates_advise(&candidates, prior_of, NULL);
    int at = kg_candidates_find(&candidates, &fake, &guess);
    try_one(&candidates, at, 1);
    CHECK(kg_candidates_pick(&candidates, at, 6, picked) == 6);
    for (int i = 0; i < 6; i++)
        CHECK(candidates.items[picked[i]].step[2] == 6);
    kg_candidates_free(&candidates);
    last_name = "p";
}

TEST_MAIN(what_won_elsewhere_is_kept, expected_times_are_corrected, two_values_change_at_once,
          without_knowledge_the_order_stays, what_won_elsewhere_comes_first)
