// Sources for targets whose kernels no device here runs.

#ifndef KG_API_EMITTED_H
#define KG_API_EMITTED_H

#include "analyze/problem.h"

// kg_problem_emit, for problems that need not have a context.
enum kg_status kg_api_emit(const struct kg_problem *problem, const char *target,
                           struct kg_text *text, struct kg_error *error);

#endif
