// Plans, and all stages in one call: see the public header.

#include "api/emitted.h"
#include "api/sized.h"

#include "flow/explain.h"
#include "flow/override.h"
#include "flow/plan_bench.h"
#include "flow/planner.h"
#include "flow/resized.h"
#include "flow/run_with_copies.h"
#include "flow/stages.h"
#include "flow/verify.h"
#include "flow/verify_files.h"
#include "gen/choice.h"

#include <stdio.h>
#include <string.h>

// The context of a plan; NULL where there is no plan.
static struct kg_context *context_of(const struct kg_plan *plan)
{
    return plan ? kg_api_context(plan->problem) : NULL;
}

static struct kg_request request_for(const struct kg_problem *problem, struct kg_device *device)
{
    struct kg_context *context = kg_api_context(problem);
    return (struct kg_request){.session = &context->session,
                               .problem = problem,
                               .device = device,
                               .takes_nearest = context->takes_nearest};
}

static enum kg_status check_search(struct kg_context *context, enum kg_rigor rigor, double seconds)
{
    if ((unsigned)rigor < KG_RIGOR_COUNT && seconds >= 0)
        return KG_OK;
    return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                        "rigor %d for %g seconds is not a search", (int)rigor, seconds);
}

static enum kg_status make_plan(const struct kg_request *request, struct kg_plan **plan)
{
    struct kg_context *context = kg_api_context(request->problem);
    *plan = NULL;
    enum kg_status status = check_search(context, request->rigor, request->seconds);
    return status ? status : kg_flow_plan(request, plan, &context->error);
}

static void give_verdict(const struct kg_verdict *verdict, struct kg_verify_result *result)
{
    struct kg_verify_result ours = {
        .passed = verdict->passed,
        .seed = verdict->seed,
        .cases = verdict->cases,
        .skipped = verdict->skipped,
        .elements = verdict->elements,
        .worst = verdict->worst_relative,
        .impostors = verdict->impostors,
    };
    snprintf(ours.reason, sizeof ours.reason, "%s", verdict->reason);
    snprintf(ours.remarks, sizeof ours.remarks, "%s", verdict->remarks);
    snprintf(ours.sanitized, sizeof ours.sanitized, "%s", verdict->sanitized);
    kg_api_fill(&kg_sized_verify_result, 0, &ours, result);
}

enum kg_status kg_plan_create(const struct kg_problem *problem, struct kg_device *device,
                              enum kg_rigor rigor, double seconds, struct kg_plan **plan)
{
    enum kg_status status = KG_API_NEEDS(kg_api_context(problem), problem, device, plan);
    if (status != KG_OK)
        return status;
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
    if (!plan || !tensors)
        return KG_ERROR_ARGUMENT;
    return kg_flow_execute(plan, tensors, stream, NULL);
}

// Like kg_plan_execute it leaves no message in the context, which other threads may use.
enum kg_status kg_plan_execute_sized(const struct kg_plan *plan, const int64_t *sizes, int count,
                                     void *const *tensors, void *stream)
{
    if (!plan || !sizes || !tensors)
        return KG_ERROR_ARGUMENT;
    if (!plan->resized)
        return KG_ERROR_UNSUPPORTED;
    int64_t all[KG_MAX_SIZES];
    const struct kg_op *op = plan->problem->op;
    memcpy(all, plan->problem->sizes, sizeof all);
    int next = 0;
    for (int i = 0; i < op->size_count; i++)
        if (!op->sizes[i]->is_param && next++ < count)
            all[i] = sizes[next - 1];
    if (next != count)
        return KG_ERROR_ARGUMENT;
    return kg_resized_run(plan->resized, all, tensors, stream, NULL);
}

enum kg_status kg_plan_run(const struct kg_plan *plan, void *const *tensors)
{
    enum kg_status status = KG_API_NEEDS(context_of(plan), plan, tensors);
    return status ? status : kg_flow_run(plan, tensors, &context_of(plan)->error);
}

enum kg_status kg_plan_override(const struct kg_plan *plan, const char *path,
                                struct kg_plan **overridden)
{
    enum kg_status status = KG_API_NEEDS(context_of(plan), plan, path, overridden);
    return status ? status : kg_flow_override(plan, path, overridden, &context_of(plan)->error);
}

enum kg_status kg_plan_verify(const struct kg_plan *plan, uint64_t seed,
                              struct kg_verify_result *result)
{
    struct kg_context *context = context_of(plan);
    enum kg_status status = KG_API_NEEDS(context, plan, result);
    if (status == KG_OK)
        status = kg_api_clear(&kg_sized_verify_result, 0, result, &context->error);
    struct kg_verdict verdict;
    if (status == KG_OK)
        status = kg_flow_verify(plan, seed, &verdict, &context->error);
    if (status == KG_OK)
        give_verdict(&verdict, result);
    return status;
}

