// How products of contract/scaled_wgmma are launched: packed weights, tensor maps and grids.

#include "gen/cuda/contract/cuda_contract_tall.h"
#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"

#include <string.h>

enum { FOUR = 4 };   // adjacent columns that a lane has
enum { LINE = 128 }; // bytes of a line of a box of weights
enum { PACK_BLOCKS = 2048, ANY_LANES = 8, MAX_BLOCKS = 1 << 30 };

// ---- Packed weights ----

static int64_t packed_pitch(const struct kg_cuda_contract_plan *plan, int bits)
{
    return kg_ceil_div(kg_cuda_scaled_columns(plan), KG_TALL_COLUMNS) * KG_TALL_COLUMNS * bits / 8;
}

static int64_t zero_lines(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_tall_stages_zeros(plan)
               ? kg_ceil_div(plan->k, kg_cuda_scaled_operand(plan)->group)
               : 0;
}

// Lines of packed weights, and the bytes from one to the next.
static int64_t packed_lines(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_is_lines(plan) ? kg_ceil_div(kg_cuda_scaled_columns(plan), FOUR) * FOUR
                                         : plan->k;
}

static int64_t packed_line(const struct kg_cuda_contract_plan *plan)
{
    enum { WHOLE = 32 };
    int bits = kg_cuda_scaled_bits(plan);
    return kg_cuda_scaled_is_lines(plan) ? kg_ceil_div(plan->k, WHOLE) * WHOLE * bits / 8
                                         : packed_pitch(plan, bits);
}

static int64_t packed_weight_bytes(const struct kg_cuda_contract_plan *plan)
{
    return plan->batches * packed_lines(plan) * packed_line(plan);
}

int64_t kg_cuda_tall_packed_bytes(const struct kg_cuda_contract_plan *plan)
{
    return packed_weight_bytes(plan) +
           plan->batches * zero_lines(plan) * packed_pitch(plan, kg_cuda_scaled_zero_bits(plan));
}

// ---- Launches ----

enum { UNIT_BYTES = 2 }; // of an element of a map

// Maps lines of packed elements of `bits` in scratch, in boxes of `width` bytes.
static void map_packed(const struct kg_cuda_contract_plan *plan, int64_t offset, int64_t lines,
                       int bits, int width, int height, struct kg_map *map)
{
    int64_t pitch = packed_pitch(plan, bits);
    *map = (struct kg_map){
        .tensor = KG_MAP_SCRATCH,
        .offset = (size_t)offset,
        .element = UNIT_BYTES,
        .rank = 3,
        .shape = {pitch / UNIT_BYTES, lines, plan->batches},
        .stride = {UNIT_BYTES, pitch, pitch * lines},
        .box = {width / UNIT_BYTES, height, 1},
    };
}

// Maps packed zero points, which follow packed weights.
static void map_packed_zeros(const struct kg_cuda_contract_plan *plan, struct kg_map *maps)
{
    int bits = kg_cuda_scaled_zero_bits(plan);
    map_packed(plan, kg_cuda_tall_partial_bytes(plan) + packed_weight_bytes(plan), zero_lines(plan),
               bits, KG_TALL_COLUMNS * bits / 8, (int)kg_cuda_tall_groups_of_stage(plan),
               &maps[KG_TALL_MAP_ZEROS]);
}

// Bytes of a line of a stage along K, which is the swizzle, too.
static int line_bytes(const struct kg_cuda_contract_plan *plan)
{
    return KG_TALL_DEPTH * kg_cuda_scaled_bits(plan) / 8;
}

// Maps packed lines along K: four times every fourth column, as lanes have them.
static void map_packed_lines(const struct kg_cuda_contract_plan *plan, int64_t offset,
                             struct kg_map *map)
{
    int64_t pitch = packed_line(plan), lines = packed_lines(plan);
    *map = (struct kg_map){
        .tensor = KG_MAP_SCRATCH,
        .offset = (size_t)offset,
        .element = UNIT_BYTES,
        .rank = 4,
        .shape = {kg_ceil_div(plan->k * kg_cuda_scaled_bits(plan), 8 * UNIT_BYTES), lines / FOUR,
                  FOUR, plan->batches},
        .stride = {UNIT_BYTES, pitch * FOUR, pitch, pitch * lines},
        .box = {line_bytes(plan) / UNIT_BYTES, KG_TALL_COLUMNS / FOUR, FOUR, 1},
        .swizzle = line_bytes(plan),
    };
}

