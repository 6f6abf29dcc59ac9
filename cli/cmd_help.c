// kernelgen help: the overview, or the help of one command.

#include "commands.h"

enum cli_exit cli_show_help(struct cli *cli)
{
    const char *name = cli->options.words[0];
    if (!name) {
        cli_overview();
        return CLI_DONE;
    }
    const struct cli_command *command = cli_find_command(name);
    if (!command)
        return cli_unknown_command(name);
    cli_help(command);
    return CLI_DONE;
}
