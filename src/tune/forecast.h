// What a candidate's instructions say of its time before it has run: src/asm's model, applied to
// every launch of a built choice.

#ifndef KG_TUNE_PROMISE_H
#define KG_TUNE_PROMISE_H

#include "asm/model.h"
#include "gen/built.h"

// Of all launches together, which follow one another: joined as kg_model_join does.
struct kg_forecast {
    bool known;      // false where binaries or the device are of no kind the model knows
    double bound;    // seconds, as kg_model.bound
    double estimate; // seconds, for putting candidates in order
    double points;   // of asm/points.h, added up; NaN: not known
    double feature[KG_FEATURE_COUNT];
    int launches;
    int registers;                  // of a thread, the most of all launches; 0: not known
    struct kg_model_launch longest; // the one that is expected to take longest
    char refusal[256];              // why the device would refuse a launch, else ""
};

void kg_forecast_make(const struct kg_built *built, const struct kg_problem *problem, bool warm,
                      struct kg_forecast *forecast);

// The function that grid `number` of a kernel runs, NULL when there is none.
const struct kg_asm_kernel *kg_forecast_function(const struct kg_asm_file *file, int number);
bool kg_forecast_is_launched(const struct kg_grid *grid);

#endif
