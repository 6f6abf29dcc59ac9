// What limits a version's speed, in words, and what kind of change would help.

#ifndef KG_FLOW_DIAGNOSE_H
#define KG_FLOW_DIAGNOSE_H

#include "analyze/roofline.h"

enum kg_diagnosis {
    KG_DIAGNOSIS_BANDWIDTH, // at the memory roofline: nothing to gain
    KG_DIAGNOSIS_COMPUTE,   // at the arithmetic roofline
    KG_DIAGNOSIS_OVERHEAD,  // so small that the launch takes longer than the work
    KG_DIAGNOSIS_MEMORY,    // memory-bound, well below the bandwidth
    KG_DIAGNOSIS_LATENCY,   // compute-bound, well below the rate
    KG_DIAGNOSIS_COUNT
};

struct kg_diagnosed {
    enum kg_diagnosis diagnosis;
    double share;       // of the roofline
    const char *name;   // "memory latency"
    const char *advice; // what the next change should address
    bool at_limit;      // further rounds cannot gain anything
};

// `seconds` is the measured time.
struct kg_diagnosed kg_flow_diagnose(const struct kg_problem *problem,
                                     const struct kg_device_facts *facts, double seconds);

#endif
