// kernelgen bench: the performance gate alone.

#include "commands.h"
#include "plans.h"

#include <stdio.h>

static void show(const struct cli *cli, const struct kg_plan *plan,
                 const struct kg_bench_result *result)
{
    char time[32], spread[32], reached[96];
    cli_progress_clear();
    cli_show_kernel(cli, "kernel", plan);
    printf("plan      %s, spread %s, %d samples\n", cli_duration(result->seconds, time),
           cli_duration(result->spread, spread), result->samples);
    if (cli->options.override)
        printf("original  %s\n", cli_duration(result->original_seconds, time));
    printf("baseline  %s, spread %s\n", cli_duration(result->baseline_seconds, time),
           cli_duration(result->baseline_spread, spread));
    printf("roofline  %s, %s\n", cli_duration(result->bound_seconds, time),
           cli_reached(result, reached));
    printf("speed-up  %.2f (goal %.2f): %s\n", result->speedup, result->goal,
           cli_goal_words(result));
}

static void show_json(const struct kg_bench_result *result)
{
    cli_json_begin();
    printf("{\"samples\": %d", result->samples);
    cli_json_bench(result);
    printf(", \"goal_met\": %s}\n", result->goal_met ? "true" : "false");
}

static enum cli_exit refuse(const struct cli *cli, const struct kg_verify_result *verdict)
{
    if (cli->options.json) {
        cli_json_begin();
        printf("{\"verify\": ");
        cli_json_verdict(verdict);
        printf("}\n");
    } else {
        cli_show_verdict(verdict);
    }
    return CLI_REFUSED;
}

static enum cli_exit bench(struct cli *cli, struct cli_subject *subject, struct kg_plan *plan)
{
    (void)subject;
    // Only verified kernels are timed, and an estimated choice is not verified yet. The library
    // itself verifies an override.
    struct kg_verify_result verdict = {.size = sizeof verdict, .passed = true};
    enum kg_status status = cli->options.override ? KG_OK : kg_plan_verify(plan, 0, &verdict);
    if (status == KG_OK && !verdict.passed)
        return refuse(cli, &verdict);
    struct kg_bench_result result = {.size = sizeof result};
    if (status == KG_OK)
        status = kg_plan_bench(plan, &result);
    if (status != KG_OK)
        return cli_fail(cli, status);
    if (cli->options.json)
        show_json(&result);
    else
        show(cli, plan, &result);
    return result.goal_met ? CLI_DONE : CLI_SLOW;
}

enum cli_exit cli_bench(struct cli *cli)
{
    return cli_with_plan(cli, KG_RIGOR_DEFAULT, bench);
}
