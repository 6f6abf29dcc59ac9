// The five stages: define, generate, verify, optimise, record.

#ifndef KG_FLOW_STAGES_H
#define KG_FLOW_STAGES_H

#include "flow/build_report.h"

// See kg_build in kernelgen.h. Rigor and seconds are the request's.
enum kg_status kg_flow_build(const struct kg_request *request,
                             const struct kg_build_options *options, struct kg_built_report *report,
                             struct kg_plan **plan, struct kg_error *error);

#endif
