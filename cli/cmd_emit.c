// kernelgen emit: the generated source.

#include "commands.h"
#include "plans.h"

#include <string.h>

static enum cli_exit emit(struct cli *cli, struct cli_subject *subject, struct kg_plan *plan)
{
    (void)subject;
    char *text;
    enum kg_status status = kg_plan_source(plan, &text);
    return cli_print(cli, status, text);
}

enum cli_exit cli_emit(struct cli *cli)
{
    const char *target = cli->options.target;
    if (!target)
        return cli_bad_usage("emit wants --target host");
    if (strcmp(target, "host") != 0)
        return cli_bad_usage("there is no target '%s'; there is: host", target);
    return cli_with_plan(cli, KG_RIGOR_ESTIMATE, emit);
}
