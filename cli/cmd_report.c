// kernelgen report: the records as one HTML page.

#include "commands.h"

enum cli_exit cli_report(struct cli *cli)
{
    char *text;
    const char *op = cli->options.word_count ? cli->options.words[0] : NULL;
    enum kg_status status = kg_report(cli->context, op, &text);
    return cli_print(cli, status, text);
}
