// The files of cli/completions and cli/prompts, as strings (cmake/embed.cmake).

#ifndef KG_CLI_SCRIPTS_H
#define KG_CLI_SCRIPTS_H

struct cli_script {
    const char *name;
    const char *text;
};

// Each ends with a NULL name.
extern const struct cli_script cli_scripts[];
extern const struct cli_script cli_prompts[];

#endif
