// Chooses the next config; see candidates.h.
//
// The model: the logarithm of the time is a mean plus one effect per value of each parameter
// ("vector=16 is worth a factor of 0.8, whatever the other parameters are"). Ridge regression fits
// it to a handful of measurements, so effects of values that occur once stay small. A value that
// was never tried counts as slightly better than that of the best config, which makes the search
// explore neighbours before it combines values. The model need not be exact: it only has to order
// the remaining configs better than chance.
//
// If families expect times, the model is of the logarithm of the time over the expected time, and
// only learns where the expectations are wrong.

#include "tune/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 20 // of the fit, which converges long before
#define RIDGE 0.5
// What is known from other problems weighs as much as so many measurements. bench/host/ablation.py
// finds the best a little sooner with 2 or 4, but then searches that are told what is wrong do not
// come close.
#define KNOWN 1.0
// The gain that is assumed for a value that was never tried, over the best config's; and the cost
// of each step away from that config, so that one new value is tried before two.
#define HOPE 0.01
#define STEP_COST 0.02
// Added for each value that has only ever given the same code as another value: the kernel is most
// likely the same.
#define IDLE_COST 0.5

// Added for each config picked before that differs in one value, less if it differs in more, up to
// NEAR: the family's expectations of both are wrong in the same way.
#define LIKENESS_COST 0.04
#define NEAR 3

struct effects {
    double mean; // of the family, in addition to the common mean
    double effect[KG_MAX_PARAMETERS][KG_MAX_CHOICES];
    int seen[KG_MAX_PARAMETERS][KG_MAX_CHOICES]; // configs with this value, measured or picked
    bool idle[KG_MAX_PARAMETERS][KG_MAX_CHOICES];
};

struct model {
    double mean;
    struct effects of[KG_MAX_READINGS];
};

static bool is_used(const struct kg_candidate *candidate)
{
    return candidate->state == KG_CANDIDATE_TRIED && candidate->seconds > 0;
}

static const struct kg_space *space_of(const struct kg_candidates *candidates,
                                       const struct kg_candidate *candidate)
{
    return &candidates->readings[candidate->reading].space;
}

static double predict(const struct kg_candidates *candidates, const struct model *model,
                      const struct kg_candidate *candidate)
{
    const struct kg_space *space = space_of(candidates, candidate);
    const struct effects *effects = &model->of[candidate->reading];
    double value = model->mean + effects->mean;
    for (int i = 0; i < space->count; i++)
        value += effects->effect[i][candidate->step[i]];
    return value;
}

// The logarithm that the model predicts.
static double observed(const struct kg_candidates *candidates, const struct kg_candidate *candidate)
{
    return log(candidates->expected ? candidate->seconds / candidate->expected
                                    : candidate->seconds);
}

// An effect whose measurements have this sum, drawn towards what is known of it.
static double draw_to(double known, double sum, double weight)
{
    double strength = known != 0 ? KNOWN : RIDGE;
    return (sum + strength * known) / (weight + strength);
}

// Fits the effects of one parameter of one family; everything else is fixed.
static void fit_parameter(const struct kg_candidates *candidates, int reading, int parameter,
                          struct model *model)
{
    double sum[KG_MAX_CHOICES] = {0}, weight[KG_MAX_CHOICES] = {0};
    double *effect = model->of[reading].effect[parameter];
    const double *prior = candidates->readings[reading].prior[parameter];
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (!is_used(candidate) || candidate->reading != reading)
            continue;
        int step = candidate->step[parameter];
        double others = predict(candidates, model, candidate) - effect[step];
        sum[step] += observed(candidates, candidate) - others;
        weight[step]++;
    }
    for (int step = 0; step < KG_MAX_CHOICES; step++)
        effect[step] = draw_to(prior[step], sum[step], weight[step]);
}

// Fits how much slower or faster each family is than the common mean; everything else is fixed.
static void fit_means(const struct kg_candidates *candidates, struct model *model)
{
    double sum[KG_MAX_READINGS] = {0}, weight[KG_MAX_READINGS] = {0};
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (!is_used(candidate))
            continue;
        double others = predict(candidates, model, candidate) - model->of[candidate->reading].mean;
        sum[candidate->reading] += observed(candidates, candidate) - others;
        weight[candidate->reading]++;
    }
    for (int i = 0; i < candidates->reading_count; i++)
        model->of[i].mean = draw_to(candidates->readings[i].form, sum[i], weight[i]);
}

