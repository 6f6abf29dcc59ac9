// A plan that runs PTX from a file instead of the generated kernels.

#ifndef KG_FLOW_OVERRIDE_H
#define KG_FLOW_OVERRIDE_H

#include "flow/plan_handle.h"

// The kernels of a PTX file for the choice in its "// Choice:" lines or, without any, for the
// plan's. Nothing is verified or measured.
enum kg_status kg_flow_override(const struct kg_plan *plan, const char *path, struct kg_plan **out,
                                struct kg_error *error);

#endif
