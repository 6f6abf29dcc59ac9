// Lists the candidates of a group: whole spaces or samples of them, what rivals offer, and what
// lies one kind of change away from a config. See candidates.h.

#include "tune/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Positions of the values in order of size: neighbours of a good value are likely to be good.
// Families list values in the order in which they would try them.
static bool find_steps(const struct kg_space *space, const struct kg_config *config,
                       unsigned char *step)
{
    for (int i = 0; i < space->count; i++) {
        const struct kg_parameter *parameter = &space->parameters[i];
        bool found = false;
        int smaller = 0;
        for (int at = 0; at < parameter->count; at++) {
            smaller += parameter->choices[at] < config->value[i];
            found = found || parameter->choices[at] == config->value[i];
        }
        if (!found)
            return false;
        step[i] = (unsigned char)smaller;
    }
    return true;
}

static int distance(const struct kg_space *space, const unsigned char *a, const unsigned char *b)
{
    int sum = 0;
    for (int i = 0; i < space->count; i++)
        sum += abs(a[i] - b[i]);
    return sum;
}

static int find_limit(const struct kg_space *space)
{
    for (int i = 0; i < space->count; i++)
        if (strcmp(space->parameters[i].name, "maxnreg") == 0)
            return i;
    return -1;
}

// A step for walking around a space of this size. The walk visits every config once and, when it
// stops early, has spread its visits evenly: the golden section of the size, made coprime with it.
static int64_t choose_sampling_step(int64_t size)
{
    for (int64_t sampling_step = (int64_t)((double)size * 0.6180339887498949) + 1;;
         sampling_step++) {
        int64_t a = size, b = sampling_step;
        while (b > 0) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return sampling_step;
    }
}

// The candidates that are filled, and the checks for each config.
struct listing {
    struct kg_candidates *candidates;
    int max;
    int reading;                             // index of the family whose configs are being listed
    unsigned char origin[KG_MAX_PARAMETERS]; // the family's guess
    kg_candidates_refused *refused;
    void *user;
    struct kg_text reason;
};

static bool orders_configs(const struct kg_family *family)
{
    return family->orders_configs && family->expected;
}

static void add(struct listing *listing, const struct kg_config *config)
{
    struct kg_candidates *candidates = listing->candidates;
    const struct kg_reading *reading = &candidates->readings[listing->reading];
    const struct kg_match *match = reading->match;
    struct kg_candidate *candidate = &candidates->items[candidates->count];
    *candidate = (struct kg_candidate){.reading = listing->reading, .config = *config, .twin = -1};
    kg_text_cut(&listing->reason, 0);
    if (!match->family->valid(match, config, &listing->reason)) {
        if (listing->refused)
            listing->refused(listing->user, match, config, kg_text_string(&listing->reason));
        return;
    }
    if (!find_steps(&reading->space, config, candidate->step))
        return;
    candidate->bound = match->family->bound(match, config);
    candidate->expected =
        orders_configs(match->family) ? match->family->expected(match, config) : 0;
    candidates->expected = candidates->expected && candidate->expected > 0;
    candidate->distance = distance(&reading->space, candidate->step, listing->origin);
    candidates->count++;
}

static bool take(void *user, const struct kg_config *config)
{
    struct listing *listing = user;
    struct kg_candidates *candidates = listing->candidates;
    candidates->complete = candidates->complete && candidates->count < listing->max;
    if (candidates->complete) {
        candidates->size++;
        add(listing, config);
    }
    return candidates->complete;
}

static void add_space(struct listing *listing)
{
    struct kg_candidates *candidates = listing->candidates;
    const struct kg_space *space = &candidates->readings[listing->reading].space;
    int64_t size = kg_space_size(space), room = listing->max - candidates->count;
    bool whole = size <= room;
    candidates->size += size;
    candidates->complete = candidates->complete && whole;
    int visits = whole ? (int)size : (int)room;
    int64_t sampling_step = whole ? 1 : choose_sampling_step(size), n = 0;
    for (int i = 0; i < visits; i++) {
        struct kg_config config = kg_space_config(space, n);
        n = (n + sampling_step) % size;
        add(listing, &config);
    }
}

static void add_reading(struct listing *listing, const struct kg_match *match)
{
    struct kg_candidates *candidates = listing->candidates;
    struct kg_reading *reading = &candidates->readings[candidates->reading_count];
    struct kg_config guess;
    listing->reading = candidates->reading_count++;
    reading->match = match;
    match->family->space(match, &reading->space);
    reading->limit = find_limit(&reading->space);
    match->family->guess(match, &guess);
    if (!find_steps(&reading->space, &guess, listing->origin))
        memset(listing->origin, 0, sizeof listing->origin);
    if (match->family->list)
        match->family->list(match, take, listing);
    else
        add_space(listing);
    listing->refused = NULL;
    if (kg_candidates_find(candidates, match, &guess) < 0) // a sample may have missed it
        add(listing, &guess);
}

