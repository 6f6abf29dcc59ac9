// The table of options: read by the parser, by --help, by suggestions and by completions.

#ifndef KG_CLI_OPTIONS_H
#define KG_CLI_OPTIONS_H

#include "cli.h"

// How an option's value is taken.
enum cli_kind {
    CLI_TEXT,
    CLI_FLAG,
    CLI_BINDING_LIST,
    CLI_INPUT_ARRAY,
    CLI_OUTPUT_ARRAY,
    CLI_CANDIDATE_LIST
};

struct cli_option_row {
    const char *name;
    enum cli_kind kind;
    size_t place; // of the member in struct cli_options, for TEXT and FLAG
    unsigned bit; // 0: every command has it
    const char *value;
    const char *help;
    const char *completes; // see struct cli_command; NULL: nothing is known of the value
};

// Ends with a NULL name.
extern const struct cli_option_row cli_option_rows[];
bool cli_takes(const struct cli_command *command, const struct cli_option_row *row);

#endif
