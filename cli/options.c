// Options: one table, read by the parser, by --help and by the suggestions.

#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS "h100 h100-pcie h200 a100 l4 l40s t4 rtx4090 b200 rtx5090"
#define PLACE(member) offsetof(struct cli_options, member)

const struct cli_option_row cli_option_rows[] = {
    {"--op", CLI_TEXT, PLACE(op), CLI_OP, "NAME", "the op, if the file has several", "@ops"},
    {"--device", CLI_TEXT, PLACE(device), CLI_DEVICE, "NAME",
     "host, cuda:0, sm_90a, h100; default: the best of this machine",
     "host cuda:0 sm_80 sm_90a sm_100a " GPUS},
    {"--device", CLI_TEXT, PLACE(device), CLI_ASSEMBLY, "NAME",
     "cuda:0, sm_90a, h100, ...; default: one of the code's architecture", GPUS},
    {"--op", CLI_TEXT, PLACE(op), CLI_FIT, "NAME", "only samples of this op", NULL},
    {"--device", CLI_TEXT, PLACE(device), CLI_FIT, "NAME",
     "only samples of this device: host, cuda:0, sm_90a, h100, or a substring of its name", GPUS},
    {"--family", CLI_TEXT, PLACE(family), CLI_FIT, "NAME", "only samples of this family", NULL},
    {"--export", CLI_TEXT, PLACE(export_path), CLI_FIT, "FILE.jsonl",
     "writes the recorded samples to a file, for another machine; - is stdout", "*.jsonl"},
    {"--dtype", CLI_BINDING_LIST, 0, CLI_BINDINGS, "T=f16", "dtypes; the first allowed by default",
     NULL},
    {"--size", CLI_BINDING_LIST, 0, CLI_BINDINGS, "P=4096,D=1000",
     "sizes; from the goal's tune row by default", NULL},
    {"--param", CLI_BINDING_LIST, 0, CLI_BINDINGS, "G=64", "build-time params", NULL},
    {"--rigor", CLI_TEXT, PLACE(rigor), CLI_RIGOR, "R",
     "estimate, measure, patient, exhaustive, wisdom, or default: measure unless the problem is "
     "small; build and bench take default, the others estimate",
     "estimate measure patient exhaustive wisdom default"},
    {"--nearest", CLI_FLAG, PLACE(nearest), CLI_RIGOR, NULL,
     "use the choice of the nearest known shape if nothing is measured", NULL},
    {"--time", CLI_TEXT, PLACE(seconds), CLI_TIME, "SECONDS",
     "limit of the search; the best found so far is used", NULL},
    {"--protocol", CLI_TEXT, PLACE(protocol), CLI_TIME, "WORDS",
     "how kernels are timed: cold or warm, launch or graph; \"cold launch\"",
     "cold warm launch graph"},
    {"--out", CLI_TEXT, PLACE(folder), CLI_OUT, "FILE", "a file instead of standard output", "*"},
    {"--out", CLI_TEXT, PLACE(folder), CLI_BUNDLE, "FOLDER",
     "writes the bundle: definition document, kernel, optimisation log, Python files", "/"},
    {"--out", CLI_TEXT, PLACE(folder), CLI_PACKED, "FOLDER", "writes the packed layers there", "/"},
    {"--out", CLI_TEXT, PLACE(folder), CLI_LOG, "FILE|FOLDER/",
     "a file for the log; or a folder, for optimization_log.md and definition.md", "*"},
    {"--out", CLI_TEXT, PLACE(folder), CLI_DRAFT, "FILE.kg",
     "writes the definition there, once you agree; -o is the same", "*.kg"},
    {"--yes", CLI_FLAG, PLACE(yes), CLI_DRAFT, NULL, "writes without asking", NULL},
    {"--force", CLI_FLAG, PLACE(force), CLI_DRAFT, NULL, "replaces a file that exists", NULL},
    {"--time", CLI_TEXT, PLACE(seconds), CLI_DRAFT, "SECONDS",
     "limit of each answer of the server; 300 by default", NULL},
    {"--lang", CLI_TEXT, PLACE(language), CLI_LANG, "en|zh", "language of the document", "en zh"},
    {"--target", CLI_TEXT, PLACE(target), CLI_TARGET, "NAME",
     "what to emit: host, cuda, ptx, triton, bundle", "host cuda ptx triton bundle"},
    {"--def", CLI_TEXT, PLACE(definition), CLI_DEFINITION, "OP.kg",
     "the definition that the bundle must agree with, too", "*.kg"},
    {"--launcher", CLI_FLAG, PLACE(launcher), CLI_TARGET, NULL,
     "with --target cuda: also host functions that launch the kernels, for nvcc", NULL},
    {"--candidate", CLI_CANDIDATE_LIST, 0, CLI_CANDIDATE, "FILE",
     "a foreign kernel instead of a generated one: .c, or .cu or .ptx for GPUs; several are judged "
     "by the same inputs",
     "*.c *.cu *.ptx"},
    {"--against", CLI_TEXT, PLACE(against), CLI_AGAINST, "OLD.jsonl",
     "wisdom of an earlier date: what got slower since", "*.jsonl"},
    {"--text", CLI_FLAG, PLACE(text), CLI_AGAINST, NULL,
     "the figures for this terminal, instead of a page", NULL},
    {"--override", CLI_TEXT, PLACE(override), CLI_OVERRIDE, "FILE.ptx",
     "an edited file of 'emit --target ptx' instead of the generated kernel", "*.ptx"},
    {"--contest", CLI_TEXT, PLACE(contest), CLI_CONTEST, "FOLDER",
     "kernels from elsewhere that compete with the one that is built, as in 'kernelgen contest'",
     "/"},
    {"--effort", CLI_TEXT, PLACE(effort), CLI_TIME, "X",
     "multiplies the accuracy gate's limits on work and memory: 4 verifies more, 0.5 less", NULL},
    {"--sanitize", CLI_FLAG, PLACE(sanitize), CLI_SANITIZE, NULL,
     "also runs the kernel under compute-sanitizer or, on the host, the compiler's sanitizers",
     NULL},
    {"--seed", CLI_TEXT, PLACE(seed), CLI_SEED, "N", "seed of the inputs; default: a fresh one",
     NULL},
    {"--input", CLI_INPUT_ARRAY, 0, CLI_ARRAYS, "x=x.npy", "a tensor to read, once per input",
     "=*.npy"},
    {"--output", CLI_OUTPUT_ARRAY, 0, CLI_ARRAYS, "y=y.npy", "a tensor to write, once per output",
     "=*.npy"},
    {"--kernel", CLI_TEXT, PLACE(kernel), CLI_ASSEMBLY, "NAME",
     "one kernel: its name, a unique substring of it, or its number", NULL},
    {"--grid", CLI_TEXT, PLACE(grid), CLI_ASSEMBLY, "X[,Y,Z]", "blocks of the launch", NULL},
    {"--block", CLI_TEXT, PLACE(block), CLI_ASSEMBLY, "X[,Y,Z]", "threads of a block", NULL},
    {"--smem", CLI_TEXT, PLACE(shared), CLI_ASSEMBLY, "BYTES", "dynamic shared memory of a block",
     NULL},
    {"--read-bytes", CLI_TEXT, PLACE(read_bytes), CLI_ASSEMBLY, "N",
     "bytes that every kernel of the problem must read", NULL},
    {"--write-bytes", CLI_TEXT, PLACE(write_bytes), CLI_ASSEMBLY, "N",
     "bytes that every kernel of the problem must write", NULL},
    {"--flops", CLI_TEXT, PLACE(flops), CLI_ASSEMBLY, "N", "operations of the problem", NULL},
    {"--warm", CLI_FLAG, PLACE(warm), CLI_ASSEMBLY, NULL, "caches are not flushed between runs",
     NULL},
    {"--sample", CLI_TEXT, PLACE(sample), CLI_ASSEMBLY, "F/OP/PROBLEM=SEC",
     "one line for 'fit': family, op, problem, measured seconds", NULL},
    {"--model", CLI_TEXT, PLACE(model), CLI_ASSEMBLY, "FILE",
     "coefficients of 'fit --json'; default: the prior", "*.json"},
    {"--family", CLI_TEXT, PLACE(family), CLI_ASSEMBLY, "NAME",
     "family of the coefficients, if --model has several", NULL},
    {"--compare", CLI_FLAG, PLACE(compare), CLI_ASSEMBLY, NULL, "two files side by side", NULL},
    {"--log", CLI_TEXT, PLACE(log), CLI_ASSEMBLY, "FILE", "the output of ptxas -v or NVRTC", "*"},
    {"--threads", CLI_TEXT, PLACE(threads), CLI_THREADS, "N", "cores to use; default: all", NULL},
    {"--timings", CLI_FLAG, PLACE(timings), CLI_TIME, NULL,
     "prints on standard error, at the end, how the time was spent", NULL},
    {"--json", CLI_FLAG, PLACE(json), CLI_JSON, NULL, "prints JSON", NULL},
    {"--help", CLI_FLAG, PLACE(help), 0, NULL, "this text", NULL},
    {0},
};

