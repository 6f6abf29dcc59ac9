// A choice: for every group of a problem a family (by its match) and a config. Records and wisdom
// store it as text.

#ifndef KG_GEN_CHOICE_H
#define KG_GEN_CHOICE_H

#include "gen/target.h"

// The groups that become kernels, in order.
struct kg_choice {
    int count;
    const struct kg_match *matches[KG_MAX_NESTS];
    struct kg_config configs[KG_MAX_NESTS];
};

// The choice without measurements: the grouping with the shortest expected time, or the rule's if
// some time is unknown, with every family's guess. No groups when out of memory.
void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *target, struct kg_choice *choice);

// The expected time of all groups together, in seconds; 0: unknown for some group.
double kg_choice_expected(const struct kg_choice *choice);
// The sum of their bounds.
double kg_choice_bound(const struct kg_choice *choice);

// Whether both make the same nests one kernel.
bool kg_choice_has_same_groups(const struct kg_choice *a, const struct kg_choice *b);

// "rowwise*4: block=4 stream=1" per group, joined by "; ". Reading returns false if the text does
// not fit the problem or the families.
void kg_choice_print(const struct kg_choice *choice, struct kg_text *text);
bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    const struct kg_target *target, const char *text, struct kg_choice *choice);

// Does tensor `id` have to exist in memory? Inputs and outputs always do.
bool kg_choice_in_memory(const struct kg_choice *choice, int tensor_id);

// The source of one group's kernel, called `entry`.
bool kg_choice_source(const struct kg_choice *choice, int group, const char *entry,
                      struct kg_text *source);
// The name of a group's kernel in a file with the kernels of all groups.
void kg_choice_entry(const struct kg_choice *choice, int group, char *entry, size_t size);

#endif