enum kg_status kg_problem_verify_file(const struct kg_problem *problem, struct kg_device *device,
                                      const char *path, uint64_t seed,
                                      struct kg_verify_result *result)
{
    struct kg_context *context = kg_api_context(problem);
    enum kg_status status = KG_API_NEEDS(context, problem, device, path, result);
    if (status == KG_OK)
        status = kg_api_clear(&kg_sized_verify_result, 0, result, &context->error);
    if (status != KG_OK)
        return status;
    struct kg_request request = request_for(problem, device);
    struct kg_verdict verdict;
    status = kg_flow_verify_file(&request, path, seed, &verdict, &context->error);
    if (status == KG_OK)
        give_verdict(&verdict, result);
    return status;
}

// Who is told of files.
struct listener {
    struct kg_context *context;
    void (*judged)(void *user, int index, enum kg_status status,
                   const struct kg_verify_result *result);
    void *user;
};

static void tell_of_file(void *user, int index, enum kg_status status,
                         const struct kg_verdict *verdict, const struct kg_error *error)
{
    const struct listener *listener = user;
    struct kg_verify_result result = {.size = sizeof result};
    kg_error_clear(&listener->context->error);
    if (status)
        kg_error_set(&listener->context->error, status, "%s", error->text);
    else
        give_verdict(verdict, &result);
    listener->judged(listener->user, index, status, status ? NULL : &result);
}

enum kg_status kg_problem_verify_files(const struct kg_problem *problem, struct kg_device *device,
                                       const char *const *paths, int count, uint64_t seed,
                                       void (*judged)(void *user, int index, enum kg_status status,
                                                      const struct kg_verify_result *result),
                                       void *user)
{
    struct kg_context *context = kg_api_context(problem);
    enum kg_status status = KG_API_NEEDS(context, problem, device, paths, judged);
    for (int i = 0; i < count && !status; i++)
        status = KG_API_NEEDS(context, paths[i]);
    if (status != KG_OK)
        return status;
    struct kg_request request = request_for(problem, device);
    struct listener listener = {context, judged, user};
    struct kg_error error = {0};
    status = kg_flow_verify_files(&request, paths, count, seed, tell_of_file, &listener, &error);
    kg_error_clear(&context->error);
    return status ? kg_error_set(&context->error, status, "%s", error.text) : KG_OK;
}

enum kg_status kg_plan_bench(const struct kg_plan *plan, struct kg_bench_result *result)
{
    struct kg_context *context = context_of(plan);
    struct kg_bench_result ours = {0};
    enum kg_status status = KG_API_NEEDS(context, plan, result);
    if (status == KG_OK)
        status = kg_api_clear(&kg_sized_bench_result, 0, result, &context->error);
    if (status != KG_OK)
        return status;
    status = kg_flow_bench(plan, NULL, &ours, NULL, &context->error);
    kg_api_fill(&kg_sized_bench_result, 0, &ours, result);
    return status;
}

const char *kg_plan_choice(const struct kg_plan *plan)
{
    return plan ? plan->choice : NULL;
}

bool kg_plan_verified(const struct kg_plan *plan)
{
    return plan && plan->verified;
}

void kg_plan_cost(const struct kg_plan *plan, double *measured, double *bound)
{
    if (measured)
        *measured = plan ? plan->seconds : 0;
    if (bound)
        *bound = plan ? kg_roofline_of(plan->problem, &plan->device->facts).seconds : 0;
}