bool cli_takes(const struct cli_command *command, const struct cli_option_row *row)
{
    return !row->bit || row->bit & command->options;
}

// A cheap distance, enough for a mistyped letter or two: what is left between the common start and
// the common end.
static size_t difference(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    size_t la = strlen(a), lb = strlen(b);
    while (la && lb && a[la - 1] == b[lb - 1])
        la--, lb--;
    return la > lb ? la : lb;
}

static const char *nearest_option(const char *name, const struct cli_command *command)
{
    const char *best = NULL;
    size_t least = 3;
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++)
        if (cli_takes(command, row) && difference(name, row->name) < least) {
            best = row->name;
            least = difference(name, row->name);
        }
    return best;
}

// The command with the most similar name, for a mistyped one; NULL when none is similar.
static const char *nearest_command(const char *name)
{
    const char *best = NULL;
    size_t least = 3;
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (difference(name, command->name) < least) {
            best = command->name;
            least = difference(name, command->name);
        }
    return best;
}

const struct cli_command *cli_find_command(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

enum cli_exit cli_unknown_command(const char *name)
{
    const char *nearest = nearest_command(name);
    cli_say(stderr, "kernelgen: unknown command '%s'%s%s%s\n", name,
            nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    fprintf(stderr, "Try 'kernelgen --help'.\n");
    return CLI_BAD_INPUT;
}

static enum cli_exit bad_option(const struct cli_command *command, const char *word)
{
    const char *nearest = nearest_option(word, command);
    cli_bad_command(command, "unknown option '%s'%s%s%s", word, nearest ? "; did you mean " : "",
                    nearest ? nearest : "", nearest ? "?" : "");
    fprintf(stderr, "Try 'kernelgen %s --help'.\n", command->name);
    return CLI_BAD_INPUT;
}

// "P=4096,D=1000", cut up in place.
static enum cli_exit add_bindings(const char *option, char *value, struct cli_options *out)
{
    for (char *rest = value; rest;) {
        char *item = rest;
        rest = strchr(item, ',');
        if (rest)
            *rest++ = '\0';
        char *equals = strchr(item, '=');
        if (!equals || equals == item || !equals[1])
            return cli_bad_usage("%s needs NAME=VALUE, not '%s'", option, item);
        if (out->binding_count == CLI_MOST_BINDINGS)
            return cli_bad_usage("more than %d bindings", CLI_MOST_BINDINGS);
        *equals = '\0';
        out->bindings[out->binding_count++] = (struct kg_binding){item, equals + 1};
    }
    return CLI_DONE;
}

static enum cli_exit add_array(const char *option, char *value, struct cli_array *arrays,
                               int *count)
{
    char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1])
        return cli_bad_usage("%s needs TENSOR=FILE.npy, not '%s'", option, value);
    if (*count == CLI_MOST_ARRAYS)
        return cli_bad_usage("more than %d times %s", CLI_MOST_ARRAYS, option);
    *equals = '\0';
    arrays[(*count)++] = (struct cli_array){value, equals + 1};
    return CLI_DONE;
}

