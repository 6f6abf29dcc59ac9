// Why a version is as fast as it is, in words, and what kind of change follows from it.

#ifndef KG_FLOW_DIAGNOSE_H
#define KG_FLOW_DIAGNOSE_H

#include "analyze/roofline.h"

enum kg_diagnosis {
    KG_DIAGNOSIS_BANDWIDTH, // at the roofline of the memory: nothing left to gain
    KG_DIAGNOSIS_COMPUTE,   // at the roofline of the arithmetic
    KG_DIAGNOSIS_OVERHEAD,  // so small that starting it costs more than doing it
    KG_DIAGNOSIS_MEMORY,    // memory-bound, well below the bandwidth
    KG_DIAGNOSIS_LATENCY,   // compute-bound, well below the rate
    KG_DIAGNOSIS_COUNT
};

struct kg_diagnosed {
    enum kg_diagnosis diagnosis;
    double share;       // of the roofline that was reached
    const char *name;   // "memory latency"
    const char *advice; // what a next change should touch
    bool at_limit;      // further rounds cannot gain anything
};

// `seconds` is the measured time.
struct kg_diagnosed kg_flow_diagnose(const struct kg_problem *problem,
                                     const struct kg_device_facts *facts, double seconds);

#endif
