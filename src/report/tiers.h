// How far each candidate of a search got: what dropped it, or that it was measured.

#ifndef KG_REPORT_TIERS_H
#define KG_REPORT_TIERS_H

#include "tune/search.h"

enum kg_tier {
    KG_TIER_MEASURED,
    KG_TIER_BOUND,        // its family's bound is above the best time
    KG_TIER_INSTRUCTIONS, // the model of its instructions is
    KG_TIER_SAME,         // it runs the same code as another candidate
    KG_TIER_RULE,         // another reason not to run it
    KG_TIER_COMPILE,
    KG_TIER_WRONG,
    KG_TIER_FAULT,
    KG_TIER_TIMEOUT,
    KG_TIER_COUNT
};

struct kg_tier_row {
    const char *class; // of the style sheet
    const char *name;  // "pruned by bound"
};
extern const struct kg_tier_row kg_tiers[KG_TIER_COUNT];

enum kg_tier kg_tier_of(const struct kg_outcome *outcome);

#endif
