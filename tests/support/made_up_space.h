// A space of three parameters with ten values each, and a family that lists its own configs and
// expects times.

#ifndef KG_TESTS_MADE_UP_SPACE_H
#define KG_TESTS_MADE_UP_SPACE_H

#include "support/sample_problem.h"
#include "test.h"
#include "tune/candidates.h"

#include <math.h>

static int parameters = 3; // of the made-up space, ten values each
static struct kg_error error;
static int refusals;
static const char *last_name = "p"; // of the third parameter

// What lies next to what goes by the values, not by the order in which they are listed.
static const int shuffled[10] = {4, 9, 0, 5, 2, 7, 3, 8, 1, 6};

static struct kg_config guess; // of all made-up families

static inline void space_of(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    *space = (struct kg_space){.count = parameters};
    for (int i = 0; i < parameters; i++) {
        space->parameters[i].name = i == 2 ? last_name : "p";
        space->parameters[i].count = 10;
        for (int k = 0; k < 10; k++)
            space->parameters[i].choices[k] = i == 2 ? shuffled[k] * shuffled[k] : k * k;
    }
}

static inline bool is_valid(const struct kg_match *match, const struct kg_config *config,
                            struct kg_text *reason)
{
    (void)match;
    if (config->value[0] != 81)
        return true;
    kg_text_add(reason, "81 is too much");
    return false;
}

static inline void guess_of(const struct kg_match *match, struct kg_config *config)
{
    (void)match;
    *config = guess;
}

static inline double bound_of(const struct kg_match *match, const struct kg_config *config)
{
    (void)match;
    return (double)config->value[1];
}

static const struct kg_family family = {
    .name = "fake", .space = space_of, .valid = is_valid, .guess = guess_of, .bound = bound_of};
static const struct kg_match fake = {.family = &family};

static inline void count_refusal(void *user, const struct kg_match *match,
                                 const struct kg_config *config, const char *reason)
{
    (void)user;
    (void)match;
    refusals += config->value[0] == 81 && strcmp(reason, "81 is too much") == 0;
}

static inline struct kg_candidates list(int64_t a, int64_t b, int64_t c, int most)
{
    struct kg_candidates candidates;
    guess = (struct kg_config){{a, b, c}};
    CHECK_STATUS(
        kg_candidates_list(&fake, &kg_target_host, most, count_refusal, NULL, &candidates, &error),
        KG_OK, &error);
    return candidates;
}

static inline void try_one(struct kg_candidates *candidates, int at, double seconds)
{
    candidates->items[at].state = KG_CANDIDATE_TRIED;
    candidates->items[at].seconds = seconds;
}

static inline int find(const struct kg_candidates *candidates, int a, int b, int c)
{
    struct kg_config config = {{a * a, b * b, c * c}};
    return kg_candidates_find(candidates, &fake, &config);
}

// Lists the second family's configs: those with equal first and second values.
static inline void list_some(const struct kg_match *match, kg_config_take *take, void *user)
{
    (void)match;
    bool more = true;
    for (int i = 0; i < 100 && more; i++)
        more = take(user,
                    &(struct kg_config){{i / 10 * (i / 10), i / 10 * (i / 10), i % 10 * (i % 10)}});
}

// The smaller the first value the better; of the third it knows nothing.
static inline double expected_of(const struct kg_match *match, const struct kg_config *config)
{
    (void)match;
    return exp((double)config->value[0] / 40);
}

static const struct kg_family listing_family = {.name = "listing",
                                                .space = space_of,
                                                .valid = is_valid,
                                                .guess = guess_of,
                                                .bound = bound_of,
                                                .list = list_some,
                                                .expected = expected_of,
                                                .orders_configs = true};
static const struct kg_family *const listing_families[] = {&listing_family, NULL};
static const struct kg_target listing_target = {.name = "listing", .families = listing_families};
static const struct kg_match listing = {.family = &listing_family};

static inline struct kg_candidates list_of_family(int64_t a, int64_t b, int64_t c, int most)
{
    struct kg_candidates candidates;
    guess = (struct kg_config){{a, b, c}};
    CHECK_STATUS(kg_candidates_list(&listing, &listing_target, most, count_refusal, NULL,
                                    &candidates, &error),
                 KG_OK, &error);
    return candidates;
}

#endif
