// kernelgen log: the record of the optimisation rounds.

#include "commands.h"

enum cli_exit cli_log(struct cli *cli)
{
    char *text;
    const char *op = cli->options.word_count ? cli->options.words[0] : NULL;
    enum kg_status status = kg_log(cli->context, op, &text);
    return cli_print(cli, status, text);
}
