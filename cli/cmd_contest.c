// kernelgen contest: the foreign kernels of a folder beside the generated one.

#include "commands.h"
#include "plans.h"

#include <stdio.h>

static enum cli_exit contest(struct cli *cli, struct cli_subject *subject, struct kg_plan *plan)
{
    (void)subject;
    char *text;
    int unrun;
    enum kg_status status =
        kg_plan_contest(plan, cli->options.words[1], cli->options.json, &text, &unrun);
    enum cli_exit exit_status = cli_print(cli, status, text);
    if (exit_status != CLI_DONE || unrun == 0)
        return exit_status;
    fprintf(stderr,
            "kernelgen: %d kernel%s compiled and read; there is no such GPU at hand to judge and "
            "time %s\n",
            unrun, unrun == 1 ? " was" : "s were", unrun == 1 ? "it" : "them");
    return CLI_MISSING;
}

enum cli_exit cli_contest(struct cli *cli)
{
    return cli_with_plan(cli, KG_RIGOR_DEFAULT, contest);
}
