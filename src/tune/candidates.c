// Which config next. See candidates.h.
//
// The model says that the logarithm of the time is a mean plus one effect per value of each
// parameter: "vector=16 is worth a factor 0.8, whatever the rest". It is fitted by ridge regression
// to a handful of measurements, so effects of values seen once are small. A value never tried is
// taken to be a little better than the best config's: that is what makes the search look around
// before it combines. It need not be right, only better than chance at the order of what is left.
//
// Where families say what they expect, it is the logarithm of the time over that, so that it only
// has to learn where they are wrong.

#include "tune/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 20 // of the fit; it converges long before
#define RIDGE 0.5
// What a value that was never tried is hoped to gain over the best config's, and what each step
// away from that config costs: one thing that is new is tried before two.
#define HOPE 0.01
#define STEP_COST 0.02
// For each value that has only ever given what another one gives: the very same kernel, most
// likely.
#define IDLE_COST 0.5

// For each one that is picked before it and differs in one value, less where in more, up to NEAR:
// what the family expects of such is wrong in the same way.
#define LIKENESS_COST 0.04
#define NEAR 3

struct model {
    double mean;
    double effect[KG_MAX_PARAMETERS][KG_MAX_CHOICES];
    int seen[KG_MAX_PARAMETERS][KG_MAX_CHOICES]; // configs with this value, measured or picked
    bool idle[KG_MAX_PARAMETERS][KG_MAX_CHOICES];
};

// Values in the order of size: what lies next to a good one is likely to be good. Families list
// theirs in the order in which they would try them.
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

static bool is_used(const struct kg_candidate *candidate)
{
    return candidate->state == KG_CANDIDATE_TRIED && candidate->seconds > 0;
}

static double predict(const struct model *model, const struct kg_space *space,
                      const struct kg_candidate *candidate)
{
    double value = model->mean;
    for (int i = 0; i < space->count; i++)
        value += model->effect[i][candidate->step[i]];
    return value;
}

// The logarithm that the model is of.
static double observed(const struct kg_candidates *candidates, const struct kg_candidate *candidate)
{
    return log(candidates->estimated ? candidate->seconds / candidate->estimate
                                     : candidate->seconds);
}

// One parameter's effects, the others held.
static void fit_parameter(const struct kg_candidates *candidates, int parameter,
                          struct model *model)
{
    double sum[KG_MAX_CHOICES] = {0}, weight[KG_MAX_CHOICES] = {0};
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (!is_used(candidate))
            continue;
        int step = candidate->step[parameter];
        double others =
            predict(model, &candidates->space, candidate) - model->effect[parameter][step];
        sum[step] += observed(candidates, candidate) - others;
        weight[step]++;
    }
    for (int step = 0; step < KG_MAX_CHOICES; step++)
        model->effect[parameter][step] = sum[step] / (weight[step] + RIDGE);
}

static void count_values(struct model *model, const struct kg_space *space,
                         const struct kg_candidate *candidate)
{
    for (int i = 0; i < space->count; i++)
        model->seen[i][candidate->step[i]]++;
}

// A value is idle when configs with it were tried and all of them run like one without it.
static void find_idle(const struct kg_candidates *candidates, struct model *model)
{
    bool live[KG_MAX_PARAMETERS][KG_MAX_CHOICES] = {{false}};
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state != KG_CANDIDATE_TRIED)
            continue;
        for (int p = 0; p < candidates->space.count; p++) {
            int step = candidate->step[p];
            if (candidate->twin >= 0 && candidates->items[candidate->twin].step[p] != step)
                model->idle[p][step] = true;
            else
                live[p][step] = live[p][step] || candidate->twin < 0;
        }
    }
    for (int p = 0; p < KG_MAX_PARAMETERS; p++)
        for (int step = 0; step < KG_MAX_CHOICES; step++)
            model->idle[p][step] = model->idle[p][step] && !live[p][step];
}

static void fit(const struct kg_candidates *candidates, struct model *model)
{
    *model = (struct model){0};
    find_idle(candidates, model);
    int used = 0;
    for (int i = 0; i < candidates->count; i++) {
        if (is_used(&candidates->items[i])) {
            model->mean += observed(candidates, &candidates->items[i]);
            count_values(model, &candidates->space, &candidates->items[i]);
            used++;
        }
    }
    if (used == 0)
        return;
    model->mean /= used;
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int i = 0; i < candidates->space.count; i++)
            fit_parameter(candidates, i, model);
}

// What decides between two open candidates, most important first.
struct rank {
    double expected; // logarithm of seconds
    int familiarity; // how many values of the parameters that change were tried
    double bound;
    int distance;
    int position;
};