// `words` is the command line: its first words, which are read already, hold the list.
static enum cli_exit take(const struct cli_option_row *option, char *value, char **words,
                          struct cli_options *out)
{
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)((char *)out + option->place) = true;
        return CLI_DONE;
    case CLI_TEXT:
        *(const char **)((char *)out + option->place) = value;
        return CLI_DONE;
    case CLI_BINDING_LIST:
        return add_bindings(option->name, value, out);
    case CLI_INPUT_ARRAY:
        return add_array(option->name, value, out->inputs, &out->input_count);
    case CLI_OUTPUT_ARRAY:
        return add_array(option->name, value, out->outputs, &out->output_count);
    case CLI_CANDIDATE_LIST:
        words[out->candidate_count++] = value;
        out->candidates = words;
        return CLI_DONE;
    }
    return CLI_DONE;
}

static const struct cli_option_row *find_option(const char *word, size_t length,
                                                const struct cli_command *command)
{
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++)
        if (strlen(row->name) == length && memcmp(row->name, word, length) == 0 &&
            cli_takes(command, row))
            return row;
    return NULL;
}

static enum cli_exit parse_option(const struct cli_command *command, int count, char **words,
                                  int *at, struct cli_options *out)
{
    char *word = words[*at];
    char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    if (strcmp(word, "-h") == 0) {
        out->help = true;
        return CLI_DONE;
    }
    const struct cli_option_row *option = find_option(word, length, command);
    if (strcmp(word, "-o") == 0)
        option = find_option("--out", strlen("--out"), command);
    if (!option)
        return bad_option(command, word);
    if (option->kind == CLI_FLAG) {
        if (equals)
            return cli_bad_usage("%s takes no value", option->name);
        return take(option, NULL, words, out);
    }
    char *value = equals ? equals + 1 : *at + 1 < count ? words[++*at] : NULL;
    if (!value || !*value)
        return cli_bad_usage("%s needs a value: %s %s", option->name, option->name, option->value);
    return take(option, value, words, out);
}

