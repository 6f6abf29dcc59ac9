// The accuracy gate applied to plans, in a worker process.

#include "flow/verify.h"

#include "flow/companions.h"
#include "flow/judging.h"
#include "flow/sanitize.h"
#include "flow/worker_job.h"
#include "tune/test_rig.h"

#define JUDGE_SECONDS 120.0 // one subject on all cases; a longer time is a hang

static enum kg_status verify_here(const struct kg_plan *plan, uint64_t seed,
                                  struct kg_verdict *verdict, struct kg_error *error)
{
    *verdict = (struct kg_verdict){0};
    struct kg_request request = kg_flow_request_of(plan);
    struct kg_built built = *plan->built; // a copy: the plan's own may be in use
    struct kg_gate *gate = NULL;
    struct kg_problem *other = NULL;
    // An override is for strided or for contiguous tensors, not both.
    enum kg_status status =
        plan->override ? KG_OK : kg_flow_counterpart(plan->problem, &other, error);
    if (status == KG_OK && other)
        status =
            kg_flow_build_counterpart(&request, plan->choice, other, &built.counterpart, error);
    if (status == KG_OK)
        status = kg_flow_gate(&request, seed, other != NULL, 0, &gate, error);
    if (status == KG_OK) {
        struct kg_subject subject = kg_test_rig_subject(&built);
        subject.name = plan->override ? plan->override->path : plan->choice;
        status = kg_flow_judge(&request, gate, &subject, NULL, JUDGE_SECONDS, verdict, error);
    }
    kg_gate_free(gate);
    kg_built_free(built.counterpart);
    kg_problem_free(other);
    return status;
}

enum kg_status kg_flow_verify(const struct kg_plan *plan, uint64_t seed, struct kg_verdict *verdict,
                              struct kg_error *error)
{
    enum kg_status status = KG_ERROR_MISSING;
    struct kg_request request = kg_flow_request_of(plan);
    if (!plan->override && kg_worker_job_is_wanted(plan->device))
        status = kg_worker_job_verify(&request, plan->choice, seed, verdict, error);
    if (status == KG_ERROR_MISSING)
        status = verify_here(plan, seed, verdict, error);
    if (!status)
        status = kg_flow_sanitize(&request, plan->choice,
                                  plan->override ? plan->override->path : NULL, verdict, error);
    return status;
}
