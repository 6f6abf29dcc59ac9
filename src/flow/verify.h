// Is a plan right?

#ifndef KG_FLOW_VERIFY_H
#define KG_FLOW_VERIFY_H

#include "flow/plan_handle.h"

// Strided views are judged with a kernel of their own, generated with the same families.
enum kg_status kg_flow_verify(const struct kg_plan *plan, uint64_t seed, struct kg_verdict *verdict,
                              struct kg_error *error);

#endif
