// kernelgen profile: every config, measured.

#include "commands.h"

enum cli_exit cli_profile(struct cli *cli)
{
    struct cli_subject subject;
    double seconds = 0;
    enum cli_exit exit_status = cli_seconds(cli, &seconds);
    if (exit_status != CLI_DONE)
        return exit_status;
    exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE) {
        char *text;
        enum kg_status status =
            kg_profile(subject.problem, subject.device, seconds, cli->options.json, &text);
        exit_status = cli_print(cli, status, text);
    }
    cli_close(&subject);
    return exit_status;
}
