// Options: one table, read by the parser, by --help and by the suggestions.

#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How an option's value is taken.
enum kind { KIND_TEXT, KIND_FLAG, KIND_BINDINGS, KIND_INPUT, KIND_OUTPUT };

struct option {
    const char *name;
    enum kind kind;
    size_t place; // of the member in struct cli_options, for TEXT and FLAG
    unsigned bit; // 0: every command has it
    const char *value;
    const char *help;
};

#define PLACE(member) offsetof(struct cli_options, member)

static const struct option options[] = {
    {"--op", KIND_TEXT, PLACE(op), CLI_OP, "NAME", "the op, if the file has several"},
    {"--device", KIND_TEXT, PLACE(device), CLI_DEVICE, "NAME",
     "host, cuda:0, sm_90a, h100; default: the best of this machine"},
    {"--device", KIND_TEXT, PLACE(device), CLI_ASSEMBLY, "NAME",
     "cuda:0, sm_90a, h100, ...; default: one of the code's architecture"},
    {"--op", KIND_TEXT, PLACE(op), CLI_FIT, "NAME", "only samples of this op"},
    {"--device", KIND_TEXT, PLACE(device), CLI_FIT, "NAME",
     "only samples of this device: host, cuda:0, sm_90a, h100, or a substring of its name"},
    {"--family", KIND_TEXT, PLACE(family), CLI_FIT, "NAME", "only samples of this family"},
    {"--export", KIND_TEXT, PLACE(export_path), CLI_FIT, "FILE.jsonl",
     "writes the recorded samples to a file, for another machine; - is stdout"},
    {"--dtype", KIND_BINDINGS, 0, CLI_BINDINGS, "T=f16", "dtypes; the first allowed by default"},
    {"--size", KIND_BINDINGS, 0, CLI_BINDINGS, "P=4096,D=1000",
     "sizes; from the goal's tune row by default"},
    {"--param", KIND_BINDINGS, 0, CLI_BINDINGS, "G=64", "build-time params"},
    {"--rigor", KIND_TEXT, PLACE(rigor), CLI_RIGOR, "R",
     "estimate, measure, patient, exhaustive, wisdom, or default: measure unless the problem is "
     "small"},
    {"--nearest", KIND_FLAG, PLACE(nearest), CLI_RIGOR, NULL,
     "use the choice of the nearest known shape if nothing is measured"},
    {"--time", KIND_TEXT, PLACE(seconds), CLI_TIME, "SECONDS",
     "limit of the search; the best found so far is used"},
    {"--protocol", KIND_TEXT, PLACE(protocol), CLI_TIME, "WORDS",
     "how kernels are timed: cold or warm, launch or graph; \"cold launch\""},
    {"--out", KIND_TEXT, PLACE(folder), CLI_OUT, "PATH",
     "a file instead of standard output; for build, the bundle's folder"},
    {"--lang", KIND_TEXT, PLACE(language), CLI_LANG, "en|zh", "language of the document"},
    {"--target", KIND_TEXT, PLACE(target), CLI_TARGET, "NAME", "what to emit: host, cuda, ptx"},
    {"--launcher", KIND_FLAG, PLACE(launcher), CLI_TARGET, NULL,
     "with --target cuda: also host functions that launch the kernels, for nvcc"},
    {"--candidate", KIND_TEXT, PLACE(candidate), CLI_CANDIDATE, "FILE",
     "a foreign kernel instead of a generated one: .c, or .cu or .ptx for GPUs"},
    {"--override", KIND_TEXT, PLACE(override), CLI_OVERRIDE, "FILE.ptx",
     "an edited file of 'emit --target ptx' instead of the generated kernel"},
    {"--effort", KIND_TEXT, PLACE(effort), CLI_TIME, "X",
     "multiplies the accuracy gate's limits on work and memory: 4 verifies more, 0.5 less"},
    {"--sanitize", KIND_FLAG, PLACE(sanitize), CLI_SANITIZE, NULL,
     "also runs the kernel under compute-sanitizer or, on the host, the compiler's sanitizers"},
    {"--seed", KIND_TEXT, PLACE(seed), CLI_SEED, "N", "seed of the inputs; default: a fresh one"},
    {"--input", KIND_INPUT, 0, CLI_ARRAYS, "x=x.npy", "a tensor to read, once per input"},
    {"--output", KIND_OUTPUT, 0, CLI_ARRAYS, "y=y.npy", "a tensor to write, once per output"},
    {"--kernel", KIND_TEXT, PLACE(kernel), CLI_ASSEMBLY, "NAME",
     "one kernel: its name, a unique substring of it, or its number"},
    {"--grid", KIND_TEXT, PLACE(grid), CLI_ASSEMBLY, "X[,Y,Z]", "blocks of the launch"},
    {"--block", KIND_TEXT, PLACE(block), CLI_ASSEMBLY, "X[,Y,Z]", "threads of a block"},
    {"--smem", KIND_TEXT, PLACE(shared), CLI_ASSEMBLY, "BYTES", "dynamic shared memory of a block"},
    {"--read-bytes", KIND_TEXT, PLACE(read_bytes), CLI_ASSEMBLY, "N",
     "bytes that every kernel of the problem must read"},
    {"--write-bytes", KIND_TEXT, PLACE(write_bytes), CLI_ASSEMBLY, "N",
     "bytes that every kernel of the problem must write"},
    {"--flops", KIND_TEXT, PLACE(flops), CLI_ASSEMBLY, "N", "operations of the problem"},
    {"--warm", KIND_FLAG, PLACE(warm), CLI_ASSEMBLY, NULL, "caches are not flushed between runs"},
    {"--sample", KIND_TEXT, PLACE(sample), CLI_ASSEMBLY, "F/OP/PROBLEM=SEC",
     "one line for 'fit': family, op, problem, measured seconds"},
    {"--model", KIND_TEXT, PLACE(model), CLI_ASSEMBLY, "FILE",
     "coefficients of 'fit --json'; default: the prior"},
    {"--family", KIND_TEXT, PLACE(family), CLI_ASSEMBLY, "NAME",
     "family of the coefficients, if --model has several"},
    {"--compare", KIND_FLAG, PLACE(compare), CLI_ASSEMBLY, NULL, "two files side by side"},
    {"--log", KIND_TEXT, PLACE(log), CLI_ASSEMBLY, "FILE", "the output of ptxas -v or NVRTC"},
    {"--threads", KIND_TEXT, PLACE(threads), CLI_THREADS, "N", "cores to use; default: all"},
    {"--timings", KIND_FLAG, PLACE(timings), CLI_TIME, NULL,
     "prints on standard error, at the end, how the time was spent"},
    {"--json", KIND_FLAG, PLACE(json), CLI_JSON, NULL, "prints JSON"},
    {"--help", KIND_FLAG, PLACE(help), 0, NULL, "this text"},
};