static bool is_before(const struct rank *a, const struct rank *b)
{
    if (a->expected != b->expected)
        return a->expected < b->expected;
    if (a->familiarity != b->familiarity)
        return a->familiarity < b->familiarity;
    if (a->bound != b->bound)
        return a->bound < b->bound;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->position < b->position;
}

// How many values of each parameter were tried.
static void count_familiar(const struct kg_space *space, const struct model *model, int *familiar)
{
    for (int i = 0; i < space->count; i++) {
        familiar[i] = 0;
        for (int step = 0; step < KG_MAX_CHOICES; step++)
            familiar[i] += model->seen[i][step] > 0;
    }
}

// `best` may be NULL: nothing is known then that could be hoped to be improved.
static struct rank rank_of(const struct kg_candidates *candidates, const struct model *model,
                           const int *familiar, const struct kg_candidate *best, int position)
{
    const struct kg_candidate *candidate = &candidates->items[position];
    struct rank rank = {.expected = predict(model, &candidates->space, candidate),
                        .bound = candidate->bound,
                        .distance = candidate->distance,
                        .position = position};
    if (candidates->estimated)
        rank.expected += log(candidate->estimate);
    for (int i = 0; best && i < candidates->space.count; i++) {
        int step = candidate->step[i];
        if (model->idle[i][step])
            rank.expected += IDLE_COST;
        if (step == best->step[i] || candidates->estimated)
            continue;
        rank.expected += STEP_COST * abs(step - best->step[i]);
        if (model->seen[i][step] == 0)
            rank.expected += model->effect[i][best->step[i]] - HOPE;
        rank.familiarity += familiar[i];
    }
    return rank;
}

static int find_limit(const struct kg_space *space)
{
    for (int i = 0; i < space->count; i++)
        if (strcmp(space->parameters[i].name, "maxnreg") == 0)
            return i;
    return -1;
}

// A step that, taken again and again around a space of this size, meets every config once and, cut
// short, has spread its visits evenly: the golden section of the size, made coprime with it.
static int64_t choose_hop(int64_t size)
{
    for (int64_t hop = (int64_t)((double)size * 0.6180339887498949) + 1;; hop++) {
        int64_t a = size, b = hop;
        while (b > 0) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return hop;
    }
}

int kg_candidates_find(const struct kg_candidates *candidates, const struct kg_config *config)
{
    size_t length = (size_t)candidates->space.count * sizeof config->value[0];
    for (int i = 0; i < candidates->count; i++)
        if (memcmp(candidates->items[i].config.value, config->value, length) == 0)
            return i;
    return -1;
}

// What configs are added to, and what they are asked.
struct listing {
    struct kg_candidates *candidates;
    int most;
    const struct kg_group *group;
    const struct kg_family *family;
    const struct kg_device_facts *facts;
    enum kg_target target;
    unsigned char origin[KG_MAX_PARAMETERS]; // the guess
    kg_candidates_refused *refused;
    void *user;
    struct kg_text reason;
};

static void add(struct listing *listing, const struct kg_config *config)
{
    struct kg_candidates *candidates = listing->candidates;
    const struct kg_family *family = listing->family;
    struct kg_candidate *candidate = &candidates->items[candidates->count];
    candidate->config = *config;
    kg_text_cut(&listing->reason, 0);
    if (!family->valid(listing->group, listing->facts, listing->target, config, &listing->reason)) {
        if (listing->refused)
            listing->refused(listing->user, config, kg_text_string(&listing->reason));
        return;
    }
    if (!find_steps(&candidates->space, config, candidate->step))
        return;
    candidate->bound = family->bound(listing->group, listing->facts, listing->target, config);
    candidate->estimate =
        family->estimate ? family->estimate(listing->group, listing->facts, listing->target, config)
                         : 0;
    candidates->estimated = candidates->estimated && candidate->estimate > 0;
    candidate->twin = -1;
    candidate->distance = distance(&candidates->space, candidate->step, listing->origin);
    candidates->count++;
}

static bool take(void *user, const struct kg_config *config)
{
    struct listing *listing = user;
    struct kg_candidates *candidates = listing->candidates;
    candidates->complete = candidates->size < listing->most;
    if (candidates->complete) {
        candidates->size++;
        add(listing, config);
    }
    return candidates->complete;
}

static void add_space(struct listing *listing)
{
    struct kg_candidates *candidates = listing->candidates;
    candidates->size = kg_space_size(&candidates->space);
    candidates->complete = candidates->size <= listing->most;
    int visits = candidates->complete ? (int)candidates->size : listing->most;
    int64_t hop = candidates->complete ? 1 : choose_hop(candidates->size), n = 0;
    for (int i = 0; i < visits; i++) {
        struct kg_config config = kg_space_config(&candidates->space, n);
        n = (n + hop) % candidates->size;
        add(listing, &config);
    }
}

