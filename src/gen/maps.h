// The tensor maps of a kernel's launches. They contain addresses, so they are encoded at the first
// launch with these addresses and cached: programs use the same ones again and again.

#ifndef KG_GEN_MAPS_H
#define KG_GEN_MAPS_H

#include "gen/family.h"

struct kg_maps;

// Encoded for one set of addresses.
struct kg_map_set {
    struct kg_encoded_map encoded[KG_MAX_MAPS];
    const void *places[KG_MAX_MAPS];
    bool is_aligned; // of grids->maps; else of grids->unaligned_maps
    struct kg_map_set *next;
};

// *maps is NULL if the grids have no maps. Copies what it needs of the grids and the problem.
enum kg_status kg_maps_make(struct kg_device *device, const struct kg_problem *problem,
                            const struct kg_grids *grids, struct kg_maps **maps,
                            struct kg_error *error);
void kg_maps_free(struct kg_maps *maps);

// The maps for these tensors (by id) and this scratch: cached ones, or new ones in `spare`. Any
// number of threads may call it at once; none waits.
enum kg_status kg_maps_find(struct kg_maps *maps, bool is_aligned, void *const *pointers,
                            void *scratch, struct kg_map_set *spare, const struct kg_map_set **set,
                            struct kg_error *error);

#endif
