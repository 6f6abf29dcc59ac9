// See tiers.h. Records keep why a candidate was pruned as a sentence for people; it begins with one
// of a few phrases.

#include "report/tiers.h"

#include <string.h>

const struct kg_tier_row kg_tiers[KG_TIER_COUNT] = {
    [KG_TIER_MEASURED] = {"measured", "measured"},
    [KG_TIER_BOUND] = {"bound", "pruned by bound"},
    [KG_TIER_INSTRUCTIONS] = {"instructions", "pruned by instructions"},
    [KG_TIER_SAME] = {"same", "same code as another"},
    [KG_TIER_RULE] = {"rule", "pruned by a rule"},
    [KG_TIER_COMPILE] = {"compile", "compile error"},
    [KG_TIER_WRONG] = {"wrong", "wrong"},
    [KG_TIER_FAULT] = {"fault", "fault"},
    [KG_TIER_TIMEOUT] = {"timeout", "timeout"},
};

static const enum kg_tier tier_of_kind[KG_OUTCOME_COUNT] = {
    [KG_OUTCOME_MEASURED] = KG_TIER_MEASURED, [KG_OUTCOME_PRUNED] = KG_TIER_RULE,
    [KG_OUTCOME_INVALID] = KG_TIER_RULE,      [KG_OUTCOME_COMPILE] = KG_TIER_COMPILE,
    [KG_OUTCOME_WRONG] = KG_TIER_WRONG,       [KG_OUTCOME_FAULT] = KG_TIER_FAULT,
    [KG_OUTCOME_TIMEOUT] = KG_TIER_TIMEOUT,
};

// How the reasons of tune/search.c and tune/trials.c begin.
static const struct {
    const char *start;
    enum kg_tier tier;
} reasons[] = {
    {"cannot take less than ", KG_TIER_BOUND},
    {"its instructions cannot take less than ", KG_TIER_INSTRUCTIONS},
    {"the model expects ", KG_TIER_INSTRUCTIONS},
    {"cannot be launched: ", KG_TIER_INSTRUCTIONS},
    {"the same machine code as ", KG_TIER_SAME},
    {"the same source as ", KG_TIER_SAME},
    {"no limit: ", KG_TIER_SAME}, // a limit on registers that changes nothing
};

enum kg_tier kg_tier_of(const struct kg_outcome *outcome)
{
    if (outcome->kind == KG_OUTCOME_PRUNED && outcome->reason)
        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
            if (strncmp(outcome->reason, reasons[i].start, strlen(reasons[i].start)) == 0)
                return reasons[i].tier;
    return tier_of_kind[outcome->kind];
}
