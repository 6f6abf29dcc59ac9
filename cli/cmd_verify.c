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

static enum cli_exit verify_candidate(struct cli *cli)
{
    struct cli_subject subject;
    const char *path = cli->options.candidate;
    if (!cli->options.device)
        cli->options.device = device_for(path);
    uint64_t seed = 0;
    enum cli_exit exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE)
        exit_status = cli_seed(cli, &seed);
    if (exit_status == CLI_DONE) {
        struct kg_verify_result result = {.size = sizeof result};
        enum kg_status status =
            kg_problem_verify_file(subject.problem, subject.device, path, seed, &result);
        if (status == KG_OK && !cli->options.json)
            cli_say(stdout, "kernel    foreign: %s\n", path);
        exit_status = show(cli, status, &result);
    }
    cli_close(&subject);
    return exit_status;
}

enum cli_exit cli_verify(struct cli *cli)
{
    if (cli->options.candidate && cli->options.override)
        return cli_bad_usage("--candidate judges a separate file, --override one in place of "
                             "a generated kernel: give one of them");
    if (cli->options.candidate)
        return verify_candidate(cli);
    return cli_with_plan(cli, KG_RIGOR_ESTIMATE, verify_plan);
}
