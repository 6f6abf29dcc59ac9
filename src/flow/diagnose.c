// Diagnosis from the measured time and the bounds.

#include "flow/diagnose.h"

#include <stddef.h>

// At this share of the roofline further search gains nothing: the copy that measured the bandwidth
// varies by about as much from run to run.
#define NEAR_LIMIT 0.92
// Handing work to threads and waiting for them takes some microseconds; below ten times that,
// overhead dominates.
#define OVERHEAD_SECONDS 20e-6

struct rule {
    enum kg_diagnosis diagnosis;
    bool at_limit;
    const char *name;
    const char *advice;
};

static const struct rule rules[KG_DIAGNOSIS_COUNT] = {
    [KG_DIAGNOSIS_BANDWIDTH] = {KG_DIAGNOSIS_BANDWIDTH, true, "memory bandwidth",
                                "none: the memory is as busy as it can be"},
    [KG_DIAGNOSIS_COMPUTE] = {KG_DIAGNOSIS_COMPUTE, true, "arithmetic rate",
                              "none: the arithmetic units are as busy as they can be"},
    [KG_DIAGNOSIS_OVERHEAD] = {KG_DIAGNOSIS_OVERHEAD, true, "host overhead",
                               "none by parameters: the call costs more than the work"},
    [KG_DIAGNOSIS_MEMORY] = {KG_DIAGNOSIS_MEMORY, false, "memory access",
                             "block sizes, streaming stores and prefetch"},
    [KG_DIAGNOSIS_LATENCY] = {KG_DIAGNOSIS_LATENCY, false, "instruction latency and reuse",
                              "tile sizes, unrolling and vector width"},
};

static enum kg_diagnosis find(const struct kg_roofline *roofline, double seconds)
{
    bool near = roofline->seconds >= NEAR_LIMIT * seconds;
    if (!near && seconds < OVERHEAD_SECONDS)
        return KG_DIAGNOSIS_OVERHEAD;
    if (roofline->memory_bound)
        return near ? KG_DIAGNOSIS_BANDWIDTH : KG_DIAGNOSIS_MEMORY;
    return near ? KG_DIAGNOSIS_COMPUTE : KG_DIAGNOSIS_LATENCY;
}

struct kg_diagnosed kg_flow_diagnose(const struct kg_problem *problem,
                                     const struct kg_device_facts *facts, double seconds)
{
    struct kg_roofline roofline = kg_roofline_of(problem, facts);
    const struct rule *rule = &rules[find(&roofline, seconds)];
    return (struct kg_diagnosed){
        .diagnosis = rule->diagnosis,
        .share = seconds > 0 ? roofline.seconds / seconds : 0,
        .name = rule->name,
        .advice = rule->advice,
        .at_limit = rule->at_limit,
    };
}
