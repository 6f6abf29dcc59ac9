// Families: one strategy each for turning a group of nests into one kernel. One file per family,
// all with the same functions in the same order:
//
//     match -> advised -> space -> valid -> guess -> bound -> expected -> emit -> grids
//
// A family analyses a group once: `match` returns the analysis, and all other functions receive it.
// A kernel works for every size of its op (sizes and strides are arguments), so the results of
// `match` and `emit` never depend on sizes; those of `advised`, `guess`, `bound`, `expected`,
// `list` and `grids` do.
//
// A family with several forms of kernel has a row for each, called "contract/wgmma": forms share an
// analysis, and each has parameters of its own.

#ifndef KG_GEN_FAMILY_H
#define KG_GEN_FAMILY_H

#include "analyze/bottleneck.h"
#include "analyze/problem.h"
#include "analyze/roofline.h"
#include "base/text.h"
#include "device/device.h"

#define KG_MAX_PARAMETERS 14
#define KG_MAX_CHOICES 24

struct kg_parameter {
    const char *name;      // "vector", "rows", "unroll": shown to users, part of wisdom
    enum kg_change change; // the kind of change that another value makes
    int count;
    int64_t choices[KG_MAX_CHOICES]; // in the order a search tries them
    bool optional;                   // in texts: the first choice where it is not given
};

struct kg_space {
    int count;
    bool failed; // more was appended than there is room for
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
    // Launched instead if some tensor's address is not a multiple of `alignment` bytes. 0: any
    // alignment will do.
    int alignment;
    struct kg_grid unaligned[KG_MAX_GRIDS];
    size_t scratch; // bytes of memory that the kernel's functions share; not cleared
    // Tensor maps, passed after the arguments of gen/arguments.h, for `grids` and for `unaligned`;
    // a function need not declare the last ones if it does not use them. An empty map (rank 0, or a
    // shape with a 0) is passed as zeros and must not be used for copies.
    int map_count;
    struct kg_map maps[KG_MAX_MAPS];
    struct kg_map unaligned_maps[KG_MAX_MAPS];
};

struct kg_family;

// A group that a family can take, for one kind of device. Lives as long as the group's problem.
struct kg_match {
    const struct kg_family *family;
    struct kg_group group;
    const struct kg_device_facts *facts;
    const void *analysis; // the family's own
};

// Takes a config that a family lists; returns false to stop.
typedef bool kg_config_take(void *user, const struct kg_config *config);

struct kg_family {
    const char *name;
    const char *summary; // one line
    // The family's analysis of the group, allocated in the arena; NULL, with the reason, if the
    // family cannot take the group. Does not depend on sizes.
    const void *(*match)(const struct kg_group *group, const struct kg_device_facts *facts,
                         struct kg_arena *arena, struct kg_text *reason);
    // Whether the rule would take this family for these sizes; if not, says why. Decides between
    // families only if expected times are unknown. NULL: always.
    bool (*advised)(const struct kg_match *match, struct kg_text *reason);
    void (*space)(const struct kg_match *match, struct kg_space *space);
    // Returns false, with the reason, for configs that cannot work or cannot be the fastest.
    bool (*valid)(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason);
    // A config by rule, without measurements. Valid if the family is advised.
    void (*guess)(const struct kg_match *match, struct kg_config *config);
    // A lower bound of the config's time in seconds, from compulsory bytes, operations and waves.
    double (*bound)(const struct kg_match *match, const struct kg_config *config);
    // The expected time of the config in seconds, with cold caches: groupings and families are
    // chosen by it. 0: unknown. NULL: always unknown.
    double (*expected)(const struct kg_match *match, const struct kg_config *config);
    // Expected times order the configs of a group well enough for searches, which correct them by
    // measurements.
    bool orders_configs;
    // Expected times are fitted to measurements, and may be compared with those of other such
    // families: these replace each other for a small gain.
    bool is_fitted;
    // Lists the configs that a search chooses from: each once, valid, the guess among them, at most
    // a few thousand. For families most of whose space is invalid. NULL: every valid config.
    void (*list)(const struct kg_match *match, kg_config_take *take, void *user);
    // Appends the complete source of the kernel `entry`. False when out of memory.
    bool (*emit)(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source);
    // The launches of the kernel that `emit` writes. NULL for targets without grids.
    void (*grids)(const struct kg_match *match, const struct kg_config *config,
                  struct kg_grids *grids);
};

// The family's match of a group, the same object every time and in every thread. NULL if the family
// cannot take the group, or when out of memory; the reason is appended to `reason`, which may be
// NULL.
const struct kg_match *kg_match_find(const struct kg_family *family, const struct kg_group *group,
                                     const struct kg_device_facts *facts, struct kg_text *reason);
// The same family's match of the same nests of another problem of the instance.
const struct kg_match *kg_match_again(const struct kg_match *match,
                                      const struct kg_problem *problem);

static inline bool kg_match_is_advised(const struct kg_match *match, struct kg_text *reason)
{
    return !match->family->advised || match->family->advised(match, reason);
}

// Appends a parameter with its choices. Too many of either mark the space as failed.
void kg_space_add(struct kg_space *space, const char *name, enum kg_change change, int count,
                  const int64_t *choices);
// The same for a parameter that a family did not have once: configs on record from that time are
// those with its first choice.
void kg_space_add_optional(struct kg_space *space, const char *name, enum kg_change change,
                           int count, const int64_t *choices);
// How many configs the space holds (valid or not), and the n-th of them.
int64_t kg_space_size(const struct kg_space *space);
struct kg_config kg_space_config(const struct kg_space *space, int64_t n);
// "tile=64 unroll=4" and back. Reading fails on unknown names and on values outside the space.
void kg_config_print(const struct kg_space *space, const struct kg_config *config,
                     struct kg_text *text);
bool kg_config_read(const struct kg_space *space, const char *text, struct kg_config *config);

#endif
