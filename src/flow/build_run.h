// A build that is under way: what its stages share.

#ifndef KG_FLOW_BUILD_RUN_H
#define KG_FLOW_BUILD_RUN_H

#include "flow/build_report.h"
#include "flow/evaluator.h"

struct kg_build_run {
    struct kg_request request; // with its rigor resolved: not the default
    const struct kg_build_options *options;
    struct kg_built_report *report;
    struct kg_session_key key;
    struct kg_evaluator *evaluator; // NULL if the device is not present
    struct kg_plan *plan;           // the best version so far
    double started;                 // kg_times_now
};

void kg_build_run_announce(const struct kg_build_run *build, const char *stage, int number);
// Whether its rigor asks for measurements.
bool kg_build_run_is_measuring(const struct kg_build_run *build);

// Writes the file with this suffix to the bundle, if there is one. The text is freed.
enum kg_status kg_build_run_write(const struct kg_build_run *build, const char *suffix,
                                  struct kg_text *text, struct kg_error *error);
enum kg_status kg_build_run_write_file(const struct kg_build_run *build, const char *suffix,
                                       const char *text, struct kg_error *error);
// Writes the source of the best version, and what is read from its code.
enum kg_status kg_build_run_write_kernel(const struct kg_build_run *build, struct kg_error *error);

// KG_ERROR_WRONG if the gate refuses the plan. The report has the verdict.
enum kg_status kg_build_run_verify(struct kg_build_run *build, struct kg_plan *plan,
                                   struct kg_error *error);
// As kg_evaluator_bench; the plan keeps its time.
enum kg_status kg_build_run_measure(const struct kg_build_run *build, struct kg_plan *plan,
                                    const struct kg_plan *rival, struct kg_bench_result *bench,
                                    double *rival_seconds, struct kg_error *error);

#endif
