// Which 16-bit float types represent every value of an operand exactly: this decides into how many
// terms an operand is split for tensor cores.

#ifndef KG_GEN_OPERAND_VALUES_H
#define KG_GEN_OPERAND_VALUES_H

#include "gen/shared/contract_operands.h"

// A set of these types.
enum { KG_VALUES_F16 = 1, KG_VALUES_BF16 = 2 };

// Of operand 0 (A) or 1 (B). The empty set if nothing is known.
unsigned kg_operand_values(const struct kg_contract *contract, int operand);

#endif
