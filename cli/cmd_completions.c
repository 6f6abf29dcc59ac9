// kernelgen completions: the scripts of cli/completions, filled from the tables of commands and
// options. Each shell gets its own spelling of the same rows.

#include "commands.h"
#include "options.h"
#include "scripts.h"

#include <stdio.h>
#include <string.h>

// One item of a `completes` list; the list goes on at `*list`. False at its end.
static bool next_item(const char **list, char item[64])
{
    while (**list == ' ')
        (*list)++;
    size_t length = strcspn(*list, " ");
    snprintf(item, 64, "%.*s", (int)length, *list);
    *list += length;
    return length > 0;
}

static bool is_pattern(const char *list)
{
    return list && (*list == '*' || *list == '/' || *list == '@' || *list == '=');
}

// What completes the word of this number, from 0.
static const char *completes_word(const struct cli_command *command, int number)
{
    return number > 0 && command->completes_next ? command->completes_next : command->completes;
}

struct shell {
    const char *name;
    const char *file;
    void (*print_command)(const struct cli_command *command);
};

static void print_names(void)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("%s%s", command == cli_commands ? "" : " ", command->name);
}

// ---- bash ----

static void print_bash_command(const struct cli_command *command)
{
    printf("    %s)\n        options='", command->name);
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++)
        if (cli_takes(command, row))
            printf("%s ", row->name);
    printf("'\n        places=(");
    for (int i = 0; i < command->most_words; i++) {
        const char *list = completes_word(command, i);
        printf("%s'%s'", i ? " " : "", list ? list : "?");
    }
    printf(")\n        case $2 in\n");
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++)
        if (cli_takes(command, row) && row->kind != CLI_FLAG)
            printf("        %s) value='%s' ;;\n", row->name, row->completes ? row->completes : "?");
    printf("        esac\n        ;;\n");
}

// ---- zsh ----

// Inside single quotes, with the characters escaped that a specification gives a meaning.
static void print_zsh_text(const char *text, const char *special)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
}

static void print_zsh_action(const char *list)
{
    if (!list)
        printf(" ");
    else if (strcmp(list, "/") == 0)
        printf("_files -/");
    else if (strcmp(list, "@ops") == 0)
        printf("_kernelgen_ops");
    else if (strcmp(list, "@commands") == 0)
        printf(" _describe command commands");
    else if (*list == '=')
        printf("_kernelgen_array \"%s\"", list + 1);
    else if (*list == '*')
        printf("_files -g \"%s\"", list);
    else {
        printf("(");
        print_zsh_text(list, ":\\");
        printf(")");
    }
}

static void print_zsh_option(const struct cli_option_row *row)
{
    bool again = row->kind != CLI_FLAG && row->kind != CLI_TEXT;
    printf(" \\\n            '%s%s%s[", again ? "*" : "", row->name,
           row->kind == CLI_FLAG ? "" : "=");
    print_zsh_text(row->help, "[]:\\");
    printf("]");
    if (row->kind != CLI_FLAG) {
        printf(":");
        print_zsh_text(row->value, ":\\");
        printf(":");
        print_zsh_action(row->completes);
    }
    printf("'");
}

static void print_zsh_command(const struct cli_command *command)
{
    printf("    %s)\n        _arguments", command->name);
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++)
        if (cli_takes(command, row))
            print_zsh_option(row);
    for (int i = 0; i < command->most_words; i++) {
        printf(" \\\n            '%d:argument:", i + 1);
        print_zsh_action(completes_word(command, i));
        printf("'");
    }
    printf("\n        ;;\n");
}

static void print_summaries(void)
{
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        printf("        '%s:", command->name);
        print_zsh_text(command->summary, ":\\");
        printf("'\n");
    }
}

// ---- fish ----

static void print_fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++)
        printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    putchar('\'');
}

// What follows -a, and whether files are left to fish.
static void print_fish_action(const char *list)
{
    char item[64];
    if (strcmp(list, "*") == 0) {
        printf(" -F");
        return;
    }
    printf(" -a '");
    if (strcmp(list, "/") == 0) {
        printf("(__fish_complete_directories)");
    } else if (strcmp(list, "@ops") == 0) {
        printf("(__kernelgen_ops)");
    } else if (strcmp(list, "@commands") == 0) {
        print_names();
    } else if (*list == '=') {
        printf("(__kernelgen_files = %s)", list + 2);
    } else if (is_pattern(list)) {
        printf("(__kernelgen_files");
        while (next_item(&list, item))
            printf(" %s", item + 1);
        printf(")");
    } else {
        printf("%s", list);
    }
    printf("'");
}

static void print_fish_command(const struct cli_command *command)
{
    printf("\ncomplete -c kernelgen -n __fish_use_subcommand -a %s -d ", command->name);
    print_fish_text(command->summary);
    printf("\n");
    for (int i = 0; i < command->most_words && command->completes; i++) {
        printf("complete -c kernelgen -n '__kernelgen_is %d %s'", i + 1, command->name);
        print_fish_action(completes_word(command, i));
        printf("\n");
    }
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++) {
        if (!cli_takes(command, row))
            continue;
        printf("complete -c kernelgen -n '__kernelgen_is 0 %s' -l %s", command->name,
               row->name + 2);
        if (row->kind != CLI_FLAG)
            printf(row->completes && strcmp(row->completes, "*") == 0 ? " -r" : " -x");
        if (row->completes)
            print_fish_action(row->completes);
        printf(" -d ");
        print_fish_text(row->help);
        printf("\n");
    }
}

// ---- The scripts ----

static void print_valued(void)
{
    const char *space = "";
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++)
        if (row->kind != CLI_FLAG) {
            printf("%s%s", space, row->name);
            space = " ";
        }
}

// Prints what a marker at the start of the text stands for, and returns its length; 0: there is
// none.
static size_t replace_marker(const char *text, const struct shell *shell)
{
    static const struct {
        const char *marker;
        void (*print)(void); // NULL: the table of the shell
    } rows[] = {{"@COMMANDS@", print_names},
                {"@VALUED@", print_valued},
                {"@SUMMARIES@\n", print_summaries},
                {"@TABLE@\n", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].marker);
        if (strncmp(text, rows[i].marker, length) != 0)
            continue;
        if (rows[i].print)
            rows[i].print();
        for (const struct cli_command *c = cli_commands; c->name && !rows[i].print; c++)
            shell->print_command(c);
        return length;
    }
    return 0;
}

static void print_script(const char *text, const struct shell *shell)
{
    while (*text) {
        size_t length = replace_marker(text, shell);
        if (!length)
            putchar(*text++);
        text += length;
    }
}

enum cli_exit cli_completions(struct cli *cli)
{
    static const struct shell shells[] = {{"bash", "kernelgen.bash", print_bash_command},
                                          {"zsh", "kernelgen.zsh", print_zsh_command},
                                          {"fish", "kernelgen.fish", print_fish_command}};
    const char *name = cli->options.words[0];
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        for (const struct cli_script *script = cli_scripts; script->name; script++)
            if (strcmp(name, shells[i].name) == 0 && strcmp(script->name, shells[i].file) == 0) {
                print_script(script->text, &shells[i]);
                return CLI_DONE;
            }
    return cli_bad_usage("completions are for bash, zsh and fish, not for '%s'", name);
}
