// kernelgen fit: the quality of the model, and its coefficients.

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SAMPLES ((size_t)256 << 20)

static enum cli_exit export_samples(struct cli *cli, const struct kg_sample_filter *filter)
{
    const char *path = cli->options.export_path;
    char *lines = NULL;
    enum kg_status status = kg_samples_export(cli->context, filter, &lines);
    if (status != KG_OK)
        return cli_fail(cli, status);
    enum cli_exit result = CLI_DONE;
    if (strcmp(path, "-") == 0)
        cli_show_text(lines);
    else
        result = cli_write_file(path, lines, strlen(lines));
    kg_text_release(lines);
    return result;
}

enum cli_exit cli_fit(struct cli *cli)
{
    const struct kg_sample_filter filter = {.size = sizeof filter,
                                            .op = cli->options.op,
                                            .device = cli->options.device,
                                            .family = cli->options.family};
    const char *path = cli->options.word_count ? cli->options.words[0] : NULL;
    char *lines = NULL, *text = NULL;
    size_t length = 0;
    enum cli_exit result = CLI_DONE;
    if (cli->options.export_path && cli->options.json)
        return cli_bad_usage("--export writes samples, a line each, and no JSON");
    if (cli->options.export_path)
        return path
                   ? cli_bad_usage(
                         "--export writes the samples of the records; %s has samples already", path)
                   : export_samples(cli, &filter);
    if (path)
        result = cli_read_input(path, LARGEST_SAMPLES, &lines, &length);
    if (result != CLI_DONE)
        return result;
    const char *name = path && strcmp(path, "-") == 0 ? "standard input" : path;
    enum kg_status status =
        kg_fit(cli->context, name, lines, length, &filter, cli->options.json, &text);
    free(lines);
    return cli_print(cli, status, text);
}