static void count_values(const struct kg_candidates *candidates, struct model *model,
                         const struct kg_candidate *candidate)
{
    const struct kg_space *space = space_of(candidates, candidate);
    for (int i = 0; i < space->count; i++)
        model->of[candidate->reading].seen[i][candidate->step[i]]++;
}

// A value is idle if configs with it were tried and all of them run the same code as one without
// it.
static void find_idle(const struct kg_candidates *candidates, int reading, struct effects *effects)
{
    bool live[KG_MAX_PARAMETERS][KG_MAX_CHOICES] = {{false}};
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state != KG_CANDIDATE_TRIED || candidate->reading != reading)
            continue;
        const struct kg_candidate *twin =
            candidate->twin >= 0 ? &candidates->items[candidate->twin] : NULL;
        for (int p = 0; p < space_of(candidates, candidate)->count; p++) {
            int step = candidate->step[p];
            if (twin && twin->reading == reading && twin->step[p] != step)
                effects->idle[p][step] = true;
            else
                live[p][step] = live[p][step] || !twin;
        }
    }
    for (int p = 0; p < KG_MAX_PARAMETERS; p++)
        for (int step = 0; step < KG_MAX_CHOICES; step++)
            effects->idle[p][step] = effects->idle[p][step] && !live[p][step];
}

static void fit(const struct kg_candidates *candidates, struct model *model)
{
    *model = (struct model){0};
    for (int reading = 0; reading < candidates->reading_count; reading++) {
        const struct kg_reading *known = &candidates->readings[reading];
        find_idle(candidates, reading, &model->of[reading]);
        memcpy(model->of[reading].effect, known->prior, sizeof known->prior);
        model->of[reading].mean = candidates->reading_count > 1 ? known->form : 0;
    }
    int used = 0;
    for (int i = 0; i < candidates->count; i++) {
        if (is_used(&candidates->items[i])) {
            model->mean += observed(candidates, &candidates->items[i]);
            count_values(candidates, model, &candidates->items[i]);
            used++;
        }
    }
    if (used == 0)
        return;
    model->mean /= used;
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int reading = 0; reading < candidates->reading_count; reading++) {
            if (candidates->reading_count > 1)
                fit_means(candidates, model);
            for (int i = 0; i < candidates->readings[reading].space.count; i++)
                fit_parameter(candidates, reading, i, model);
        }
}

// The criteria that order two open candidates, most important first.
struct rank {
    double expected; // logarithm of seconds
    int familiarity; // number of trials with the values of the parameters that differ
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

// Counts the trials with each value of each parameter of a family.
static void count_familiar(const struct kg_space *space, const struct effects *effects,
                           int *familiar)
{
    for (int i = 0; i < space->count; i++) {
        familiar[i] = 0;
        for (int step = 0; step < KG_MAX_CHOICES; step++)
            familiar[i] += effects->seen[i][step] > 0;
    }
}

// `best` may be NULL: then no value gets the bonus for being untried. Configs of another family are
// not neighbours of `best`.
static struct rank rank_of(const struct kg_candidates *candidates, const struct model *model,
                           const int *familiar, const struct kg_candidate *best, int position)
{
    const struct kg_candidate *candidate = &candidates->items[position];
    const struct effects *effects = &model->of[candidate->reading];
    struct rank rank = {.expected = predict(candidates, model, candidate),
                        .bound = candidate->bound,
                        .distance = candidate->distance,
                        .position = position};
    if (candidates->expected)
        rank.expected += log(candidate->expected);
    const double(*prior)[KG_MAX_CHOICES] = candidates->readings[candidate->reading].prior;
    bool near = best && best->reading == candidate->reading;
    for (int i = 0; near && i < space_of(candidates, candidate)->count; i++) {
        int step = candidate->step[i];
        if (effects->idle[i][step])
            rank.expected += IDLE_COST;
        if (step == best->step[i] || candidates->expected)
            continue;
        rank.expected += STEP_COST * abs(step - best->step[i]);
        if (effects->seen[i][step] == 0)
            rank.expected += effects->effect[i][best->step[i]] - prior[i][best->step[i]] - HOPE;
        rank.familiarity += familiar[i];
    }
    return rank;
}

int kg_candidates_find(const struct kg_candidates *candidates, const struct kg_match *match,
                       const struct kg_config *config)
{
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_reading *reading = &candidates->readings[candidates->items[i].reading];
        size_t length = (size_t)reading->space.count * sizeof config->value[0];
        if (reading->match == match &&
            memcmp(candidates->items[i].config.value, config->value, length) == 0)
            return i;
    }
    return -1;
}