enum cli_exit cli_parse(const struct cli_command *command, int count, char **words,
                        struct cli_options *out)
{
    *out = (struct cli_options){0};
    for (int i = 0; i < count; i++) {
        if (words[i][0] == '-' && words[i][1]) {
            enum cli_exit status = parse_option(command, count, words, &i, out);
            if (status != CLI_DONE)
                return status;
            continue;
        }
        if (out->word_count == command->most_words) {
            cli_bad_command(command, "'%s' is one argument too many", words[i]);
            fprintf(stderr, "Usage: kernelgen %s %s\n", command->name, command->usage);
            return CLI_BAD_INPUT;
        }
        out->words[out->word_count++] = words[i];
    }
    if (!out->help && out->word_count < command->least_words) {
        cli_json_failure("an argument is missing");
        fprintf(stderr, "Usage: kernelgen %s %s\n", command->name, command->usage);
        fprintf(stderr, "Try 'kernelgen %s --help'.\n", command->name);
        return CLI_BAD_INPUT;
    }
    return CLI_DONE;
}

void cli_help(const struct cli_command *command)
{
    printf("kernelgen %s%s%s\n\n%s.\n\n%s\nOptions:\n", command->name, *command->usage ? " " : "",
           command->usage, command->summary, command->details);
    for (const struct cli_option_row *row = cli_option_rows; row->name; row++) {
        if (!cli_takes(command, row))
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", row->name, row->value ? " " : "",
                 row->value ? row->value : "");
        printf("  %-24s %s\n", left, row->help);
    }
    printf(
        "\nExit status: 0 done, 1 the accuracy gate rejected it, 2 bad usage or input, 3 the "
        "machine\n"
        "lacks something, 4 right but slower than the goal, 130 interrupted (what was measured is\n"
        "kept).\n");
}

void cli_overview(void)
{
    printf("KernelGen %s: one operator definition in; a verified, tuned, documented kernel out.\n\n"
           "Usage: kernelgen COMMAND [ARGUMENTS]\n\n",
           kg_version());
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("  %-13s %s\n", command->name, command->summary);
    printf("\n'kernelgen COMMAND --help' tells more, with examples. Start with\n\n"
           "  kernelgen build ops/bias_relu.kg\n");
}
