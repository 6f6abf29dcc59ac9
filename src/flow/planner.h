// From a problem to a plan: uses what is known, and searches for the rest.

#ifndef KG_FLOW_PLANNER_H
#define KG_FLOW_PLANNER_H

#include "flow/plan_handle.h"

// See kg_plan_create in kernelgen.h. A cancelled or timed-out search that found anything gives
// KG_OK. The plan records how the request was answered: origin, rigor, times.
enum kg_status kg_flow_plan(const struct kg_request *request, struct kg_plan **plan,
                            struct kg_error *error);

#endif
