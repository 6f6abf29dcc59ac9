// Groupings: the ways of cutting an op's nests into kernels that are worth comparing.
//
// A grouping is a candidate like a config. The one with the shortest expected time is found from
// the expected times of every family's guess for every run of nests. It competes with the rule's
// grouping, the one with every product in a kernel of its own, the one with a kernel for each nest,
// and the plain loops of the baseline.

#ifndef KG_GEN_GROUPING_H
#define KG_GEN_GROUPING_H

#include "gen/choice.h"

enum kg_grouping_kind {
    KG_GROUPING_RULE,     // the longest runs that some family is advised to take
    KG_GROUPING_EXPECTED, // the shortest expected time
    KG_GROUPING_FITTED,   // the shortest of families whose expected times are fitted
    KG_GROUPING_PRODUCTS, // the same with every product of matrices in a kernel of its own
    KG_GROUPING_SINGLE,   // a kernel for each nest, by the family with the shortest time
    KG_GROUPING_PLAIN,    // plain loops, nest by nest: the baseline's
    KG_GROUPING_COUNT
};
extern const char *const kg_grouping_names[KG_GROUPING_COUNT];

struct kg_grouping_option {
    enum kg_grouping_kind kind;
    struct kg_choice choice; // every family's guess
    double expected;         // seconds; 0: unknown for some group
};

// Each grouping once, under its first kind; `chosen` is the one to take without measurements.
struct kg_groupings {
    int count;
    int chosen;
    struct kg_grouping_option options[KG_GROUPING_COUNT];
};

// Returns false when out of memory. `trace`, if not NULL, receives a line for each family that the
// rule tried and that cannot take a group, with the reason.
bool kg_groupings_list(const struct kg_problem *problem, const struct kg_device_facts *facts,
                       const struct kg_target *target, struct kg_groupings *groupings,
                       struct kg_text *trace);

// Groupings beside the one of `choice`: those of kg_groupings_list, and `choice` with two
// consecutive groups made one, or with one cut in two. New groups have the family of the least
// expected time, or the first that is advised. At most KG_MAX_REGROUPINGS; returns their number.
#define KG_MAX_REGROUPINGS 32
int kg_groupings_beside(const struct kg_problem *problem, const struct kg_device_facts *facts,
                        const struct kg_target *target, const struct kg_choice *choice,
                        struct kg_choice others[KG_MAX_REGROUPINGS]);

// Plain loops, nest by nest: the baseline of every plan. No groups when out of memory.
void kg_choice_plain(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *target, struct kg_choice *choice);

#endif
