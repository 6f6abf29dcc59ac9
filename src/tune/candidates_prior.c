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

// The number of values that differ from the guess's, in the same family.
static int count_changes(const struct kg_candidate *candidate, const struct kg_candidate *guess)
{
    int changes = 0;
    for (int i = 0; i < KG_MAX_PARAMETERS && candidate->reading == guess->reading; i++)
        changes += candidate->step[i] != guess->step[i];
    return changes;
}

int kg_candidates_first(const struct kg_candidates *candidates, int guess)
{
    const double clear = 0.03;
    const int most_changes = 2; // values that are good one by one may be bad together
    int first = guess;
    double least = guess >= 0 ? promise(candidates, &candidates->items[guess]) - clear : INFINITY;
    for (int i = 0; i < candidates->count; i++) {
        if (guess >= 0 &&
            count_changes(&candidates->items[i], &candidates->items[guess]) > most_changes)
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
