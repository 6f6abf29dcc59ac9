// kernelgen patterns: what tends to win, and moving it between machines.

#include "commands.h"

#include <stdlib.h>
#include <string.h>

typedef enum kg_status list_records(struct kg_context *context, bool json, char **text);

static enum cli_exit print_list(struct cli *cli, list_records *list, const char *action,
                                const char *path)
{
    char *text;
    if (path)
        return cli_bad_usage("patterns %s takes no file", action);
    enum kg_status status = list(cli->context, cli->options.json, &text);
    return cli_print(cli, status, text);
}

static enum cli_exit list(struct cli *cli, const char *path)
{
    return print_list(cli, kg_patterns_list, "list", path);
}

static enum cli_exit favourites(struct cli *cli, const char *path)
{
    return print_list(cli, kg_favourites_list, "favourites", path);
}

static enum cli_exit export_to(struct cli *cli, const char *path)
{
    char *lines;
    enum kg_status status = kg_patterns_export(cli->context, &lines);
    cli->options.folder = path;
    return cli_print(cli, status, lines);
}

static enum cli_exit import_from(struct cli *cli, const char *path)
{
    char *lines, *summary;
    size_t length;
    if (!path)
        return cli_bad_usage("patterns import needs a file");
    enum cli_exit exit_status = cli_read_file(path, &lines, &length);
    if (exit_status != CLI_DONE)
        return exit_status;
    enum kg_status status = kg_patterns_import(cli->context, lines, length, &summary);
    free(lines);
    return status == KG_OK ? cli_print(cli, status, summary) : cli_fail_in(cli, path, status);
}

enum cli_exit cli_patterns(struct cli *cli)
{
    static const struct {
        const char *name;
        enum cli_exit (*run)(struct cli *cli, const char *path);
        bool prints_json;
    } actions[] = {{"list", list, true},
                   {"favourites", favourites, true},
                   {"export", export_to, false},
                   {"import", import_from, false}};
    const char *action = cli->options.word_count > 0 ? cli->options.words[0] : "list";
    const char *path = cli->options.word_count > 1 ? cli->options.words[1] : NULL;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, action) == 0)
            return cli->options.json && !actions[i].prints_json
                       ? cli_bad_usage("--json is for 'patterns list' and 'patterns favourites'; "
                                       "%s prints none",
                                       action)
                       : actions[i].run(cli, path);
    return cli_bad_usage("patterns '%s' is not one of list, favourites, export, import", action);
}
