// Foreign kernels: PTX as the kernels of a choice, and any file judged by the gate.

#ifndef KG_FLOW_FOREIGN_H
#define KG_FLOW_FOREIGN_H

#include "flow/request.h"

// The kernels of a PTX file, as `emit --target ptx` prints them, possibly edited. Their choice is
// that of its "// Choice:" lines or, without any, `choice` (kg_choice_print). Functions, parameters
// and architecture are checked, results are not. The caller frees `*text`, the content of the file.
enum kg_status kg_foreign_adopt(const struct kg_problem *problem, struct kg_device *device,
                                const char *path, const char *choice, struct kg_built **built,
                                char **text, struct kg_error *error);

// Judges the kernel in a file, see kg_problem_verify_file. The verdict is in the log.
enum kg_status kg_flow_verify_file(const struct kg_request *request, const char *path,
                                   uint64_t seed, struct kg_verdict *verdict,
                                   struct kg_error *error);

#endif
