// kernelgen build: all five stages, and their results.

#include "commands.h"
#include "plans.h"

#include <stdio.h>
#include <string.h>

static void show_times(const struct kg_bench_result *bench)
{
    char plan[32], baseline[32], bound[32], reached[96];
    printf("time      %s, baseline %s, roofline %s (%s)\n", cli_duration(bench->seconds, plan),
           cli_duration(bench->baseline_seconds, baseline),
           cli_duration(bench->bound_seconds, bound), cli_reached(bench, reached));
    if (bench->original_seconds > 0)
        printf("original  %s\n", cli_duration(bench->original_seconds, plan));
    printf("speed-up  %.2f over the baseline (goal %.2f): %s\n", bench->speedup, bench->goal,
           cli_goal_words(bench));
}

static void show_rounds(const struct kg_build_result *result)
{
    char searched[32];
    printf("rounds    %d", result->rounds);
    if (result->rounds > 1 && result->searched_seconds > 0)
        printf(" (%s after the search)", cli_duration(result->searched_seconds, searched));
    printf("%s%s\n", result->stopped[0] ? ", until " : "", result->stopped);
}

static void show(const struct cli *cli, const struct cli_subject *subject,
                 const struct kg_build_result *result, const struct kg_plan *plan,
                 const char *candidates)
{
    cli_progress_clear();
    printf("op        %s", kg_op_name(subject->op));
    int count = kg_problem_tensor_count(subject->problem);
    for (int i = 0; i < count; i++) {
        struct kg_tensor_info info = {.size = sizeof info};
        kg_problem_tensor(subject->problem, i, &info);
        printf("%s%s: %s[", i ? ", " : "  ", info.name, kg_dtype_name(info.dtype));
        for (int d = 0; d < info.rank; d++)
            printf("%s%lld", d ? ", " : "", (long long)info.shape[d]);
        printf("]");
    }
    printf("\n");
    if (result->verify->cases > 0)
        cli_show_verdict(result->verify);
    if (result->measured)
        printf("search    %lld configs, %d valid, %d pruned, %d measured, %d failed\n",
               (long long)result->space, result->valid, result->pruned, result->measured,
               result->failed);
    if (result->rounds > 0)
        show_rounds(result);
    if (!result->measured && result->limit)
        printf("search    none: the first version is limited by %s\n", result->limit);
    cli_show_kernel(cli, "chosen", plan);
    if (candidates[0])
        printf("candidates, with the parameters that differ from the chosen one's:\n%s",
               candidates);
    if (result->bench->samples > 0)
        show_times(result->bench);
}

static void show_json(const struct cli_subject *subject, const struct kg_build_result *result,
                      const struct kg_plan *plan, const char *candidates, const char *contest)
{
    cli_json_begin();
    printf("{\"op\": ");
    cli_json_text(kg_op_name(subject->op));
    printf(", \"choice\": ");
    cli_json_text(kg_plan_choice(plan));
    printf(", \"verify\": ");
    cli_json_verdict(result->verify);
    cli_json_bench(result->bench);
    printf(", \"goal_met\": %s, \"rounds\": %d, \"space\": %lld, \"valid\": %d, \"pruned\": %d, "
           "\"measured\": %d, \"failed\": %d, \"limit\": ",
           result->goal_met ? "true" : "false", result->rounds, (long long)result->space,
           result->valid, result->pruned, result->measured, result->failed);
    if (result->limit)
        cli_json_text(result->limit);
    printf("%s, \"stopped\": ", result->limit ? "" : "null");
    cli_json_text(result->stopped);
    printf(", \"searched_seconds\": %.9g, \"candidates\": %s, \"contest\": %s}\n",
           result->searched_seconds, candidates, contest ? contest : "null");
}

// The Python files beside the rest of the bundle. A definition that no Triton module can be written
// of has the others.
static enum kg_status write_python(struct cli *cli, const struct cli_subject *subject)
{
    char *paths = NULL;
    enum kg_status status = kg_problem_bundle(subject->problem, cli->options.folder, &paths);
    kg_text_release(paths);
    if (status != KG_ERROR_UNSUPPORTED)
        return status;
    fprintf(stderr, "kernelgen: no Python files: %s\n", kg_context_error(cli->context));
    return KG_OK;
}

static enum cli_exit build(struct cli *cli, const struct cli_subject *subject)
{
    struct kg_build_options options = {
        .size = sizeof options,
        .folder = cli->options.folder,
        .language = cli->options.language,
        .override = cli->options.override,
        .contest = cli->options.contest,
    };
    if (options.contest && options.override)
        return cli_bad_usage(
            "--contest is for rivals of the generated kernel, and --override takes "
            "its place: give one of them");
    enum cli_exit exit_status = cli_rigor(cli, KG_RIGOR_DEFAULT, &options.rigor);
    if (exit_status == CLI_DONE)
        exit_status = cli_seconds(cli, &options.seconds);
    if (exit_status != CLI_DONE)
        return exit_status;
    struct kg_verify_result verify = {.size = sizeof verify};
    struct kg_bench_result bench = {.size = sizeof bench};
    struct kg_build_result result = {.size = sizeof result, .verify = &verify, .bench = &bench};
    struct kg_plan *plan = NULL;
    enum kg_status status = kg_build(subject->problem, subject->device, &options, &result, &plan);
    if (status != KG_OK)
        return cli_fail(cli, status);
    char *candidates = NULL, *contest = NULL;
    status = kg_plan_candidates(plan, cli->options.json, &candidates);
    if (status == KG_OK && options.contest) // which is on record by now
        status = kg_plan_contest(plan, options.contest, cli->options.json, &contest, NULL);
    if (status == KG_OK && cli->options.json)
        show_json(subject, &result, plan, candidates, contest);
    else if (status == KG_OK)
        show(cli, subject, &result, plan, candidates);
    if (status == KG_OK && contest && !cli->options.json)
        printf("\n%s\n", contest);
    kg_text_release(candidates);
    kg_text_release(contest);
    kg_plan_destroy(plan);
    if (status == KG_OK && options.folder)
        status = write_python(cli, subject);
    if (status != KG_OK)
        return cli_fail(cli, status);
    if (!cli->options.json && options.folder)
        cli_say(stdout, "written   %s\n", options.folder);
    return result.goal_met ? CLI_DONE : CLI_SLOW;
}

enum cli_exit cli_build(struct cli *cli)
{
    struct cli_subject subject;
    if (cli_is_folder(cli->options.words[0]))
        return cli_build_folder(cli);
    enum cli_exit exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE)
        exit_status = build(cli, &subject);
    cli_close(&subject);
    return exit_status;
}
