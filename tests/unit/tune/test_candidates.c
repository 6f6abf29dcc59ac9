// Listing the configs of a space, and the order in which they are tried.

#include "support/made_up_space.h"

#include <stdlib.h>

static void whole_spaces_are_listed(void)
{
    parameters = 3;
    refusals = 0;
    struct kg_candidates candidates = list(16, 25, 36, 5000);
    CHECK(candidates.complete && candidates.size == 1000 && candidates.count == 900);
    CHECK(refusals == 100);
    int at = kg_candidates_find(&candidates, &fake, &guess);
    CHECK(at >= 0 && candidates.items[at].distance == 0 && candidates.items[at].bound == 25);
    struct kg_config other = {{25, 16, 0}}, absent = {{81, 0, 0}};
    at = kg_candidates_find(&candidates, &fake, &other);
    CHECK(at >= 0 && candidates.items[at].distance == 1 + 1 + 6);
    CHECK(kg_candidates_find(&candidates, &fake, &absent) == -1);
    kg_candidates_free(&candidates);
}

static void vast_spaces_are_sampled(void)
{
    struct kg_candidates candidates;
    guess = (struct kg_config){{16, 25, 36, 1, 4, 9, 16, 25, 36, 49, 64, 81}};
    parameters = 12;
    CHECK_STATUS(
        kg_candidates_list(&fake, &kg_target_host, 2000, count_refusal, NULL, &candidates, &error),
        KG_OK, &error);
    CHECK(!candidates.complete && candidates.size == INT64_C(1000000000000));
    CHECK(candidates.count > 1700 && candidates.count <= 2001);
    CHECK(kg_candidates_find(&candidates, &fake, &guess) >= 0);
    // Every value of every parameter is seen, and nothing twice.
    for (int i = 1; i < parameters; i++) {
        bool seen[10] = {false};
        int values = 0;
        for (int k = 0; k < candidates.count; k++) {
            values += !seen[candidates.items[k].step[i]];
            seen[candidates.items[k].step[i]] = true;
        }
        CHECK(values == 10);
    }
    int twice = 0;
    for (int k = 0; k < candidates.count; k++)
        twice += kg_candidates_find(&candidates, &fake, &candidates.items[k].config) != k;
    CHECK(twice == 0);
    kg_candidates_free(&candidates);
    parameters = 3;
}

static void neighbours_come_first(void)
{
    struct kg_candidates candidates = list(16, 16, 16, 5000);
    int picked[8];
    // Before any measurement: by bound, then by distance from the guess.
    CHECK(kg_candidates_pick(&candidates, -1, 1, picked) == 1);
    CHECK(picked[0] == find(&candidates, 4, 0, 4));

    int best = find(&candidates, 4, 4, 4);
    try_one(&candidates, best, 1.0);
    CHECK(kg_candidates_pick(&candidates, best, 8, picked) == 8);
    const int near[6][3] = {{4, 3, 4}, {3, 4, 4}, {4, 4, 3}, {4, 4, 5}, {5, 4, 4}, {4, 5, 4}};
    int seen = 0;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            seen += picked[k] == find(&candidates, near[i][0], near[i][1], near[i][2]);
    CHECK(seen == 6);
    CHECK(picked[0] == find(&candidates, 4, 3, 4)); // the least bound among equals
    // Each parameter has its turn before one has its second.
    for (int i = 0; i < 3; i++) {
        int changes = 0;
        for (int k = 0; k < 3; k++)
            changes += candidates.items[picked[k]].step[i] != 4;
        CHECK(changes == 1);
    }

    // What is pruned is not offered again.
    candidates.items[picked[0]].state = KG_CANDIDATE_PRUNED;
    int next[8];
    CHECK(kg_candidates_pick(&candidates, best, 1, next) == 1 && next[0] == picked[1]);
    kg_candidates_free(&candidates);
}

// Measurements say that a large first value is good and a large third one bad: what is offered when
// no neighbour is left combines both.
static void the_model_combines(void)
{
    struct kg_candidates candidates = list(0, 0, 0, 5000);
    for (int a = 0; a < 9; a++)
        for (int c = 0; c < 10; c++)
            if (a == 0 || c == 5)
                try_one(&candidates, find(&candidates, a, 0, c), exp(0.3 * c - 0.2 * a));
    int picked[1];
    CHECK(kg_candidates_pick(&candidates, -1, 1, picked) == 1);
    CHECK(picked[0] == find(&candidates, 8, 0, 0));
    // Failures teach nothing about time, but are not tried again.
    try_one(&candidates, picked[0], 0);
    CHECK(kg_candidates_pick(&candidates, -1, 1, picked) == 1);
    CHECK(picked[0] != find(&candidates, 8, 0, 0));
    kg_candidates_free(&candidates);
}

