// kernelgen report: the records as one HTML page, or beside those of an earlier date.

#include "commands.h"

#include <stdio.h>

static enum cli_exit compare(struct cli *cli, const char *op)
{
    bool slower = false;
    char *text;
    enum kg_status status = kg_report_against(cli->context, cli->options.against, op,
                                              cli->options.json, &slower, &text);
    if (status == KG_ERROR_CORRUPT)
        return cli_fail_in(cli, cli->options.against, status);
    enum cli_exit exit_status = cli_print(cli, status, text);
    return exit_status == CLI_DONE && slower ? CLI_DIFFERENT : exit_status;
}

enum cli_exit cli_report(struct cli *cli)
{
    char *summary, *page;
    const char *op = cli->options.word_count ? cli->options.words[0] : NULL;
    const char *path = cli->options.folder;
    if (cli->options.against)
        return compare(cli, op);
    if (cli->options.json)
        return cli_bad_usage("report prints JSON with --against only");
    enum kg_status status = kg_report(cli->context, op, &summary, &page);
    enum cli_exit exit_status = cli_print(cli, status, page);
    if (exit_status == CLI_DONE && path)
        cli_say(stdout, "%s written: %s\n", path, summary);
    else if (exit_status == CLI_DONE && fflush(stdout) == 0 && !ferror(stdout))
        cli_say(stderr, "kernelgen: %s\n", summary);
    kg_text_release(summary);
    return exit_status;
}
