// How products by wgmma are launched: the tensor maps, and which operands are packed first.
//
// TMA needs base addresses and strides that are multiples of 16 bytes. Strides are known when a
// plan is made, so scratch for packed copies is reserved where they are needed. If only a base
// address turns out to be unaligned when the plan is run, there may be no scratch: then the last
// function computes the whole product.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

enum { MAX_BLOCKS = 1 << 20 };

static int64_t rounded(int64_t bytes, int64_t to)
{
    return kg_ceil_div(bytes, to) * to;
}

static int cluster_of(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_wgmma_folds_in_cluster(plan) ? plan->config.split_k
                                                : plan->config.cluster_m * plan->config.cluster_n;
}

// ---- Maps ----

// The stride, in elements, of the linear index over the axes of a role (batch, M, N or K), in a
// tensor that `access` reads or, if that is NULL, in the output. Returns false if there is no
// single stride.
static bool find_step(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                      const struct kg_tensor *tensor, enum kg_contract_role role, int64_t *step)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
    int64_t run = 1;
    *step = 0;
    for (int i = contract->axis_count[role] - 1; i >= 0; i--) {
        int axis = contract->axes[role][i];
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

bool kg_cuda_wgmma_map_lines(const struct kg_cuda_contract_plan *plan,
                             const struct kg_access *access, const struct kg_tensor *tensor,
                             enum kg_contract_role inner, enum kg_contract_role outer, int width,
                             int height, struct kg_map *map)
{
    const int64_t counts[KG_CONTRACT_ROLES] = {
        [KG_CONTRACT_BATCH] = plan->batches,
        [KG_CONTRACT_M] = plan->m,
        [KG_CONTRACT_N] = plan->n,
        [KG_CONTRACT_K] = plan->k,
    };
    const enum kg_contract_role roles[] = {inner, outer, KG_CONTRACT_BATCH};
    const int bits = kg_dtypes[kg_emit_tensor_dtype(tensor)].bits, unit = 8 * KG_WGMMA_ELEMENT;
    *map = (struct kg_map){.tensor = tensor->id, .element = KG_WGMMA_ELEMENT, .rank = 3};
    for (int dim = 0; access && dim < tensor->rank; dim++)
        if (access->map[dim].offset != 0 || access->map[dim].base)
            return false;
    for (int i = 0; i < 3; i++) {
        int64_t step;
        if (!find_step(plan, access, tensor, roles[i], &step))
            return false;
        map->shape[i] = i == 0 ? kg_ceil_div(counts[inner] * bits, unit) : counts[roles[i]];
        map->stride[i] = counts[roles[i]] == 1 ? KG_WGMMA_ACCESS : step * bits / 8;
        if (i == 0 ? counts[inner] > 1 && step != 1
                   : counts[roles[i]] > 1 && step * bits % (8 * KG_WGMMA_ACCESS) != 0)
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

static enum kg_contract_role lines_of(int operand)
{
    return operand ? KG_CONTRACT_N : KG_CONTRACT_M;
}

static int64_t across_of(const struct kg_cuda_contract_plan *plan, int operand)
{
    return operand ? plan->n : plan->m;
}

static int tile_lines(const struct kg_cuda_contract_plan *plan, int operand)
{
    return kg_cuda_wgmma_operand(plan, operand) == KG_WGMMA_LEFT ? plan->config.tile_m
                                                                 : plan->config.tile_n;
}

// Lines of a box of a K-major operand; the blocks of a cluster divide an operand that they share.
static int box_lines(const struct kg_cuda_contract_plan *plan, int operand)
{
    bool is_left = kg_cuda_wgmma_operand(plan, operand) == KG_WGMMA_LEFT;
    return tile_lines(plan, operand) / (is_left ? plan->config.cluster_n : plan->config.cluster_m);
}

// Lines of the last box of a K-major operand, if it is smaller and so has a map of its own; else 0.
static int last_lines(const struct kg_cuda_contract_plan *plan, int operand)
{
    int64_t lines = across_of(plan, operand);
    if (kg_cuda_wgmma_operand(plan, operand) == KG_WGMMA_RIGHT) // without those of other tiles
        lines += (kg_cuda_contract_tiles_across(plan) - 1) * plan->config.overlap;
    return plan->k_major[operand] ? (int)(lines % box_lines(plan, operand)) : 0;
}

static int64_t packed_bytes(const struct kg_cuda_contract_plan *plan, int operand)
{
    int64_t across = across_of(plan, operand);
    int64_t lines = plan->k_major[operand] ? across : plan->k;
    int64_t length = plan->k_major[operand] ? plan->k : across;
    return rounded(plan->batches * lines * rounded(length * KG_WGMMA_ELEMENT, KG_WGMMA_LINE), 256);
}

static int64_t partial_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t outputs = plan->batches * plan->m * plan->n;
    return kg_cuda_wgmma_memory_slices(plan) > 1
               ? rounded(kg_cuda_wgmma_memory_slices(plan) * outputs * 4, 256)
               : kg_cuda_wgmma_partial_tile_bytes(plan);
}

static void map_packed(const struct kg_cuda_contract_plan *plan, int operand, struct kg_map *map)
{
    int64_t across = across_of(plan, operand);
    int64_t lines = plan->k_major[operand] ? across : plan->k;
    int64_t length = plan->k_major[operand] ? plan->k : across;
    int64_t pitch = rounded(length * KG_WGMMA_ELEMENT, KG_WGMMA_LINE);
    *map = (struct kg_map){
        .tensor = KG_MAP_SCRATCH,
        .offset = (size_t)(partial_bytes(plan) + (operand ? packed_bytes(plan, 0) : 0)),
        .element = KG_WGMMA_ELEMENT,
        .rank = 3,
        .shape = {length, lines, plan->batches},
        .stride = {0, pitch, pitch * lines},
        .box = {KG_WGMMA_ATOM,
                plan->k_major[operand] ? box_lines(plan, operand) : plan->config.tile_k, 1},
        .swizzle = KG_WGMMA_ATOM * KG_WGMMA_ELEMENT,
    };
}

// Returns false if the operand has to be packed.
static bool map_operand(const struct kg_cuda_contract_plan *plan, int operand, struct kg_map *map)
{
    const struct kg_access *access = plan->plain[operand];
    enum kg_contract_role lines = lines_of(operand);
    if (plan->k_major[operand])
        return kg_cuda_wgmma_map_lines(plan, access, access->tensor, KG_CONTRACT_K, lines,
                                       KG_WGMMA_ATOM, box_lines(plan, operand), map);
    return kg_cuda_wgmma_map_lines(plan, access, access->tensor, lines, KG_CONTRACT_K,
                                   KG_WGMMA_ATOM, plan->config.tile_k, map);
}

// Returns false if TMA cannot store the output's lines: it stores whole units of 16 bytes.
static bool map_output_lines(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    const struct kg_tensor *tensor = kg_cuda_contract_output(plan);
    int columns = kg_cuda_wgmma_store_columns(plan);
    return kg_dtype_is_half(kg_emit_tensor_dtype(tensor)) &&
           plan->n * KG_WGMMA_ELEMENT % KG_WGMMA_ACCESS == 0 &&
           kg_cuda_wgmma_map_lines(plan, NULL, tensor, KG_CONTRACT_N, KG_CONTRACT_M,
                                   plan->config.swap ? KG_WGMMA_ATOM : columns,
                                   plan->config.swap ? columns : KG_WGMMA_ATOM, map);
}

static bool map_output(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    if (plan->config.split_k > 1 || plan->config.overlap > 0 || !map_output_lines(plan, map))
        return false;
    if (map->swizzle < 32)
        map->swizzle = 0;
    return true;
}

bool kg_cuda_wgmma_stores_alone(const struct kg_cuda_contract_plan *plan)
{
    struct kg_map map;
    return kg_dtype_is_half(kg_emit_tensor_dtype(kg_cuda_contract_output(plan))) &&
           plan->config.split_k <= 1 && plan->config.overlap == 0 && !map_output_lines(plan, &map);
}

bool kg_cuda_wgmma_has_odd_lines(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_tensor *output = kg_cuda_contract_output(plan);
    struct kg_map map;
    int64_t step;
    return kg_dtype_is_half(kg_emit_tensor_dtype(output)) &&
           find_step(plan, NULL, output, KG_CONTRACT_N, &step) && step == 1 &&
           !map_output_lines(plan, &map);
}

// Whether lines begin in the middle of a 128-byte line of memory.
static bool is_unaligned(const struct kg_map *map)
{
    return (map->shape[1] > 1 && map->stride[1] % KG_WGMMA_LINE != 0) ||
           (map->shape[2] > 1 && map->stride[2] % KG_WGMMA_LINE != 0);
}

bool kg_cuda_wgmma_is_unaligned(const struct kg_cuda_contract_plan *plan)
{
    struct kg_map map;
    for (int operand = 0; operand < 2; operand++)
        if (plan->plain[operand] && map_operand(plan, operand, &map) && is_unaligned(&map))
            return true;
    return false;
}

// ---- Launches ----

double kg_cuda_wgmma_packed_bytes(const struct kg_cuda_contract_plan *plan)
{
    struct kg_map map;
    double bytes = 0;
    for (int operand = 0; operand < 2; operand++)
        if (!map_operand(plan, operand, &map))
            bytes += (double)packed_bytes(plan, operand);
    return bytes;
}

static struct kg_grid grid_of(int64_t blocks, int threads)
{
    return (struct kg_grid){
        .blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
        .threads = {threads, 1, 1},
    };
}

// Blocks are persistent, unless the K slices of a tile are the blocks of a cluster: then each has
// one slice of one tile.
static struct kg_grid multiply_grid(const struct kg_cuda_contract_plan *plan)
{
    int cluster = cluster_of(plan);
    int64_t resident = kg_cuda_wgmma_max_resident_clusters(plan);
    int64_t work =
        kg_cuda_wgmma_tiles(plan) * (plan->config.split_k > 1 ? plan->config.split_k : 1);
    struct kg_grid grid = grid_of(0, kg_cuda_wgmma_threads(plan));
    grid.blocks[0] = kg_cuda_wgmma_folds_in_cluster(plan)                 ? work
                     : kg_cuda_wgmma_is_stream_k(plan) || work > resident ? resident * cluster
                                                                          : work * cluster;
    grid.shared = (int)kg_cuda_wgmma_shared_bytes(plan);
    grid.cluster = cluster;
    return grid;
}

// The map of an operand's last, smaller box.
static void map_last(const struct kg_cuda_contract_plan *plan, int operand, struct kg_map *maps)
{
    int which = kg_cuda_wgmma_operand(plan, operand);
    struct kg_map *last = &maps[which == KG_WGMMA_LEFT ? KG_WGMMA_LAST_LEFT : KG_WGMMA_LAST_RIGHT];
    *last = (struct kg_map){0};
    if (last_lines(plan, operand) == 0)
        return;
    *last = maps[which];
    last->box[1] = last_lines(plan, operand);
}

// Maps both operands, and says which of them have to be packed first.
static void map_operands(const struct kg_cuda_contract_plan *plan, struct kg_map *maps,
                         bool *packed)
{
    for (int operand = 0; operand < 2; operand++) {
        struct kg_map *map = &maps[kg_cuda_wgmma_operand(plan, operand)];
        packed[operand] = !map_operand(plan, operand, map);
        if (packed[operand])
            map_packed(plan, operand, map);
        map_last(plan, operand, maps);
    }
}

static struct kg_grid pack_grid(const struct kg_cuda_contract_plan *plan, int operand)
{
    int64_t across = across_of(plan, operand);
    int64_t lines = plan->k_major[operand] ? across : plan->k;
    int64_t length = plan->k_major[operand] ? plan->k : across;
    int64_t units = kg_ceil_div(length * KG_WGMMA_ELEMENT, KG_WGMMA_ACCESS);
    return grid_of(kg_ceil_div(plan->batches * lines * units, KG_WGMMA_PACK_THREADS),
                   KG_WGMMA_PACK_THREADS);
}

static void make_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t outputs = plan->batches * plan->m * plan->n;
    struct kg_grid rest =
        grid_of(kg_ceil_div(outputs, KG_WGMMA_FOLD_THREADS), KG_WGMMA_FOLD_THREADS);
    bool packed[2] = {false};
    *grids = (struct kg_grids){
        .count = KG_WGMMA_FUNCTIONS, .alignment = KG_WGMMA_ACCESS, .map_count = KG_WGMMA_MAPS};
    for (int i = 0; i < KG_WGMMA_FUNCTIONS; i++)
        grids->grids[i] = grids->unaligned[i] = grid_of(0, 1);
    bool is_beyond = kg_cuda_wgmma_is_stream_k(plan) && !kg_cuda_wgmma_steps_fit_int32(plan);
    if (outputs == 0 || plan->k == 0 || is_beyond) {
        grids->grids[KG_WGMMA_FOLD] = grids->unaligned[KG_WGMMA_FOLD] = rest;
        return;
    }
    map_operands(plan, grids->maps, packed);
    if (!map_output(plan, &grids->maps[KG_WGMMA_OUT]))
        grids->maps[KG_WGMMA_OUT] = (struct kg_map){0};
    for (int operand = 0; operand < 2; operand++)
        if (packed[operand])
            grids->grids[KG_WGMMA_PACK_A + operand] = pack_grid(plan, operand);
    grids->grids[KG_WGMMA_MULTIPLY] = multiply_grid(plan);
    if (kg_cuda_wgmma_memory_slices(plan) > 1)
        grids->grids[KG_WGMMA_FOLD] = rest;
    grids->scratch = (size_t)partial_bytes(plan);
    if (!packed[0] && !packed[1]) {
        grids->unaligned[KG_WGMMA_FOLD] = rest;
        return;
    }
    grids->scratch += (size_t)(packed_bytes(plan, 0) + packed_bytes(plan, 1));
    for (int operand = 0; operand < 2; operand++) {
        map_packed(plan, operand, &grids->unaligned_maps[kg_cuda_wgmma_operand(plan, operand)]);
        map_last(plan, operand, grids->unaligned_maps);
        grids->unaligned[KG_WGMMA_PACK_A + operand] = pack_grid(plan, operand);
    }
    grids->unaligned[KG_WGMMA_MULTIPLY] = grids->grids[KG_WGMMA_MULTIPLY];
    grids->unaligned[KG_WGMMA_FOLD] = grids->grids[KG_WGMMA_FOLD];
}

// All functions wait by themselves for the previous one, so they may be launched early.
void kg_cuda_wgmma_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    make_grids(plan, grids);
    for (int i = 0; i < grids->count; i++)
        grids->grids[i].early = grids->unaligned[i].early = true;
}