// Two changes that both helped are tried together before a third thing is.
static void best_forecasts_precede_neighbours(void)
{
    struct kg_candidates candidates = list(16, 16, 16, 5000);
    int best = find(&candidates, 5, 4, 4), picked[2];
    try_one(&candidates, find(&candidates, 4, 4, 4), 1.0);
    try_one(&candidates, best, 0.8);
    try_one(&candidates, find(&candidates, 4, 5, 4), 0.85);
    try_one(&candidates, find(&candidates, 4, 4, 5), 1.3);
    CHECK(kg_candidates_pick(&candidates, best, 2, picked) == 2);
    CHECK(picked[0] == find(&candidates, 5, 5, 4));
    // What was seen to be bad waits.
    CHECK(picked[1] != find(&candidates, 5, 4, 5));
    kg_candidates_free(&candidates);
}

// A value of the third parameter has only ever given the kernel of another value: it comes last.
static void idle_values_come_last(void)
{
    struct kg_candidates candidates = list(16, 0, 16, 5000);
    int best = find(&candidates, 4, 0, 4), twin = find(&candidates, 4, 0, 5);
    try_one(&candidates, best, 1.0);
    try_one(&candidates, twin, 1.0);
    candidates.items[twin].twin = best;
    int picked[100], last = 0;
    CHECK(kg_candidates_pick(&candidates, best, 100, picked) == 100);
    for (int i = 0; i < 100; i++)
        last += candidates.items[picked[i]].step[2] == 5;
    CHECK(last == 0);
    // Once it has made a difference it is like any other.
    try_one(&candidates, find(&candidates, 3, 0, 5), 0.9);
    CHECK(kg_candidates_pick(&candidates, find(&candidates, 3, 0, 5), 100, picked) == 100);
    for (int i = 0; i < 100; i++)
        last += candidates.items[picked[i]].step[2] == 5;
    CHECK(last > 0);
    kg_candidates_free(&candidates);
}

// 90 of them are valid; 49 and 64 are expected to take more than three times as long as the best.
static void families_list_their_own(void)
{
    struct kg_config outside = {{16, 25, 36}}, slow = {{49, 49, 0}}, slow_guess = {{64, 49, 36}};
    refusals = 0;
    struct kg_candidates candidates = list_of_family(16, 16, 36, 5000);
    CHECK(candidates.complete && candidates.size == 100 && candidates.count == 70);
    CHECK(refusals == 10 && candidates.expected);
    CHECK(kg_candidates_find(&candidates, &listing, &slow) == -1);
    kg_candidates_free(&candidates);
    candidates = list_of_family(16, 25, 36, 5000);
    CHECK(candidates.complete && candidates.count == 71);
    CHECK(kg_candidates_find(&candidates, &listing, &outside) == 70);
    kg_candidates_free(&candidates);
    candidates = list_of_family(64, 49, 36, 5000); // what a rule says stays
    CHECK(candidates.count == 71 && kg_candidates_find(&candidates, &listing, &slow_guess) == 70);
    kg_candidates_free(&candidates);
    candidates = list_of_family(16, 16, 36, 20);
    CHECK(!candidates.complete && candidates.size == 20 && candidates.count == 21);
    kg_candidates_free(&candidates);
}

// By what is expected first, though not all of one kind; then by what they turned out to be worth.
static void expected_times_are_followed(void)
{
    struct kg_candidates candidates = list_of_family(1, 1, 16, 5000);
    int best = kg_candidates_find(&candidates, &listing, &guess), picked[10], small = 0;
    try_one(&candidates, best, 1e-3 * exp(1 / 40.0));
    CHECK(kg_candidates_pick(&candidates, best, 10, picked) == 10);
    CHECK(candidates.items[picked[0]].config.value[0] == 0);
    for (int i = 0; i < 10; i++)
        small += candidates.items[picked[i]].config.value[0] <= 1;
    CHECK(small < 10 && small > 2);
    for (int i = 0; i < 10; i++) {
        const int64_t *value = candidates.items[picked[i]].config.value;
        try_one(&candidates, picked[i],
                1e-3 * exp((double)value[0] / 40 + (value[2] == 81 ? -0.5 : 0)));
    }
    int last = -1;
    for (int i = 0; i < 10; i++)
        if (candidates.items[picked[i]].config.value[2] == 81)
            last = picked[i];
    CHECK(last >= 0);
    CHECK(kg_candidates_pick(&candidates, last, 1, picked) == 1);
    CHECK(candidates.items[picked[0]].config.value[2] == 81);
    kg_candidates_free(&candidates);
}

