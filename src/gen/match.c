// Families' matches of groups, cached with the problem.
//
// The cache is a list to which matches are only ever added, by compare-and-swap. So it is read
// without a lock, and a fork while another thread adds to it leaves the child a consistent list.
// Two threads that need the same match at the same time both make it, and both use the one that was
// added first.

#include "gen/family.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COPIES 256.0 // of one intermediate in a kernel
enum { BUCKETS = 64 };

struct entry {
    struct entry *next;
    struct kg_arena arena;
    bool fits;
    struct kg_match match;
};

struct known_facts {
    struct known_facts *next;
    struct kg_device_facts facts;
};

struct matches {
    struct kg_problem_cache cache; // first: what the problem frees
    _Atomic(struct entry *) buckets[BUCKETS];
    _Atomic(struct known_facts *) facts;
};

static void free_entry(struct entry *entry)
{
    if (entry)
        kg_arena_free(&entry->arena);
    free(entry);
}

static void free_matches(struct kg_problem_cache *cache)
{
    struct matches *matches = (struct matches *)cache;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *entry = matches->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            free_entry(entry);
        }
    for (struct known_facts *facts = matches->facts, *next; facts; facts = next) {
        next = facts->next;
        free(facts);
    }
    free(matches);
}

static struct matches *matches_of(const struct kg_problem *problem)
{
    struct kg_problem_cache *cache = atomic_load(problem->cache);
    if (cache)
        return (struct matches *)cache;
    struct matches *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->cache.free = free_matches;
    if (atomic_compare_exchange_strong(problem->cache, &cache, &made->cache))
        return made;
    free(made);
    return (struct matches *)cache;
}

// The matches' own copy of the facts: a device may be closed before the problem is freed.
static const struct kg_device_facts *keep_facts(struct matches *matches,
                                                const struct kg_device_facts *facts)
{
    struct known_facts *first = atomic_load(&matches->facts);
    for (struct known_facts *known = first; known; known = known->next)
        if (&known->facts == facts || memcmp(&known->facts, facts, sizeof *facts) == 0)
            return &known->facts;
    struct known_facts *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    memcpy(&made->facts, facts, sizeof *facts);
    made->next = first;
    while (!atomic_compare_exchange_weak(&matches->facts, &made->next, made))
        continue;
    return &made->facts;
}

static struct entry *find_entry(struct entry *entry, const struct kg_family *family,
                                const struct kg_group *group, const struct kg_device_facts *facts)
{
    for (; entry; entry = entry->next)
        if (entry->match.family == family && entry->match.group.first == group->first &&
            entry->match.group.count == group->count && entry->match.facts == facts)
            return entry;
    return NULL;
}

// Families may compute an intermediate wherever it is read. How often would that be, if every nest
// of the group were computed so? A sum of two reads of the statement before, twenty times over,
// makes a million.
static double count_copies(const struct kg_group *group)
{
    double copies[KG_MAX_NESTS] = {0}, most = 1;
    for (int i = group->count - 1; i >= 0; i--) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        copies[i] = copies[i] > 1 ? copies[i] : 1;
        most = copies[i] > most ? copies[i] : most;
        for (int j = 0; j < nest->access_count; j++)
            for (int k = 0; k < i; k++)
                if (kg_group_nest(group, k)->output == nest->accesses[j].tensor)
                    copies[k] += copies[i];
    }
    return most;
}

// NULL when out of memory.
static struct entry *make_entry(const struct kg_family *family, const struct kg_group *group,
                                const struct kg_device_facts *facts, struct kg_text *reason)
{
    struct entry *entry = calloc(1, sizeof *entry);
    struct kg_text ignored = {0};
    if (!entry)
        return NULL;
    entry->match = (struct kg_match){.family = family, .group = *group, .facts = facts};
    struct kg_text *why = reason ? reason : &ignored;
    if (count_copies(group) > MOST_COPIES)
        kg_text_add(why, "an intermediate would be computed over and over");
    else
        entry->match.analysis = family->match(&entry->match.group, facts, &entry->arena, why);
    kg_text_free(&ignored);
    entry->fits = entry->match.analysis != NULL;
    if (!entry->arena.failed)
        return entry;
    free_entry(entry);
    return NULL;
}

const struct kg_match *kg_match_find(const struct kg_family *family, const struct kg_group *group,
                                     const struct kg_device_facts *facts, struct kg_text *reason)
{
    struct matches *matches = matches_of(group->problem);
    const struct kg_device_facts *kept = matches ? keep_facts(matches, facts) : NULL;
    if (!kept)
        return NULL;
    size_t bucket = (size_t)(group->first * 31 + group->count * 7) % BUCKETS;
    struct entry *first = atomic_load(&matches->buckets[bucket]);
    struct entry *entry = find_entry(first, family, group, kept);
    if (entry && (entry->fits || !reason))
        return entry->fits ? &entry->match : NULL;
    struct entry *made = make_entry(family, group, kept, reason);
    if (entry || !made) { // refused before: only the reason was needed
        free_entry(made);
        return NULL;
    }
    for (;;) {
        made->next = first;
        if (atomic_compare_exchange_weak(&matches->buckets[bucket], &first, made))
            return made->fits ? &made->match : NULL;
        entry = find_entry(first, family, group, kept);
        if (entry) {
            free_entry(made);
            return entry->fits ? &entry->match : NULL;
        }
    }
}

const struct kg_match *kg_match_again(const struct kg_match *match,
                                      const struct kg_problem *problem)
{
    if (match->group.problem == problem)
        return match;
    struct kg_group group = {problem, match->group.first, match->group.count};
    return kg_match_find(match->family, &group, match->facts, NULL);
}
