// Running a plan on this process's own memory, also if the device has its own.

#ifndef KG_FLOW_RUN_WITH_COPIES_H
#define KG_FLOW_RUN_WITH_COPIES_H

#include "flow/plan_handle.h"

// See kg_plan_run in kernelgen.h.
enum kg_status kg_flow_run(const struct kg_plan *plan, void *const *tensors,
                           struct kg_error *error);

#endif
