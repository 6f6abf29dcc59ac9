// How products by wgmma are launched: what the copy engine can reach, and what is copied first.
//
// The engine reaches what begins at multiples of 16 bytes and goes on by such multiples. Strides
// are known when a plan is made, so that there is room for copies where they are needed. Where only
// the places turn out wrong, when the plan is run, there may be none, and the last function does it
// all.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

enum { MOST_BLOCKS = 1 << 20 };

static int64_t rounded(int64_t bytes, int64_t to)
{
    return kg_ceil_div(bytes, to) * to;
}

static int cluster_of(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_wgmma_folds(plan) ? plan->set.split : plan->set.down * plan->set.across;
}

// ---- Maps ----

// Elements from one position of a part to the next in the tensor: `access` of it, or, NULL, the
// output. False where they are not evenly spaced from the first on.
static bool find_step(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                      const struct kg_tensor *tensor, enum kg_contract_part part, int64_t *step)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
    int64_t run = 1;
    *step = 0;
    for (int i = contract->axis_count[part] - 1; i >= 0; i--) {
        int axis = contract->axes[part][i];
        int64_t extent = contract->nest->extent[axis], stride = access ? 0 : layout->stride[axis];
        for (int dim = 0; access && dim < tensor->rank; dim++)
            stride += access->map[dim].coefficient[axis] * layout->stride[dim];
        if (!kg_axes_from_zero(contract->nest->axes[axis]))
            return false;
        if (extent == 1)
            continue;
        if (run == 1)
            *step = stride;
        else if (stride != *step * run)
            return false;
        run *= extent;
    }
    return true;
}

// Lines of neighbours along `inner`, one for each position of `outer`, as boxes of `width` by
// `height`. False where lines do not begin at multiples of 16 bytes.
static bool map_lines(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                      const struct kg_tensor *tensor, enum kg_contract_part inner,
                      enum kg_contract_part outer, int width, int height, struct kg_map *map)
{
    const int64_t counts[KG_CONTRACT_PARTS] = {
        [KG_CONTRACT_BATCH] = plan->batches,
        [KG_CONTRACT_M] = plan->rows,
        [KG_CONTRACT_N] = plan->columns,
        [KG_CONTRACT_K] = plan->depth,
    };
    const enum kg_contract_part parts[] = {inner, outer, KG_CONTRACT_BATCH};
    *map = (struct kg_map){.tensor = tensor->id, .element = KG_WGMMA_ELEMENT, .rank = 3};
    for (int dim = 0; access && dim < tensor->rank; dim++)
        if (access->map[dim].offset != 0 || access->map[dim].base)
            return false;
    for (int i = 0; i < 3; i++) {
        int64_t step;
        if (!find_step(plan, access, tensor, parts[i], &step))
            return false;
        map->shape[i] = counts[parts[i]];
        map->stride[i] = counts[parts[i]] == 1 ? KG_WGMMA_ACCESS : step * KG_WGMMA_ELEMENT;
        if (i == 0 ? counts[inner] > 1 && step != 1 : map->stride[i] % KG_WGMMA_ACCESS != 0)
            return false;
        if (i > 0 && map->stride[i] == 0)
            return false;
    }
    map->box[0] = width;
    map->box[1] = height;
    map->box[2] = 1;
    map->swizzle = width * KG_WGMMA_ELEMENT;
    return true;
}

static enum kg_contract_part lines_of(int side)
{
    return side ? KG_CONTRACT_N : KG_CONTRACT_M;
}

static int64_t across_of(const struct kg_cuda_contract_plan *plan, int side)
{
    return side ? plan->columns : plan->rows;
}

static int tile_lines(const struct kg_cuda_contract_plan *plan, int side)
{
    return kg_cuda_wgmma_side(plan, side) == KG_WGMMA_LEFT ? plan->set.rows : plan->set.columns;
}

// Lines of a box of a side that lies along the sum; blocks of a cluster copy a part each of what
// they share.
static int box_lines(const struct kg_cuda_contract_plan *plan, int side)
{
    bool is_left = kg_cuda_wgmma_side(plan, side) == KG_WGMMA_LEFT;
    return tile_lines(plan, side) / (is_left ? plan->set.across : plan->set.down);
}

// What the side has for the last box, where it has a map of its own; else 0.
static int last_lines(const struct kg_cuda_contract_plan *plan, int side)
{
    return plan->along[side] ? (int)(across_of(plan, side) % box_lines(plan, side)) : 0;
}

