// See code_identity.h.

#include "tune/code_identity.h"

#include "tune/forecast.h"

static bool is_zero(struct kg_hash hash)
{
    return hash.high == 0 && hash.low == 0;
}

static struct kg_hash add_grid(struct kg_hash hash, const struct kg_grid *grid, struct kg_hash code)
{
    hash = kg_hash_chain(hash, &code, sizeof code);
    hash = kg_hash_chain(hash, grid->blocks, sizeof grid->blocks);
    hash = kg_hash_chain(hash, grid->threads, sizeof grid->threads);
    hash = kg_hash_chain(hash, &grid->shared, sizeof grid->shared);
    return kg_hash_chain(hash, &grid->cluster, sizeof grid->cluster);
}

static struct kg_hash add_map(struct kg_hash hash, const struct kg_map *map)
{
    int64_t rest[] = {map->tensor, (int64_t)map->offset, map->element, map->rank, map->swizzle};
    hash = kg_hash_chain(hash, rest, sizeof rest);
    hash = kg_hash_chain(hash, map->shape, sizeof map->shape);
    hash = kg_hash_chain(hash, map->stride, sizeof map->stride);
    return kg_hash_chain(hash, map->box, sizeof map->box);
}

// Adds the instructions and launches of all functions that are launched. False if they are not
// known.
static bool add_launches(const struct kg_built *built, int group, struct kg_hash *hash)
{
    const struct kg_choice *choice = &built->choice;
    const struct kg_binary *binary = &built->binaries[group];
    struct kg_grids grids = {0};
    if (is_zero(binary->code[0]))
        return false;
    choice->matches[group]->family->grids(choice->matches[group], &built->choice.configs[group],
                                          &grids);
    for (int i = 0; i < grids.count; i++) {
        const struct kg_grid *grid = &grids.grids[i];
        if (!kg_forecast_is_launched(grid))
            continue;
        if (i >= KG_MAX_CODES || is_zero(binary->code[i]))
            return false;
        *hash = add_grid(*hash, grid, binary->code[i]);
    }
    for (int i = 0; i < grids.map_count; i++)
        *hash = add_map(*hash, &grids.maps[i]);
    return true;
}

struct kg_hash kg_code_identity(const struct kg_built *built, bool *by_code)
{
    struct kg_hash hash = {0};
    *by_code = true;
    for (int i = 0; i < built->choice.count; i++) {
        struct kg_hash launches = hash;
        if (add_launches(built, i, &launches)) {
            hash = launches;
        } else {
            hash = kg_hash_chain(hash, &built->hashes[i], sizeof built->hashes[i]);
            *by_code = false;
        }
    }
    return hash;
}
