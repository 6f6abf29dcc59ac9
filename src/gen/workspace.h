// The memory that the kernels of a choice share beside inputs and outputs: intermediates, each at
// an offset of its own, and behind them the scratch of whichever kernel runs.

#ifndef KG_GEN_WORKSPACE_H
#define KG_GEN_WORKSPACE_H

#include "gen/choice.h"

// What its base and all offsets are aligned to.
#define KG_WORKSPACE_ALIGNMENT ((size_t)256)

struct kg_workspace {
    size_t places[KG_MAX_NESTS + KG_MAX_TENSORS]; // offsets, by tensor
    size_t scratch;                               // offset
    size_t bytes;
};

// `scratch`: the most that a kernel of the choice needs (kg_grids.scratch).
void kg_workspace_lay_out(const struct kg_choice *choice, const struct kg_problem *problem,
                          size_t scratch, struct kg_workspace *workspace);

#endif
