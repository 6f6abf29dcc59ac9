// Foreign kernels: files that KernelGen did not write, or that were edited since.

#ifndef KG_FLOW_FOREIGN_H
#define KG_FLOW_FOREIGN_H

#include "flow/request.h"
#include "verify/gate.h"

// The kernels of a PTX file, as `emit --target ptx` prints them, possibly edited. Their choice is
// that of its "// Choice:" lines or, without any, `choice` (kg_choice_print). Functions, parameters
// and architecture are checked, results are not. The caller frees `*text`, the content of the file.
enum kg_status kg_foreign_adopt(const struct kg_problem *problem, struct kg_device *device,
                                const char *path, const char *choice, struct kg_built **built,
                                char **text, struct kg_error *error);

// The kernel of any file: see kg_problem_verify_file.
struct kg_foreign;

// Compiles the file and checks how it is launched. Code for the host is loaded only where it is
// judged. Several threads may open files of one device at once. `path` is borrowed.
enum kg_status kg_foreign_open(const struct kg_problem *problem, struct kg_device *device,
                               const char *path, struct kg_foreign **foreign,
                               struct kg_error *error);
void kg_foreign_close(struct kg_foreign *foreign);
// What the gate that judges it must align tensors to: see struct kg_policy.
size_t kg_foreign_alignment(const struct kg_foreign *foreign);
// Judges it in a process of its own.
enum kg_status kg_foreign_judge(const struct kg_request *request, struct kg_foreign *foreign,
                                const struct kg_gate *gate, struct kg_verdict *verdict,
                                struct kg_error *error);

#endif
