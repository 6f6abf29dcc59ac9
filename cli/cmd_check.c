// kernelgen check: checks and analyses a definition.

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// {"ops": ["add", "subtract"]}; `names` has one a line.
static void list_json(const char *names)
{
    cli_json_begin();
    printf("{\"ops\": [");
    for (const char *name = names; *name; name += strcspn(name, "\n") + 1)
        printf("%s\"%.*s\"", name == names ? "" : ", ", (int)strcspn(name, "\n"), name);
    printf("]}\n");
}

// A file of several ops without --op: everything is checked, and the names are listed.
static enum cli_exit list_ops(struct cli *cli, bool *several)
{
    *several = false;
    const char *path = cli->options.words[0];
    char *text;
    size_t length;
    enum cli_exit exit_status = cli_read_file(path, &text, &length);
    if (exit_status != CLI_DONE)
        return exit_status;
    char *names = NULL;
    enum kg_status status = kg_op_names(cli->context, path, text, length, &names);
    free(text);
    if (status != KG_OK)
        return cli_fail(cli, status);
    int count = 0;
    for (const char *c = names; *c; c++)
        count += *c == '\n';
    *several = count != 1;
    if (*several && cli->options.json) {
        list_json(names);
    } else if (*several) {
        cli_say(stdout, "%s: %d ops, all right\n", path, count);
        for (char *name = names; *name;) {
            char *end = strchr(name, '\n');
            *end = '\0';
            printf("  %s\n", name);
            name = end + 1;
        }
    }
    kg_text_release(names);
    return CLI_DONE;
}

enum cli_exit cli_check(struct cli *cli)
{
    if (!cli->options.op) {
        bool several;
        enum cli_exit listed = list_ops(cli, &several);
        if (listed != CLI_DONE || several)
            return listed;
    }
    struct cli_subject subject;
    enum cli_exit exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE) {
        char *text;
        enum kg_status status = kg_problem_document(
            subject.problem, subject.device, cli->options.language, cli->options.json, &text);
        exit_status = cli_print(cli, status, text);
    }
    cli_close(&subject);
    return exit_status;
}
