// What a candidate's instructions say of its time before it has run: src/asm's model, applied to
// every launch of a built choice.

#ifndef KG_TUNE_PROMISE_H
#define KG_TUNE_PROMISE_H

#include "asm/model.h"
#include "gen/built.h"

// Of all launches together, which follow each other.
struct kg_promise {
    bool known;      // false where binaries or the device are of no kind the model knows
    double bound;    // seconds, as kg_model.bound
    double estimate; // seconds, for putting candidates in order
    double feature[KG_FEATURE_COUNT]; // of the launch with the largest bound
    char refusal[256];                // why the device would refuse a launch, else ""
};

void kg_promise_make(const struct kg_built *built, const struct kg_problem *problem, bool warm,
                     struct kg_promise *promise);

// The function that grid `number` of a kernel runs, NULL when there is none.
const struct kg_asm_kernel *kg_promise_function(const struct kg_asm_file *file, int number);
bool kg_promise_is_launched(const struct kg_grid *grid);

#endif
