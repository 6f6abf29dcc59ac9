// A definition through all five stages. Each stage writes its document to the bundle as soon as it
// is done, so that a build that is stopped loses nothing.

#include "flow/stages.h"

#include "base/files.h"
#include "flow/analysis.h"
#include "flow/evidence.h"
#include "flow/judging.h"
#include "flow/override.h"
#include "flow/plan_bench.h"
#include "flow/planner.h"
#include "flow/proof.h"
#include "flow/recorder.h"
#include "flow/sanitize.h"
#include "flow/small.h"
#include "report/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Smaller gains are within the noise and do not replace a version.
#define MIN_GAIN 1.01
#define RACE_PART 1.2 // a race of three, in races of the plan and its baseline

struct build {
    struct kg_request request; // with its rigor resolved: not the default
    const struct kg_build_options *options;
    struct kg_built_report *report;
    struct kg_session_key key;
    struct kg_evaluator *evaluator; // NULL if the device is not present
    struct kg_plan *plan;           // the best version so far
    double started;                 // kg_times_now
};

static void announce(const struct build *build, const char *stage, int number)
{
    const struct kg_session *session = build->request.session;
    if (session->progress)
        session->progress(session->user, stage, number, 5);
}

static bool is_measuring(const struct build *build)
{
    return build->request.rigor != KG_RIGOR_ESTIMATE && build->request.rigor != KG_RIGOR_WISDOM;
}

// A build stops between stages, if it is to stop.
static enum kg_status check_cancelled(const struct build *build, struct kg_error *error)
{
    if (!kg_session_cancelled(build->request.session))
        return KG_OK;
    return kg_error_set(error, KG_ERROR_CANCELLED, "the build was cancelled");
}

// An override may lie in the folder of the bundle, but not under the name of one of its files.
static enum kg_status publish(const struct build *build, const char *path, const char *text,
                              struct kg_error *error)
{
    const char *override = build->options->override;
    if (override && kg_files_are_same(path, override))
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s is read, and would be overwritten by a file of the bundle: give it "
                            "another name, or the bundle another folder",
                            override);
    return kg_files_publish(path, text, strlen(text), error);
}

static enum kg_status write_file(const struct build *build, const char *suffix, const char *text,
                                 struct kg_error *error)
{
    if (!build->options->folder)
        return KG_OK;
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s%s", build->options->folder, build->request.problem->op->name,
                   suffix);
    enum kg_status status =
        path.failed ? kg_error_memory(error, "a path") : publish(build, path.data, text, error);
    kg_text_free(&path);
    return status;
}

static enum kg_status write_text(const struct build *build, const char *suffix,
                                 struct kg_text *text, struct kg_error *error)
{
    enum kg_status status = text->failed ? kg_error_memory(error, "a document")
                                         : write_file(build, suffix, kg_text_string(text), error);
    kg_text_free(text);
    return status;
}

static enum kg_status define(const struct build *build, struct kg_error *error)
{
    announce(build, "define", 1);
    if (!build->options->folder)
        return KG_OK;
    enum kg_status status = kg_files_make_folder(build->options->folder, error);
    if (status != KG_OK)
        return status;
    bool chinese = build->options->language && strcmp(build->options->language, "zh") == 0;
    struct kg_text text = {0};
    kg_analyze_document(&text, build->request.problem, &build->request.device->facts,
                        chinese ? KG_CHINESE : KG_ENGLISH);
    return write_text(build, "_definition.md", &text, error);
}

static enum kg_status write_kernel(const struct build *build, struct kg_error *error)
{
    if (!build->options->folder)
        return KG_OK;
    const struct kg_target *target = kg_target_of(build->request.device);
    bool has_assembly = target->has_assembly;
    struct kg_text text = {0};
    kg_flow_source(build->plan, &text);
    enum kg_status status = write_text(build, target->suffix, &text, error);
    if (status == KG_OK && has_assembly)
        status = kg_flow_assembly(build->plan, &text, error);
    if (status == KG_OK && has_assembly)
        status = write_text(build, ".ptx", &text, error);
    if (status == KG_OK && has_assembly)
        status = kg_flow_analyse(build->plan, &text, error);
    if (status == KG_OK && has_assembly)
        status = write_text(build, "_assembly.txt", &text, error);
    kg_text_free(&text);
    return status;
}

// Starts what takes long: the process on the device, and the compilers.
static enum kg_status open_place(struct build *build, struct kg_error *error)
{
    if (build->request.device->is_described)
        return KG_OK;
    struct kg_ahead ahead = {&build->key.key, true, build->options->folder != NULL};
    return kg_evaluator_open(&build->request, true, &ahead, &build->evaluator, error);
}