static void count_useless(void *user, const struct kg_candidate *candidate)
{
    const int64_t *value = candidate->config.value;
    int *count = user;
    *count += value[0] == 16 && value[1] == 16 && value[2] >= 25;
}

// Of forms that limit registers only those are tried that the limit makes different.
static void limits_wait(void)
{
    int picked[900], count = 0;
    last_name = "maxnreg";
    struct kg_candidates candidates = list(16, 16, 16, 5000);
    CHECK(candidates.reading_count == 1 && candidates.readings[0].limit == 2);
    kg_candidates_hold(&candidates);
    CHECK(kg_candidates_pick(&candidates, -1, 900, picked) == 90);
    for (int i = 0; i < 90; i++)
        CHECK(candidates.items[picked[i]].config.value[2] == 0);
    int tried = find(&candidates, 4, 4, 0);
    try_one(&candidates, tried, 1.0);
    kg_candidates_release(&candidates, find(&candidates, 4, 4, 1), 20, count_useless, &count);
    CHECK(count == 0); // limited itself
    kg_candidates_release(&candidates, tried, 20, count_useless, &count);
    CHECK(count == 5); // 25 36 49 64 81
    CHECK(candidates.items[find(&candidates, 4, 4, 4)].state == KG_CANDIDATE_OPEN);
    CHECK(candidates.items[find(&candidates, 4, 4, 5)].state == KG_CANDIDATE_PRUNED);
    CHECK(candidates.items[find(&candidates, 4, 5, 5)].state == KG_CANDIDATE_WAITING);
    CHECK(kg_candidates_pick(&candidates, tried, 900, picked) == 89 + 4);
    tried = find(&candidates, 4, 5, 0); // of whose registers nothing is known
    try_one(&candidates, tried, 1.0);
    kg_candidates_release(&candidates, tried, 0, count_useless, &count);
    CHECK(count == 5 && kg_candidates_pick(&candidates, tried, 900, picked) == 88 + 4 + 9);
    kg_candidates_free(&candidates);

    candidates = list(16, 16, 16, 500); // a sample, which may lack the others
    kg_candidates_hold(&candidates);
    CHECK(kg_candidates_pick(&candidates, -1, 900, picked) == candidates.count);
    kg_candidates_free(&candidates);
    last_name = "p";
}

// ---- Several families of one group ----

static bool is_taken = true; // by the rival

static const void *match_any(const struct kg_group *group, const struct kg_device_facts *facts,
                             struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    (void)arena;
    (void)reason;
    return group;
}

static const void *match_if_taken(const struct kg_group *group, const struct kg_device_facts *facts,
                                  struct kg_arena *arena, struct kg_text *reason)
{
    return is_taken ? match_any(group, facts, arena, reason) : NULL;
}

// Four values of one parameter, each better than the one before.
static void space_of_rival(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    *space = (struct kg_space){0};
    kg_space_add(space, "rival", KG_CHANGE_BLOCK, 4, (int64_t[]){1, 2, 3, 4});
}

static bool is_valid_rival(const struct kg_match *match, const struct kg_config *config,
                           struct kg_text *reason)
{
    (void)match;
    (void)config;
    (void)reason;
    return true;
}

static void guess_of_rival(const struct kg_match *match, struct kg_config *config)
{
    (void)match;
    *config = (struct kg_config){{2}};
}

static double expected_of_rival(const struct kg_match *match, const struct kg_config *config)
{
    (void)match;
    return 2.0 / (double)config->value[0];
}

static const struct kg_family first_family = {.name = "first",
                                              .match = match_any,
                                              .space = space_of,
                                              .valid = is_valid,
                                              .guess = guess_of,
                                              .bound = bound_of,
                                              .list = list_some,
                                              .expected = expected_of,
                                              .orders_configs = true};
static const struct kg_family rival_family = {.name = "rival",
                                              .match = match_if_taken,
                                              .space = space_of_rival,
                                              .valid = is_valid_rival,
                                              .guess = guess_of_rival,
                                              .bound = expected_of_rival,
                                              .expected = expected_of_rival,
                                              .orders_configs = true};
// Of which nothing is expected, and one whose expected time is of its guess alone: no rivals.
static const struct kg_family silent_family = {.name = "silent",
                                               .match = match_any,
                                               .space = space_of_rival,
                                               .valid = is_valid_rival,
                                               .guess = guess_of_rival,
                                               .bound = expected_of_rival};
static const struct kg_family rough_family = {.name = "rough",
                                              .match = match_any,
                                              .space = space_of_rival,
                                              .valid = is_valid_rival,
                                              .guess = guess_of_rival,
                                              .bound = expected_of_rival,
                                              .expected = expected_of_rival};