// Maps weights with boxes of `width` elements of the map and `height` lines. The last dimension is
// the batch, or the matrices that it chooses from. Returns false if TMA cannot load them like that.
static bool map_weights(const struct kg_cuda_contract_plan *plan, enum kg_contract_role inner,
                        enum kg_contract_role outer, int width, int height, struct kg_map *map)
{
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    const struct kg_layout *layout = &plan->group->problem->layouts[element->tensor->id];
    if (!kg_cuda_scaled_is_gathered(plan))
        return kg_cuda_wgmma_map_lines(plan, element, element->tensor, inner, outer, width, height,
                                       map);
    struct kg_cuda_contract_plan one = *plan; // matrix
    one.contract.axis_count[KG_CONTRACT_BATCH] = 0;
    one.batches = 1;
    int dim = kg_cuda_scaled_gather(plan, element);
    if (dim < 0 ||
        !kg_cuda_wgmma_map_lines(&one, element, element->tensor, inner, outer, width, height, map))
        return false;
    map->shape[2] = layout->shape[dim];
    map->stride[2] = layout->stride[dim] * kg_cuda_scaled_bits(plan) / 8;
    return map->stride[2] > 0 &&
           layout->stride[dim] * kg_cuda_scaled_bits(plan) % (8 * KG_WGMMA_ACCESS) == 0;
}

// The same of weights in place. Returns false if TMA cannot load them like that.
static bool map_lines(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    enum kg_contract_role role = kg_cuda_scaled_weights(plan) ? KG_CONTRACT_N : KG_CONTRACT_M;
    int64_t columns = kg_cuda_scaled_columns(plan);
    struct kg_map flat;
    if (columns % FOUR != 0 || plan->k * kg_cuda_scaled_bits(plan) % (8 * UNIT_BYTES) != 0 ||
        !map_weights(plan, KG_CONTRACT_K, role, line_bytes(plan) / UNIT_BYTES,
                     KG_TALL_COLUMNS / FOUR, &flat))
        return false;
    *map = flat;
    map->rank = 4;
    map->shape[1] = columns / FOUR;
    map->shape[2] = FOUR;
    map->shape[3] = flat.shape[2];
    map->stride[1] = FOUR * flat.stride[1];
    map->stride[2] = flat.stride[1];
    map->stride[3] = flat.stride[2];
    map->box[2] = FOUR;
    map->box[3] = 1;
    return true;
}

// The same of panels: all of 64 K indices side by side. Before their dimensions the tensor has that
// of the batch, or of what it chooses from, if there is one.
static bool map_panels(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    enum { PANEL = 512, PANEL_COLUMNS = 16, DIMENSIONS = 3 };
    const struct kg_contract *contract = &plan->contract;
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    const struct kg_layout *layout = &plan->group->problem->layouts[element->tensor->id];
    bool gathers = kg_cuda_scaled_is_gathered(plan);
    int k = element->tensor->rank - DIMENSIONS, batches = contract->axis_count[KG_CONTRACT_BATCH];
    if (k > 1 || (!gathers && batches != k) || layout->stride[k + 2] != 1 ||
        layout->stride[k + 1] != 2 * PANEL)
        return false;
    const struct kg_expr *item = k > 0 ? element->map[0].subscript : NULL;
    if (gathers ? kg_cuda_scaled_gather(plan, element) != 0
                : item && (item->kind != KG_EXPR_INDEX ||
                           item->index->id != contract->axes[KG_CONTRACT_BATCH][0] ||
                           !kg_axes_from_zero(contract->nest->axes[item->index->id])))
        return false;
    *map = (struct kg_map){
        .tensor = element->tensor->id,
        .element = UNIT_BYTES,
        .rank = 4,
        .shape = {PANEL / UNIT_BYTES, layout->shape[k + 1], layout->shape[k],
                  k > 0 ? layout->shape[0] : 1},
        .stride = {UNIT_BYTES, PANEL, layout->stride[k] / 2,
                   k > 0 ? layout->stride[0] / 2 : KG_WGMMA_ACCESS},
        .box = {PANEL / UNIT_BYTES, plan->config.tile_n / PANEL_COLUMNS, 1, 1},
    };
    return map->stride[2] > 0 && map->stride[2] % KG_WGMMA_ACCESS == 0 && map->stride[3] > 0 &&
           map->stride[3] % KG_WGMMA_ACCESS == 0;
}

