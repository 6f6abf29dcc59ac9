// The accuracy gate of one problem, applied to one subject.

#ifndef KG_FLOW_JUDGING_H
#define KG_FLOW_JUDGING_H

#include "flow/request.h"

// The gate of this problem's instance on this device. `seed` 0: fresh inputs.
enum kg_status kg_flow_gate(const struct kg_request *request, uint64_t seed, bool strided,
                            struct kg_gate **gate, struct kg_error *error);
// Judges in a worker process: a crash or a hang of the subject is a verdict.
enum kg_status kg_flow_judge(const struct kg_request *request, const struct kg_gate *gate,
                             const struct kg_subject *subject, double seconds,
                             struct kg_verdict *verdict, struct kg_error *error);

#endif
