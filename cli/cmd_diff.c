// kernelgen diff: what differs between two versions of a definition, and what follows from it.

#include "commands.h"

#include <stdlib.h>

enum cli_exit cli_diff(struct cli *cli)
{
    struct kg_definitions versions[2] = {0};
    char *texts[2] = {NULL, NULL};
    char *text = NULL;
    bool differs = false;
    enum cli_exit exit_status = CLI_DONE;
    for (int i = 0; i < 2 && exit_status == CLI_DONE; i++) {
        versions[i].file = cli->options.words[i];
        exit_status = cli_read_file(versions[i].file, &texts[i], &versions[i].length);
        versions[i].text = texts[i];
    }
    if (exit_status == CLI_DONE) {
        enum kg_status status =
            kg_definitions_compare(cli->context, &versions[0], &versions[1], cli->options.op,
                                   cli->options.json, &differs, &text);
        exit_status = cli_print(cli, status, text);
    }
    free(texts[0]);
    free(texts[1]);
    return exit_status == CLI_DONE && differs ? CLI_DIFFERENT : exit_status;
}
