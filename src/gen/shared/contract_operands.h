// What the files of the contract family share: a sum of products as a matrix product.

#ifndef KG_GEN_CONTRACT_SIDES_H
#define KG_GEN_CONTRACT_SIDES_H

#include "gen/family.h"

#define KG_CONTRACT_FACTORS 8

// Every axis of the nest plays one of these parts.
enum kg_contract_part {
    KG_CONTRACT_BATCH, // in the output and on both sides, or on neither
    KG_CONTRACT_M,     // in the output and on side A only
    KG_CONTRACT_N,     // in the output and on side B only
    KG_CONTRACT_K,     // summed over
    KG_CONTRACT_PARTS
};

struct kg_contract_factor {
    const struct kg_expr *expr;
    bool divides;
};

// A (index 0) or B: a product of factors that use the axes of M (or N), K and the batch only.
struct kg_contract_side {
    int count;
    struct kg_contract_factor factors[KG_CONTRACT_FACTORS];
    const struct kg_access *plain; // the side is this read and lies in memory as it is; else NULL
    bool halves;                   // as elements of the contract's `half`
    bool along_k;                  // neighbours in memory are neighbours along K
};

// sum(K) A(M, K) * B(N, K), times constants.
struct kg_contract {
    const struct kg_group *group;
    const struct kg_nest *nest; // the contraction, first of the group; element-wise nests follow
    enum kg_type type;          // of the computation
    enum kg_dtype half;         // f16 or bf16: plain sides of it are widened in registers; else f32
    int axis_count[KG_CONTRACT_PARTS];
    int axes[KG_CONTRACT_PARTS][KG_MAX_INDICES];
    struct kg_contract_side sides[2];
    int constant_count;
    struct kg_contract_factor constants[KG_CONTRACT_FACTORS];
    bool negative;
};

// Reads the group as a contraction. If it is not one, says why in `reason` (may be NULL) and is
// false. B is the side of the output's last axis, if one side is.
bool kg_contract_read(const struct kg_group *group, struct kg_contract *contract,
                      struct kg_text *reason);

// Whether some statement of the group is, alone, a product of matrices, both with axes of their
// own: on devices with much to gain, families of rows leave it to the one of products.
bool kg_contract_is_in(const struct kg_group *group);

// Elements of the type of the computation in a vector register of the device, and registers.
int kg_contract_lanes(const struct kg_contract *contract, const struct kg_device_facts *facts);
int kg_contract_registers(const struct kg_device_facts *facts);

// Whether both sides are narrow floats, and the device sums products of pairs of them in tiles.
bool kg_contract_pairs(const struct kg_contract *contract, const struct kg_device_facts *facts);

// The complete source. `values` in the order of the family's space, see contract.c.
enum {
    KG_CONTRACT_ROWS,       // of the tile in registers
    KG_CONTRACT_VECTORS,    // of a row of that tile
    KG_CONTRACT_DEPTH,      // of k packed at a time
    KG_CONTRACT_BLOCK_ROWS, // packed at a time
    KG_CONTRACT_COLUMNS,    // of an item at most
    KG_CONTRACT_PARAMETERS
};
bool kg_contract_emit(const struct kg_contract *contract, const struct kg_device_facts *facts,
                      const struct kg_config *config, const struct kg_space *space,
                      const char *entry, struct kg_text *source);

#endif