static const struct kg_family *const rivals[] = {&silent_family, &first_family, &rough_family,
                                                 &rival_family, NULL};
static const struct kg_target rivals_target = {.name = "rivals", .families = rivals};

static struct kg_candidates list_rivals(const struct made *made, const struct kg_match **match)
{
    static const struct kg_device_facts facts = {.units = 1};
    const struct kg_group group = {made->problem, 0, 1};
    struct kg_candidates candidates;
    guess = (struct kg_config){{16, 16, 36}};
    *match = kg_match_find(&first_family, &group, &facts, NULL);
    CHECK_STATUS(kg_candidates_list(*match, &rivals_target, 5000, NULL, NULL, &candidates, &error),
                 KG_OK, &error);
    return candidates;
}

// Of the first family 0 and 1, 4, 9 and 16 stay, 10 of each, since half a second is expected of the
// rival's best; of the rival all but the first.
static void families_compete(void)
{
    struct made made = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=100");
    const struct kg_match *match;
    is_taken = true;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_candidates candidates = list_rivals(&made, &match);
    CHECK(candidates.reading_count == 2 && candidates.expected && candidates.complete);
    CHECK(candidates.readings[1].match->family == &rival_family);
    CHECK(candidates.size == 104 && candidates.count == 50 + 3);
    const struct kg_match *rival = candidates.readings[1].match;
    const struct kg_config best = {{4}}, worst = {{1}};
    int picked[1], at = kg_candidates_find(&candidates, rival, &best);
    CHECK(at >= 0 && candidates.items[at].expected == 0.5);
    CHECK(kg_candidates_find(&candidates, rival, &worst) == -1);
    CHECK(kg_candidates_find(&candidates, match, &best) == -1); // of one family, not of any
    CHECK(kg_candidates_pick(&candidates, -1, 1, picked) == 1 && picked[0] == at);
    // Which family is slower than expected is learnt, and then its others come later.
    const struct kg_config other = {{0, 0, 0}};
    try_one(&candidates, at, 50);
    CHECK(kg_candidates_pick(&candidates, at, 1, picked) == 1);
    CHECK(candidates.items[picked[0]].reading == 1); // 2 / 3 seconds, if all take as much longer
    at = kg_candidates_find(&candidates, match, &other);
    try_one(&candidates, at, 1);
    CHECK(kg_candidates_pick(&candidates, at, 1, picked) == 1);
    CHECK(candidates.items[picked[0]].reading == 0);
    kg_candidates_free(&candidates);
    unmake(&made);
}

static void who_does_not_fit_does_not_compete(void)
{
    struct made made = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=100");
    const struct kg_match *match;
    is_taken = false;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_candidates candidates = list_rivals(&made, &match);
    CHECK(candidates.reading_count == 1 && candidates.count == 70);
    kg_candidates_free(&candidates);
    // Nor does anybody compete with a family that does not say which of its configs is faster.
    const struct kg_match *rough = kg_match_find(&rough_family, &match->group, match->facts, NULL);
    is_taken = true;
    CHECK_STATUS(kg_candidates_list(rough, &rivals_target, 5000, NULL, NULL, &candidates, &error),
                 KG_OK, &error);
    CHECK(candidates.reading_count == 1 && candidates.count == 4 && !candidates.expected);
    kg_candidates_free(&candidates);
    unmake(&made);
}

static double prior_of_rival(void *user, const char *name, const char *parameter, int64_t value,
                             bool beyond)
{
    (void)user, (void)value, (void)beyond;
    return !parameter && strcmp(name, "rival") == 0 ? -2 : 0;
}

// Whatever was learnt of a family elsewhere: searches may try it first, a choice without measuring
// keeps the rule's family.
static void families_are_not_exchanged(void)
{
    struct made made = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=100");
    const struct kg_match *match;
    is_taken = true;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_candidates candidates = list_rivals(&made, &match);
    int at = kg_candidates_find(&candidates, match, &guess), picked[1];
    CHECK(at >= 0 && kg_candidates_advise(&candidates, prior_of_rival, NULL));
    CHECK(candidates.items[kg_candidates_first(&candidates, at)].reading == 0);
    CHECK(kg_candidates_pick(&candidates, -1, 1, picked) == 1);
    CHECK(candidates.items[picked[0]].reading == 1);
    kg_candidates_free(&candidates);
    unmake(&made);
}

TEST_MAIN(whole_spaces_are_listed, vast_spaces_are_sampled, neighbours_come_first,
          the_model_combines, best_forecasts_precede_neighbours, idle_values_come_last, limits_wait,
          families_list_their_own, expected_times_are_followed, families_compete,
          who_does_not_fit_does_not_compete, families_are_not_exchanged)
