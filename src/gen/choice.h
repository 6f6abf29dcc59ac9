// A choice: for every group of a problem a family, as it reads the group, and a config. As text it
// is what records and wisdom hold.

#ifndef KG_GEN_CHOICE_H
#define KG_GEN_CHOICE_H

#include "gen/target.h"

// The groups that become kernels, in order, each as the family reads it that makes its kernel.
struct kg_choice {
    int count;
    const struct kg_match *matches[KG_MAX_NESTS];
    struct kg_config configs[KG_MAX_NESTS];
};

// What is chosen with nothing measured: the grouping of least expected time, or a rule's where some
// time is not known, with every family's guess. No groups when out of memory.
void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *target, struct kg_choice *choice);

// Seconds that the families expect of all groups together; 0: some family does not say.
double kg_choice_expected(const struct kg_choice *choice);
// The same of their bounds.
double kg_choice_bound(const struct kg_choice *choice);

// "rowwise*4: block=4 stream=1" per group, joined by "; ". And back, for the same problem: false
// when it does not fit (other families, unknown values).
void kg_choice_print(const struct kg_choice *choice, struct kg_text *text);
bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    const struct kg_target *target, const char *text, struct kg_choice *choice);

// Does tensor `id` have to exist in memory? Inputs and outputs always do.
bool kg_choice_in_memory(const struct kg_choice *choice, int tensor_id);

// The source of one group's kernel, called `entry`.
bool kg_choice_source(const struct kg_choice *choice, int group, const char *entry,
                      struct kg_text *source);
// What the kernel of one group is called in a file that holds those of all groups.
void kg_choice_entry(const struct kg_choice *choice, int group, char *entry, size_t size);

#endif
