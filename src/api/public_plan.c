// Plans and the whole way, as the public header promises them.

#include "api/context.h"

#include "flow/explain.h"
#include "flow/foreign.h"
#include "flow/judging.h"
#include "flow/override.h"
#include "flow/plan_bench.h"
#include "flow/planner.h"
#include "flow/run_with_copies.h"
#include "flow/stages.h"
#include "flow/verify.h"

static struct kg_request request_for(const struct kg_problem *problem, struct kg_device *device)
{
    struct kg_context *context = kg_api_context(problem);
    return (struct kg_request){.session = &context->session,
                               .problem = problem,
                               .device = device,
                               .takes_nearest = context->takes_nearest};
}

static enum kg_status make_plan(const struct kg_request *request, struct kg_plan **plan)
{
    struct kg_error *error = &kg_api_context(request->problem)->error;
    *plan = NULL;
    if ((unsigned)request->rigor >= KG_RIGOR_COUNT || !(request->seconds >= 0))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "rigor %d for %g seconds is not a search",
                            (int)request->rigor, request->seconds);
    return kg_flow_plan(request, plan, error);
}

enum kg_status kg_plan_create(const struct kg_problem *problem, struct kg_device *device,
                              enum kg_rigor rigor, double seconds, struct kg_plan **plan)
{
    struct kg_request request = request_for(problem, device);
    request.rigor = rigor;
    request.seconds = seconds;
    return make_plan(&request, plan);
}

void kg_plan_destroy(struct kg_plan *plan)
{
    kg_flow_plan_free(plan);
}

// No context here: plans run on any thread, and only the status comes back.
enum kg_status kg_plan_execute(const struct kg_plan *plan, void *const *tensors, void *stream)
{
    return kg_flow_execute(plan, tensors, stream, NULL);
}

enum kg_status kg_plan_run(const struct kg_plan *plan, void *const *tensors)
{
    return kg_flow_run(plan, tensors, &kg_api_context(plan->problem)->error);
}

enum kg_status kg_plan_override(const struct kg_plan *plan, const char *path,
                                struct kg_plan **overridden)
{
    struct kg_context *context = kg_api_context(plan->problem);
    return kg_flow_override(plan, path, overridden, &context->error);
}

enum kg_status kg_plan_verify(const struct kg_plan *plan, uint64_t seed,
                              struct kg_verify_result *result)
{
    *result = (struct kg_verify_result){0};
    struct kg_context *context = kg_api_context(plan->problem);
    struct kg_verdict verdict;
    enum kg_status status = kg_flow_verify(plan, seed, &verdict, &context->error);
    if (status == KG_OK)
        kg_flow_report_verdict(&verdict, result);
    return status;
}

enum kg_status kg_problem_verify_file(const struct kg_problem *problem, struct kg_device *device,
                                      const char *path, uint64_t seed,
                                      struct kg_verify_result *result)
{
    *result = (struct kg_verify_result){0};
    struct kg_context *context = kg_api_context(problem);
    struct kg_request request = request_for(problem, device);
    struct kg_verdict verdict;
    enum kg_status status = kg_flow_verify_file(&request, path, seed, &verdict, &context->error);
    if (status == KG_OK)
        kg_flow_report_verdict(&verdict, result);
    return status;
}

enum kg_status kg_plan_bench(const struct kg_plan *plan, struct kg_bench_result *result)
{
    return kg_flow_bench(plan, NULL, result, NULL, &kg_api_context(plan->problem)->error);
}

const char *kg_plan_choice(const struct kg_plan *plan)
{
    return plan->choice;
}

void kg_plan_cost(const struct kg_plan *plan, double *measured, double *bound)
{
    *measured = plan->seconds;
    *bound = kg_roofline_of(plan->problem, &plan->device->facts).seconds;
}

enum kg_status kg_plan_source(const struct kg_plan *plan, char **out)
{
    struct kg_text text = {0};
    kg_flow_source(plan, &text);
    return kg_api_give(kg_api_context(plan->problem), KG_OK, &text, out);
}

enum kg_status kg_problem_source(const struct kg_problem *problem, struct kg_device *device,
                                 enum kg_rigor rigor, double seconds, char **text)
{
    struct kg_plan *plan;
    struct kg_request request = request_for(problem, device);
    request.rigor = rigor;
    request.seconds = seconds;
    request.source_only = true;
    *text = NULL;
    enum kg_status status = make_plan(&request, &plan);
    if (status == KG_OK)
        status = kg_plan_source(plan, text);
    kg_flow_plan_free(plan);
    return status;
}

enum kg_status kg_plan_assembly(const struct kg_plan *plan, char **out)
{
    struct kg_context *context = kg_api_context(plan->problem);
    struct kg_text text = {0};
    enum kg_status status = kg_flow_assembly(plan, &text, &context->error);
    return kg_api_give(context, status, &text, out);
}

enum kg_status kg_plan_explain(const struct kg_plan *plan, bool json, char **out)
{
    struct kg_context *context = kg_api_context(plan->problem);
    struct kg_text text = {0};
    enum kg_status status = kg_flow_explain(plan, json, &text, &context->error);
    return kg_api_give(context, status, &text, out);
}

enum kg_status kg_build(const struct kg_problem *problem, struct kg_device *device,
                        const struct kg_build_options *options, struct kg_build_result *result,
                        struct kg_plan **plan)
{
    struct kg_context *context = kg_api_context(problem);
    *result = (struct kg_build_result){0};
    if (plan)
        *plan = NULL;
    enum kg_status status = kg_api_check_language(context, options ? options->language : NULL);
    if (status != KG_OK)
        return status;
    struct kg_request request = request_for(problem, device);
    request.rigor = options->rigor;
    request.seconds = options->seconds;
    return kg_flow_build(&request, options, result, plan, &context->error);
}

enum kg_status kg_profile(const struct kg_problem *problem, struct kg_device *device,
                          double seconds, bool json, char **out)
{
    struct kg_context *context = kg_api_context(problem);
    struct kg_text text = {0};
    struct kg_request request = request_for(problem, device);
    request.seconds = seconds;
    enum kg_status status = kg_flow_profile(&request, json, &text, &context->error);
    return kg_api_give(context, status, &text, out);
}
