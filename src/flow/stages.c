// A definition through all five stages. Each stage writes its document to the bundle as soon as it
// is done, so that a build that is stopped loses nothing.

#include "flow/stages.h"

#include "base/files.h"
#include "flow/contest.h"
#include "flow/judging.h"
#include "flow/override.h"
#include "flow/plan_bench.h"
#include "flow/planner.h"
#include "flow/proof.h"
#include "flow/recorder.h"
#include "flow/rounds.h"
#include "flow/sanitize.h"
#include "flow/small.h"
#include "report/log.h"

#include <string.h>

// A build stops between stages, if it is to stop.
static enum kg_status check_cancelled(const struct kg_build_run *build, struct kg_error *error)
{
    if (!kg_session_cancelled(build->request.session))
        return KG_OK;
    return kg_error_set(error, KG_ERROR_CANCELLED, "the build was cancelled");
}

static enum kg_status define(const struct kg_build_run *build, struct kg_error *error)
{
    kg_build_run_announce(build, "define", 1);
    if (!build->options->folder)
        return KG_OK;
    enum kg_status status = kg_files_make_folder(build->options->folder, error);
    if (status != KG_OK)
        return status;
    bool chinese = build->options->language && strcmp(build->options->language, "zh") == 0;
    struct kg_text text = {0};
    kg_analyze_document(&text, build->request.problem, &build->request.device->facts,
                        chinese ? KG_CHINESE : KG_ENGLISH);
    return kg_build_run_write(build, "_definition.md", &text, error);
}

// Starts what takes long: the process on the device, and the compilers.
static enum kg_status open_place(struct kg_build_run *build, struct kg_error *error)
{
    if (build->request.device->is_described)
        return KG_OK;
    struct kg_ahead ahead = {&build->key.key, true, build->options->folder != NULL};
    return kg_evaluator_open(&build->request, true, &ahead, &build->evaluator, error);
}

// The first version, without measuring. If it is the only one, it is what is known, else the
// rule's; if others follow, it is the rule's, to compare them with.
static enum kg_status generate(struct kg_build_run *build, struct kg_error *error)
{
    kg_build_run_announce(build, "generate", 2);
    struct kg_request request = build->request;
    enum kg_status status;
    if (!kg_build_run_is_measuring(build)) {
        request.seconds = 0;
        request.evaluator = build->evaluator;
        status = kg_flow_plan(&request, &build->plan, error);
    } else {
        struct kg_choice choice;
        kg_choice_guess(request.problem, &request.device->facts, kg_target_of(request.device),
                        &choice);
        status = kg_flow_plan_of(&request, &choice, &build->plan, error);
    }
    return status == KG_OK ? kg_build_run_write_kernel(build, error) : status;
}

// Errors in the file are reported before anything takes long.
static enum kg_status check_override(const struct kg_build_run *build, struct kg_error *error)
{
    struct kg_plan *plan = NULL;
    if (!build->options->override)
        return KG_OK;
    enum kg_status status = kg_flow_override(build->plan, build->options->override, &plan, error);
    kg_flow_plan_free(plan);
    return status;
}

// Replaces the best version, faster or not, because the caller asked for it. The verdict is then
// the file's too.
static enum kg_status override(struct kg_build_run *build, struct kg_error *error)
{
    struct kg_plan *plan = NULL;
    struct kg_verdict verdict;
    if (!build->options->override)
        return KG_OK;
    kg_evaluator_close(build->evaluator); // judged in an evaluator that was made after them
    build->evaluator = NULL;
    enum kg_status status = kg_flow_override(build->plan, build->options->override, &plan, error);
    if (status == KG_OK) {
        status = kg_flow_bench_override(plan, &build->report->bench, &verdict, error);
        build->report->verdict = verdict;
    }
    if (status == KG_OK)
        status = kg_build_run_write_file(build, ".ptx", plan->override->text, error);
    if (status != KG_OK) {
        kg_flow_plan_free(plan);
        return status;
    }
    kg_flow_plan_free(build->plan);
    build->plan = plan;
    return KG_OK;
}

// What the sanitizers refuse counts as wrong from now on, and is not chosen again.
static enum kg_status record_refusal(const struct kg_build_run *build, struct kg_error *error)
{
    const struct kg_plan *plan = build->plan;
    const struct kg_verdict *verdict = &build->report->verdict;
    struct kg_outcome outcome = {
        .kind = KG_OUTCOME_WRONG,
        .choice = plan->choice,
        .override = plan->override ? plan->override->path : NULL,
        .source = plan->override ? plan->override->hash : (struct kg_hash){0},
        .emitted = plan->override ? (struct kg_hash){0} : kg_proof_source(&plan->built->choice),
        .verdict = *verdict,
        .reason = verdict->reason,
    };
    enum kg_status status =
        kg_store_append(build->request.session->store, &build->key.key, &outcome, error);
    return kg_session_recorded(build->request.session, status, error);
}

// The final version once more, under tools that see what results do not show.
static enum kg_status sanitize(const struct kg_build_run *build, struct kg_error *error)
{
    const struct kg_plan *plan = build->plan;
    struct kg_verdict *verdict = &build->report->verdict;
    enum kg_status status =
        kg_flow_sanitize(&build->request, plan->choice,
                         plan->override ? plan->override->path : NULL, verdict, error);
    if (status || verdict->passed)
        return status;
    status = record_refusal(build, error);
    return status ? status
                  : kg_error_set(error, KG_ERROR_WRONG,
                                 "%s passed the accuracy gate, and a sanitizer refuses it\n  %s",
                                 plan->choice, verdict->reason);
}

