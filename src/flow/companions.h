// Choices that accompany a plan's own: its baseline, and its counterpart, the same families for
// strided tensors if the plan is for contiguous ones, or the reverse.

#ifndef KG_FLOW_COMPANIONS_H
#define KG_FLOW_COMPANIONS_H

#include "flow/request.h"

// The definition as written: one plain loop nest or grid per statement.
void kg_flow_choose_baseline(const struct kg_device *device, const struct kg_problem *problem,
                             struct kg_choice *choice);

// The counterpart of a problem: the same op with strided tensors if these are contiguous, and the
// reverse. NULL if there is none.
enum kg_status kg_flow_counterpart(const struct kg_problem *problem, struct kg_problem **other,
                                   struct kg_error *error);
// The same families and configs for the counterpart, if they fit.
void kg_flow_choose_counterpart(const struct kg_device *device, const struct kg_problem *other,
                                const char *choice, struct kg_choice *counterpart);
// `choice` is the choice of the original problem.
enum kg_status kg_flow_build_counterpart(const struct kg_request *request, const char *choice,
                                         const struct kg_problem *other, struct kg_built **built,
                                         struct kg_error *error);

#endif