// The first version, without measuring. If it is the only one, it is what is known, else the
// rule's; if others follow, it is the rule's, to compare them with.
static enum kg_status generate(struct build *build, struct kg_error *error)
{
    announce(build, "generate", 2);
    struct kg_request request = build->request;
    enum kg_status status;
    if (!is_measuring(build)) {
        request.seconds = 0;
        request.evaluator = build->evaluator;
        status = kg_flow_plan(&request, &build->plan, error);
    } else {
        struct kg_choice choice;
        kg_choice_guess(request.problem, &request.device->facts, kg_target_of(request.device),
                        &choice);
        status = kg_flow_plan_of(&request, &choice, &build->plan, error);
    }
    return status == KG_OK ? write_kernel(build, error) : status;
}

static enum kg_status verify(struct build *build, struct kg_plan *plan, struct kg_error *error)
{
    struct kg_verdict verdict;
    enum kg_status status = kg_evaluator_verify(build->evaluator, plan, &verdict, error);
    if (status != KG_OK)
        return status;
    build->report->verdict = verdict;
    if (verdict.passed)
        return KG_OK;
    return kg_error_set(error, KG_ERROR_WRONG, "the accuracy gate refused %s\n  %s", plan->choice,
                        verdict.reason);
}

static enum kg_status measure(const struct build *build, struct kg_plan *plan,
                              const struct kg_plan *rival, struct kg_bench_result *bench,
                              double *rival_seconds, struct kg_error *error)
{
    enum kg_status status =
        kg_evaluator_bench(build->evaluator, plan, rival, bench, rival_seconds, error);
    if (status == KG_OK) {
        plan->seconds = bench->seconds;
        plan->spread = bench->spread;
    }
    return status;
}

static enum kg_status record_round(struct build *build, int number, const char *diagnosis,
                                   const char *change, const char *choice, double before,
                                   const struct kg_bench_result *after, const char *result,
                                   struct kg_error *error)
{
    struct kg_round round = {
        .number = number,
        .diagnosis = diagnosis,
        .change = change,
        .choice = choice,
        .before = before,
        .after = after->seconds,
        .baseline = after->baseline_seconds,
        .roofline = after->bound_seconds,
        .result = result,
    };
    enum kg_status status =
        kg_store_round(build->request.session->store, &build->key.key, &round, error);
    return kg_session_recorded(build->request.session, status, error);
}

// Replaces the best version if the challenger is faster beyond the noise, or if both are the same
// choice, so that there is nothing to compare.
static enum kg_status challenge(struct build *build, struct kg_plan *challenger, int number,
                                const struct kg_diagnosed *diagnosed, struct kg_error *error)
{
    struct kg_bench_result *best = &build->report->bench;
    bool same = strcmp(challenger->choice, build->plan->choice) == 0;
    struct kg_bench_result bench = *best;
    double before = best->seconds; // of the current version, in the challenger's race
    enum kg_status status = KG_OK;
    if (!same) {
        // What the search found has passed the same evaluator's gate.
        status = challenger->origin != KG_ORIGIN_SEARCH ? verify(build, challenger, error) : KG_OK;
        if (status == KG_OK)
            status = measure(build, challenger, build->plan, &bench, &before, error);
    }
    if (status != KG_OK) {
        kg_flow_plan_free(challenger);
        return status;
    }
    bool won = !same && before > MIN_GAIN * bench.seconds;
    const char *result = same  ? "the current version is the best found"
                         : won ? "kept"
                               : "not faster beyond the noise: the current version stays";
    struct kg_text diagnosis = {0};
    kg_text_format(&diagnosis, "%s: %s", diagnosed->row->name[KG_ENGLISH], diagnosed->evidence);
    status = record_round(build, number, kg_text_string(&diagnosis),
                          "parameters only: the kernel is regenerated, the interface stays",
                          challenger->choice, before, &bench, result, error);
    kg_text_free(&diagnosis);
    struct kg_plan *loser = won ? build->plan : challenger;
    if (won) {
        build->plan = challenger;
        *best = bench;
    }
    kg_flow_plan_free(loser);
    return status == KG_OK && won ? write_kernel(build, error) : status;
}

static void add_found(struct kg_built_report *report, const struct kg_found *found)
{
    if (found->space > report->space)
        report->space = found->space;
    if (found->valid > report->valid)
        report->valid = found->valid;
    report->pruned = found->pruned;
    report->measured = found->measured;
    report->failed = found->failed;
}