// What is shipped becomes what is known: the fastest of the search may have lost the last race, in
// which both were timed alternately.
static enum kg_status remember(const struct kg_build_run *build, struct kg_error *error)
{
    struct kg_plan *plan = build->plan;
    struct kg_session *session = build->request.session;
    struct kg_wisdom known;
    if (!kg_build_run_is_measuring(build) || plan->override || !session->store)
        return KG_OK;
    struct kg_recorder recorder = {
        .request = &build->request, .key = &build->key.key, .replaces = true};
    bool is_known = kg_store_recall(session->store, recorder.key, &known, NULL) == KG_OK;
    bool same = is_known && strcmp(known.choice, plan->choice) == 0;
    if (is_known) {
        plan->rigor = known.rigor > plan->rigor ? known.rigor : plan->rigor;
        kg_wisdom_free(&known);
    }
    plan->seed = build->report->verdict.seed;
    return same ? KG_OK : kg_recorder_learn(&recorder, plan, error);
}

static enum kg_status record(struct kg_build_run *build, struct kg_error *error)
{
    kg_build_run_announce(build, "record", 5);
    bool chinese = build->options->language && strcmp(build->options->language, "zh") == 0;
    struct kg_text text = {0};
    enum kg_status status =
        kg_report_log(build->request.session->store, build->request.problem->op->name,
                      chinese ? KG_CHINESE : KG_ENGLISH, &text, error);
    if (status == KG_OK)
        status = kg_build_run_write(build, "_optimization_log.md", &text, error);
    kg_text_free(&text);
    return status;
}

// A folder that holds nothing is reported before anything takes long.
static enum kg_status check_contest(const struct kg_build_run *build, struct kg_error *error)
{
    const struct kg_build_options *options = build->options;
    if (!options->contest)
        return KG_OK;
    if (options->override)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "the kernels of %s compete with generated ones, and %s takes the place "
                            "of these: build with one of both",
                            options->contest, options->override);
    return kg_flow_contest_check(build->request.device, options->contest, error);
}

// Kernels from elsewhere beside what is shipped. Each is recorded as soon as it is judged and
// timed.
static enum kg_status compete(struct kg_build_run *build, struct kg_error *error)
{
    struct kg_text text = {0};
    int unrun;
    if (!build->options->contest)
        return KG_OK;
    kg_evaluator_close(build->evaluator); // each of them has a process of its own
    build->evaluator = NULL;
    enum kg_status status =
        kg_flow_contest(build->plan, build->options->contest, false, &text, &unrun, error);
    if (status == KG_OK)
        status = kg_build_run_write(build, "_contest.txt", &text, error);
    kg_text_free(&text);
    return status;
}

static enum kg_status run_stages(struct kg_build_run *build, struct kg_error *error)
{
    enum kg_status status = check_contest(build, error);
    if (status == KG_OK)
        status = define(build, error);
    if (status == KG_OK)
        status = check_cancelled(build, error);
    if (status == KG_OK)
        status = open_place(build, error);
    if (status == KG_OK)
        status = generate(build, error);
    if (status == KG_OK)
        status = check_override(build, error);
    if (status == KG_OK)
        status = check_cancelled(build, error);
    if (status == KG_OK && build->request.device->is_described) {
        kg_session_tell(build->request.session,
                        "%s is not at hand: the kernel was generated and compiled "
                        "for it, and neither verified nor measured",
                        build->request.device->facts.isa);
        build->report->goal_met = true;
        return KG_OK;
    }
    if (status == KG_OK) {
        kg_build_run_announce(build, "verify", 3);
        status = kg_build_run_verify(build, build->plan, error);
    }
    if (status == KG_OK)
        status = kg_rounds_run(build, error);
    if (status == KG_OK)
        status = override(build, error);
    if (status == KG_OK)
        status = sanitize(build, error);
    if (status == KG_OK)
        status = remember(build, error);
    if (status == KG_OK)
        status = compete(build, error);
    if (status == KG_OK)
        status = record(build, error);
    build->report->goal_met = status == KG_OK && build->report->bench.goal_met;
    return status;
}

enum kg_status kg_flow_build(const struct kg_request *request,
                             const struct kg_build_options *options, struct kg_built_report *report,
                             struct kg_plan **plan, struct kg_error *error)
{
    *report = (struct kg_built_report){0};
    if (plan)
        *plan = NULL;
    struct kg_build_run build = {
        .request = *request, .options = options, .report = report, .started = kg_times_now()};
    struct kg_session *session = request->session;
    build.request.rigor = kg_flow_rigor(request->problem, request->device, request->rigor);
    kg_session_tell_missing(session);
    enum kg_status status = kg_session_key_make(request->problem, request->device,
                                                &session->protocol, &build.key, error);
    if (status == KG_OK)
        status = run_stages(&build, error);
    kg_evaluator_close(build.evaluator);
    kg_session_key_free(&build.key);
    if (status == KG_OK && plan)
        *plan = build.plan;
    else
        kg_flow_plan_free(build.plan);
    return status;
}
