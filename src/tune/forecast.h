// The performance model of src/asm, applied to every launch of a built choice: what the
// instructions tell about the time before anything has run.

#ifndef KG_TUNE_FORECAST_H
#define KG_TUNE_FORECAST_H

#include "asm/model.h"
#include "gen/built.h"

// All launches of the choice, which run one after the other, joined by kg_model_join.
struct kg_forecast {
    bool known;      // false if the model does not know the kind of binary or device
    double bound;    // seconds, as kg_model.bound
    double estimate; // seconds, for putting candidates in order
    double points;   // sum of asm/points.h over the launches; NaN: unknown
    double feature[KG_FEATURE_COUNT];
    int launches;
    int registers;                  // of a thread, the largest number of all launches; 0: unknown
    struct kg_model_launch longest; // the one that is expected to take longest
    char refusal[256];              // why the device would refuse a launch, else ""
};

void kg_forecast_make(const struct kg_built *built, const struct kg_problem *problem, bool warm,
                      struct kg_forecast *forecast);

// The function that grid `number` of a kernel runs; NULL when there is none.
const struct kg_asm_kernel *kg_forecast_function(const struct kg_asm_file *file, int number);
bool kg_forecast_is_launched(const struct kg_grid *grid);

#endif
