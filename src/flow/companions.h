// Choices that go along with a plan's own: the baseline it is measured against, and the same
// families for tensors of the other kind, strided or contiguous.

#ifndef KG_FLOW_COMPANIONS_H
#define KG_FLOW_COMPANIONS_H

#include "flow/request.h"

// The definition as written, one plain loop nest or grid per statement: what an engineer writes
// first.
void kg_flow_choose_baseline(const struct kg_device *device, const struct kg_problem *problem,
                             struct kg_choice *choice);

// The same op with tensors of the other kind: strided for a contiguous problem, and back. NULL
// where there is none.
enum kg_status kg_flow_counterpart(const struct kg_problem *problem, struct kg_problem **other,
                                   struct kg_error *error);
// The same families and configs for it, where they fit.
void kg_flow_choose_counterpart(const struct kg_device *device, const struct kg_problem *other,
                                const char *choice, struct kg_choice *counterpart);
// `choice` is the one that `other` is to be a counterpart of.
enum kg_status kg_flow_build_counterpart(const struct kg_request *request, const char *choice,
                                         const struct kg_problem *other, struct kg_built **built,
                                         struct kg_error *error);

#endif
