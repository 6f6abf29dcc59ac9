// Families: one strategy each for turning a group of nests into one kernel. One file per family,
// all with the same anatomy in the same order:
//
//     applicable -> space -> valid -> guess -> bound -> emit
//
// and, where they have more to say, list and estimate.
//
// A family sees a group of consecutive nests of a problem. It never looks at concrete sizes when it
// emits: a kernel works for every size of its op (sizes and strides are arguments). Sizes may steer
// `guess`, `bound` and the order of loops chosen by a parameter.

#ifndef KG_GEN_FAMILY_H
#define KG_GEN_FAMILY_H

#include "analyze/problem.h"
#include "analyze/roofline.h"
#include "base/text.h"
#include "device/device.h"

#define KG_MAX_PARAMETERS 12
#define KG_MAX_CHOICES 24

struct kg_parameter {
    const char *name; // "vector", "rows", "unroll": shown to users, part of wisdom
    int count;
    int64_t choices[KG_MAX_CHOICES]; // in the order a search tries them
};

struct kg_space {
    int count;
    struct kg_parameter parameters[KG_MAX_PARAMETERS];
};

// Values in the order of the family's space; unused entries are 0.
struct kg_config {
    int64_t value[KG_MAX_PARAMETERS];
};

// Consecutive nests [first, first + count) that become one kernel. Locals written and read only
// inside the group need not exist in memory.
struct kg_group {
    const struct kg_problem *problem;
    int first;
    int count;
};

static inline const struct kg_nest *kg_group_nest(const struct kg_group *group, int position)
{
    return group->problem->nests[group->first + position];
}

// What a kernel launches for a problem, on devices that run grids.
#define KG_MAX_GRIDS 4
struct kg_grids {
    int count;
    struct kg_grid grids[KG_MAX_GRIDS]; // by function; a function without blocks does not run
    // Where some tensor does not lie at a multiple of `alignment` bytes, these instead. 0: places
    // do not matter.
    int alignment;
    struct kg_grid unaligned[KG_MAX_GRIDS];
    size_t scratch; // bytes of memory that the kernel's functions share; not cleared
    // Tensor maps behind the arguments of gen/arguments.h, for `grids` and for `unaligned`; a
    // function that uses none of the last ones need not declare them. A map of nothing (rank 0, or
    // a shape with a 0) is there but not encoded: nobody may copy through it.
    int map_count;
    struct kg_map maps[KG_MAX_MAPS];
    struct kg_map unaligned_maps[KG_MAX_MAPS];
};

// Takes a config that a family lists; false: that was enough.
typedef bool kg_config_take(void *user, const struct kg_config *config);

enum kg_target { KG_TARGET_HOST, KG_TARGET_CUDA, KG_TARGET_TRITON, KG_TARGET_COUNT };

struct kg_family {
    const char *name;
    const char *summary; // one line
    // Does the family fit this group on this device? If not, says why in `reason` and is false.
    bool (*applicable)(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_text *reason);
    void (*space)(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_space *space);
    // False, with the reason, for values that cannot work or cannot win.
    bool (*valid)(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, const struct kg_config *config, struct kg_text *reason);
    void (*guess)(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_config *config);
    // Least seconds the config can take: compulsory bytes, operations, waves. Never above the
    // truth.
    double (*bound)(const struct kg_group *group, const struct kg_device_facts *facts,
                    enum kg_target target, const struct kg_config *config);
    // The configs that a search chooses from, each once, the guess among them, all of them valid,
    // and a few thousand at most: for a family most of whose space is void. NULL: every valid
    // config of the space.
    void (*list)(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, kg_config_take *take, void *user);
    // Seconds that the config is expected to take, with cold caches: searches go by it, corrected
    // by what they measure. 0: not known. NULL: of none.
    double (*estimate)(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, const struct kg_config *config);
    // Appends the complete source of the kernel `entry`. False when out of memory; a target the
    // family does not have was refused by `applicable`.
    bool (*emit)(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, const struct kg_config *config, const char *entry,
                 struct kg_text *source);
    // What to launch of the kernel that `emit` writes for the config. Looks at sizes, as `guess`
    // does. NULL for targets that know no grids.
    void (*grids)(const struct kg_group *group, const struct kg_device_facts *facts,
                  const struct kg_config *config, struct kg_grids *grids);
};

// The families of a target, best first; ends with `direct`, then NULL.
const struct kg_family *const *kg_families(enum kg_target target);
// NULL when the target has none of that name.
const struct kg_family *kg_family_find(enum kg_target target, const char *name);

// How many configs the space holds (valid or not), and the n-th of them.
int64_t kg_space_size(const struct kg_space *space);
struct kg_config kg_space_config(const struct kg_space *space, int64_t n);
// "tile=64 unroll=4" and back. Reading fails on unknown names and on values outside the space.
void kg_config_print(const struct kg_space *space, const struct kg_config *config,
                     struct kg_text *text);
bool kg_config_read(const struct kg_space *space, const char *text, struct kg_config *config);

// A partition of a problem into groups, each with the family that will do it.
struct kg_partition {
    int count;
    struct kg_group groups[KG_MAX_NESTS];
    const struct kg_family *families[KG_MAX_NESTS];
};

// Greedy: from the first nest on, the longest group that some family takes, families in table
// order. Cannot fail on a checked problem: `direct` takes any single nest. `trace`, when not NULL,
// receives one line per refusal, for `explain`.
void kg_gen_partition(const struct kg_problem *problem, const struct kg_device_facts *facts,
                      enum kg_target target, struct kg_partition *partition, struct kg_text *trace);

// Does tensor `id` have to exist in memory, given the partition? Inputs and outputs always do.
bool kg_gen_in_memory(const struct kg_partition *partition, int tensor_id);

#endif