// Maps weights in place. Returns false if TMA cannot load them like that.
static bool map_matrix(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    enum { ACCESS = 16 };
    enum kg_contract_role role = kg_cuda_scaled_weights(plan) ? KG_CONTRACT_N : KG_CONTRACT_M;
    if (kg_cuda_scaled_is_packed(plan))
        return map_panels(plan, map);
    if (kg_cuda_scaled_is_lines(plan))
        return map_lines(plan, map);
    return kg_cuda_scaled_columns(plan) * kg_cuda_scaled_bits(plan) % (8 * ACCESS) == 0 &&
           map_weights(plan, role, KG_CONTRACT_K, LINE / UNIT_BYTES, KG_TALL_DEPTH, map);
}

// The same of zero points, if there are any.
static bool map_zeros(const struct kg_cuda_contract_plan *plan, struct kg_map *maps)
{
    return !kg_cuda_tall_stages_zeros(plan) ||
           kg_cuda_scaled_map_runs(plan, kg_cuda_scaled_zeros_of_runs(plan), plan->config.tile_n,
                                   kg_cuda_tall_groups_of_stage(plan), &maps[KG_TALL_MAP_ZEROS]);
}

// The output in boxes of a tile's rows and 64 columns.
static bool map_output(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    const struct kg_tensor *tensor = kg_cuda_contract_output(plan);
    bool is_right = kg_cuda_scaled_weights(plan);
    return kg_dtype_is_half(kg_emit_tensor_dtype(tensor)) &&
           kg_cuda_scaled_columns(plan) * UNIT_BYTES % KG_WGMMA_ACCESS == 0 &&
           kg_cuda_wgmma_map_lines(plan, NULL, tensor, is_right ? KG_CONTRACT_N : KG_CONTRACT_M,
                                   is_right ? KG_CONTRACT_M : KG_CONTRACT_N, LINE / UNIT_BYTES,
                                   plan->config.tile_m, map);
}

bool kg_cuda_tall_can_buffer(const struct kg_cuda_contract_plan *plan)
{
    struct kg_map map;
    return map_output(plan, &map);
}

bool kg_cuda_tall_make_maps(const struct kg_cuda_contract_plan *plan, struct kg_map *maps,
                            bool *packs)
{
    enum { ATOM = 64 };
    int rows = 1 - kg_cuda_scaled_weights(plan);
    int last = (int)(kg_cuda_scaled_rows(plan) % plan->config.tile_m);
    struct kg_cuda_contract_plan of_rows = *plan;
    if (kg_cuda_scaled_is_gathered(plan))
        kg_cuda_scaled_batch_of_rows(plan, &of_rows);
    memset(maps, 0, KG_TALL_MAPS * sizeof *maps);
    if (plan->config.buffered && !map_output(plan, &maps[KG_TALL_MAP_OUT]))
        return false;
    if (!kg_cuda_wgmma_map_lines(&of_rows, plan->plain[rows], plan->plain[rows]->tensor,
                                 KG_CONTRACT_K, rows ? KG_CONTRACT_N : KG_CONTRACT_M, ATOM,
                                 plan->config.tile_m, &maps[KG_TALL_MAP_ROWS]))
        return false;
    maps[KG_TALL_MAP_LAST] = maps[KG_TALL_MAP_ROWS];
    if (last > 0)
        maps[KG_TALL_MAP_LAST].box[1] = last;
    if (kg_cuda_tall_stages_scales(plan) &&
        !kg_cuda_scaled_map_runs(plan, kg_cuda_scaled_scales_of_runs(plan), plan->config.tile_n,
                                 kg_cuda_tall_groups_of_stage(plan), &maps[KG_TALL_MAP_SCALES]))
        return false;
    if (kg_cuda_tall_stages_offsets(plan) &&
        !kg_cuda_scaled_map_runs(plan, kg_cuda_scaled_offsets_of_runs(plan), plan->config.tile_n,
                                 kg_cuda_tall_groups_of_stage(plan), &maps[KG_TALL_MAP_OFFSETS]))
        return false;
    *packs = false;
    bool has_weights = map_matrix(plan, &maps[KG_TALL_MAP_WEIGHTS]);
    if (has_weights && map_zeros(plan, maps))
        return true;
    maps[KG_TALL_MAP_ZEROS] = (struct kg_map){0};
    if (has_weights && kg_cuda_scaled_has_whole_zeros(plan)) // a warp copies them
        return true;
    if (kg_cuda_scaled_is_gathered(plan) || kg_cuda_scaled_is_packed(plan))
        return false; // a copy for each item would be too much, and panels are what a copy makes
    maps[KG_TALL_MAP_WEIGHTS] = (struct kg_map){0};
    *packs = !kg_cuda_scaled_is_whole(plan, 1); // else their words are copied
    if (*packs) {
        int64_t offset = kg_cuda_tall_partial_bytes(plan);
        map_packed(plan, offset, plan->k, kg_cuda_scaled_bits(plan), LINE, KG_TALL_DEPTH,
                   &maps[KG_TALL_MAP_WEIGHTS]);
        maps[KG_TALL_MAP_WEIGHTS].swizzle = LINE;
        if (kg_cuda_scaled_is_lines(plan))
            map_packed_lines(plan, offset, &maps[KG_TALL_MAP_WEIGHTS]);
        if (kg_cuda_tall_stages_zeros(plan))
            map_packed_zeros(plan, maps);
    }
    return true;
}

