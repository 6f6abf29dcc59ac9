// Groupings: the ways of cutting an op's nests into kernels that are worth comparing.
//
// A grouping is a candidate like a config. What every family that fits a run of nests expects of
// its guess gives the grouping of least expected time; the one a rule would make, the one with
// every product on its own, the one with a kernel for each nest and the plain loops of the baseline
// stand beside it.

#ifndef KG_GEN_GROUPING_H
#define KG_GEN_GROUPING_H

#include "gen/choice.h"

enum kg_grouping_kind {
    KG_GROUPING_RULE,     // the longest runs that some family is advised to take
    KG_GROUPING_EXPECTED, // the least expected time of all
    KG_GROUPING_PRODUCTS, // the same with every product of matrices in a kernel of its own
    KG_GROUPING_SINGLE,   // a kernel for each nest, each by the family that expects least
    KG_GROUPING_PLAIN,    // plain loops, nest by nest: the baseline's
    KG_GROUPING_COUNT
};
extern const char *const kg_grouping_names[KG_GROUPING_COUNT];

struct kg_grouping_option {
    enum kg_grouping_kind kind;
    struct kg_choice choice; // every family's guess
    double expected;         // seconds; 0: some family does not say
};

// Each grouping once, under the first kind that gives it; `chosen` is the one to take where nothing
// is measured.
struct kg_groupings {
    int count;
    int chosen;
    struct kg_grouping_option options[KG_GROUPING_COUNT];
};

// False when out of memory. `trace`, when not NULL, receives a line for each family that the rule
// asked and that does not take a group, with the reason.
bool kg_groupings_list(const struct kg_problem *problem, const struct kg_device_facts *facts,
                       const struct kg_target *target, struct kg_groupings *groupings,
                       struct kg_text *trace);

// Plain loops, nest by nest: what every plan is measured against. No groups when out of memory.
void kg_choice_plain(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *target, struct kg_choice *choice);

#endif
