// No command writes over a file that it reads: what a mistyped option would lose may be the only
// copy.

#include "cli.h"

#include <string.h>
#include <sys/stat.h>

#define MOST_FILES (2 * CLI_MOST_ARRAYS + 16)

struct file {
    const char *option; // "--out"; NULL: a word of its own
    const char *path;
};

struct files {
    int count;
    struct file files[MOST_FILES];
};

static void add(struct files *files, const char *option, const char *path)
{
    if (path && strcmp(path, "-") != 0 && files->count < MOST_FILES)
        files->files[files->count++] = (struct file){option, path};
}

static bool exchanges(const struct cli_command *command)
{
    return strcmp(command->name, "wisdom") == 0 || strcmp(command->name, "patterns") == 0;
}

static bool is_export(const struct cli_command *command, const struct cli_options *options)
{
    return exchanges(command) && options->words[0] && strcmp(options->words[0], "export") == 0;
}

// Words are files where definitions, compiled code or samples are read; elsewhere names of ops.
static void find_inputs(const struct cli_command *command, const struct cli_options *options,
                        struct files *inputs)
{
    bool are_files = command->options & (CLI_BINDINGS | CLI_ASSEMBLY | CLI_FIT | CLI_PACKED);
    for (int i = 0; i < options->word_count && are_files; i++)
        add(inputs, NULL, options->words[i]);
    if (exchanges(command) && !is_export(command, options))
        add(inputs, NULL, options->words[1]);
    for (int i = 0; i < options->candidate_count; i++)
        add(inputs, "--candidate", options->candidates[i]);
    add(inputs, "--override", options->override);
    add(inputs, "--against", options->against);
    add(inputs, "--log", options->log);
    add(inputs, "--model", options->model);
    for (int i = 0; i < options->input_count; i++)
        add(inputs, "--input", options->inputs[i].path);
}

static void find_outputs(const struct cli_command *command, const struct cli_options *options,
                         struct files *outputs)
{
    add(outputs, "--out", options->folder);
    add(outputs, "--export", options->export_path);
    if (is_export(command, options))
        add(outputs, NULL, options->words[1]);
    for (int i = 0; i < options->output_count; i++)
        add(outputs, "--output", options->outputs[i].path);
}

// By whatever names: links count. Devices and pipes keep nothing that could be lost.
static bool are_same(const char *a, const char *b)
{
    struct stat one, other;
    if (stat(a, &one) != 0 || stat(b, &other) != 0)
        return strcmp(a, b) == 0;
    return S_ISREG(one.st_mode) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

enum cli_exit cli_check_overwriting(const struct cli_command *command,
                                    const struct cli_options *options)
{
    struct files inputs = {0}, outputs = {0};
    find_inputs(command, options, &inputs);
    find_outputs(command, options, &outputs);
    for (int o = 0; o < outputs.count; o++) {
        const struct file *output = &outputs.files[o];
        for (int i = 0; i < inputs.count; i++)
            if (are_same(output->path, inputs.files[i].path))
                return cli_bad_usage("%s%swriting %s would overwrite %s, which is read%s%s%s; "
                                     "write elsewhere",
                                     output->option ? output->option : "",
                                     output->option ? ": " : "", output->path, inputs.files[i].path,
                                     inputs.files[i].option ? " (" : "",
                                     inputs.files[i].option ? inputs.files[i].option : "",
                                     inputs.files[i].option ? ")" : "");
        for (int other = 0; other < o; other++)
            if (are_same(output->path, outputs.files[other].path))
                return cli_bad_usage("%s would be written twice; name another file for one",
                                     output->path);
    }
    return CLI_DONE;
}
