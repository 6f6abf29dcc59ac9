// What the files of the form for wgmma share: cuda_contract_wgmma.c has the shape of a block and
// writes, cuda_contract_wgmma_launch.c maps tensors and launches, cuda_contract_wgmma_rule.c says
// how long a config takes and chooses.

#ifndef KG_GEN_CUDA_CONTRACT_WGMMA_H
#define KG_GEN_CUDA_CONTRACT_WGMMA_H

#include "gen/cuda/contract/cuda_contract.h"

// The functions of a kernel, and the tensor maps all of them are given.
enum { KG_WGMMA_PACK_A, KG_WGMMA_PACK_B, KG_WGMMA_MULTIPLY, KG_WGMMA_FOLD, KG_WGMMA_FUNCTIONS };
enum {
    KG_WGMMA_LEFT,
    KG_WGMMA_RIGHT,
    KG_WGMMA_OUT,
    KG_WGMMA_LAST_LEFT, // boxes as tall as what is left of the side for its last tile
    KG_WGMMA_LAST_RIGHT,
    KG_WGMMA_MAPS
};

// Bytes of an element, of what is copied at least, and of what memory is read by; elements of a box
// across; threads that fold or copy.
enum { KG_WGMMA_ELEMENT = 2, KG_WGMMA_ACCESS = 16, KG_WGMMA_LINE = 128, KG_WGMMA_ATOM = 64 };
enum { KG_WGMMA_FOLD_THREADS = 256 };
// Bytes of a side that passes through the L2: with no more of them, the next launch may find it
// there; with more, all else leaves as well.
enum { KG_WGMMA_LEAST_PASSING = 40 << 20, KG_WGMMA_MOST_PASSING = 256 << 20 };

// ---- The shape of a block, as the skeleton has it ----

int kg_cuda_wgmma_threads(const struct kg_cuda_contract_plan *plan);
// Registers that hold a thread's sums.
int kg_cuda_wgmma_sums(const struct kg_cuda_contract_plan *plan);
// Whether the pieces of a sum are folded in a cluster.
bool kg_cuda_wgmma_folds(const struct kg_cuda_contract_plan *plan);
// Whether blocks share tiles evenly: kernels/cuda/contract_shares.cuh.
bool kg_cuda_wgmma_shares(const struct kg_cuda_contract_plan *plan);
// Pieces whose sums go through memory.
int kg_cuda_wgmma_pieces(const struct kg_cuda_contract_plan *plan);
// Columns of what leaves through shared memory at once.
int kg_cuda_wgmma_leaving(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_wgmma_shared(const struct kg_cuda_contract_plan *plan); // bytes
// That a unit runs at once.
int kg_cuda_wgmma_blocks(const struct kg_cuda_contract_plan *plan);
// Tiles, or pairs of them, and how many blocks or pairs of them run at once.
int64_t kg_cuda_wgmma_tiles(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_wgmma_most(const struct kg_cuda_contract_plan *plan);
// Whether all steps that blocks may share can be counted.
bool kg_cuda_wgmma_is_counted(const struct kg_cuda_contract_plan *plan);
// Of the parts of tiles that blocks leave for others.
int64_t kg_cuda_wgmma_part_bytes(const struct kg_cuda_contract_plan *plan);
// The side, 0 for A, that is copied as left or right, and as which of them a side is.
int kg_cuda_wgmma_side(const struct kg_cuda_contract_plan *plan, int which);

// Writes the struct ENTRY_instruction, wgmma for the columns of the tile, of f16 or bf16.
void kg_cuda_wgmma_emit_instruction(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                    enum kg_dtype dtype);

// ---- Launches, time, choice: as in struct kg_cuda_contract_form ----

void kg_cuda_wgmma_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids);
// Bytes of the sides that are copied first.
double kg_cuda_wgmma_copied(const struct kg_cuda_contract_plan *plan);
// Whether lines that are copied to shared memory begin in the middle of what memory is read by.
bool kg_cuda_wgmma_is_uneven(const struct kg_cuda_contract_plan *plan);
double kg_cuda_wgmma_rate(const struct kg_cuda_contract_plan *plan);
// Seconds of a unit for a stage, at this rate; of `products` for each two elements.
double kg_cuda_wgmma_stage(const struct kg_cuda_contract_plan *plan, double rate, int products);
struct kg_cuda_contract_cost_terms kg_cuda_wgmma_pace(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_wgmma_guess(struct kg_cuda_contract_plan *plan);
void kg_cuda_wgmma_list(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing);

#endif
