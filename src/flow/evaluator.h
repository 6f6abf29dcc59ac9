// Where the kernels of one problem are judged and timed: the accuracy gate, and the process that
// runs them. A build has one for all its stages; whoever has none gets one for what it asks.

#ifndef KG_FLOW_PLACE_H
#define KG_FLOW_PLACE_H

#include "flow/planner.h"
#include "tune/judgement.h"

struct kg_evaluator {
    struct kg_session *session;
    // Everything is left to a program (worker_job.h); there is neither gate nor judge here.
    bool is_elsewhere;
    bool judged;
    struct kg_problem *counterpart; // tensors of the other kind; NULL: there is no other
    struct kg_gate *gate;
    struct kg_search terms; // what a search here begins with
    struct kg_judge *judge;
};

// What is known to be needed soon: the guess; what a search of this rigor tries first, unless `key`
// has been searched before; what a build verifies and compares the guess with where `build`; and
// the guess as the file that a build keeps of it, where it keeps `files`.
struct kg_ahead {
    const struct kg_key *key;
    enum kg_rigor rigor;
    bool build, files;
};

// The gate's inputs are fresh. Where nothing is to be `judged`, only timed, there is no gate. What
// lies `ahead`, if anything does, is compiled all at once while the gate is made and the place's
// process gets ready, and is in the cache then. Where compilers run on the device itself nothing is
// done ahead.
enum kg_status kg_evaluator_open(struct kg_session *session, const struct kg_problem *problem,
                                 struct kg_device *device, bool judged,
                                 const struct kg_ahead *ahead, struct kg_evaluator **evaluator,
                                 struct kg_error *error);
void kg_evaluator_close(struct kg_evaluator *evaluator);
// Where the program cannot be used after all, or not for this: gate and judge are here from now on.
enum kg_status kg_evaluator_stay(struct kg_evaluator *evaluator, struct kg_error *error);

// As kg_flow_verify, with the place's gate.
enum kg_status kg_evaluator_verify(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                   struct kg_verdict *verdict, struct kg_error *error);
// As kg_flow_bench.
enum kg_status kg_evaluator_bench(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  const struct kg_plan *rival, struct kg_bench_result *result,
                                  double *rival_seconds, struct kg_error *error);

// verify.c: the same op with tensors of the other kind: strided for a contiguous problem, and back.
// NULL where there is none.
enum kg_status kg_flow_counterpart(const struct kg_problem *problem, struct kg_problem **other,
                                   struct kg_error *error);
// The same families and configs for it, where they fit.
void kg_flow_choose_counterpart(const struct kg_device *device, const struct kg_problem *other,
                                const char *choice, struct kg_choice *counterpart);
enum kg_status kg_flow_build_counterpart(const struct kg_plan *plan, const struct kg_problem *other,
                                         struct kg_built **built, struct kg_error *error);
// bench.c: the definition as written, one plain loop nest or grid per statement.
void kg_flow_choose_baseline(const struct kg_device *device, const struct kg_problem *problem,
                             struct kg_choice *choice);

#endif
