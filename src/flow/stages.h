// The five stages: define, generate, verify, optimise, record.

#ifndef KG_FLOW_STAGES_H
#define KG_FLOW_STAGES_H

#include "flow/planner.h"

// See kg_build in kernelgen.h.
enum kg_status kg_flow_build(struct kg_session *session, const struct kg_problem *problem,
                             struct kg_device *device, const struct kg_build_options *options,
                             struct kg_build_result *result, struct kg_plan **plan,
                             struct kg_error *error);

#endif