enum kg_status kg_plan_source(const struct kg_plan *plan, char **text)
{
    enum kg_status status = KG_API_NEEDS(context_of(plan), plan, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    kg_flow_source(plan, &written);
    return kg_api_give(context_of(plan), KG_OK, &written, text);
}

// A plan for what is written of it alone: it cannot be run.
static enum kg_status plan_source_only(const struct kg_problem *problem, struct kg_device *device,
                                       enum kg_rigor rigor, double seconds, struct kg_plan **plan)
{
    struct kg_request request = request_for(problem, device);
    request.rigor = rigor;
    request.seconds = seconds;
    request.source_only = true;
    return make_plan(&request, plan);
}

enum kg_status kg_problem_source(const struct kg_problem *problem, struct kg_device *device,
                                 enum kg_rigor rigor, double seconds, char **text)
{
    struct kg_plan *plan;
    enum kg_status status = KG_API_NEEDS(kg_api_context(problem), problem, device, text);
    if (status != KG_OK)
        return status;
    *text = NULL;
    status = plan_source_only(problem, device, rigor, seconds, &plan);
    if (status == KG_OK)
        status = kg_plan_source(plan, text);
    kg_flow_plan_free(plan);
    return status;
}

enum kg_status kg_problem_emit(const struct kg_problem *problem, const char *target, char **text)
{
    struct kg_context *context = kg_api_context(problem);
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, problem, target, text);
    if (status != KG_OK)
        return status;
    *text = NULL;
    status = kg_api_emit(problem, target, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_problem_launcher(const struct kg_problem *problem, struct kg_device *device,
                                   enum kg_rigor rigor, double seconds, char **text)
{
    struct kg_context *context = kg_api_context(problem);
    struct kg_plan *plan;
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, problem, device, text);
    if (status != KG_OK)
        return status;
    status = plan_source_only(problem, device, rigor, seconds, &plan);
    if (status == KG_OK)
        status = kg_flow_launcher(plan, &written, &context->error);
    kg_flow_plan_free(plan);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_plan_assembly(const struct kg_plan *plan, char **text)
{
    struct kg_context *context = context_of(plan);
    enum kg_status status = KG_API_NEEDS(context, plan, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    status = kg_flow_assembly(plan, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_plan_explain(const struct kg_plan *plan, bool json, char **text)
{
    struct kg_context *context = context_of(plan);
    enum kg_status status = KG_API_NEEDS(context, plan, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    status = kg_flow_explain(plan, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_plan_candidates(const struct kg_plan *plan, bool json, char **text)
{
    struct kg_context *context = context_of(plan);
    enum kg_status status = KG_API_NEEDS(context, plan, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    status = kg_flow_candidates(plan, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

// What stands before the library's members of a build's result.
#define BUILD_KEEPS                                                                                \
    (offsetof(struct kg_build_result, rounds) - offsetof(struct kg_build_result, verify))

static enum kg_status clear_build(struct kg_context *context, struct kg_build_result *result)
{
    struct kg_error *error = &context->error;
    enum kg_status status = kg_api_clear(&kg_sized_build_result, BUILD_KEEPS, result, error);
    if (status == KG_OK && result->verify)
        status = kg_api_clear(&kg_sized_verify_result, 0, result->verify, error);
    if (status == KG_OK && result->bench)
        status = kg_api_clear(&kg_sized_bench_result, 0, result->bench, error);
    return status;
}

static void give_build(const struct kg_built_report *report, struct kg_build_result *result)
{
    struct kg_build_result ours = {.rounds = report->rounds,
                                   .goal_met = report->goal_met,
                                   .space = report->space,
                                   .valid = report->valid,
                                   .pruned = report->pruned,
                                   .measured = report->measured,
                                   .failed = report->failed,
                                   .limit = report->limit,
                                   .searched_seconds = report->searched};
    memcpy(ours.stopped, report->stopped, sizeof ours.stopped);
    kg_api_fill(&kg_sized_build_result, BUILD_KEEPS, &ours, result);
    if (result->verify)
        give_verdict(&report->verdict, result->verify);
    if (result->bench)
        kg_api_fill(&kg_sized_bench_result, 0, &report->bench, result->bench);
}

enum kg_status kg_build(const struct kg_problem *problem, struct kg_device *device,
                        const struct kg_build_options *options, struct kg_build_result *result,
                        struct kg_plan **plan)
{
    struct kg_context *context = kg_api_context(problem);
    struct kg_build_options wanted;
    struct kg_built_report report;
    if (plan)
        *plan = NULL;
    enum kg_status status = KG_API_NEEDS(context, problem, device, result);
    if (status == KG_OK)
        status = clear_build(context, result);
    if (status == KG_OK)
        status = kg_api_take(&kg_sized_build_options, options, &wanted, &context->error);
    if (status == KG_OK)
        status = kg_api_check_language(context, wanted.language);
    if (status == KG_OK)
        status = check_search(context, wanted.rigor, wanted.seconds);
    if (status != KG_OK)
        return status;
    struct kg_request request = request_for(problem, device);
    request.rigor = wanted.rigor;
    request.seconds = wanted.seconds;
    status = kg_flow_build(&request, &wanted, &report, plan, &context->error);
    give_build(&report, result);
    return status;
}

enum kg_status kg_profile(const struct kg_problem *problem, struct kg_device *device,
                          double seconds, bool json, char **text)
{
    struct kg_context *context = kg_api_context(problem);
    enum kg_status status = KG_API_NEEDS(context, problem, device, text);
    struct kg_text written = {0};
    if (status != KG_OK)
        return status;
    struct kg_request request = request_for(problem, device);
    request.seconds = seconds;
    status = kg_flow_profile(&request, json, &written, &context->error);
    return kg_api_give(context, status, &written, text);
}
