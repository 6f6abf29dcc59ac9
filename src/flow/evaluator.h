// Where the kernels of one problem are judged and timed: the accuracy gate, and the process that
// runs them. A build has one for all its stages; whoever has none gets one for what it asks.

#ifndef KG_FLOW_EVALUATOR_H
#define KG_FLOW_EVALUATOR_H

#include "flow/plan_handle.h"
#include "tune/judgement.h"

struct kg_evaluator {
    struct kg_request request; // what it was opened for
    // Everything is left to a program (worker_job.h); there is neither gate nor judge here.
    bool is_elsewhere;
    bool judged;
    struct kg_problem *counterpart; // tensors of the other kind; NULL: there is no other
    struct kg_gate *gate;
    struct kg_search terms; // what a search here begins with
    struct kg_judge *judge;
};

// What is known to be needed soon, and is compiled while the gate is made: the guess; what a search
// of the request's rigor tries first, unless `key` has been searched before; what a build verifies
// and compares the guess with where `build`; and the guess as the file that a build keeps of it,
// where it keeps `files`.
struct kg_ahead {
    const struct kg_key *key;
    bool build, files;
};

// The gate's inputs are fresh. Where nothing is to be `judged`, only timed, there is no gate. What
// lies `ahead` (may be NULL) is in the cache when the evaluator is open. Where compilers run on the
// device itself nothing is compiled ahead.
enum kg_status kg_evaluator_open(const struct kg_request *request, bool judged,
                                 const struct kg_ahead *ahead, struct kg_evaluator **evaluator,
                                 struct kg_error *error);
void kg_evaluator_close(struct kg_evaluator *evaluator);
// Where the program cannot be used after all, or not for this: gate and judge are here from now on.
enum kg_status kg_evaluator_stay(struct kg_evaluator *evaluator, struct kg_error *error);

// The gate, and the clock for a plan that passes it: `*judgement` is what became of it. Only where
// the evaluator judges, and is not elsewhere.
enum kg_status kg_evaluator_judge(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  struct kg_judgement *judgement, struct kg_error *error);
// As kg_flow_verify, with the evaluator's gate.
enum kg_status kg_evaluator_verify(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                   struct kg_verdict *verdict, struct kg_error *error);

#endif
