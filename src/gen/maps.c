// Encoding and caching tensor maps: see maps.h. The cache is a list to which complete sets are only
// ever added, up to a limit, so that it can be read without a lock.

#include "gen/maps.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CACHED 8 // enough for a program that alternates between buffers

struct kg_maps {
    struct kg_device *device;
    int count;
    struct kg_map maps[2][KG_MAX_MAPS]; // [1]: of aligned tensors
    char names[2][KG_MAX_MAPS][64];     // of what they map
    _Atomic int kept_count;
    struct kg_map_set *_Atomic kept;
};

// An empty map: it cannot be used for copies.
static bool is_empty(const struct kg_map *map)
{
    for (int dim = 0; dim < map->rank && dim < KG_MAX_MAP_RANK; dim++)
        if (map->shape[dim] == 0)
            return true;
    return map->rank == 0;
}

static const void *place_of(const struct kg_map *map, void *const *pointers, void *scratch)
{
    const char *base = map->tensor == KG_MAP_SCRATCH ? scratch : pointers[map->tensor];
    return is_empty(map) ? NULL : base + map->offset;
}

static const struct kg_map_set *find_kept(const struct kg_maps *maps, const struct kg_map_set *like)
{
    size_t bytes = (size_t)maps->count * sizeof like->places[0];
    const struct kg_map_set *set = atomic_load_explicit(&maps->kept, memory_order_acquire);
    while (set &&
           (set->is_aligned != like->is_aligned || memcmp(set->places, like->places, bytes) != 0))
        set = set->next;
    return set;
}

// Without memory for it, the set is encoded again next time.
static void keep(struct kg_maps *maps, const struct kg_map_set *set)
{
    if (atomic_load(&maps->kept_count) >= MAX_CACHED)
        return;
    struct kg_map_set *kept = aligned_alloc(_Alignof(struct kg_map_set), sizeof *kept);
    if (!kept)
        return;
    atomic_fetch_add(&maps->kept_count, 1);
    *kept = *set;
    kept->next = atomic_load(&maps->kept);
    while (!atomic_compare_exchange_weak(&maps->kept, &kept->next, kept))
        ;
}

static enum kg_status encode(const struct kg_maps *maps, struct kg_map_set *set,
                             struct kg_error *error)
{
    const struct kg_backend *backend = maps->device->backend;
    if (!backend->encode)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "%s has no tensor maps", backend->name);
    for (int i = 0; i < maps->count; i++) {
        const struct kg_map *map = &maps->maps[set->is_aligned][i];
        set->encoded[i] = (struct kg_encoded_map){{0}};
        if (is_empty(map))
            continue;
        enum kg_status status =
            backend->encode(maps->device, map, set->places[i], &set->encoded[i], error);
        if (status) {
            kg_error_prefix(error, "tensor map %d, of %s", i, maps->names[set->is_aligned][i]);
            return status;
        }
    }
    return KG_OK;
}

enum kg_status kg_maps_make(struct kg_device *device, const struct kg_problem *problem,
                            const struct kg_grids *grids, struct kg_maps **out,
                            struct kg_error *error)
{
    *out = NULL;
    if (grids->map_count == 0)
        return KG_OK;
    struct kg_maps *maps = calloc(1, sizeof *maps);
    if (!maps)
        return kg_error_memory(error, "the tensor maps of a kernel");
    maps->device = device;
    maps->count = grids->map_count;
    memcpy(maps->maps[true], grids->maps, sizeof grids->maps);
    memcpy(maps->maps[false], grids->unaligned_maps, sizeof grids->unaligned_maps);
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < maps->count; i++) {
            int id = maps->maps[n][i].tensor;
            const char *name = id == KG_MAP_SCRATCH ? "scratch" : problem->tensors[id]->name;
            strncpy(maps->names[n][i], name, sizeof maps->names[n][i] - 1);
        }
    *out = maps;
    return KG_OK;
}

void kg_maps_free(struct kg_maps *maps)
{
    if (!maps)
        return;
    struct kg_map_set *next;
    for (struct kg_map_set *set = maps->kept; set; set = next) {
        next = set->next;
        free(set);
    }
    free(maps);
}

enum kg_status kg_maps_find(struct kg_maps *maps, bool is_aligned, void *const *pointers,
                            void *scratch, struct kg_map_set *spare, const struct kg_map_set **set,
                            struct kg_error *error)
{
    spare->is_aligned = is_aligned;
    for (int i = 0; i < maps->count; i++)
        spare->places[i] = place_of(&maps->maps[is_aligned][i], pointers, scratch);
    *set = find_kept(maps, spare);
    if (*set)
        return KG_OK;
    enum kg_status status = encode(maps, spare, error);
    if (status)
        return status;
    keep(maps, spare);
    *set = spare;
    return KG_OK;
}
