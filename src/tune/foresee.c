// What a search would choose and try first, without measuring: see search.h.

#include "tune/group_search.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ESTIMATED 4096 // candidates of one group, where nothing is measured

// Whether patterns replaced one group's config.
static bool correct_group(const struct kg_search *search, struct kg_choice *choice, int group)
{
    const struct kg_match *match = choice->matches[group];
    struct kg_candidates *candidates;
    bool corrected = false;
    if (!kg_candidates_are_known(match, search->prior, search->user) ||
        !(candidates = malloc(sizeof *candidates)))
        return false;
    if (kg_candidates_list(match, search->target, MAX_ESTIMATED, NULL, NULL, candidates, NULL) ==
        KG_OK) {
        kg_candidates_advise(candidates, search->prior, search->user);
        int guess = kg_candidates_find(candidates, match, &choice->configs[group]);
        int at = kg_candidates_first(candidates, guess);
        corrected = at >= 0 && at != guess;
        if (corrected) {
            const struct kg_candidate *first = &candidates->items[at];
            choice->matches[group] = candidates->readings[first->reading].match;
            choice->configs[group] = first->config;
        }
        kg_candidates_free(candidates);
    }
    free(candidates);
    return corrected;
}

bool kg_search_estimate(const struct kg_search *search, struct kg_choice *choice)
{
    bool corrected = false;
    kg_choice_guess(search->problem, &search->device->facts, search->target, choice);
    for (int group = 0; group < choice->count && search->prior; group++)
        corrected |= correct_group(search, choice, group);
    return corrected;
}

// The group with the largest bound.
static int find_costliest(const struct kg_choice *choice)
{
    int group = 0;
    double max = -1;
    for (int i = 0; i < choice->count; i++) {
        const struct kg_match *match = choice->matches[i];
        double bound = match->family->bound(match, &choice->configs[i]);
        group = bound > max ? i : group;
        max = bound > max ? bound : max;
    }
    return group;
}

int kg_search_foresee(const struct kg_search *search, struct kg_choice choices[KG_MAX_FORESEEN])
{
    int picked[KG_MAX_BATCH], count = 1;
    struct kg_candidates candidates;
    kg_choice_guess(search->problem, &search->device->facts, search->target, &choices[0]);
    if (choices[0].count == 0)
        return 0;
    int starts = kg_search_starts(search, &choices[0], &choices[1]);
    for (int i = 1; i <= starts; i++)
        if (memcmp(&choices[i], &choices[0], sizeof choices[0]) != 0)
            choices[count++] = choices[i];
    int group = find_costliest(&choices[0]);
    const struct kg_match *match = choices[0].matches[group];
    if (kg_candidates_list(match, search->target, KG_MAX_CONFIGS, NULL, NULL, &candidates, NULL) !=
        KG_OK)
        return count;
    if (search->prior)
        kg_candidates_advise(&candidates, search->prior, search->user);
    int at = kg_candidates_find(&candidates, match, &choices[0].configs[group]);
    if (at >= 0) {
        candidates.items[at].state = KG_CANDIDATE_TRIED;
        candidates.items[at].seconds = 1;
    }
    if (kg_search_rule_of(search)->prune)
        kg_candidates_hold(&candidates);
    int next = kg_candidates_pick(&candidates, at, kg_search_batch(search->device), picked);
    for (int i = 0; i < next; i++) {
        const struct kg_candidate *candidate = &candidates.items[picked[i]];
        choices[count] = choices[0];
        choices[count].matches[group] = candidates.readings[candidate->reading].match;
        choices[count++].configs[group] = candidate->config;
    }
    kg_candidates_free(&candidates);
    return count;
}