enum kg_status kg_candidates_list(const struct kg_group *group, const struct kg_family *family,
                                  const struct kg_device_facts *facts, enum kg_target target,
                                  const struct kg_config *guess, int most,
                                  kg_candidates_refused *refused, void *user,
                                  struct kg_candidates *candidates, struct kg_error *error)
{
    struct listing listing = {.candidates = candidates,
                              .most = most,
                              .group = group,
                              .family = family,
                              .facts = facts,
                              .target = target,
                              .refused = refused,
                              .user = user};
    *candidates = (struct kg_candidates){.complete = true, .estimated = true};
    family->space(group, facts, target, &candidates->space);
    candidates->limit = find_limit(&candidates->space);
    int64_t size = kg_space_size(&candidates->space);
    candidates->items = calloc((size_t)(size < most ? size : most) + 1, sizeof *candidates->items);
    if (!candidates->items)
        return kg_error_memory(error, "the configs of a space");
    find_steps(&candidates->space, guess, listing.origin);
    if (family->list)
        family->list(group, facts, target, take, &listing);
    else
        add_space(&listing);
    listing.refused = NULL;
    if (kg_candidates_find(candidates, guess) < 0) // a sample may have missed it
        add(&listing, guess);
    kg_text_free(&listing.reason);
    return KG_OK;
}

void kg_candidates_free(struct kg_candidates *candidates)
{
    free(candidates->items);
    *candidates = (struct kg_candidates){0};
}

void kg_candidates_hold(struct kg_candidates *candidates)
{
    for (int i = 0; i < candidates->count && candidates->limit >= 0 && candidates->complete; i++) {
        struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state == KG_CANDIDATE_OPEN && candidate->config.value[candidates->limit] > 0)
            candidate->state = KG_CANDIDATE_WAITING;
    }
}

// The same but for the limit?
static bool is_limited_form(const struct kg_candidates *candidates,
                            const struct kg_candidate *candidate, const struct kg_candidate *of)
{
    for (int i = 0; i < candidates->space.count; i++)
        if (i != candidates->limit && candidate->step[i] != of->step[i])
            return false;
    return true;
}

void kg_candidates_release(struct kg_candidates *candidates, int at, int registers,
                           kg_candidates_useless *useless, void *user)
{
    const struct kg_candidate *of = &candidates->items[at];
    if (candidates->limit < 0 || of->config.value[candidates->limit] != 0)
        return;
    for (int i = 0; i < candidates->count; i++) {
        struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state != KG_CANDIDATE_WAITING || !is_limited_form(candidates, candidate, of))
            continue;
        bool same = registers > 0 && registers <= candidate->config.value[candidates->limit];
        candidate->state = same ? KG_CANDIDATE_PRUNED : KG_CANDIDATE_OPEN;
        if (same && useless)
            useless(user, &candidate->config);
    }
}

static bool contains(const int *picked, int count, int position)
{
    for (int i = 0; i < count; i++)
        if (picked[i] == position)
            return true;
    return false;
}

static double cost_of_likeness(const struct kg_candidates *candidates, const int *picked, int count,
                               int position)
{
    double cost = 0;
    for (int i = 0; i < count; i++) {
        int different = 0;
        for (int p = 0; p < candidates->space.count; p++)
            different +=
                candidates->items[picked[i]].step[p] != candidates->items[position].step[p];
        if (different <= NEAR)
            cost += LIKENESS_COST / different;
    }
    return cost;
}

int kg_candidates_pick(const struct kg_candidates *candidates, int best, int most, int *picked)
{
    const struct kg_space *space = &candidates->space;
    const struct kg_candidate *centre = best >= 0 ? &candidates->items[best] : NULL;
    struct model model, after; // after the measurement of what was picked
    int familiar[KG_MAX_PARAMETERS], count = 0;
    fit(candidates, &model);
    after = model;
    while (count < most) {
        struct rank first = {.position = -1};
        count_familiar(space, &after, familiar);
        for (int i = 0; i < candidates->count; i++) {
            if (candidates->items[i].state != KG_CANDIDATE_OPEN || contains(picked, count, i))
                continue;
            struct rank rank = rank_of(candidates, &model, familiar, centre, i);
            if (candidates->estimated)
                rank.expected += cost_of_likeness(candidates, picked, count, i);
            if (first.position < 0 || is_before(&rank, &first))
                first = rank;
        }
        if (first.position < 0)
            break;
        count_values(&after, space, &candidates->items[first.position]);
        picked[count++] = first.position;
    }
    return count;
}
