// Predictions for a plan's compiled kernels, without running them.

#ifndef KG_FLOW_ANALYSIS_H
#define KG_FLOW_ANALYSIS_H

#include "flow/plan_handle.h"

// Describes every function that the plan launches, with its launch (docs/asm.md explains the
// lines). KG_ERROR_UNSUPPORTED without binaries: on the host.
enum kg_status kg_flow_analyse(const struct kg_plan *plan, struct kg_text *text,
                               struct kg_error *error);

#endif
