// Shared by the model's files: how much of each kind of work one warp does, given the kernel's
// loops and their known trips.

#ifndef KG_ASM_MODEL_WORK_H
#define KG_ASM_MODEL_WORK_H

#include "asm/model.h"

struct kg_model_share {
    struct kg_mix mix;
    double instructions;
    double stall_cycles;
};

struct kg_model_work {
    struct kg_model_share sure;     // certain for all data and sizes; `mix` has no predicated work
    struct kg_model_share expected; // including conditional work
};

// False when out of memory.
bool kg_model_weigh(const struct kg_asm_kernel *kernel, const struct kg_model_launch *launch,
                    const struct kg_model_problem *problem, struct kg_model_work *work);

// Computes model->feature from the other members of the model.
void kg_model_features(const struct kg_asm_kernel *kernel, const struct kg_model_work *work,
                       struct kg_model *model);

#endif
