// Compiles several choices at once on all cores. Afterwards the results are in the cache of
// compiled objects, too.

#ifndef KG_TUNE_COMPILING_H
#define KG_TUNE_COMPILING_H

#include "base/times.h"
#include "gen/built.h"
#include "tune/forecast.h"

struct kg_compilation {
    const struct kg_problem *problem;
    struct kg_choice choice;
    // The result; the caller frees it.
    struct kg_built *built;
    struct kg_forecast forecast;
    enum kg_status status;
    struct kg_error error;
};

// `warm` as for kg_forecast_make. Each kernel of a choice may take `limit` seconds; at `deadline`
// (kg_times_now; 0: none) everything ends, and what is not done was cancelled. `times` may be NULL.
void kg_compile_all(struct kg_device *device, struct kg_compilation *items, int count, double limit,
                    double deadline, bool warm, const volatile int *cancel, struct kg_times *times);
// The number of cores that compile: those of this machine, for every device.
int kg_compile_cores(const struct kg_device *device);

#endif
