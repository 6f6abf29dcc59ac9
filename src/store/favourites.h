// Whole configs that were good for other problems of a class (docs/patterns.md). Patterns say of
// one value at a time what it is worth; values that are good together are known only from configs
// that have them together.

#ifndef KG_STORE_FAVOURITES_H
#define KG_STORE_FAVOURITES_H

#include "store/patterns.h"

// "lanes=32 keep=0", of a family. Texts are the list's.
struct kg_favourite {
    const char *family, *config;
    double votes;
    double fresh; // of the problem at hand, while they are counted
};

struct kg_favourites {
    struct kg_arena arena;
    int count, capacity;
    struct kg_favourite *list;
    int problems; // that had something measured
};

// Of the measured configs for problems of the class of `traits` on devices of an ISA, those that
// came near the best of their problem, which divide its vote. Problems of the same dtype, and of
// the same bucket, count more. Choices of several kernels have no vote, nor do those for op
// `without` (NULL: none is left out). kg_favourites_free frees the list, also after failure.
enum kg_status kg_favourites_load(struct kg_store *store, const struct kg_traits *traits,
                                  const char *isa, const char *without,
                                  struct kg_favourites *favourites, struct kg_error *error);
void kg_favourites_free(struct kg_favourites *favourites);
// The config of a family that has the most votes, the next most, ...: rank 0, 1, ... NULL: there is
// none.
const char *kg_favourites_find(const struct kg_favourites *favourites, const char *family,
                               int rank);
// Those of all classes and devices, dtypes and buckets alike: a list of the first ones for people,
// or JSON.
enum kg_status kg_store_list_favourites(struct kg_store *store, bool json, struct kg_text *text,
                                        struct kg_error *error);

#endif
