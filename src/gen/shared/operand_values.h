// Which 16-bit floats hold every value of an operand exactly: it decides in how many parts an
// operand goes to tensor cores.

#ifndef KG_GEN_OPERAND_VALUES_H
#define KG_GEN_OPERAND_VALUES_H

#include "gen/shared/contract_operands.h"

// A set of them.
enum { KG_VALUES_F16 = 1, KG_VALUES_BF16 = 2 };

// Of a side of the product, 0 or 1. The empty set where nothing is known.
unsigned kg_operand_values(const struct kg_contract *contract, int side);

#endif
