// What comes of a build, stage by stage.

#ifndef KG_FLOW_BUILD_REPORT_H
#define KG_FLOW_BUILD_REPORT_H

#include "flow/plan_handle.h"

#define KG_STOPPED_TEXT 384

// The result of a build; see kg_build_result in kernelgen.h.
struct kg_built_report {
    struct kg_verdict verdict;
    struct kg_bench_result bench;
    int rounds;
    bool goal_met;
    int64_t space;
    int valid, pruned, measured, failed;
    const char *limit;             // a constant
    char stopped[KG_STOPPED_TEXT]; // why the last round was the last
    double searched; // seconds of the version before the first round of one change, when last raced
};

#endif
