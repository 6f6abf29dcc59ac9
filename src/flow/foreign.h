// Foreign kernels: files that KernelGen did not write, or that were edited since.

#ifndef KG_FLOW_FOREIGN_H
#define KG_FLOW_FOREIGN_H

#include "asm/gist.h"
#include "flow/request.h"
#include "gen/target.h"
#include "tune/search.h"

#define KG_FOREIGN_BYTES ((size_t)4 << 20) // the longest file that is read

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
// The same of a file that was read already, whose bytes are copied; for a device that is described,
// too: then it can be looked at, and not run.
enum kg_status kg_foreign_open_code(const struct kg_problem *problem, struct kg_device *device,
                                    const char *path, const char *code, size_t length,
                                    struct kg_foreign **foreign, struct kg_error *error);
// What a file of this name would hold: "a CUDA file, for GPUs", and the target that compiles it.
// NULL: no kernel.
const char *kg_foreign_kind(const char *path, const struct kg_target **target);
void kg_foreign_close(struct kg_foreign *foreign);
// What the gate that judges it must align tensors to: see struct kg_policy.
size_t kg_foreign_alignment(const struct kg_foreign *foreign);
// Judges it in a process of its own.
enum kg_status kg_foreign_judge(const struct kg_request *request, struct kg_foreign *foreign,
                                const struct kg_gate *gate, struct kg_verdict *verdict,
                                struct kg_error *error);

// What is known of its code; nothing where it cannot be read.
void kg_foreign_gist(const struct kg_foreign *foreign, struct kg_asm_gist *gist);

struct kg_test_rig; // tune/test_rig.h
// Times it, after it has passed, alternately with built choices (timings[0] is its own, those of
// the `count` rivals follow) in a process of its own. `terms` name device, problem and protocol;
// `rig` is made from them where the device shares memory, and NULL elsewhere. KG_ERROR_FAULT,
// KG_ERROR_TIMEOUT and KG_ERROR_WRONG are the foreign kernel's doing.
enum kg_status kg_foreign_race(const struct kg_request *request, struct kg_foreign *foreign,
                               const struct kg_search *terms, struct kg_test_rig *rig,
                               struct kg_built *const *rivals, int count, struct kg_timing *timings,
                               struct kg_error *error);

#endif
