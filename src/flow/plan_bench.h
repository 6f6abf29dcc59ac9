// The performance gate: a plan against the baseline of its device.

#ifndef KG_FLOW_PLAN_BENCH_H
#define KG_FLOW_PLAN_BENCH_H

#include "flow/evaluator.h"

// Times the plan, its device's baseline and, if not NULL, a rival alternately in one worker
// process, so that they are comparable. `rival_seconds` may be NULL. A plan with overridden kernels
// is timed as by kg_flow_bench_override.
enum kg_status kg_flow_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                             struct kg_bench_result *result, double *rival_seconds,
                             struct kg_error *error);
// For a plan whose kernels are overridden: it has to pass the gate first (else KG_ERROR_WRONG, with
// the verdict), is timed beside the kernels that it overrides, and its outcome is recorded as that
// of an override.
enum kg_status kg_flow_bench_override(const struct kg_plan *plan, struct kg_bench_result *result,
                                      struct kg_verdict *verdict, struct kg_error *error);
// As kg_flow_bench, for a plan that is not overridden, with a build's evaluator.
enum kg_status kg_evaluator_bench(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  const struct kg_plan *rival, struct kg_bench_result *result,
                                  double *rival_seconds, struct kg_error *error);

#endif