static int64_t copy_bytes(const struct kg_cuda_contract_plan *plan, int side)
{
    int64_t across = across_of(plan, side);
    int64_t lines = plan->along[side] ? across : plan->depth;
    int64_t length = plan->along[side] ? plan->depth : across;
    return rounded(plan->batches * lines * rounded(length * KG_WGMMA_ELEMENT, KG_WGMMA_LINE), 256);
}

static int64_t partial_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t outputs = plan->batches * plan->rows * plan->columns;
    return kg_cuda_wgmma_pieces(plan) > 1 ? rounded(kg_cuda_wgmma_pieces(plan) * outputs * 4, 256)
                                          : kg_cuda_wgmma_part_bytes(plan);
}

static void map_copy(const struct kg_cuda_contract_plan *plan, int side, struct kg_map *map)
{
    int64_t across = across_of(plan, side);
    int64_t lines = plan->along[side] ? across : plan->depth;
    int64_t length = plan->along[side] ? plan->depth : across;
    int64_t pitch = rounded(length * KG_WGMMA_ELEMENT, KG_WGMMA_LINE);
    *map = (struct kg_map){
        .tensor = KG_MAP_SCRATCH,
        .offset = (size_t)(partial_bytes(plan) + (side ? copy_bytes(plan, 0) : 0)),
        .element = KG_WGMMA_ELEMENT,
        .rank = 3,
        .shape = {length, lines, plan->batches},
        .stride = {0, pitch, pitch * lines},
        .box = {KG_WGMMA_ATOM, plan->along[side] ? box_lines(plan, side) : plan->set.depth, 1},
        .swizzle = KG_WGMMA_ATOM * KG_WGMMA_ELEMENT,
    };
}

// False where the side has to be copied.
static bool map_side(const struct kg_cuda_contract_plan *plan, int side, struct kg_map *map)
{
    const struct kg_access *access = plan->plain[side];
    enum kg_contract_part lines = lines_of(side);
    if (plan->along[side])
        return map_lines(plan, access, access->tensor, KG_CONTRACT_K, lines, KG_WGMMA_ATOM,
                         box_lines(plan, side), map);
    return map_lines(plan, access, access->tensor, lines, KG_CONTRACT_K, KG_WGMMA_ATOM,
                     plan->set.depth, map);
}

static bool map_output(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    const struct kg_tensor *tensor = kg_cuda_contract_output(plan);
    int piece = kg_cuda_wgmma_leaving(plan);
    if (!kg_dtype_is_half(kg_emit_tensor_dtype(tensor)) || plan->set.split > 1)
        return false;
    if (!map_lines(plan, NULL, tensor, KG_CONTRACT_N, KG_CONTRACT_M,
                   plan->set.swap ? KG_WGMMA_ATOM : piece, plan->set.swap ? piece : KG_WGMMA_ATOM,
                   map))
        return false;
    if (map->swizzle < 32)
        map->swizzle = 0;
    return plan->columns * KG_WGMMA_ELEMENT % KG_WGMMA_ACCESS ==
           0; // the engine stores whole pieces of 16 bytes
}

// Whether lines begin in the middle of what memory is read by.
static bool is_uneven(const struct kg_map *map)
{
    return (map->shape[1] > 1 && map->stride[1] % KG_WGMMA_LINE != 0) ||
           (map->shape[2] > 1 && map->stride[2] % KG_WGMMA_LINE != 0);
}

bool kg_cuda_wgmma_is_uneven(const struct kg_cuda_contract_plan *plan)
{
    struct kg_map map;
    for (int side = 0; side < 2; side++)
        if (plan->plain[side] && map_side(plan, side, &map) && is_uneven(&map))
            return true;
    return false;
}

// ---- Launches ----

double kg_cuda_wgmma_copied(const struct kg_cuda_contract_plan *plan)
{
    struct kg_map map;
    double bytes = 0;
    for (int side = 0; side < 2; side++)
        if (!map_side(plan, side, &map))
            bytes += (double)copy_bytes(plan, side);
    return bytes;
}

static struct kg_grid grid_of(int64_t blocks, int threads)
{
    return (struct kg_grid){
        .blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
        .threads = {threads, 1, 1},
    };
}

