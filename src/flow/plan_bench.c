// The performance gate: a plan against the baseline of its device, alternately, in one process.
//
// On the host the baseline is the definition as written: one plain loop nest per statement
// (`direct`, by its own rule), same compiler, flags and cores.

#include "flow/plan_bench.h"

#include "flow/companions.h"
#include "flow/worker_job.h"

#include <math.h>

#define LEAST_NOISE 0.01    // the same kernel, timed twice, differs by this part
#define MOST_NOISE 0.1      // above it a miss is one, however noisy the machine
#define BENCH_SECONDS 300.0 // for the whole race; a longer time is a hang

enum { PLAN, BASELINE, RIVAL, MAX_SIDES };

// The noise of a ratio of medians: half of both interquartile ranges together.
static double noise_of(const struct kg_timing *plan, const struct kg_timing *baseline)
{
    if (plan->median <= 0 || baseline->median <= 0)
        return LEAST_NOISE;
    double noise = hypot(plan->spread / plan->median, baseline->spread / baseline->median) / 2;
    return fmin(fmax(noise, LEAST_NOISE), MOST_NOISE);
}

static struct kg_bench_result summarise(const struct kg_plan *plan, const struct kg_timing *timings)
{
    struct kg_roofline roofline = kg_roofline_of(plan->problem, &plan->device->facts);
    struct kg_bench_result result = {
        .seconds = timings[PLAN].median,
        .spread = timings[PLAN].spread,
        .baseline_seconds = timings[BASELINE].median,
        .baseline_spread = timings[BASELINE].spread,
        .bound_seconds = roofline.seconds,
        .speedup = timings[PLAN].median > 0 ? timings[BASELINE].median / timings[PLAN].median : 0,
        .goal = plan->problem->op->goal.speedup,
        .samples = timings[PLAN].samples,
        .noise = noise_of(&timings[PLAN], &timings[BASELINE]),
    };
    // A problem without reads, writes or operations has nothing to be faster at.
    result.goal_met =
        result.bound_seconds <= 0 || result.speedup >= (1 - result.noise) * result.goal;
    return result;
}

enum kg_status kg_evaluator_bench(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                  const struct kg_plan *rival, struct kg_bench_result *result,
                                  double *rival_seconds, struct kg_error *error)
{
    struct kg_timing timings[MAX_SIDES];
    struct kg_choice choice;
    struct kg_plan *baseline = NULL;
    struct kg_request request = kg_flow_request_of(plan);
    *result = (struct kg_bench_result){0};
    if (rival_seconds)
        *rival_seconds = 0;
    enum kg_status status = KG_OK;
    if (evaluator->is_elsewhere) {
        status = KG_ERROR_MISSING;
        if (!plan->override)
            status = kg_worker_job_bench(&request, plan->choice, rival ? rival->choice : NULL,
                                         result, rival_seconds, error);
        if (status != KG_ERROR_MISSING)
            return status;
        status = kg_evaluator_stay(evaluator, error);
        if (status)
            return status;
    }
    kg_flow_choose_baseline(plan->device, plan->problem, &choice);
    status = kg_flow_plan_of(&request, &choice, &baseline, error);
    if (status != KG_OK)
        return status;
    struct kg_built *plans[] = {plan->built, baseline->built, rival ? rival->built : NULL};
    status =
        kg_judge_race(evaluator->judge, plans, rival ? 3 : 2, false, BENCH_SECONDS, timings, error);
    kg_flow_plan_free(baseline);
    if (status == KG_OK) {
        *result = summarise(plan, timings);
        if (rival_seconds && rival)
            *rival_seconds = timings[RIVAL].median;
    }
    return status;
}

