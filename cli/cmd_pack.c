// kernelgen pack: the 4-bit layers of a checkpoint, listed and packed.

#include "commands.h"

enum cli_exit cli_pack(struct cli *cli)
{
    char *text;
    const char *folder = cli->options.folder;
    enum kg_status status =
        kg_pack_checkpoint(cli->context, cli->options.words[0], folder, cli->options.json, &text);
    cli->options.folder = NULL; // not where the list goes
    enum cli_exit exit_status = cli_print(cli, status, text);
    if (exit_status == CLI_DONE && folder && !cli->options.json)
        cli_say(stdout, "written   %s\n", folder);
    return exit_status;
}
