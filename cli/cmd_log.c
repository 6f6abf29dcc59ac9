// kernelgen log: the record of the optimisation rounds; in a folder, with the definition document
// beside it.

#include "commands.h"

#include <string.h>
#include <sys/stat.h>

// A folder that exists, or a name that ends as only a folder's does.
static bool is_folder(const char *path)
{
    struct stat about;
    size_t length = path ? strlen(path) : 0;
    if (length == 0)
        return false;
    return path[length - 1] == '/' || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

static enum cli_exit write_folder(struct cli *cli, const char *op)
{
    char *paths = NULL;
    const char *folder = cli->options.folder;
    if (!op)
        return cli_bad_usage("a folder holds the log of one op: kernelgen log OP --out %s", folder);
    enum kg_status status = kg_log_folder(cli->context, op, cli->options.language, folder, &paths);
    if (status != KG_OK)
        return cli_fail(cli, status);
    cli_say(stdout, "%s", paths);
    kg_text_release(paths);
    return CLI_DONE;
}

enum cli_exit cli_log(struct cli *cli)
{
    char *text;
    const char *op = cli->options.word_count ? cli->options.words[0] : NULL;
    if (is_folder(cli->options.folder))
        return write_folder(cli, op);
    enum kg_status status = kg_log_document(cli->context, op, cli->options.language, &text);
    return cli_print(cli, status, text);
}
