// The evidence of a plan for its diagnosis: its launches, its code, and the bytes it moves.

#ifndef KG_FLOW_EVIDENCE_H
#define KG_FLOW_EVIDENCE_H

#include "flow/diagnose.h"
#include "flow/plan_handle.h"

// `seconds` is the measured time. What cannot be found out stays 0: a plan without code, or code
// that no reader of this machine understands.
void kg_flow_evidence(const struct kg_plan *plan, double seconds, struct kg_evidence *evidence);
// The diagnosis that follows from it.
void kg_flow_diagnose_plan(const struct kg_plan *plan, double seconds,
                           struct kg_diagnosed *diagnosed);

#endif
