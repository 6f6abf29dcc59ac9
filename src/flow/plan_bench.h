// The performance gate: a plan against the baseline of its device.

#ifndef KG_FLOW_PLAN_BENCH_H
#define KG_FLOW_PLAN_BENCH_H

#include "flow/evaluator.h"

// The plan, the baseline of its device and, when not NULL, a rival, timed alternately in one worker
// process: what is compared is measured in one run. `rival_seconds` may be NULL. A plan whose
// kernels are overridden is benched as kg_flow_bench_override does it.
enum kg_status kg_flow_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                             struct kg_bench_result *result, double *rival_seconds,
                             struct kg_error *error);
// Of a plan whose kernels are overridden: it has to pass the gate first (else KG_ERROR_WRONG, with
// the verdict), is timed beside what it overrides, and what came of it is on record as such.
enum kg_status kg_flow_bench_override(const struct kg_plan *plan, struct kg_bench_result *result,
                                      struct kg_verdict *verdict, struct kg_error *error);
// As kg_flow_bench, for a plan that is not overridden, where a build judges and times everything.
enum kg_status kg_evaluator_bench(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  const struct kg_plan *rival, struct kg_bench_result *result,
                                  double *rival_seconds, struct kg_error *error);

#endif
