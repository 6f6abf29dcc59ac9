// What runs candidates, in a process of its own where no fork will do: this process uses the
// driver of the device already (PyTorch, a plan that has run), and a fork could not. A program,
// kernelgen-worker, is started for each errand and does it as any process would that starts afresh:
// it plans, verifies or benches through this library, and writes to the same records.
//
// The program is $KERNELGEN_WORKER, or lies beside the library or tool, or in the libexec folder
// that was installed with it. Where there is none, or one of another version, work is done in this
// process.

#ifndef KG_FLOW_ERRAND_H
#define KG_FLOW_ERRAND_H

#include "flow/planner.h"

// Is it needed, and can it be had?
bool kg_worker_job_is_wanted(struct kg_device *device);

// As the functions of planner.h. A plan comes as `*choice`, which the caller frees, and what is
// known of it; found->choice is not set. KG_ERROR_MISSING, with the reason, when the program cannot
// be used after all.
enum kg_status kg_worker_job_plan(struct kg_session *session, const struct kg_problem *problem,
                                  struct kg_device *device, enum kg_rigor rigor, double seconds,
                                  const char *hint, char **choice, struct kg_found *found,
                                  enum kg_rigor *reached, struct kg_error *error);
enum kg_status kg_worker_job_verify(const struct kg_plan *plan, uint64_t seed,
                                    struct kg_verdict *verdict, struct kg_error *error);
enum kg_status kg_worker_job_verify_file(struct kg_session *session,
                                         const struct kg_problem *problem, struct kg_device *device,
                                         const char *path, uint64_t seed,
                                         struct kg_verdict *verdict, struct kg_error *error);
enum kg_status kg_worker_job_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                                   struct kg_bench_result *result, double *rival_seconds,
                                   struct kg_error *error);

// All of the program.
_Noreturn void kg_worker_job_serve(int argc, char **argv);

#endif
