// The files of cli/completions, as strings (cmake/embed.cmake).

#ifndef KG_CLI_SCRIPTS_H
#define KG_CLI_SCRIPTS_H

struct cli_script {
    const char *name;
    const char *text;
};

extern const struct cli_script cli_scripts[]; // ends with a NULL name

#endif