// Recorded with the file's name beside the choice: it is not the outcome of the choice itself, and
// never becomes wisdom.
static enum kg_status record_override(const struct kg_plan *plan, const struct kg_key *key,
                                      const struct kg_verdict *verdict,
                                      const struct kg_bench_result *result, struct kg_error *error)
{
    struct kg_store *store = plan->session->store;
    struct kg_text choice = {0}, words = {0};
    struct kg_outcome outcome = {
        .kind = verdict->passed ? KG_OUTCOME_MEASURED : KG_OUTCOME_WRONG,
        .choice = plan->choice,
        .override = plan->override->path,
        .source = plan->override->hash,
        .timing = {.samples = result->samples, .median = result->seconds, .spread = result->spread},
        .verdict = *verdict,
        .reason = verdict->passed ? "" : verdict->reason,
    };
    kg_text_format(&choice, "%s (overridden by %s)", plan->choice, plan->override->path);
    kg_text_format(&words,
                   verdict->passed ? "passed the gate: %d cases, seed %llu"
                                   : "refused: %d cases, seed %llu; %s",
                   verdict->cases, (unsigned long long)verdict->seed, verdict->reason);
    struct kg_round round = {.diagnosis = "a kernel from outside",
                             .change = "its PTX in the place of the generated kernel",
                             .choice = kg_text_string(&choice),
                             .before = result->original_seconds,
                             .after = result->seconds,
                             .baseline = result->baseline_seconds,
                             .roofline = result->bound_seconds,
                             .result = kg_text_string(&words)};
    enum kg_status status =
        choice.failed || words.failed ? kg_error_memory(error, "a record") : KG_OK;
    if (!status)
        status = kg_store_append(store, key, &outcome, error);
    if (!status)
        status = kg_store_round(store, key, &round, error);
    status = kg_session_recorded(plan->session, status, error);
    kg_text_free(&choice);
    kg_text_free(&words);
    return status;
}

// The gate, the race with the overridden kernels, and the record of both.
static enum kg_status bench_override(struct kg_evaluator *evaluator, const struct kg_plan *plan,
                                     struct kg_bench_result *result, struct kg_verdict *verdict,
                                     struct kg_error *error)
{
    const struct kg_override *override = plan->override;
    struct kg_session_key key;
    enum kg_status status = kg_evaluator_verify(evaluator, plan, verdict, error);
    if (!status && verdict->passed)
        status = kg_evaluator_bench(evaluator, plan, override->original, result,
                                    &result->original_seconds, error);
    if (!status && plan->session->store) {
        status =
            kg_session_key_make(plan->problem, plan->device, &plan->session->protocol, &key, error);
        if (!status)
            status = record_override(plan, &key.key, verdict, result, error);
        kg_session_key_free(&key);
    }
    if (!status && !verdict->passed)
        status = kg_error_set(error, KG_ERROR_WRONG, "the accuracy gate refused %s: %s",
                              override->path, verdict->reason);
    return status;
}

enum kg_status kg_flow_bench_override(const struct kg_plan *plan, struct kg_bench_result *result,
                                      struct kg_verdict *verdict, struct kg_error *error)
{
    struct kg_evaluator *evaluator;
    struct kg_request request = kg_flow_request_of(plan);
    *result = (struct kg_bench_result){0};
    *verdict = (struct kg_verdict){0};
    enum kg_status status = kg_evaluator_open(&request, true, NULL, &evaluator, error);
    if (status == KG_OK)
        status = bench_override(evaluator, plan, result, verdict, error);
    kg_evaluator_close(evaluator);
    return status;
}

enum kg_status kg_flow_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                             struct kg_bench_result *result, double *rival_seconds,
                             struct kg_error *error)
{
    struct kg_evaluator *evaluator;
    struct kg_verdict verdict;
    *result = (struct kg_bench_result){0};
    if (plan->override)
        return kg_flow_bench_override(plan, result, &verdict, error);
    struct kg_request request = kg_flow_request_of(plan);
    enum kg_status status = kg_evaluator_open(&request, false, NULL, &evaluator, error);
    if (status == KG_OK)
        status = kg_evaluator_bench(evaluator, plan, rival, result, rival_seconds, error);
    kg_evaluator_close(evaluator);
    return status;
}
