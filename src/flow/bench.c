// The performance gate: a plan against the baseline of its device, alternately, in one process.
//
// On the host the baseline is the definition as written: one plain loop nest per statement
// (`direct`, by its own rule), same compiler, flags and cores. It is what an engineer writes first.

#include "flow/planner.h"

#include "tune/worker.h"

#include <stdlib.h>
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
    int output_count;
};

static enum kg_status run_side(void *user, struct kg_error *error)
{
    const struct side *side = user;
    return kg_flow_execute(side->plan, side->tensors, NULL, error);
}

static void release_side(struct side *side)
{
    const struct kg_op *op = side->plan->problem->op;
    for (int i = op->input_count; i < op->input_count + op->output_count; i++)
        if (side->tensors[i])
            side->plan->device->backend->release(side->plan->device, side->tensors[i]);
}

static enum kg_status prepare_side(struct side *side, const struct kg_plan *plan,
                                   void *const *inputs, struct kg_error *error)
{
    *side = (struct side){.plan = plan};
    const struct kg_problem *problem = plan->problem;
    const struct kg_op *op = problem->op;
    memcpy(side->tensors, inputs, (size_t)op->input_count * sizeof *inputs);
    for (int i = op->input_count; i < op->input_count + op->output_count; i++) {
        enum kg_status status = plan->device->backend->allocate(
            plan->device, problem->layouts[i].bytes, &side->tensors[i], error);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
}

// Hash of all outputs, to see that timing did not change them.
static enum kg_status hash_outputs(const struct side *side, struct kg_hash *hash,
                                   struct kg_error *error)
{
    const struct kg_problem *problem = side->plan->problem;
    const struct kg_op *op = problem->op;
    *hash = kg_hash_bytes("", 0);
    for (int i = op->input_count; i < op->input_count + op->output_count; i++) {
        size_t bytes = problem->layouts[i].bytes;
        void *copy = malloc(bytes ? bytes : 1);
        if (!copy)
            return kg_error_memory(error, "a copy of the outputs");
        struct kg_device *device = side->plan->device;
        enum kg_status status = device->backend->copy(device, copy, side->tensors[i], bytes, error);
        if (status == KG_OK)
            *hash = kg_hash_chain(*hash, copy, bytes);
        free(copy);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
}

enum { PLAN, BASELINE, RIVAL, MOST_SIDES };

struct race {
    const struct kg_plan *plans[MOST_SIDES];
    int count;
    void *inputs[KG_MAX_TENSORS];
};

static enum kg_status race_sides(const struct race *race, struct side *sides,
                                 struct kg_timing *timings, struct kg_error *error)
{
    struct kg_timed timed[MOST_SIDES];
    struct kg_hash before, after;
    const struct kg_plan *plan = race->plans[PLAN];
    for (int i = 0; i < race->count; i++)
        timed[i] = (struct kg_timed){&sides[i], run_side};
    enum kg_status status = run_side(&sides[PLAN], error);
    if (status == KG_OK)
        status = hash_outputs(&sides[PLAN], &before, error);
    if (status == KG_OK)
        status = kg_time_race(plan->device, &kg_protocol_default, timed, race->count,
                              plan->session->cancel, timings, error);
    if (status == KG_OK)
        status = hash_outputs(&sides[PLAN], &after, error);
    if (status == KG_OK && (before.high != after.high || before.low != after.low))
        status = kg_error_set(error, KG_ERROR_WRONG,
                              "the outputs after timing differ from those before it");
    return status;
}

static enum kg_status race_in_child(void *user, void *result, size_t size, struct kg_error *error)
{
    (void)size;
    const struct race *race = user;
    struct side sides[MOST_SIDES];
    enum kg_status status = KG_OK;
    int ready = 0;
    while (status == KG_OK && ready < race->count) {
        status = prepare_side(&sides[ready], race->plans[ready], race->inputs, error);
        ready++;
    }
    if (status == KG_OK)
        status = race_sides(race, sides, result, error);
    for (int i = 0; i < ready; i++)
        release_side(&sides[i]);
    return status;
}

static enum kg_status fill_inputs(struct race *race, struct kg_error *error)
{
    const struct kg_plan *plan = race->plans[PLAN];
    const struct kg_problem *problem = plan->problem;
    const struct kg_backend *backend = plan->device->backend;
    for (int i = 0; i < problem->op->input_count; i++) {
        size_t bytes = problem->layouts[i].bytes;
        enum kg_status status = backend->allocate(plan->device, bytes, &race->inputs[i], error);
        if (status != KG_OK)
            return status;
        void *data = malloc(bytes ? bytes : 1);
        if (!data)
            return kg_error_memory(error, "inputs to time with");
        kg_verify_fill(problem, i, 1 + (uint64_t)i, data);
        status = backend->copy(plan->device, race->inputs[i], data, bytes, error);
        free(data);
        if (status != KG_OK)
            return status;
    }
    return KG_OK;
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
    struct kg_timing timings[MOST_SIDES] = {{0}};
    status = fill_inputs(&race, error);
    if (status == KG_OK)
        status = kg_worker_run(race_in_child, &race, BENCH_SECONDS, plan->session->cancel, timings,
                               sizeof timings, error);
    for (int i = 0; i < plan->problem->op->input_count; i++)
        if (race.inputs[i])
            device->backend->release(device, race.inputs[i]);
    kg_flow_plan_free(baseline);
    if (status == KG_OK) {
        *result = summarise(plan, timings);
        if (rival_seconds)
            *rival_seconds = timings[RIVAL].median;
    }
    return status;
}