static struct kg_grid any_grid(const struct kg_cuda_contract_plan *plan)
{
    enum { GAP = 8, SUM = 4 };
    int columns = ANY_LANES * kg_cuda_scaled_of_word(plan);
    int64_t blocks = plan->batches * kg_ceil_div(kg_cuda_scaled_rows(plan), KG_TALL_ANY_ROWS) *
                     kg_ceil_div(kg_cuda_scaled_columns(plan), columns);
    return (struct kg_grid){.blocks = {blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS, 1, 1},
                            .threads = {KG_TALL_ANY_WARPS * 32, 1, 1},
                            .shared = KG_TALL_ANY_WARPS * KG_TALL_ANY_ROWS * (columns + GAP) * SUM};
}

void kg_cuda_tall_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    const struct kg_grid none = {.blocks = {0, 1, 1}, .threads = {1, 1, 1}};
    bool packs = false;
    *grids = (struct kg_grids){.count = KG_TALL_FUNCTIONS,
                               .alignment = KG_WGMMA_ACCESS,
                               .map_count = kg_cuda_tall_maps(plan)};
    for (int i = 0; i < KG_TALL_FUNCTIONS; i++)
        grids->grids[i] = grids->unaligned[i] = none;
    if (plan->batches * plan->m * plan->n == 0)
        return;
    grids->unaligned[KG_TALL_ANY] = any_grid(plan);
    if (plan->k == 0 || !kg_cuda_tall_sizes_fit(plan) ||
        !kg_cuda_tall_make_maps(plan, grids->maps, &packs)) {
        memset(grids->maps, 0, sizeof grids->maps);
        grids->grids[KG_TALL_ANY] = grids->unaligned[KG_TALL_ANY];
    } else {
        grids->grids[KG_TALL_MULTIPLY] =
            (struct kg_grid){.blocks = {kg_cuda_tall_blocks(plan), 1, 1},
                             .threads = {kg_cuda_tall_threads(plan), 1, 1},
                             .shared = (int)kg_cuda_tall_shared_bytes(plan)};
        grids->scratch = (size_t)(kg_cuda_tall_partial_bytes(plan) +
                                  (packs ? kg_cuda_tall_packed_bytes(plan) : 0));
        int64_t lines = plan->batches * (packed_lines(plan) + zero_lines(plan));
        if (packs)
            grids->grids[KG_TALL_PACK] =
                (struct kg_grid){.blocks = {lines < PACK_BLOCKS ? lines : PACK_BLOCKS, 1, 1},
                                 .threads = {KG_TALL_PACK_THREADS, 1, 1}};
    }
    kg_cuda_start_early(plan->group, plan->facts, grids);
}
