// Reading a sum of products as a matrix product; the contract families of all targets use it.

#ifndef KG_GEN_CONTRACT_OPERANDS_H
#define KG_GEN_CONTRACT_OPERANDS_H

#include "gen/family.h"

#define KG_CONTRACT_FACTORS 8

// The role of an axis of the nest.
enum kg_contract_role {
    KG_CONTRACT_BATCH, // in the output and in both operands, or in neither; or an axis that chooses
                       // a matrix of quantised weights, see contract_operands.c
    KG_CONTRACT_M,     // in the output and in operand A only
    KG_CONTRACT_N,     // in the output and in operand B only
    KG_CONTRACT_K,     // summed over
    KG_CONTRACT_ROLES
};

struct kg_contract_factor {
    const struct kg_expr *expr;
    bool divides;
};

// Operand A (index 0) or B: a product of factors that use only the axes of M (or N), K and the
// batch.
struct kg_contract_operand {
    int count;
    struct kg_contract_factor factors[KG_CONTRACT_FACTORS];
    const struct kg_access *plain; // the read that is the operand, if it is a single one; else NULL
    bool halves;                   // its elements are the contract's `half`
    bool k_major;                  // elements adjacent along K are adjacent in memory
};

// sum(K) A(M, K) * B(N, K), times constants.
struct kg_contract {
    const struct kg_group *group;
    const struct kg_nest *nest; // the contraction, first of the group; element-wise nests follow
    enum kg_type type;          // in which products are computed
    enum kg_dtype half;         // f16 or bf16, which plain operands have in memory; else f32
    int axis_count[KG_CONTRACT_ROLES];
    int axes[KG_CONTRACT_ROLES][KG_MAX_INDICES];
    struct kg_contract_operand operands[2];
    int constant_count;
    struct kg_contract_factor constants[KG_CONTRACT_FACTORS];
    bool negative;
};

// Reads the group as a contraction. If it is not one, returns false and says why in `reason`, which
// may be NULL. B is the operand that has the output's last axis, if only one has it.
bool kg_contract_read(const struct kg_group *group, struct kg_contract *contract,
                      struct kg_text *reason);

// Whether the expression depends on axes of the batch; and on no others.
bool kg_contract_uses_batch(const struct kg_contract *contract, const struct kg_expr *expr);
bool kg_contract_is_of_batch(const struct kg_contract *contract, const struct kg_expr *expr);

// Whether some statement of the group alone is a product of two matrices. On devices with matrix
// units, rowwise families leave such groups to those of products.
bool kg_contract_is_in(const struct kg_group *group);

// Elements of the compute type in a vector register of the device, and the number of registers.
int kg_contract_lanes(const struct kg_contract *contract, const struct kg_device_facts *facts);
int kg_contract_registers(const struct kg_device_facts *facts);

// Whether both operands are 16-bit floats and the device has tile instructions for pairs of them
// (AMX).
bool kg_contract_pairs(const struct kg_contract *contract, const struct kg_device_facts *facts);

// The positions of the host family's parameters in its space, see contract.c, and its source.
enum {
    KG_CONTRACT_ROWS,       // of the register tile
    KG_CONTRACT_VECTORS,    // in a row of that tile
    KG_CONTRACT_DEPTH,      // K elements that are packed at a time
    KG_CONTRACT_BLOCK_ROWS, // rows that are packed at a time
    KG_CONTRACT_COLUMNS,    // of an item, at most
    KG_CONTRACT_PARAMETERS
};
bool kg_contract_emit(const struct kg_contract *contract, const struct kg_device_facts *facts,
                      const struct kg_config *config, const struct kg_space *space,
                      const char *entry, struct kg_text *source);

#endif