void kg_candidates_free(struct kg_candidates *candidates)
{
    free(candidates->items);
    *candidates = (struct kg_candidates){0};
}

// The value of the parameter that limits registers; 0: no limit.
static int64_t limit_of(const struct kg_candidates *candidates,
                        const struct kg_candidate *candidate)
{
    int limit = candidates->readings[candidate->reading].limit;
    return limit >= 0 ? candidate->config.value[limit] : 0;
}

void kg_candidates_hold(struct kg_candidates *candidates)
{
    for (int i = 0; i < candidates->count && candidates->complete; i++) {
        struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state == KG_CANDIDATE_OPEN && limit_of(candidates, candidate) > 0)
            candidate->state = KG_CANDIDATE_WAITING;
    }
}

// Are both configs equal except for the limit on registers?
static bool is_limited_form(const struct kg_candidates *candidates,
                            const struct kg_candidate *candidate, const struct kg_candidate *of)
{
    const struct kg_reading *reading = &candidates->readings[of->reading];
    if (candidate->reading != of->reading)
        return false;
    for (int i = 0; i < reading->space.count; i++)
        if (i != reading->limit && candidate->step[i] != of->step[i])
            return false;
    return true;
}

void kg_candidates_release(struct kg_candidates *candidates, int at, int registers,
                           kg_candidates_useless *useless, void *user)
{
    const struct kg_candidate *of = &candidates->items[at];
    if (limit_of(candidates, of) != 0)
        return;
    for (int i = 0; i < candidates->count; i++) {
        struct kg_candidate *candidate = &candidates->items[i];
        if (candidate->state != KG_CANDIDATE_WAITING || !is_limited_form(candidates, candidate, of))
            continue;
        bool same = registers > 0 && registers <= limit_of(candidates, candidate);
        candidate->state = same ? KG_CANDIDATE_PRUNED : KG_CANDIDATE_OPEN;
        if (same && useless)
            useless(user, candidate);
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
    const struct kg_candidate *candidate = &candidates->items[position];
    double cost = 0;
    for (int i = 0; i < count; i++) {
        const struct kg_candidate *other = &candidates->items[picked[i]];
        int different = 0;
        if (other->reading != candidate->reading)
            continue;
        for (int p = 0; p < space_of(candidates, candidate)->count; p++)
            different += other->step[p] != candidate->step[p];
        if (different <= NEAR)
            cost += LIKENESS_COST / different;
    }
    return cost;
}

int kg_candidates_pick(const struct kg_candidates *candidates, int best, int max, int *picked)
{
    const struct kg_candidate *centre = best >= 0 ? &candidates->items[best] : NULL;
    struct model model, after; // `after`: once the picked configs are measured
    int familiar[KG_MAX_PARAMETERS] = {0}, count = 0;
    fit(candidates, &model);
    after = model;
    while (count < max) {
        struct rank first = {.position = -1};
        if (centre)
            count_familiar(space_of(candidates, centre), &after.of[centre->reading], familiar);
        for (int i = 0; i < candidates->count; i++) {
            if (candidates->items[i].state != KG_CANDIDATE_OPEN || contains(picked, count, i))
                continue;
            struct rank rank = rank_of(candidates, &model, familiar, centre, i);
            if (candidates->expected)
                rank.expected += cost_of_likeness(candidates, picked, count, i);
            if (first.position < 0 || is_before(&rank, &first))
                first = rank;
        }
        if (first.position < 0)
            break;
        count_values(candidates, &after, &candidates->items[first.position]);
        picked[count++] = first.position;
    }
    return count;
}
