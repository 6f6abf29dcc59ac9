#include "store/favourites.h"

#include "store/database.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.95      // of the best's speed: slower configs have no vote
#define SHARPNESS 10.0 // of a problem's vote, a config at NEAR has 0.6 of the best's share
#define ALIKE 0.5      // more votes of a problem of the same dtype; of the same bucket

// "rowwise" of "rowwise*4: lanes=32": the length of the family's name, and its config. Returns
// false for choices of several kernels.
static bool split(const char *choice, size_t *family, const char **config)
{
    const char *colon = strstr(choice, ": ");
    *family = strcspn(choice, "*:");
    if (strchr(choice, ';') || !colon || *family == 0)
        return false;
    *config = colon + 2;
    return true;
}

static struct kg_favourite *find(const struct kg_favourites *favourites, const char *family,
                                 size_t length, const char *config)
{
    for (int i = 0; i < favourites->count; i++) {
        struct kg_favourite *one = &favourites->list[i];
        if (strncmp(one->family, family, length) == 0 && one->family[length] == '\0' &&
            strcmp(one->config, config) == 0)
            return one;
    }
    return NULL;
}

static bool vote(struct kg_favourites *favourites, const char *choice, double share)
{
    const char *config;
    size_t length;
    if (!split(choice, &length, &config))
        return true;
    struct kg_favourite *one = find(favourites, choice, length, config);
    if (one) {
        one->fresh += share;
        return true;
    }
    if (favourites->count == favourites->capacity) {
        int capacity = favourites->capacity ? 2 * favourites->capacity : 16;
        struct kg_favourite *larger = realloc(favourites->list, (size_t)capacity * sizeof *larger);
        if (!larger)
            return false;
        favourites->list = larger;
        favourites->capacity = capacity;
    }
    favourites->list[favourites->count++] =
        (struct kg_favourite){kg_arena_copy(&favourites->arena, choice, length),
                              kg_arena_copy(&favourites->arena, config, strlen(config)), 0, share};
    return !favourites->arena.failed;
}

// Counts the votes of a problem of which `near` candidates came near the best.
static void count(struct kg_favourites *favourites, double weight, int near)
{
    for (int i = 0; i < favourites->count && near > 0; i++) {
        struct kg_favourite *one = &favourites->list[i];
        one->votes += weight * one->fresh / near;
        one->fresh = 0;
    }
}

// The most votes first; equals by the alphabet.
static int by_votes(const void *a, const void *b)
{
    const struct kg_favourite *one = a, *other = b;
    int order = (one->votes < other->votes) - (one->votes > other->votes);
    return order ? order : strcmp(one->config, other->config);
}

// ---- The problems of a class ----

// A choice that was measured for a problem. The fastest of each problem comes first, each choice
// once.
struct ballot {
    int64_t problem;
    const char *choice;
    double seconds;
    double weight; // of the problem
};

static bool next_ballot(struct kg_query *query, const struct kg_traits *traits,
                        struct ballot *ballot)
{
    if (!kg_query_step(query))
        return false;
    ballot->problem = kg_query_integer(query);
    ballot->choice = kg_query_text(query);
    ballot->seconds = kg_query_number(query);
    bool same_dtype = strcmp(kg_query_text(query), traits->dtype) == 0;
    bool same_bucket = strcmp(kg_query_text(query), traits->bucket) == 0;
    ballot->weight = 1 + ALIKE * same_dtype + ALIKE * same_bucket;
    return true;
}

static struct kg_query ask(struct kg_store *store, const struct kg_traits *traits, const char *isa,
                           const char *without)
{
    const char *filters[] = {traits->class, isa, without};
    struct kg_query query = kg_query_begin(store, KG_SQL_BEST_OF_CLASS);
    for (int i = 0; i < 3; i++)
        kg_query_bind_text(&query, filters[i]);
    return query;
}

// A config that came near the best has a share of its problem's vote.
static double share_of(double seconds, double best)
{
    return seconds > 0 && NEAR * seconds <= best ? pow(best / seconds, SHARPNESS) : 0;
}

static enum kg_status count_votes(struct kg_store *store, const struct kg_traits *traits,
                                  const char *isa, const char *without,
                                  struct kg_favourites *favourites, struct kg_error *error)
{
    struct ballot ballot;
    int64_t problem = -1;
    double best = INFINITY, weight = 0;
    int near = 0;
    bool whole = true;
    struct kg_query query = ask(store, traits, isa, without);
    while (whole && next_ballot(&query, traits, &ballot)) {
        if (ballot.problem != problem) {
            count(favourites, weight, near);
            best = ballot.seconds;
            weight = ballot.weight;
            near = 0;
            favourites->problems++;
        }
        problem = ballot.problem;
        double share = share_of(ballot.seconds, best);
        if (share > 0) {
            near += strchr(ballot.choice, ';') == NULL;
            whole = vote(favourites, ballot.choice, share);
        }
    }
    count(favourites, weight, near);
    if (whole && favourites->count > 0) // else texts may be missing
        qsort(favourites->list, (size_t)favourites->count, sizeof *favourites->list, by_votes);
    enum kg_status status = kg_query_end(&query, error);
    return status == KG_OK && !whole ? kg_error_memory(error, "favourites") : status;
}

// ---- Favourites ----

enum kg_status kg_favourites_load(struct kg_store *store, const struct kg_traits *traits,
                                  const char *isa, const char *without,
                                  struct kg_favourites *favourites, struct kg_error *error)
{
    *favourites = (struct kg_favourites){0};
    return count_votes(store, traits, isa, without, favourites, error);
}

void kg_favourites_free(struct kg_favourites *favourites)
{
    free(favourites->list);
    kg_arena_free(&favourites->arena);
    *favourites = (struct kg_favourites){0};
}

const char *kg_favourites_find(const struct kg_favourites *favourites, const char *family, int rank)
{
    for (int i = 0; i < favourites->count; i++)
        if (strcmp(favourites->list[i].family, family) == 0 && rank-- == 0)
            return favourites->list[i].config;
    return NULL;
}
