// kernelgen devices: what this machine has, and what it lacks.

#include "commands.h"

enum cli_exit cli_devices(struct cli *cli)
{
    char *text;
    enum kg_status status = kg_context_devices(cli->context, cli->options.json, &text);
    return cli_print(cli, status, text);
}
