// Running candidates in a program of its own where a fork is not possible: this process uses the
// device's driver already (PyTorch, a plan that has run), which a fork could not use. The program,
// kernelgen-worker, is started for each job. It plans, verifies or benches through this library
// (flow/worker_serve.h), and writes to the same records.
//
// The program is $KERNELGEN_WORKER, or beside the library or tool, or in the installed libexec
// folder. If it is missing or of another version, the work is done in this process.

#ifndef KG_FLOW_WORKER_JOB_H
#define KG_FLOW_WORKER_JOB_H

#include "flow/worker_job_text.h"

// The path of the program, which the caller frees; NULL: there is none.
char *kg_worker_job_program(void);
// Whether it is needed and available.
bool kg_worker_job_is_wanted(struct kg_device *device);

// Like kg_flow_plan, which the program calls for the same request. Returns the plan as `*choice`,
// which the caller frees, with what was found. KG_ERROR_MISSING, with the reason, if the program
// cannot be used after all; likewise the functions below.
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
// Like kg_flow_bench. `rival` and `rival_seconds` may be NULL.
enum kg_status kg_worker_job_bench(const struct kg_request *request, const char *choice,
                                   const char *rival, struct kg_bench_result *result,
                                   double *rival_seconds, struct kg_error *error);

#endif
