// kernelgen explain: why the chosen config was chosen.

#include "commands.h"
#include "plans.h"

static enum cli_exit explain(struct cli *cli, struct cli_subject *subject, struct kg_plan *plan)
{
    (void)subject;
    char *text;
    enum kg_status status = kg_plan_explain(plan, cli->options.json, &text);
    return cli_print(cli, status, text);
}

enum cli_exit cli_explain(struct cli *cli)
{
    return cli_with_plan(cli, KG_RIGOR_ESTIMATE, explain);
}
