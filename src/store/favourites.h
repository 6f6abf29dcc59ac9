// Whole configs that were good for other problems of a class (docs/patterns.md). Patterns say of
// one value at a time what it is worth; values that are good together are known only from configs
// that have them together.

#ifndef KG_STORE_FAVOURITES_H
#define KG_STORE_FAVOURITES_H

#include "store/patterns.h"

// "lanes=32 keep=0", of a family. Texts are the list's.
struct kg_favourite {
    const char *family, *config;
    double chance; // to come near the best of another problem of the class
};

// What was measured of one favourite for one problem.
struct kg_ballot {
    int favourite, problem;
    double weight; // of the problem
    double share;  // 1: the best; 0: not near it
};

struct kg_favourites {
    struct kg_arena arena;
    int count, capacity;
    struct kg_favourite *list;
    int ballot_count, ballot_capacity;
    struct kg_ballot *ballots;
    int problems; // that had something measured
};

// The measured configs for problems of the class of `traits` on devices of an ISA, in any order.
// Problems of the same dtype, and of the same bucket, weigh more. Choices of several kernels are
// left out, and so is what was measured for op `without` (NULL: nothing is). kg_favourites_free
// frees the list, also after failure.
enum kg_status kg_favourites_load(struct kg_store *store, const struct kg_traits *traits,
                                  const char *isa, const char *without,
                                  struct kg_favourites *favourites, struct kg_error *error);
void kg_favourites_free(struct kg_favourites *favourites);

// Offers configs of a family until `max` of them fit: first the one with the best chance, then the
// one with the best chance where those that fitted were not good, ... It ends with those whose
// chance is small.
typedef bool kg_favourites_fits(void *user, const char *config);
void kg_favourites_offer(const struct kg_favourites *favourites, const char *family, int max,
                         kg_favourites_fits *fits, void *user);

// Those of all classes and devices, dtypes and buckets alike: a list of the first ones for people,
// or JSON.
enum kg_status kg_store_list_favourites(struct kg_store *store, bool json, struct kg_text *text,
                                        struct kg_error *error);

#endif
