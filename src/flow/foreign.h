// Kernels from outside: PTX as the kernels of a choice, and any file judged by the gate.

#ifndef KG_FLOW_FOREIGN_H
#define KG_FLOW_FOREIGN_H

#include "flow/request.h"

// The kernels of a PTX file, as `emit --target ptx` prints them, edited or not. Their choice is
// what its "// Choice:" lines say, or `choice` (kg_choice_print) where there are none. Whether
// functions, parameters and architecture fit is checked; whether they compute the right thing is
// not. The caller frees `*text`, which is the file's.
enum kg_status kg_foreign_adopt(const struct kg_problem *problem, struct kg_device *device,
                                const char *path, const char *choice, struct kg_built **built,
                                char **text, struct kg_error *error);

// Is the kernel in this file right? See kg_problem_verify_file. What was found is in the log.
enum kg_status kg_flow_verify_file(const struct kg_request *request, const char *path,
                                   uint64_t seed, struct kg_verdict *verdict,
                                   struct kg_error *error);

#endif
