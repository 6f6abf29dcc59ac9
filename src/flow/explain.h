// Explaining a search: why this config, and the outcomes of all configs.

#ifndef KG_FLOW_EXPLAIN_H
#define KG_FLOW_EXPLAIN_H

#include "flow/plan_handle.h"

// Why the plan is what it is: time against bound, the families that refused nests, and the outcomes
// of the other candidates. Markdown or JSON.
enum kg_status kg_flow_explain(const struct kg_plan *plan, bool json, struct kg_text *text,
                               struct kg_error *error);

// What became of each candidate on record, and why, in a line each; or a JSON array.
enum kg_status kg_flow_candidates(const struct kg_plan *plan, bool json, struct kg_text *text,
                                  struct kg_error *error);

// Searches the whole space, whatever the request's rigor, then lists every config, the ten fastest
// first.
enum kg_status kg_flow_profile(const struct kg_request *request, bool json, struct kg_text *text,
                               struct kg_error *error);

#endif