// Other families that expect times of the group compete for it.
static void add_rivals(struct listing *listing, const struct kg_match *match,
                       const struct kg_target *target)
{
    struct kg_candidates *candidates = listing->candidates;
    for (const struct kg_family *const *family = target->families; *family; family++) {
        if (*family == match->family || !orders_configs(*family) ||
            candidates->reading_count == KG_MAX_READINGS)
            continue;
        const struct kg_match *rival = kg_match_find(*family, &match->group, match->facts, NULL);
        if (rival)
            add_reading(listing, rival);
    }
}

// Drops candidates whose expected time is many times the best. The guess of the first family stays.
static void drop_hopeless(struct kg_candidates *candidates, const struct kg_config *guess)
{
    const double max_times = 3;
    double least = INFINITY;
    int kept = 0;
    for (int i = 0; i < candidates->count; i++)
        least = fmin(least, candidates->items[i].expected);
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        bool is_guess =
            candidate->reading == 0 && memcmp(&candidate->config, guess, sizeof *guess) == 0;
        if (is_guess || candidate->expected <= max_times * least)
            candidates->items[kept++] = *candidate;
    }
    candidates->count = kept;
}

enum kg_status kg_candidates_list(const struct kg_match *match, const struct kg_target *target,
                                  int max, kg_candidates_refused *refused, void *user,
                                  struct kg_candidates *candidates, struct kg_error *error)
{
    struct listing listing = {
        .candidates = candidates, .max = max, .refused = refused, .user = user};
    *candidates = (struct kg_candidates){.complete = true, .expected = true};
    candidates->items = calloc((size_t)max + KG_MAX_READINGS + 1, sizeof *candidates->items);
    if (!candidates->items)
        return kg_error_memory(error, "the configs of a space");
    add_reading(&listing, match);
    if (candidates->expected && candidates->count > 0) {
        struct kg_config guess;
        match->family->guess(match, &guess);
        add_rivals(&listing, match, target);
        drop_hopeless(candidates, &guess);
    }
    kg_text_free(&listing.reason);
    return KG_OK;
}

// Steps through the values of the parameters in `free`, like the digits of a number; the others
// keep theirs. False after the last config.
static bool advance(const struct kg_space *space, const bool *is_free, int *choice,
                    struct kg_config *config)
{
    for (int i = 0; i < space->count; i++) {
        const struct kg_parameter *parameter = &space->parameters[i];
        if (!is_free[i])
            continue;
        bool carries = ++choice[i] == parameter->count;
        choice[i] = carries ? 0 : choice[i];
        config->value[i] = parameter->choices[choice[i]];
        if (!carries)
            return true;
    }
    return false;
}

static void add_changed(struct listing *listing, const struct kg_match *match,
                        const struct kg_config *from, enum kg_change change)
{
    struct kg_candidates *candidates = listing->candidates;
    struct kg_reading *reading = &candidates->readings[candidates->reading_count];
    bool is_free[KG_MAX_PARAMETERS];
    int choice[KG_MAX_PARAMETERS] = {0};
    struct kg_config config = *from;
    listing->reading = candidates->reading_count++;
    reading->match = match;
    match->family->space(match, &reading->space);
    reading->limit = find_limit(&reading->space);
    if (!find_steps(&reading->space, from, listing->origin))
        return;
    for (int i = 0; i < reading->space.count; i++) {
        is_free[i] = reading->space.parameters[i].change == change;
        if (is_free[i])
            config.value[i] = reading->space.parameters[i].choices[0];
    }
    do {
        candidates->size++;
        candidates->complete = candidates->count < listing->max;
        if (candidates->complete)
            add(listing, &config);
    } while (candidates->complete && advance(&reading->space, is_free, choice, &config));
    if (kg_candidates_find(candidates, match, from) < 0)
        add(listing, from);
}

static void add_forms(struct listing *listing, const struct kg_match *match,
                      const struct kg_target *target)
{
    for (const struct kg_family *const *family = target->families; *family; family++) {
        if (*family == match->family || listing->candidates->reading_count == KG_MAX_READINGS ||
            listing->candidates->count >= listing->max)
            continue;
        const struct kg_match *form = kg_match_find(*family, &match->group, match->facts, NULL);
        if (form)
            add_reading(listing, form);
    }
}

enum kg_status kg_candidates_list_changed(const struct kg_match *match,
                                          const struct kg_target *target,
                                          const struct kg_config *from, enum kg_change change,
                                          int max, struct kg_candidates *candidates,
                                          struct kg_error *error)
{
    struct listing listing = {.candidates = candidates, .max = max};
    *candidates = (struct kg_candidates){.complete = true, .expected = true};
    candidates->items = calloc((size_t)max + KG_MAX_READINGS + 1, sizeof *candidates->items);
    if (!candidates->items)
        return kg_error_memory(error, "the configs of a space");
    if (change == KG_CHANGE_FORM)
        add_forms(&listing, match, target);
    else
        add_changed(&listing, match, from, change);
    candidates->expected = candidates->expected && candidates->count > 0;
    kg_text_free(&listing.reason);
    return KG_OK;
}
