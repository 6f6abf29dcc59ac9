// kernelgen report: the records as one HTML page, or as plots of text; beside those of an earlier
// date.

#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COLUMNS 80 // where nothing says how many
#define PAGE "index.html"

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

// What $COLUMNS says, else the terminal.
static int count_columns(void)
{
    const char *said = getenv("COLUMNS");
    char *end;
    long columns = said ? strtol(said, &end, 10) : 0;
    if (columns > 0 && columns < 10000 && !*end)
        return (int)columns;
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return COLUMNS;
}

// By name: a locale need not be installed for the terminal to show it.
static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

static bool wants_colour(const struct cli *cli)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !cli->options.folder && isatty(STDOUT_FILENO) && !(none && *none) &&
           !(terminal && strcmp(terminal, "dumb") == 0);
}

static enum cli_exit show_text(struct cli *cli, const char *op)
{
    char *text;
    bool colour = wants_colour(cli);
    enum kg_status status =
        kg_report_text(cli->context, op, count_columns(), is_utf8(), colour, &text);
    if (status != KG_OK || !colour)
        return cli_print(cli, status, text);
    // The library has made names printable; what is left to see to would take the colours.
    cli_progress_clear();
    fputs(text, stdout);
    kg_text_release(text);
    return CLI_DONE;
}

// Of a folder, the page in it: `*path` is that file then, which the caller frees. A folder that is
// named with a slash at its end is made.
static enum cli_exit find_page(const char *out, char **path)
{
    *path = NULL;
    if (!cli_is_folder(out))
        return CLI_DONE;
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return cli_not_written(out, errno);
    const char *slash = out[strlen(out) - 1] == '/' ? "" : "/";
    if (asprintf(path, "%s%s%s", out, slash, PAGE) < 0) {
        *path = NULL;
        return cli_not_written(out, ENOMEM);
    }
    return CLI_DONE;
}

static enum cli_exit write_page(struct cli *cli, const char *op)
{
    char *summary, *page;
    bool slower = false;
    const char *against = cli->options.against, *path = cli->options.folder;
    enum kg_status status =
        against ? kg_report_since(cli->context, against, op, &slower, &summary, &page)
                : kg_report(cli->context, op, &summary, &page);
    if (status == KG_ERROR_CORRUPT && against)
        return cli_fail_in(cli, against, status);
    enum cli_exit exit_status = cli_print(cli, status, page);
    if (exit_status == CLI_DONE && path)
        cli_say(stdout, "%s written: %s\n", path, summary);
    else if (exit_status == CLI_DONE && fflush(stdout) == 0 && !ferror(stdout))
        cli_say(stderr, "kernelgen: %s\n", summary);
    kg_text_release(summary);
    return exit_status == CLI_DONE && slower ? CLI_DIFFERENT : exit_status;
}

enum cli_exit cli_report(struct cli *cli)
{
    const char *op = cli->options.word_count ? cli->options.words[0] : NULL;
    if (cli->options.text && (cli->options.against || cli->options.json))
        return cli_bad_usage(
            "report --text goes with neither --against, which is text, nor --json");
    if (cli->options.text)
        return show_text(cli, op);
    if (cli->options.against && (cli->options.json || !cli->options.folder))
        return compare(cli, op);
    if (cli->options.json)
        return cli_bad_usage("report prints JSON with --against only");
    char *path;
    enum cli_exit exit_status = find_page(cli->options.folder, &path);
    if (path)
        cli->options.folder = path;
    if (exit_status == CLI_DONE)
        exit_status = write_page(cli, op);
    free(path);
    return exit_status;
}
