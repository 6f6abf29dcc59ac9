// From options to a plan.

#include "plans.h"

#include <stdio.h>

enum cli_exit cli_make_plan(struct cli *cli, const struct cli_subject *subject,
                            enum kg_rigor standard, struct kg_plan **plan)
{
    *plan = NULL;
    if (cli->options.override) // the file says what it is for: nothing need be searched
        standard = KG_RIGOR_ESTIMATE;
    enum kg_rigor rigor;
    double seconds;
    enum cli_exit exit_status = cli_rigor(cli, standard, &rigor);
    if (exit_status == CLI_DONE)
        exit_status = cli_seconds(cli, &seconds);
    if (exit_status != CLI_DONE)
        return exit_status;
    enum kg_status status = kg_plan_create(subject->problem, subject->device, rigor, seconds, plan);
    if (status == KG_OK && cli->options.override) {
        struct kg_plan *original = *plan;
        status = kg_plan_override(original, cli->options.override, plan);
        kg_plan_destroy(original);
    }
    return status == KG_OK ? CLI_DONE : cli_fail(cli, status);
}

enum cli_exit cli_with_plan(struct cli *cli, enum kg_rigor standard,
                            enum cli_exit (*use)(struct cli *cli, struct cli_subject *subject,
                                                 struct kg_plan *plan))
{
    struct cli_subject subject;
    struct kg_plan *plan = NULL;
    enum cli_exit exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE)
        exit_status = cli_make_plan(cli, &subject, standard, &plan);
    if (exit_status == CLI_DONE)
        exit_status = use(cli, &subject, plan);
    kg_plan_destroy(plan);
    cli_close(&subject);
    return exit_status;
}

void cli_show_kernel(const struct cli *cli, const char *label, const struct kg_plan *plan)
{
    if (cli->options.override)
        cli_say(stdout, "%-9s %s in place of %s\n", label, cli->options.override,
                kg_plan_choice(plan));
    else
        printf("%-9s %s\n", label, kg_plan_choice(plan));
}
