#include "store/favourites.h"

#include "store/database.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.95        // of the best's speed: slower configs have no share
#define SHARPNESS 10.0   // a config at NEAR has 0.6 of the best's share
#define ALIKE 0.5        // more weight of a problem of the same dtype; of the same bucket
#define DOUBT 2.0        // problems in which a config was not good, beside those on record
#define LEAST_CHANCE 0.2 // that is worth measuring a config

// ---- Reading the records ----

struct reading {
    struct kg_favourites *favourites;
    const struct kg_traits *traits;
    const char *config; // of the last row
    int since;          // the first favourite with that config
    bool failed;
};

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

static void *grow(void *list, int *capacity, size_t size)
{
    int larger = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(list, (size_t)larger * size);
    if (grown)
        *capacity = larger;
    return grown;
}

// The favourite of a family and a config; rows with the same config follow each other. -1: there is
// no memory.
static int favourite_of(struct reading *reading, const char *family, size_t length,
                        const char *config)
{
    struct kg_favourites *favourites = reading->favourites;
    if (!reading->config || strcmp(reading->config, config) != 0) {
        reading->config = kg_arena_copy(&favourites->arena, config, strlen(config));
        reading->since = favourites->count;
    }
    for (int i = reading->since; i < favourites->count; i++)
        if (strncmp(favourites->list[i].family, family, length) == 0 &&
            favourites->list[i].family[length] == '\0')
            return i;
    if (favourites->count == favourites->capacity) {
        struct kg_favourite *list =
            grow(favourites->list, &favourites->capacity, sizeof *favourites->list);
        if (!list)
            return -1;
        favourites->list = list;
    }
    const char *name = kg_arena_copy(&favourites->arena, family, length);
    if (favourites->arena.failed)
        return -1;
    favourites->list[favourites->count] = (struct kg_favourite){name, reading->config, 0};
    return favourites->count++;
}

// A config that came near the best has a share in it.
static double share_of(double speed)
{
    return speed >= NEAR ? pow(fmin(speed, 1), SHARPNESS) : 0;
}

static void read_row(struct reading *reading, struct kg_query *query)
{
    struct kg_favourites *favourites = reading->favourites;
    const char *choice = kg_query_text(query), *config;
    int problem = (int)kg_query_integer(query);
    double share = share_of(kg_query_number(query));
    bool same_dtype = strcmp(kg_query_text(query), reading->traits->dtype) == 0;
    bool same_bucket = strcmp(kg_query_text(query), reading->traits->bucket) == 0;
    size_t family;
    if (problem >= favourites->problems)
        favourites->problems = problem + 1;
    if (!split(choice, &family, &config))
        return;
    int favourite = favourite_of(reading, choice, family, config);
    if (favourite >= 0 && favourites->ballot_count == favourites->ballot_capacity) {
        struct kg_ballot *ballots =
            grow(favourites->ballots, &favourites->ballot_capacity, sizeof *favourites->ballots);
        if (ballots)
            favourites->ballots = ballots;
        else
            favourite = -1;
    }
    reading->failed = favourite < 0;
    if (favourite >= 0)
        favourites->ballots[favourites->ballot_count++] = (struct kg_ballot){
            favourite, problem, 1 + ALIKE * same_dtype + ALIKE * same_bucket, share};
}

// ---- Chances ----

// What a favourite's ballots are worth where the problems are served so far. `chances` and
// `weights` have room for one number of each favourite.
static void weigh(const struct kg_favourites *favourites, const double *served, double *chances,
                  double *weights)
{
    for (int i = 0; i < favourites->count; i++) {
        chances[i] = 0;
        weights[i] = DOUBT;
    }
    for (int i = 0; i < favourites->ballot_count; i++) {
        const struct kg_ballot *ballot = &favourites->ballots[i];
        chances[ballot->favourite] +=
            ballot->weight * ballot->share * (1 - served[ballot->problem]);
        weights[ballot->favourite] += ballot->weight;
    }
    for (int i = 0; i < favourites->count; i++)
        chances[i] /= weights[i];
}

static void serve(const struct kg_favourites *favourites, int favourite, double *served)
{
    for (int i = 0; i < favourites->ballot_count; i++) {
        const struct kg_ballot *ballot = &favourites->ballots[i];
        if (ballot->favourite == favourite)
            served[ballot->problem] = fmax(served[ballot->problem], ballot->share);
    }
}

struct figures {
    double *chances, *weights; // of the favourites
    double *served;            // of the problems
};

// Returns false if there is no memory. `chances` is what to free.
static bool make_figures(const struct kg_favourites *favourites, struct figures *figures)
{
    size_t count = (size_t)favourites->count + 1, problems = (size_t)favourites->problems + 1;
    double *room = calloc(2 * count + problems, sizeof *room);
    if (room)
        *figures = (struct figures){room, room + count, room + 2 * count};
    return room != NULL;
}

static enum kg_status rate(struct kg_favourites *favourites, struct kg_error *error)
{
    struct figures figures;
    if (!make_figures(favourites, &figures))
        return kg_error_memory(error, "favourites");
    weigh(favourites, figures.served, figures.chances, figures.weights);
    for (int i = 0; i < favourites->count; i++)
        favourites->list[i].chance = figures.chances[i];
    free(figures.chances);
    return KG_OK;
}

enum kg_status kg_favourites_load(struct kg_store *store, const struct kg_traits *traits,
                                  const char *isa, const char *without,
                                  struct kg_favourites *favourites, struct kg_error *error)
{
    *favourites = (struct kg_favourites){0};
    struct reading reading = {.favourites = favourites, .traits = traits};
    const char *filters[] = {traits->class, isa, without};
    struct kg_query query = kg_query_begin(store, KG_SQL_TIMES_OF_CLASS);
    for (int i = 0; i < 3; i++)
        kg_query_bind_text(&query, filters[i]);
    while (!reading.failed && kg_query_step(&query))
        read_row(&reading, &query);
    enum kg_status status = kg_query_end(&query, error);
    if (status == KG_OK && reading.failed)
        status = kg_error_memory(error, "favourites");
    return status == KG_OK ? rate(favourites, error) : status;
}

void kg_favourites_free(struct kg_favourites *favourites)
{
    free(favourites->list);
    free(favourites->ballots);
    kg_arena_free(&favourites->arena);
    *favourites = (struct kg_favourites){0};
}

// The one of a family with the best chance, the first of equals; -1: none is worth it.
static int find_best(const struct kg_favourites *favourites, const char *family,
                     const double *chances)
{
    int best = -1;
    for (int i = 0; i < favourites->count; i++) {
        bool better = best < 0 ? chances[i] >= LEAST_CHANCE : chances[i] > chances[best];
        if (better && strcmp(favourites->list[i].family, family) == 0)
            best = i;
    }
    return best;
}

void kg_favourites_offer(const struct kg_favourites *favourites, const char *family, int max,
                         kg_favourites_fits *fits, void *user)
{
    struct figures figures;
    int best, fitted = 0;
    if (!make_figures(favourites, &figures))
        return; // as if nothing were known
    bool *offered = calloc((size_t)favourites->count + 1, sizeof *offered);
    while (offered && fitted < max) {
        weigh(favourites, figures.served, figures.chances, figures.weights);
        for (int i = 0; i < favourites->count; i++)
            figures.chances[i] = offered[i] ? 0 : figures.chances[i];
        best = find_best(favourites, family, figures.chances);
        if (best < 0)
            break;
        offered[best] = true;
        if (!fits(user, favourites->list[best].config))
            continue;
        serve(favourites, best, figures.served);
        fitted++;
    }
    free(offered);
    free(figures.chances);
}
