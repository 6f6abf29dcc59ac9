// kernelgen report: the records as one HTML page.

#include "commands.h"

#include <stdio.h>

enum cli_exit cli_report(struct cli *cli)
{
    char *summary, *page;
    const char *op = cli->options.word_count ? cli->options.words[0] : NULL;
    const char *path = cli->options.folder;
    enum kg_status status = kg_report(cli->context, op, &summary, &page);
    enum cli_exit exit_status = cli_print(cli, status, page);
    if (exit_status == CLI_DONE && path)
        cli_say(stdout, "%s written: %s\n", path, summary);
    else if (exit_status == CLI_DONE && fflush(stdout) == 0 && !ferror(stdout))
        cli_say(stderr, "kernelgen: %s\n", summary);
    kg_text_release(summary);
    return exit_status;
}
