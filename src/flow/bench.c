// The performance gate: a plan against the baseline of its device, alternately, in one process.
//
// On the host the baseline is the definition as written: one plain loop nest per statement
// (`direct`, by its own rule), same compiler, flags and cores. It is what an engineer writes first.

#include "flow/planner.h"

#include "tune/tensors.h"
#include "tune/worker.h"

#include <string.h>

#define BENCH_SECONDS 300.0 // for the whole race; more is a hang

static void choose_baseline(const struct kg_problem *problem, const struct kg_device_facts *facts,
                            enum kg_target target, struct kg_choice *choice)
{
    *choice = (struct kg_choice){0};
    const struct kg_family *direct = kg_family_find(target, "direct");
    choice->partition.count = problem->nest_count;
    for (int i = 0; i < problem->nest_count; i++) {
        struct kg_group group = {.problem = problem, .first = i, .count = 1};
        choice->partition.groups[i] = group;
        choice->partition.families[i] = direct;
        direct->guess(&group, facts, target, &choice->configs[i]);
    }
}

// One side of the race. Its outputs and workspace are its own; inputs are shared.
struct side {
    const struct kg_plan *plan;
    void *tensors[KG_MAX_TENSORS];
};

static enum kg_status run_side(void *user, struct kg_error *error)
{
    const struct side *side = user;
    return kg_flow_execute(side->plan, side->tensors, NULL, error);
}

static enum kg_status digest(const struct side *side, uint64_t *sum, struct kg_error *error)
{
    return kg_tensors_digest(side->plan->device, side->plan->problem, side->tensors, sum, error);
}

enum { PLAN, BASELINE, RIVAL, MOST_SIDES };

struct race {
    const struct kg_plan *plans[MOST_SIDES];
    int count;
};

struct raced {
    struct kg_timing timings[MOST_SIDES];
    double seconds; // the race took
};

static enum kg_status race_sides(const struct race *race, struct side *sides,
                                 struct kg_timing *timings, struct kg_error *error)
{
    struct kg_timed timed[MOST_SIDES];
    uint64_t before = 0, after = 0;
    const struct kg_plan *plan = race->plans[PLAN];
    for (int i = 0; i < race->count; i++)
        timed[i] = (struct kg_timed){&sides[i], run_side};
    enum kg_status status = run_side(&sides[PLAN], error);
    if (status == KG_OK)
        status = digest(&sides[PLAN], &before, error);
    if (status == KG_OK)
        status = kg_time_race(plan->device, &plan->session->protocol, timed, race->count,
                              plan->session->cancel, timings, error);
    if (status == KG_OK)
        status = digest(&sides[PLAN], &after, error);
    if (status == KG_OK && before != after)
        status = kg_error_set(error, KG_ERROR_WRONG,
                              "the outputs after timing differ from those before it");
    return status;
}

static enum kg_status race_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct race *race = user;
    struct kg_device *device = race->plans[PLAN]->device;
    const struct kg_problem *problem = race->plans[PLAN]->problem;
    void *inputs[KG_MAX_TENSORS];
    struct side sides[MOST_SIDES] = {{.plan = NULL}};
    struct raced *raced = result;
    enum kg_status status = kg_tensors_make_inputs(device, problem, inputs, error);
    for (int i = 0; i < race->count && status == KG_OK; i++) {
        sides[i].plan = race->plans[i];
        memcpy(sides[i].tensors, inputs, (size_t)problem->op->input_count * sizeof *inputs);
        status = kg_tensors_make_outputs(device, problem, sides[i].tensors, error);
    }
    double start = kg_times_now();
    if (status == KG_OK)
        status = race_sides(race, sides, raced->timings, error);
    raced->seconds = kg_times_now() - start;
    for (int i = 0; i < race->count; i++)
        kg_tensors_release_outputs(device, problem, sides[i].tensors);
    kg_tensors_release_inputs(device, problem, inputs);
    return status;
}

static struct kg_bench_result summarise(const struct kg_plan *plan, const struct kg_timing *timings)
{
    struct kg_roofline roofline = kg_roofline_of(plan->problem, &plan->device->facts);
    return (struct kg_bench_result){
        .seconds = timings[PLAN].median,
        .spread = timings[PLAN].spread,
        .baseline_seconds = timings[BASELINE].median,
        .baseline_spread = timings[BASELINE].spread,
        .bound_seconds = roofline.seconds,
        .speedup = timings[PLAN].median > 0 ? timings[BASELINE].median / timings[PLAN].median : 0,
        .goal = plan->problem->op->goal.speedup,
        .samples = timings[PLAN].samples,
    };
}

enum kg_status kg_flow_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                             struct kg_bench_result *result, double *rival_seconds,
                             struct kg_error *error)
{
    *result = (struct kg_bench_result){0};
    if (rival_seconds)
        *rival_seconds = 0;
    struct kg_device *device = plan->device;
    struct kg_choice choice;
    choose_baseline(plan->problem, &device->facts, kg_session_target(device), &choice);
    struct kg_plan *baseline = NULL;
    enum kg_status status =
        kg_flow_plan_of(plan->session, plan->problem, device, &choice, &baseline, error);
    if (status != KG_OK)
        return status;
    struct race race = {.plans = {plan, baseline, rival}, .count = rival ? 3 : 2};
    struct raced raced;
    kg_session_warn(plan->session, device);
    double start = kg_times_now();
    status = kg_worker_run_on(device, race_in_child, &race, BENCH_SECONDS, plan->session->cancel,
                              &raced, sizeof raced, error);
    kg_times_since(&plan->session->times, KG_ACTIVITY_PREPARE, start + raced.seconds);
    kg_times_add(&plan->session->times, KG_ACTIVITY_RACE, raced.seconds, raced.seconds);
    kg_flow_plan_free(baseline);
    if (status == KG_OK) {
        *result = summarise(plan, raced.timings);
        if (rival_seconds)
            *rival_seconds = raced.timings[RIVAL].median;
    }
    return status;
}
