// The performance gate: a plan against the baseline of its device, alternately, in one process.
//
// On the host the baseline is the definition as written: one plain loop nest per statement
// (`direct`, by its own rule), same compiler, flags and cores. It is what an engineer writes first.

#include "flow/place.h"

#define BENCH_SECONDS 300.0 // for the whole race; more is a hang

void kg_flow_choose_baseline(const struct kg_device *device, const struct kg_problem *problem,
                             struct kg_choice *choice)
{
    enum kg_target target = kg_session_target(device);
    const struct kg_family *direct = kg_family_find(target, "direct");
    *choice = (struct kg_choice){.partition = {.count = problem->nest_count}};
    for (int i = 0; i < problem->nest_count; i++) {
        struct kg_group group = {.problem = problem, .first = i, .count = 1};
        choice->partition.groups[i] = group;
        choice->partition.families[i] = direct;
        direct->guess(&group, &device->facts, target, &choice->configs[i]);
    }
}

enum { PLAN, BASELINE, RIVAL, MOST_SIDES };

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

enum kg_status kg_place_bench(struct kg_place *place, const struct kg_plan *plan,
                              const struct kg_plan *rival, struct kg_bench_result *result,
                              double *rival_seconds, struct kg_error *error)
{
    struct kg_timing timings[MOST_SIDES];
    struct kg_choice choice;
    struct kg_plan *baseline = NULL;
    *result = (struct kg_bench_result){0};
    if (rival_seconds)
        *rival_seconds = 0;
    kg_flow_choose_baseline(plan->device, plan->problem, &choice);
    enum kg_status status =
        kg_flow_plan_of(plan->session, plan->problem, plan->device, &choice, &baseline, error);
    if (status != KG_OK)
        return status;
    struct kg_built *sides[] = {plan->built, baseline->built, rival ? rival->built : NULL};
    status =
        kg_judge_race(place->judge, sides, rival ? 3 : 2, false, BENCH_SECONDS, timings, error);
    kg_flow_plan_free(baseline);
    if (status == KG_OK) {
        *result = summarise(plan, timings);
        if (rival_seconds && rival)
            *rival_seconds = timings[RIVAL].median;
    }
    return status;
}

enum kg_status kg_flow_bench(const struct kg_plan *plan, const struct kg_plan *rival,
                             struct kg_bench_result *result, double *rival_seconds,
                             struct kg_error *error)
{
    struct kg_place *place;
    *result = (struct kg_bench_result){0};
    enum kg_status status =
        kg_place_open(plan->session, plan->problem, plan->device, false, &place, error);
    if (status == KG_OK)
        status = kg_place_bench(place, plan, rival, result, rival_seconds, error);
    kg_place_close(place);
    return status;
}
