// Where the kernels of one problem are judged and timed: the accuracy gate, and the process that
// runs them. A build has one evaluator for all its stages; other callers open one for one request.

#ifndef KG_FLOW_EVALUATOR_H
#define KG_FLOW_EVALUATOR_H

#include "flow/plan_handle.h"
#include "tune/judgement.h"

struct kg_evaluator {
    struct kg_request request; // what it was opened for
    // A program does the work (worker_job.h); this process has neither gate nor judge.
    bool is_elsewhere;
    bool judged;
    struct kg_problem *counterpart; // the counterpart problem (companions.h); NULL: none
    struct kg_gate *gate;
    struct kg_search terms; // what searches here start from
    struct kg_judge *judge;
};

// What will be needed soon and is compiled while the gate is made: the guess; the first candidates
// of a search of the request's rigor, unless `key` has been searched before; with `build`, the
// companions that a build verifies and compares; with `files`, the source file that a build keeps
// of the guess.
struct kg_ahead {
    const struct kg_key *key;
    bool build, files;
};

// The gate has fresh inputs. Without `judged` there is no gate, only timing. What `ahead` (may be
// NULL) lists is in the cache when the evaluator is open; on devices that compile for themselves
// nothing is compiled ahead.
enum kg_status kg_evaluator_open(const struct kg_request *request, bool judged,
                                 const struct kg_ahead *ahead, struct kg_evaluator **evaluator,
                                 struct kg_error *error);
void kg_evaluator_close(struct kg_evaluator *evaluator);
// Falls back to gate and judge in this process, if the program cannot be used after all, or not for
// this.
enum kg_status kg_evaluator_stay(struct kg_evaluator *evaluator, struct kg_error *error);

// Runs the gate and, if the plan passes, times it; `*judgement` is the outcome. Only if the
// evaluator judges here and not elsewhere.
enum kg_status kg_evaluator_judge(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  struct kg_judgement *judgement, struct kg_error *error);
// As kg_flow_verify, with the evaluator's gate.
enum kg_status kg_evaluator_verify(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                   struct kg_verdict *verdict, struct kg_error *error);

#endif
