// What the files of contract/scaled_wgmma share: cuda_contract_scaled_wgmma.c has the shape of a
// block, the validity of a config and the source; cuda_contract_scaled_wgmma_launch.c packed
// weights, the tensor maps and launches; cuda_contract_scaled_wgmma_rule.c the expected time and
// the choice. The tiles are tall in weights, as kernels/cuda/contract_scaled_wgmma.cuh says.

#ifndef KG_GEN_CUDA_CONTRACT_TALL_H
#define KG_GEN_CUDA_CONTRACT_TALL_H

#include "gen/cuda/contract/cuda_contract_scaled.h"

// The functions of a kernel: 0 copies weights, if TMA cannot load them in place, 1 multiplies.
// Where TMA cannot load the other operand or scales, 2 does all of it, with instructions and loads
// that take any alignment.
enum { KG_TALL_PACK, KG_TALL_MULTIPLY, KG_TALL_ANY, KG_TALL_FUNCTIONS };
// The maps that each of them receives; the output only if tiles are buffered, offsets only if they
// come through the ring.
enum {
    KG_TALL_MAP_ROWS,
    KG_TALL_MAP_LAST, // with the smaller box of the last rows
    KG_TALL_MAP_WEIGHTS,
    KG_TALL_MAP_SCALES,
    KG_TALL_MAP_ZEROS,
    KG_TALL_MAP_OUT,
    KG_TALL_MAP_OFFSETS,
    KG_TALL_MAPS
};
// As the skeleton has them.
enum { KG_TALL_COLUMNS = 256, KG_TALL_DEPTH = 64 };
enum { KG_TALL_ROUND = 1024, KG_TALL_ROWS_OF_INSTRUCTION = 8 };
// The shape of a block of the other functions.
enum { KG_TALL_PACK_THREADS = 256, KG_TALL_ANY_ROWS = 16, KG_TALL_ANY_WARPS = 4 };

// ---- The shape of a block ----

bool kg_cuda_tall_has_runs(const struct kg_cuda_contract_plan *plan);
// Whether scales, zero points and offsets come through the ring.
bool kg_cuda_tall_stages_scales(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_tall_stages_zeros(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_tall_stages_offsets(const struct kg_cuda_contract_plan *plan);
// The groups of K indices with the same scales that a stage touches.
int64_t kg_cuda_tall_groups_of_stage(const struct kg_cuda_contract_plan *plan);
// Teams of consumers that take K steps by turns: two where accumulators leave the registers. And
// the consumers of a team, which are warp groups.
int kg_cuda_tall_teams(const struct kg_cuda_contract_plan *plan);
int kg_cuda_tall_consumers(const struct kg_cuda_contract_plan *plan);
// The stages of a ring are a multiple of this: of two teams, each has the same ones in every turn.
int kg_cuda_tall_stage_step(const struct kg_cuda_contract_plan *plan);
// What consumers may hold before a stage that one of them waits for; see the skeleton.
int kg_cuda_tall_least_stages(const struct kg_cuda_contract_plan *plan);
int kg_cuda_tall_threads(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_tall_shared_bytes(const struct kg_cuda_contract_plan *plan);
// K indices of a unit of work: whole stages, and whole runs whose sums are scaled together. And the
// units of a tile.
int kg_cuda_tall_unit(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_tall_units(const struct kg_cuda_contract_plan *plan);
// Whether several blocks may have shares of a tile.
bool kg_cuda_tall_is_divided(const struct kg_cuda_contract_plan *plan);
// Blocks are persistent, one on an SM. With stream-K they divide all work; with K slices there are
// as many as slices, so that blocks side by side read the same lines of weights at the same time.
int64_t kg_cuda_tall_blocks(const struct kg_cuda_contract_plan *plan);
// Bytes of scratch for partial tiles and their flags, of as many blocks as there can be; 0: none.
int64_t kg_cuda_tall_partial_bytes(const struct kg_cuda_contract_plan *plan);
// Whether the skeleton can count in int32.
bool kg_cuda_tall_sizes_fit(const struct kg_cuda_contract_plan *plan);

// ---- Launches ----

// Whether TMA can store tiles of the output.
bool kg_cuda_tall_can_buffer(const struct kg_cuda_contract_plan *plan);
// The maps that kernels have.
int kg_cuda_tall_maps(const struct kg_cuda_contract_plan *plan);
// Sets the maps, and whether weights are packed first. Returns false if TMA cannot load the rows or
// the scales.
bool kg_cuda_tall_make_maps(const struct kg_cuda_contract_plan *plan, struct kg_map *maps,
                            bool *packs);
// Bytes of scratch behind partial tiles, if weights are packed.
int64_t kg_cuda_tall_packed_bytes(const struct kg_cuda_contract_plan *plan);
void kg_cuda_tall_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids);

// ---- The rule ----

double kg_cuda_tall_seconds(const struct kg_cuda_contract_plan *plan);
void kg_cuda_tall_list(struct kg_cuda_contract_plan *plan,
                       struct kg_cuda_contract_listing *listing);
bool kg_cuda_tall_guess(struct kg_cuda_contract_plan *plan);
// Whether the form takes the product that a plan of another form has; if not, says why.
bool kg_cuda_tall_takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
// The time of the rule's config for it; 0: it does not take it, or the device is not known.
double kg_cuda_tall_expected(const struct kg_cuda_contract_plan *plan);

#endif
