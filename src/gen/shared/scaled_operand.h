// An operand of a product whose elements have few bits, as weights are quantised:
// ((element - zero + zero) * scale + offset) * scale, where zeros, scales and the offset are the
// same for runs of K steps. There are zeros only for elements that are integers. All of it may be
// rounded to 16 bits by a cast.

#ifndef KG_GEN_SCALED_OPERAND_H
#define KG_GEN_SCALED_OPERAND_H

#include "gen/shared/contract_operands.h"

enum { KG_SCALED_ZEROS = 2 };
struct kg_scaled_zero {
    const struct kg_expr *expr;
    bool adds; // else it is subtracted
};

struct kg_scaled_operand {
    const struct kg_access
        *element;   // of a tensor of integers of 4 or 8 bits, or floats of 8; affine, but for
                    // subscripts that are gathers by axes of the batch, and for packed ones
    bool is_packed; // the tensor consists of panels: docs/packed.md
    int zero_count; // integers that are subtracted or added
    struct kg_scaled_zero zeros[KG_SCALED_ZEROS];
    int64_t least_zero, greatest_zero; // of what is subtracted, less what is added
    int scale_count;
    struct kg_contract_factor scales[KG_CONTRACT_FACTORS];
    bool outside[KG_CONTRACT_FACTORS]; // the scale multiplies the offset, too
    const struct kg_expr *offset;      // a float that is added, or NULL
    bool offset_subtracts;             // else it is added
    int64_t group;        // K steps of a run; 0: zeros, scales and the offset do not depend on K
    enum kg_dtype rounds; // f16 or bf16, to which elements are cast once they are scaled; else f32
};

// Reads operand 0 (A) or 1 (B) as such. If it is not one, returns false and says why in `reason`,
// which may be NULL. Does not depend on sizes.
bool kg_scaled_operand_read(const struct kg_contract *contract, int operand,
                            struct kg_scaled_operand *scaled, struct kg_text *reason);

#endif
