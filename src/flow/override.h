// A plan that runs PTX from outside in the place of the generated kernels.

#ifndef KG_FLOW_OVERRIDE_H
#define KG_FLOW_OVERRIDE_H

#include "flow/plan_handle.h"

// The kernels of a PTX file for the choice in its "// Choice:" lines, or for the plan's where it
// has none. Nothing is verified or measured.
enum kg_status kg_flow_override(const struct kg_plan *plan, const char *path, struct kg_plan **out,
                                struct kg_error *error);

#endif