// Blocks stay and take one tile after the other, except where a cluster folds: there each has one
// piece of a tile.
static struct kg_grid multiply_grid(const struct kg_cuda_contract_plan *plan)
{
    int cluster = cluster_of(plan);
    int64_t most = kg_cuda_wgmma_most(plan);
    int64_t work = kg_cuda_wgmma_tiles(plan) * (plan->set.split > 1 ? plan->set.split : 1);
    struct kg_grid grid = grid_of(0, kg_cuda_wgmma_threads(plan));
    grid.blocks[0] = kg_cuda_wgmma_folds(plan)                   ? work
                     : kg_cuda_wgmma_shares(plan) || work > most ? most * cluster
                                                                 : work * cluster;
    grid.shared = (int)kg_cuda_wgmma_shared(plan);
    grid.cluster = cluster;
    return grid;
}

// The same for the last box.
static void map_last(const struct kg_cuda_contract_plan *plan, int side, struct kg_map *maps)
{
    int which = kg_cuda_wgmma_side(plan, side);
    struct kg_map *last = &maps[which == KG_WGMMA_LEFT ? KG_WGMMA_LAST_LEFT : KG_WGMMA_LAST_RIGHT];
    *last = (struct kg_map){0};
    if (last_lines(plan, side) == 0)
        return;
    *last = maps[which];
    last->box[1] = last_lines(plan, side);
}

// Maps both sides, and says which of them have to be copied first.
static void map_sides(const struct kg_cuda_contract_plan *plan, struct kg_map *maps, bool *copied)
{
    for (int side = 0; side < 2; side++) {
        struct kg_map *map = &maps[kg_cuda_wgmma_side(plan, side)];
        copied[side] = !map_side(plan, side, map);
        if (copied[side])
            map_copy(plan, side, map);
        map_last(plan, side, maps);
    }
}

static struct kg_grid pack_grid(const struct kg_cuda_contract_plan *plan, int side)
{
    int64_t lines = plan->along[side] ? across_of(plan, side) : plan->depth;
    return grid_of(plan->batches * lines, KG_WGMMA_FOLD_THREADS);
}

static void make_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t outputs = plan->batches * plan->rows * plan->columns;
    struct kg_grid rest =
        grid_of(kg_ceil_div(outputs, KG_WGMMA_FOLD_THREADS), KG_WGMMA_FOLD_THREADS);
    bool copied[2] = {false};
    *grids = (struct kg_grids){
        .count = KG_WGMMA_FUNCTIONS, .alignment = KG_WGMMA_ACCESS, .map_count = KG_WGMMA_MAPS};
    for (int i = 0; i < KG_WGMMA_FUNCTIONS; i++)
        grids->grids[i] = grids->unaligned[i] = grid_of(0, 1);
    bool is_beyond = kg_cuda_wgmma_shares(plan) && !kg_cuda_wgmma_is_counted(plan);
    if (outputs == 0 || plan->depth == 0 || is_beyond) {
        grids->grids[KG_WGMMA_FOLD] = grids->unaligned[KG_WGMMA_FOLD] = rest;
        return;
    }
    map_sides(plan, grids->maps, copied);
    if (!map_output(plan, &grids->maps[KG_WGMMA_OUT]))
        grids->maps[KG_WGMMA_OUT] = (struct kg_map){0};
    for (int side = 0; side < 2; side++)
        if (copied[side])
            grids->grids[KG_WGMMA_PACK_A + side] = pack_grid(plan, side);
    grids->grids[KG_WGMMA_MULTIPLY] = multiply_grid(plan);
    if (kg_cuda_wgmma_pieces(plan) > 1)
        grids->grids[KG_WGMMA_FOLD] = rest;
    grids->scratch = (size_t)partial_bytes(plan);
    if (!copied[0] && !copied[1]) {
        grids->unaligned[KG_WGMMA_FOLD] = rest;
        return;
    }
    grids->scratch += (size_t)(copy_bytes(plan, 0) + copy_bytes(plan, 1));
    for (int side = 0; side < 2; side++) {
        map_copy(plan, side, &grids->unaligned_maps[kg_cuda_wgmma_side(plan, side)]);
        map_last(plan, side, grids->unaligned_maps);
        grids->unaligned[KG_WGMMA_PACK_A + side] = pack_grid(plan, side);
    }
    grids->unaligned[KG_WGMMA_MULTIPLY] = grids->grids[KG_WGMMA_MULTIPLY];
    grids->unaligned[KG_WGMMA_FOLD] = grids->grids[KG_WGMMA_FOLD];
}

// Whatever comes after waits by itself, so that it is ready when what is before it ends.
void kg_cuda_wgmma_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    make_grids(plan, grids);
    for (int i = 0; i < grids->count; i++)
        grids->grids[i].early = grids->unaligned[i].early = true;
}
