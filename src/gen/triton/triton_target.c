// The row of Triton in the table of targets. Nothing here runs its kernels.

#include "gen/families.h"
#include "gen/standalone.h"
#include "gen/target.h"

static const struct kg_family *const families[] = {
    &kg_triton_contract,  // sums of products of two operands
    &kg_triton_reduce,    // one reduction, with what belongs to it
    &kg_triton_rowwise,   // reductions by row, and what belongs to them
    &kg_triton_scan,      // running totals
    &kg_triton_pointwise, // chains of element-wise formulas
    &kg_triton_plain,     // anything, one nest at a time
    NULL,
};

const struct kg_target kg_target_triton = {
    .name = "triton",
    .families = families,
    .plain = &kg_triton_plain,
    .suffix = ".py",
    .standalone = kg_gen_standalone_triton,
    .only_emits = true,
};
