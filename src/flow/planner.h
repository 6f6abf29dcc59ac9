// From a problem to a plan: wisdom, search, build. And what a plan can do besides running.

#ifndef KG_FLOW_PLANNER_H
#define KG_FLOW_PLANNER_H

#include "flow/nearest.h"
#include "gen/prepared.h"

// Where a choice comes from.
enum kg_origin {
    KG_ORIGIN_RULE,    // the families' rules; nothing was measured
    KG_ORIGIN_SEARCH,  // measured just now
    KG_ORIGIN_RECORDS, // wisdom of this very problem
    KG_ORIGIN_FILE,    // the same, from the wisdom file beside the records
    KG_ORIGIN_NEAREST, // wisdom of the nearest shape, not measured for this one
    KG_ORIGIN_COUNT
};

struct kg_evaluator;  // where kernels are judged and timed: flow/evaluator.h
struct kg_workspaces; // memory between kernels, one piece per execution under way
struct kg_replay;     // executions as graphs: flow/replaying.h

// PTX from outside that runs in the place of what is generated for the same choice.
struct kg_override {
    char *path;
    char *text;
    struct kg_hash hash;      // of the text
    struct kg_plan *original; // the generated kernels
};

struct kg_plan {
    struct kg_session *session;
    const struct kg_problem *problem;
    struct kg_device *device;
    struct kg_built *built;
    struct kg_prepared *prepared;
    char *choice; // kg_choice_print of built->choice
    // Whose kernels run instead of the generated ones; NULL: they do themselves.
    struct kg_override *override;
    double seconds; // as measured when it was chosen; 0: never
    double spread;
    bool verified; // by this library, now or when it became wisdom
    enum kg_origin origin;
    struct kg_nearest nearest; // known when the plan was made and nothing was of its own shape
    enum kg_rigor rigor;
    struct kg_found found; // of the search that chose it; zero from wisdom
    struct kg_workspaces *workspaces;
    struct kg_replay *replay; // NULL: executions are launched
};

// See kg_plan_create in kernelgen.h. `hint`, when not NULL, is tried first and never beaten by
// something slower. A cancelled or timed-out search that found anything gives KG_OK. `place` is
// where it searches; NULL: one of its own.
enum kg_status kg_flow_plan(struct kg_session *session, const struct kg_problem *problem,
                            struct kg_device *device, enum kg_rigor rigor, double seconds,
                            const char *hint, struct kg_evaluator *evaluator, struct kg_plan **plan,
                            struct kg_error *error);
// A plan of exactly this choice; nothing is verified or measured.
enum kg_status kg_flow_plan_of(struct kg_session *session, const struct kg_problem *problem,
                               struct kg_device *device, const struct kg_choice *choice,
                               struct kg_plan **plan, struct kg_error *error);
// The same with the kernels of a PTX file in the place of the generated ones: those of the choice
// in its "// Choice:" lines, or of the plan's where it has none. Nothing is verified or measured.
enum kg_status kg_flow_override(const struct kg_plan *plan, const char *path, struct kg_plan **out,
                                struct kg_error *error);
void kg_flow_plan_free(struct kg_plan *plan);

enum kg_status kg_flow_execute(const struct kg_plan *plan, void *const *tensors, void *stream,
                               struct kg_error *error);

// The source of all kernels, one file: C on the host, CUDA C++ on GPUs.
bool kg_flow_source(const struct kg_plan *plan, struct kg_text *text);
// Of a choice for CUDA, and what the compiler makes of it; the caller frees both.
enum kg_status kg_flow_compile_file(const struct kg_problem *problem, struct kg_device *device,
                                    const struct kg_choice *choice, struct kg_text *source,
                                    struct kg_binary *binary, struct kg_error *error);
// What the compiler makes of a plan's: PTX, below what the source says of its launches.
// KG_ERROR_UNSUPPORTED where there is none.
enum kg_status kg_flow_assembly(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error);

// The gate of this problem's instance on this device.
enum kg_status kg_flow_gate(struct kg_session *session, const struct kg_problem *problem,
                            struct kg_device *device, uint64_t seed, bool strided,
                            struct kg_gate **gate, struct kg_error *error);
// Judges in a worker process: a crash or a hang of the subject is a verdict.
enum kg_status kg_flow_judge(struct kg_session *session, struct kg_device *device,
                             const struct kg_gate *gate, const struct kg_subject *subject,
                             double seconds, struct kg_verdict *verdict, struct kg_error *error);
// Is the plan right? Strided views are judged with a kernel of their own, generated with the same
// families.
enum kg_status kg_flow_verify(const struct kg_plan *plan, uint64_t seed, struct kg_verdict *verdict,
                              struct kg_error *error);
// A verdict as callers see it.
void kg_flow_report_verdict(const struct kg_verdict *verdict, struct kg_verify_result *result);
// Is the kernel in this file right? See kg_problem_verify_file. What was found is in the log.
enum kg_status kg_flow_verify_file(struct kg_session *session, const struct kg_problem *problem,
                                   struct kg_device *device, const char *path, uint64_t seed,
                                   struct kg_verdict *verdict, struct kg_error *error);

// The plan, the baseline of its device and, when not NULL, a rival, timed alternately in one worker
// process: what is compared is measured in one run. `rival_seconds` may be NULL. A plan whose
// kernels are overridden is benched as kg_flow_bench_override does it.
enum kg_status kg_flow_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                             struct kg_bench_result *result, double *rival_seconds,
                             struct kg_error *error);
// Of a plan whose kernels are overridden: it has to pass the gate first (else KG_ERROR_WRONG, with
// the verdict), is timed beside what it overrides, and what came of it is on record as such.
enum kg_status kg_flow_bench_override(const struct kg_plan *plan, struct kg_bench_result *result,
                                      struct kg_verdict *verdict, struct kg_error *error);

#endif