#define OPTION_COUNT (sizeof options / sizeof options[0])

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

static const char *nearest_option(const char *name, unsigned bits)
{
    const char *best = NULL;
    size_t least = 3;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((!options[i].bit || options[i].bit & bits) &&
            difference(name, options[i].name) < least) {
            best = options[i].name;
            least = difference(name, options[i].name);
        }
    return best;
}

const char *cli_nearest_command(const char *name)
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

static enum cli_exit bad_option(const struct cli_command *command, const char *word)
{
    const char *nearest = nearest_option(word, command->options);
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

static enum cli_exit take(const struct option *option, char *value, struct cli_options *out)
{
    switch (option->kind) {
    case KIND_FLAG:
        *(bool *)((char *)out + option->place) = true;
        return CLI_DONE;
    case KIND_TEXT:
        *(const char **)((char *)out + option->place) = value;
        return CLI_DONE;
    case KIND_BINDINGS:
        return add_bindings(option->name, value, out);
    case KIND_INPUT:
        return add_array(option->name, value, out->inputs, &out->input_count);
    case KIND_OUTPUT:
        return add_array(option->name, value, out->outputs, &out->output_count);
    }
    return CLI_DONE;
}

static const struct option *find_option(const char *word, size_t length, unsigned bits)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, word, length) == 0 &&
            (!options[i].bit || options[i].bit & bits))
            return &options[i];
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
    const struct option *option = find_option(word, length, command->options);
    if (!option)
        return bad_option(command, word);
    if (option->kind == KIND_FLAG) {
        if (equals)
            return cli_bad_usage("%s takes no value", option->name);
        return take(option, NULL, out);
    }
    char *value = equals ? equals + 1 : *at + 1 < count ? words[++*at] : NULL;
    if (!value || !*value)
        return cli_bad_usage("%s needs a value: %s %s", option->name, option->name, option->value);
    return take(option, value, out);
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
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (options[i].bit && !(options[i].bit & command->options))
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", options[i].name, options[i].value ? " " : "",
                 options[i].value ? options[i].value : "");
        printf("  %-24s %s\n", left, options[i].help);
    }
    printf(
        "\nExit status: 0 done, 1 the gate rejected it, 2 bad usage or input, 3 the machine lacks\n"
        "something, 130 interrupted (what was measured is kept).\n");
}

void cli_overview(void)
{
    printf("KernelGen %s: one operator definition in; a verified, tuned, documented kernel out.\n\n"
           "Usage: kernelgen COMMAND [ARGUMENTS]\n\n",
           kg_version());
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("  %-9s %s\n", command->name, command->summary);
    printf("\n'kernelgen COMMAND --help' tells more, with examples. Start with\n\n"
           "  kernelgen build ops/bias_relu.kg\n");
}
