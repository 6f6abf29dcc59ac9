// What other problems have taught about the candidates of this one: see kg_candidates_advise.

#include "tune/candidates.h"

#include <math.h>

// The step of a parameter's choice: its position in order of size.
static int step_of_choice(const struct kg_parameter *parameter, int choice)
{
    int step = 0;
    for (int i = 0; i < parameter->count; i++)
        step += parameter->choices[i] < parameter->choices[choice];
    return step;
}

bool kg_candidates_are_known(const struct kg_match *match, kg_candidates_prior *prior, void *user)
{
    struct kg_space space;
    match->family->space(match, &space);
    bool known = false;
    for (int beyond = 0; beyond < 2 && !known; beyond++) {
        known = prior(user, match->family->name, NULL, 0, beyond) != 0;
        for (int i = 0; i < space.count; i++)
            for (int at = 0; at < space.parameters[i].count && !known; at++)
                known = prior(user, match->family->name, space.parameters[i].name,
                              space.parameters[i].choices[at], beyond) != 0;
    }
    return known;
}

bool kg_candidates_advise(struct kg_candidates *candidates, kg_candidates_prior *prior, void *user)
{
    bool known = false;
    for (int r = 0; r < candidates->reading_count; r++) {
        struct kg_reading *reading = &candidates->readings[r];
        const char *family = reading->match->family->name;
        reading->form = prior(user, family, NULL, 0, candidates->expected);
        known = known || reading->form != 0;
        for (int i = 0; i < reading->space.count; i++) {
            const struct kg_parameter *parameter = &reading->space.parameters[i];
            for (int at = 0; at < parameter->count; at++) {
                double value = prior(user, family, parameter->name, parameter->choices[at],
                                     candidates->expected);
                reading->prior[i][step_of_choice(parameter, at)] = value;
                known = known || value != 0;
            }
        }
    }
    return known;
}

// The logarithm of the time that is expected and known from elsewhere, but for what all candidates
// have in common.
static double promise(const struct kg_candidates *candidates, const struct kg_candidate *candidate)
{
    const struct kg_reading *reading = &candidates->readings[candidate->reading];
    double sum = reading->form + (candidates->expected ? log(candidate->expected) : 0);
    for (int i = 0; i < reading->space.count; i++)
        sum += reading->prior[i][candidate->step[i]];
    return sum;
}

// Whether a candidate differs from the guess in at most two values: those that are good one by one
// may be bad together. Families are not exchanged: expected times are off by a factor for each that
// is another one for other shapes (three products took 1.4 to 1.9 times as long).
static bool is_near(const struct kg_candidate *candidate, const struct kg_candidate *guess)
{
    const int most_changes = 2;
    int changes = 0;
    for (int i = 0; i < KG_MAX_PARAMETERS; i++)
        changes += candidate->step[i] != guess->step[i];
    return candidate->reading == guess->reading && changes <= most_changes;
}

int kg_candidates_first(const struct kg_candidates *candidates, int guess)
{
    const double clear = 0.03;
    int first = guess;
    double least = guess >= 0 ? promise(candidates, &candidates->items[guess]) - clear : INFINITY;
    for (int i = 0; i < candidates->count; i++) {
        if (guess >= 0 && !is_near(&candidates->items[i], &candidates->items[guess]))
            continue;
        double value = promise(candidates, &candidates->items[i]);
        bool nearer = first >= 0 && first != guess && value == least &&
                      candidates->items[i].distance < candidates->items[first].distance;
        if (value < least || nearer) {
            least = value;
            first = i;
        }
    }
    return first;
}
