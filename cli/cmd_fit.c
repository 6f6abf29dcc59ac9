// kernelgen fit: what the model is worth, and its coefficients.

#include "commands.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_SAMPLES ((size_t)256 << 20)

enum cli_exit cli_fit(struct cli *cli)
{
    const char *path = cli->options.word_count ? cli->options.words[0] : NULL;
    char *lines = NULL, *text = NULL;
    size_t length = 0;
    enum cli_exit result = CLI_DONE;
    if (path)
        result = cli_read_input(path, LARGEST_SAMPLES, &lines, &length);
    if (result != CLI_DONE)
        return result;
    const char *name = path && strcmp(path, "-") == 0 ? "standard input" : path;
    enum kg_status status = kg_fit(cli->context, name, lines, length, cli->options.json, &text);
    free(lines);
    return cli_print(cli, status, text);
}
