// kernelgen verify: the accuracy gate alone, for a generated kernel or a foreign one.

#include "commands.h"
#include "plans.h"

#include <stdio.h>
#include <string.h>

static enum cli_exit show(struct cli *cli, enum kg_status status,
                          const struct kg_verify_result *result)
{
    if (status != KG_OK)
        return cli_fail(cli, status);
    if (cli->options.json) {
        cli_json_begin();
        cli_json_verdict(result);
        printf("\n");
    } else {
        cli_show_verdict(result);
    }
    return result->passed ? CLI_DONE : CLI_REFUSED;
}

static enum cli_exit verify_plan(struct cli *cli, struct cli_subject *subject, struct kg_plan *plan)
{
    (void)subject;
    uint64_t seed;
    enum cli_exit exit_status = cli_seed(cli, &seed);
    if (exit_status != CLI_DONE)
        return exit_status;
    struct kg_verify_result result = {.size = sizeof result};
    enum kg_status status = kg_plan_verify(plan, seed, &result);
    if (status == KG_OK && !cli->options.json)
        cli_show_kernel(cli, "kernel", plan);
    return show(cli, status, &result);
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

// The default device follows from the file's type, not from the machine.
static const char *device_for(const char *path)
{
    static const struct {
        const char *suffix, *device;
    } kinds[] = {{".cu", "cuda:0"}, {".ptx", "cuda:0"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ends_in(path, kinds[i].suffix))
            return kinds[i].device;
    return "host";
}

static enum cli_exit verify_file(struct cli *cli, const struct cli_subject *subject, uint64_t seed)
{
    const char *path = cli->options.candidates[0];
    struct kg_verify_result result = {.size = sizeof result};
    enum kg_status status =
        kg_problem_verify_file(subject->problem, subject->device, path, seed, &result);
    if (status == KG_OK && !cli->options.json)
        cli_say(stdout, "kernel    foreign: %s\n", path);
    return show(cli, status, &result);
}

// What was said of several files so far.
struct several {
    struct cli *cli;
    int told;
    enum cli_exit worst;
};

static void show_in_list(struct several *several, const char *path, const char *failure,
                         const struct kg_verify_result *result)
{
    cli_json_begin();
    printf("%s\n{\"candidate\": ", several->told ? "," : "[");
    cli_json_text(path);
    printf(", ");
    if (result) {
        cli_json_verdict_members(result);
    } else {
        printf("\"error\": ");
        cli_json_text(failure);
    }
    printf("}");
}

static void show_one(void *user, int index, enum kg_status status,
                     const struct kg_verify_result *result)
{
    struct several *several = user;
    struct cli *cli = several->cli;
    const char *path = cli->options.candidates[index];
    if (cli->options.json)
        show_in_list(several, path, kg_context_error(cli->context), result);
    else
        cli_say(stdout, "kernel    foreign: %s\n", path);
    enum cli_exit exit_status = CLI_DONE;
    if (!result) {
        if (!cli->options.json)
            printf("verify    NOT JUDGED\n");
        fflush(stdout);
        exit_status = cli_fail(cli, status);
    } else {
        if (!cli->options.json)
            cli_show_verdict(result);
        exit_status = result->passed ? CLI_DONE : CLI_REFUSED;
    }
    if (exit_status > several->worst)
        several->worst = exit_status;
    several->told++;
    fflush(stdout); // the next kernel's process must not have it to print
}

static enum cli_exit verify_files(struct cli *cli, const struct cli_subject *subject, uint64_t seed)
{
    struct several several = {cli, 0, CLI_DONE};
    enum kg_status status = kg_problem_verify_files(
        subject->problem, subject->device, (const char *const *)cli->options.candidates,
        cli->options.candidate_count, seed, show_one, &several);
    if (cli->options.json && several.told)
        printf("\n]\n");
    return status == KG_OK ? several.worst : cli_fail(cli, status);
}

static enum cli_exit verify_candidates(struct cli *cli)
{
    struct cli_subject subject;
    if (!cli->options.device)
        cli->options.device = device_for(cli->options.candidates[0]);
    uint64_t seed = 0;
    enum cli_exit exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE)
        exit_status = cli_seed(cli, &seed);
    if (exit_status == CLI_DONE)
        exit_status = cli->options.candidate_count == 1 ? verify_file(cli, &subject, seed)
                                                        : verify_files(cli, &subject, seed);
    cli_close(&subject);
    return exit_status;
}

enum cli_exit cli_verify(struct cli *cli)
{
    if (cli->options.candidate_count > 0 && cli->options.override)
        return cli_bad_usage("--candidate judges a separate file, --override one in place of "
                             "a generated kernel: give one of them");
    if (cli->options.candidate_count > 0)
        return verify_candidates(cli);
    return cli_with_plan(cli, KG_RIGOR_ESTIMATE, verify_plan);
}
