// The five stages: define, generate, verify, optimise, record.

#ifndef KG_FLOW_STAGES_H
#define KG_FLOW_STAGES_H

#include "flow/plan_handle.h"

// The result of a build; see kg_build_result in kernelgen.h.
struct kg_built_report {
    struct kg_verdict verdict;
    struct kg_bench_result bench;
    int rounds;
    bool goal_met;
    int64_t space;
    int valid, pruned, measured, failed;
    const char *limit; // a constant
};

// See kg_build in kernelgen.h. Rigor and seconds are the request's.
enum kg_status kg_flow_build(const struct kg_request *request,
                             const struct kg_build_options *options, struct kg_built_report *report,
                             struct kg_plan **plan, struct kg_error *error);

#endif
