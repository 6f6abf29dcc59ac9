// kernelgen wisdom: the best known choices, and moving them between machines.

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum cli_exit list(struct cli *cli, const char *op)
{
    char *text;
    enum kg_status status = kg_wisdom_list(cli->context, op, cli->options.json, &text);
    return cli_print(cli, status, text);
}

static enum cli_exit export_to(struct cli *cli, const char *path)
{
    char *lines;
    enum kg_status status = kg_wisdom_export(cli->context, &lines);
    cli->options.folder = path;
    return cli_print(cli, status, lines);
}

static enum cli_exit import_from(struct cli *cli, const char *path)
{
    if (!path)
        return cli_bad_usage("wisdom import needs a file");
    char *lines;
    size_t length;
    enum cli_exit exit_status = cli_read_file(path, &lines, &length);
    if (exit_status != CLI_DONE)
        return exit_status;
    char *summary;
    enum kg_status status = kg_wisdom_import(cli->context, lines, length, &summary);
    free(lines);
    return status == KG_OK ? cli_print(cli, status, summary) : cli_fail_in(cli, path, status);
}

static enum cli_exit forget(struct cli *cli, const char *op)
{
    if (!op)
        return cli_bad_usage("wisdom forget needs the name of an op, or 'all'");
    if (strcmp(op, "all") == 0)
        op = NULL;
    int count = 0;
    enum kg_status status = kg_wisdom_forget(cli->context, op, &count);
    if (status != KG_OK)
        return cli_fail(cli, status);
    printf("%d forgotten\n", count);
    return CLI_DONE;
}

enum cli_exit cli_wisdom(struct cli *cli)
{
    static const struct {
        const char *name;
        enum cli_exit (*run)(struct cli *cli, const char *argument);
    } actions[] = {{"list", list},
                   {"export", export_to},
                   {"import", import_from},
                   {"merge", import_from},
                   {"forget", forget}};
    const char *action = cli->options.words[0];
    const char *argument = cli->options.word_count > 1 ? cli->options.words[1] : NULL;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, action) == 0)
            return cli->options.json && i > 0
                       ? cli_bad_usage("--json is for 'wisdom list'; %s prints none", action)
                       : actions[i].run(cli, argument);
    return cli_bad_usage("wisdom '%s' is not one of list, export, import, merge, forget", action);
}