// One round: diagnose, search with this rigor, keep what is faster. `*go_on` tells whether another
// round could gain anything.
static enum kg_status optimise_once(struct build *build, int number, enum kg_rigor rigor,
                                    double seconds, bool *go_on, struct kg_error *error)
{
    struct kg_bench_result *bench = &build->report->bench;
    struct kg_request request = build->request;
    struct kg_diagnosed diagnosed;
    kg_flow_diagnose_plan(build->plan, bench->seconds, &diagnosed);
    if (diagnosed.at_limit && bench->speedup >= bench->goal) {
        build->report->limit = diagnosed.row->name[KG_ENGLISH];
        *go_on = false;
        return KG_OK;
    }
    struct kg_plan *challenger = NULL;
    request.rigor = rigor;
    request.seconds = seconds;
    request.hint = build->plan->choice;
    request.evaluator = build->evaluator;
    enum kg_status status = kg_flow_plan(&request, &challenger, error);
    if (status == KG_ERROR_MISSING || status == KG_ERROR_IO) { // the machine's failure
        kg_session_tell(build->request.session,
                        "the search ended early; the version so far stays: %s",
                        error ? error->text : kg_status_name(status));
        kg_error_clear(error);
        *go_on = false;
        return KG_OK;
    }
    if (status != KG_OK)
        return status;
    bool ended = challenger->found.ended[0]; // and would end another search
    add_found(build->report, &challenger->found);
    build->report->rounds = number;
    status = challenge(build, challenger, number, &diagnosed, error);
    *go_on = status == KG_OK && !ended && bench->speedup < bench->goal && !diagnosed.at_limit;
    return status;
}

// Rounds of rising rigor: they go on while the goal is not met and can be reached.
static enum kg_status optimise(struct build *build, struct kg_error *error)
{
    announce(build, "optimise", 4);
    struct kg_bench_result *bench = &build->report->bench;
    double start = kg_times_now();
    enum kg_status status = measure(build, build->plan, NULL, bench, NULL, error);
    if (status == KG_OK)
        status = record_round(build, 0, "the first version, by rule", "none", build->plan->choice,
                              0, bench, "measured against the baseline", error);
    double began = kg_times_now(), race = began - start;
    if (status == KG_OK && is_measuring(build) && build->request.seconds > 0)
        kg_session_tell(build->request.session,
                        "the first plan took %.1f s; %g s are left to find a faster one",
                        began - build->started, build->request.seconds);
    enum kg_rigor rigor = build->request.rigor;
    // Without a time there is no result, even if the caller has cancelled.
    if (status != KG_OK || !is_measuring(build))
        return status;
    bool go_on = true;
    for (int round = 1;
         status == KG_OK && go_on && round <= build->request.problem->op->goal.rounds; round++) {
        double left = 0;
        if (build->request.seconds > 0) {
            // What the search finds is raced with the current version.
            left = build->request.seconds - (kg_times_now() - began) - RACE_PART * race;
            if (left <= 0)
                break;
        }
        status = optimise_once(build, round, rigor, left, &go_on, error);
        if (rigor == KG_RIGOR_EXHAUSTIVE)
            break;
        rigor = rigor == KG_RIGOR_MEASURE ? KG_RIGOR_PATIENT : KG_RIGOR_EXHAUSTIVE;
    }
    // Cancelled by the caller: the results so far are kept.
    return status == KG_ERROR_CANCELLED ? KG_OK : status;
}

// Errors in the file are reported before anything takes long.
static enum kg_status check_override(const struct build *build, struct kg_error *error)
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
static enum kg_status override(struct build *build, struct kg_error *error)
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
        status = write_file(build, ".ptx", plan->override->text, error);
    if (status != KG_OK) {
        kg_flow_plan_free(plan);
        return status;
    }
    kg_flow_plan_free(build->plan);
    build->plan = plan;
    return KG_OK;
}

// What the sanitizers refuse counts as wrong from now on, and is not chosen again.
static enum kg_status record_refusal(const struct build *build, struct kg_error *error)
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
static enum kg_status sanitize(const struct build *build, struct kg_error *error)
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
static enum kg_status remember(const struct build *build, struct kg_error *error)
{
    struct kg_plan *plan = build->plan;
    struct kg_session *session = build->request.session;
    struct kg_wisdom known;
    if (!is_measuring(build) || plan->override || !session->store)
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

static enum kg_status record(struct build *build, struct kg_error *error)
{
    announce(build, "record", 5);
    bool chinese = build->options->language && strcmp(build->options->language, "zh") == 0;
    struct kg_text text = {0};
    enum kg_status status =
        kg_report_log(build->request.session->store, build->request.problem->op->name,
                      chinese ? KG_CHINESE : KG_ENGLISH, &text, error);
    if (status == KG_OK)
        status = write_text(build, "_optimization_log.md", &text, error);
    kg_text_free(&text);
    return status;
}

static enum kg_status run_stages(struct build *build, struct kg_error *error)
{
    enum kg_status status = define(build, error);
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
        announce(build, "verify", 3);
        status = verify(build, build->plan, error);
    }
    if (status == KG_OK)
        status = optimise(build, error);
    if (status == KG_OK)
        status = override(build, error);
    if (status == KG_OK)
        status = sanitize(build, error);
    if (status == KG_OK)
        status = remember(build, error);
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
    struct build build = {
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
