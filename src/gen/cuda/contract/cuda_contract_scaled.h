// What the forms for quantised weights share: which operand is weights, which of them they take,
// and the struct that the skeletons read weights, scales and zero points through.

#ifndef KG_GEN_CUDA_CONTRACT_SCALED_H
#define KG_GEN_CUDA_CONTRACT_SCALED_H

#include "gen/cuda/contract/cuda_contract.h"

// ---- Of a plan whose form has taken it ----

// The operand that is weights (0: A), and what it consists of.
int kg_cuda_scaled_weights(const struct kg_cuda_contract_plan *plan);
const struct kg_scaled_operand *kg_cuda_scaled_operand(const struct kg_cuda_contract_plan *plan);
enum kg_dtype kg_cuda_scaled_weight_dtype(const struct kg_cuda_contract_plan *plan);
// Of the other operand, and of the products.
enum kg_dtype kg_cuda_scaled_dtype(const struct kg_cuda_contract_plan *plan);
// Whether elements that are adjacent along K are adjacent in memory: the weights are lines, [N, K].
bool kg_cuda_scaled_is_lines(const struct kg_cuda_contract_plan *plan);
// Whether weights are rounded to 16 bits once they are scaled, so that their sums need no scales;
// if so, whether scales have the type of the products; and whether sums of rows are needed, by
// which offsets of weights that are not rounded are multiplied.
bool kg_cuda_scaled_rounds(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_scaled_has_half_scales(const struct kg_cuda_contract_plan *plan);
bool kg_cuda_scaled_sums_rows(const struct kg_cuda_contract_plan *plan);
// Bits of an element of the weights, and how many a 32-bit word has.
int kg_cuda_scaled_bits(const struct kg_cuda_contract_plan *plan);
int kg_cuda_scaled_of_word(const struct kg_cuda_contract_plan *plan);
// Whether all zero points are one integer, which weights can have.
bool kg_cuda_scaled_has_one_zero(const struct kg_cuda_contract_plan *plan);
// Of the output, where weights are its columns.
int64_t kg_cuda_scaled_rows(const struct kg_cuda_contract_plan *plan);
int64_t kg_cuda_scaled_columns(const struct kg_cuda_contract_plan *plan);

// Whether the operands are such; if not, says why.
bool kg_cuda_scaled_takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason);
// Whether the weights are in panels, docs/packed.md.
bool kg_cuda_scaled_is_packed(const struct kg_cuda_contract_plan *plan);
// Whether weights can be read in aligned vectors of so many words, scales in vectors of as many as
// a word has columns, and zero points in words, as far as strides and sizes tell.
bool kg_cuda_scaled_is_whole(const struct kg_cuda_contract_plan *plan, int words);
// Whether zero points can be read in aligned words, as far as strides and sizes tell.
bool kg_cuda_scaled_has_whole_zeros(const struct kg_cuda_contract_plan *plan);
// Whether so many adjacent scales and zero points can be read at once, as far as strides and sizes
// tell, and at one distance from each run to the next, if they are arrays with adjacent elements
// for adjacent columns.
bool kg_cuda_scaled_has_whole_factors(const struct kg_cuda_contract_plan *plan, int columns);

// The scales, the zero points, and the offsets, if they are an array with a line for each run of K
// steps; else NULL. Scales and offsets are then 16-bit floats, zero points integers of 4 or 8 bits.
const struct kg_access *kg_cuda_scaled_scales_of_runs(const struct kg_cuda_contract_plan *plan);
const struct kg_access *kg_cuda_scaled_zeros_of_runs(const struct kg_cuda_contract_plan *plan);
const struct kg_access *kg_cuda_scaled_offsets_of_runs(const struct kg_cuda_contract_plan *plan);
// Bits of such a zero point.
int kg_cuda_scaled_zero_bits(const struct kg_cuda_contract_plan *plan);
// Maps such an array in boxes of so many columns and runs. Returns false if TMA cannot load them.
bool kg_cuda_scaled_map_runs(const struct kg_cuda_contract_plan *plan,
                             const struct kg_access *access, int columns, int64_t runs,
                             struct kg_map *map);

// ---- Blocks of the forms by mma.sync ----

enum { KG_SCALED_WARPS = 16 }; // of a block, at most
struct kg_cuda_scaled_block {
    int warps, across; // of which so many divide its columns
    int registers;     // of a thread
    int64_t shared_bytes;
};

// Whether the device has room for such a block.
bool kg_cuda_scaled_valid_block(const struct kg_cuda_contract_plan *plan,
                                const struct kg_cuda_scaled_block *block, struct kg_text *reason);
// Takes a config into the listing `user`, unless it has many more K slices than SMs.
void kg_cuda_scaled_take_listed(struct kg_cuda_contract_plan *plan, void *user);
// The device's operations a second for the products.
double kg_cuda_scaled_rate(const struct kg_cuda_contract_plan *plan);

// ---- Gathered weights ----

// Whether items of the batch choose their matrices of weights by an index from memory.
bool kg_cuda_scaled_is_gathered(const struct kg_cuda_contract_plan *plan);
// The dimension of the weights, or of an array beside them, that is indexed so, if the index is one
// read and the batch moves no other dimension; else -1.
int kg_cuda_scaled_gather(const struct kg_cuda_contract_plan *plan, const struct kg_access *access);
// Whether that is `dim`, and the index and the dimension are those of the weights.
bool kg_cuda_scaled_shares_gather(const struct kg_cuda_contract_plan *plan,
                                  const struct kg_access *access, int dim);
// What the product reads and writes in memory; of gathered weights, all that the batch may choose.
double kg_cuda_scaled_bytes(const struct kg_cuda_contract_plan *plan);
// The plan with those axes of the batch only that move the rows.
void kg_cuda_scaled_batch_of_rows(const struct kg_cuda_contract_plan *plan,
                                  struct kg_cuda_contract_plan *of_rows);

// ---- Numbers ----

// The type that makes numbers of weights: kernels/cuda/scaled_number.cuh, scaled_bytes.cuh and
// scaled_rounded.cuh.
void kg_cuda_scaled_number(struct kg_text *text, const struct kg_cuda_contract_plan *plan);
// The same for the forms that multiply panels as they lie, if weights are packed.
void kg_cuda_scaled_panel_number(struct kg_text *text, const struct kg_cuda_contract_plan *plan);
// Instructions of these, as a multiple of those for 4-bit integers in f16.
double kg_cuda_scaled_conversion(const struct kg_cuda_contract_plan *plan);

// ---- Code ----

// Writes the struct ENTRY_weights, see kernels/cuda/contract_scaled.cuh.
void kg_cuda_scaled_emit_weights(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
// Of gathered weights, the struct ENTRY_boxes: the job, and where tensor maps have what an item
// needs. See kernels/cuda/contract_scaled_wgmma_gathered.cuh.
void kg_cuda_scaled_emit_boxes(struct kg_code *code, const struct kg_cuda_contract_plan *plan);
// Inside a function with the kernel's arguments: declares `job` and `weights`.
void kg_cuda_scaled_declare(struct kg_code *code, const struct kg_cuda_contract_plan *plan);

#endif
