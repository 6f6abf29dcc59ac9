// What runs candidates, in a process of its own where no fork will do: this process uses the
// driver of the device already (PyTorch, a plan that has run), and a fork could not. A program,
// kernelgen-worker, is started for each job and does it as any process would that starts afresh:
// it plans, verifies or benches through this library (flow/worker_serve.h), and writes to the same
// records.
//
// The program is $KERNELGEN_WORKER, or lies beside the library or tool, or in the libexec folder
// that was installed with it. Where there is none, or one of another version, work is done in this
// process.

#ifndef KG_FLOW_WORKER_JOB_H
#define KG_FLOW_WORKER_JOB_H

#include "flow/worker_job_text.h"

// Is it needed, and can it be had?
bool kg_worker_job_is_wanted(struct kg_device *device);

// Like kg_flow_plan, which the program calls for the same request. The plan comes as `*choice`,
// which the caller frees, and what is known of it. KG_ERROR_MISSING, with the reason, when the
// program cannot be used after all; so for the others.
enum kg_status kg_worker_job_plan(const struct kg_request *request, char **choice,
                                  struct kg_worker_job_answer *answer, struct kg_error *error);
// Like kg_flow_verify, for the plan of this choice.
enum kg_status kg_worker_job_verify(const struct kg_request *request, const char *choice,
                                    uint64_t seed, struct kg_verdict *verdict,
                                    struct kg_error *error);
// Like kg_flow_verify_file.
enum kg_status kg_worker_job_verify_file(const struct kg_request *request, const char *path,
                                         uint64_t seed, struct kg_verdict *verdict,
                                         struct kg_error *error);
// Like kg_flow_bench. `rival` may be NULL; `rival_seconds`, too.
enum kg_status kg_worker_job_bench(const struct kg_request *request, const char *choice,
                                   const char *rival, struct kg_bench_result *result,
                                   double *rival_seconds, struct kg_error *error);

#endif
