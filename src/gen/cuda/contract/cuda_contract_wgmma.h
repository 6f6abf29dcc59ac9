// What the forms for wgmma share. Of contract/wgmma, cuda_contract_wgmma.c has the shape of a
// block, the validity of a config and the source; cuda_contract_wgmma_launch.c the tensor maps and
// launches; cuda_contract_wgmma_rule.c the expected time and the config by rule.

#ifndef KG_GEN_CUDA_CONTRACT_WGMMA_H
#define KG_GEN_CUDA_CONTRACT_WGMMA_H

#include "gen/cuda/contract/cuda_contract.h"

// The functions of a kernel, and the tensor maps that each of them receives.
enum { KG_WGMMA_PACK_A, KG_WGMMA_PACK_B, KG_WGMMA_MULTIPLY, KG_WGMMA_FOLD, KG_WGMMA_FUNCTIONS };
enum {
    KG_WGMMA_LEFT,
    KG_WGMMA_RIGHT,
    KG_WGMMA_OUT,
    KG_WGMMA_LAST_LEFT, // with the smaller box of the operand's last tile
    KG_WGMMA_LAST_RIGHT,
    KG_WGMMA_MAPS
};

// Bytes of an element, of TMA's alignment and of a line of memory; elements across a box, which are
// one swizzle atom.
enum { KG_WGMMA_ELEMENT = 2, KG_WGMMA_ACCESS = 16, KG_WGMMA_LINE = 128, KG_WGMMA_ATOM = 64 };
// Columns by which tiles overlap where lines are stored by sector: a sector of memory.
enum { KG_WGMMA_OVERLAP = 16 };
enum { KG_WGMMA_FOLD_THREADS = 256, KG_WGMMA_PACK_THREADS = 256 };
// Sizes of a streamed operand, which is loaded with evict_first. A smaller one may still be in the
// L2 at the next launch; a larger one displaces everything else anyway.
enum { KG_WGMMA_MIN_STREAMED_BYTES = 40 << 20, KG_WGMMA_MAX_STREAMED_BYTES = 256 << 20 };

// ---- The shape of a block, as the skeleton has it ----

int kg_cuda_wgmma_threads(const struct kg_cuda_contract_plan *plan);
// Accumulator registers of a thread.
int kg_cuda_wgmma_accumulators(const struct kg_cuda_contract_plan *plan);
// Whether the K slices of a tile are the blocks of a cluster, which adds them up.
bool kg_cuda_wgmma_folds_in_cluster(const struct kg_cuda_contract_plan *plan);
// Whether the tiles of the last wave are divided by stream-K: kernels/cuda/contract_stream_k.cuh.
bool kg_cuda_wgmma_is_stream_k(const struct kg_cuda_contract_plan *plan);
// K slices whose partial sums go through memory; 1: none do.
int kg_cuda_wgmma_memory_slices(const struct kg_cuda_contract_plan *plan);
// Columns of the chunks in which a tile is stored through shared memory.
int kg_cuda_wgmma_store_columns(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_wgmma_shared_bytes(const struct kg_cuda_contract_plan *plan);
int kg_cuda_wgmma_blocks_per_sm(const struct kg_cuda_contract_plan *plan);
// Tiles, or clusters of tiles, and the blocks or clusters that the device runs at once.
int64_t kg_cuda_wgmma_tiles(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_wgmma_max_resident_clusters(const struct kg_cuda_contract_plan *plan);
// Whether the number of K steps that stream-K divides fits an int32.
bool kg_cuda_wgmma_steps_fit_int32(const struct kg_cuda_contract_plan *plan);
// Bytes of scratch for the partial tiles of stream-K; 0 without it.
int64_t kg_cuda_wgmma_partial_tile_bytes(const struct kg_cuda_contract_plan *plan);
// The operand (0: A) that is loaded as the left or right one; and, the same function, as which of
// them an operand is loaded.
int kg_cuda_wgmma_operand(const struct kg_cuda_contract_plan *plan, int which);

struct kg_wgmma_instruction {
    int columns;
    enum kg_dtype dtype;    // of both operands: f16 or bf16
    bool left_in_registers; // the right operand is then K-major
};
// Writes the struct ENTRY_instruction.
void kg_cuda_wgmma_emit_instruction(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                    const struct kg_wgmma_instruction *instruction);

// Maps a tensor whose lines run along `inner`, one for each index of `outer`, in boxes of `width`
// units of 16 bits by `height` lines, swizzled over their width. `access` is how the product reads
// it; NULL: it is the output. Returns false if elements of a line are not adjacent or lines not
// aligned to 16 bytes.
bool kg_cuda_wgmma_map_lines(const struct kg_cuda_contract_plan *plan,
                             const struct kg_access *access, const struct kg_tensor *tensor,
                             enum kg_contract_role inner, enum kg_contract_role outer, int width,
                             int height, struct kg_map *map);

// ---- Launches, time, choice: as in struct kg_cuda_contract_form ----

void kg_cuda_wgmma_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids);
// Bytes of the operands that a pre-pass copies, because TMA cannot load them in place.
double kg_cuda_wgmma_packed_bytes(const struct kg_cuda_contract_plan *plan);
// Whether elements of the output are stored one by one, because TMA cannot store its lines.
bool kg_cuda_wgmma_stores_alone(const struct kg_cuda_contract_plan *plan);
// Whether tiles may overlap as the config says; if not, says why.
bool kg_cuda_wgmma_may_overlap(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
// Whether elements of the output's lines are adjacent, but TMA cannot store these.
bool kg_cuda_wgmma_has_odd_lines(const struct kg_cuda_contract_plan *plan);
// Whether rows (or columns) that TMA loads begin in the middle of a 128-byte line.
bool kg_cuda_wgmma_is_unaligned(const struct kg_cuda_contract_plan *plan);
double kg_cuda_wgmma_rate(const struct kg_cuda_contract_plan *plan);
// The time of an SM to multiply one stage at this rate, with `products` wgmma for each pair of
// operand tiles.
double kg_cuda_wgmma_stage_seconds(const struct kg_cuda_contract_plan *plan, double rate,
                                   int products);
struct kg_cuda_contract_cost_terms
kg_cuda_wgmma_cost_terms(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_wgmma_guess(struct kg_cuda_contract_plan *plan);
void kg_cuda_wgmma_list(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing);

#endif
