// What the files of the model share: how much of each kind of work one warp does, by the kernel's
// loops and what is known of their trips.

#ifndef KG_ASM_MODEL_WORK_H
#define KG_ASM_MODEL_WORK_H

#include "asm/model.h"

struct kg_model_share {
    struct kg_mix mix;
    double instructions;
    double stall_cycles;
};

struct kg_model_work {
    struct kg_model_share sure;     // whatever the data and the sizes; `mix` without guarded work
    struct kg_model_share expected; // with conditional work
};

// False when out of memory.
bool kg_model_weigh(const struct kg_asm_kernel *kernel, const struct kg_model_launch *launch,
                    const struct kg_model_problem *problem, struct kg_model_work *work);

// Fills model->feature from the rest of the model.
void kg_model_features(const struct kg_asm_kernel *kernel, const struct kg_model_work *work,
                       struct kg_model *model);

#endif
