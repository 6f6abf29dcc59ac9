// kernelgen asm: resources and limits of compiled code.

#include "commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_FILE ((size_t)1 << 30)

// "X", "X,Y" or "X,Y,Z".
static enum cli_exit read_dimensions(const char *option, const char *text, int64_t most,
                                     int64_t size[3])
{
    const char *at = text;
    for (int i = 0; text && i < 3; i++) {
        char *end;
        errno = 0;
        long long number = strtoll(at, &end, 10);
        if (end == at || errno || number < 1 || number > most || (*end && *end != ',') ||
            (*end && i == 2))
            return cli_bad_usage("%s '%s' is not X[,Y,Z], whole numbers from 1 to %lld", option,
                                 text, (long long)most);
        size[i] = number;
        if (!*end)
            break;
        at = end + 1;
    }
    return CLI_DONE;
}

static enum cli_exit read_amount(const char *option, const char *text, double *amount)
{
    if (!text)
        return CLI_DONE;
    char *end;
    *amount = strtod(text, &end);
    if (end == text || *end || !isfinite(*amount) || *amount < 0)
        return cli_bad_usage("%s '%s' is not a number of at least 0", option, text);
    return CLI_DONE;
}

static enum cli_exit read_launch(const struct cli_options *options,
                                 struct kg_assembly_launch *launch)
{
    *launch = (struct kg_assembly_launch){
        .size = sizeof *launch, .device = options->device, .warm = options->warm};
    int64_t block[3] = {0};
    double shared = 0;
    enum cli_exit result = read_dimensions("--grid", options->grid, INT32_MAX, launch->grid);
    if (result == CLI_DONE)
        result = read_dimensions("--block", options->block, 1024, block);
    if (result == CLI_DONE)
        result = read_amount("--smem", options->shared, &shared);
    if (result == CLI_DONE)
        result = read_amount("--read-bytes", options->read_bytes, &launch->read_bytes);
    if (result == CLI_DONE)
        result = read_amount("--write-bytes", options->write_bytes, &launch->write_bytes);
    if (result == CLI_DONE)
        result = read_amount("--flops", options->flops, &launch->flops);
    if (result == CLI_DONE && (shared > INT32_MAX || shared != floor(shared)))
        result = cli_bad_usage("--smem '%s' is not a number of bytes", options->shared);
    for (int i = 0; i < 3; i++)
        launch->block[i] = (int)block[i];
    launch->shared_bytes = (int64_t)shared;
    if (result == CLI_DONE && options->family && !options->model)
        result = cli_bad_usage("--family chooses among the coefficients of a --model");
    bool amounts = options->read_bytes || options->write_bytes || options->flops || options->warm;
    if (result == CLI_DONE && amounts && !options->grid)
        result = cli_bad_usage("bytes and FLOPs of a problem need a --grid");
    return result;
}

static enum cli_exit open_file(struct cli *cli, const char *path, struct kg_assembly **assembly)
{
    char *bytes;
    size_t length;
    *assembly = NULL;
    enum cli_exit result = cli_read_input(path, LARGEST_FILE, &bytes, &length);
    if (result != CLI_DONE)
        return result;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    enum kg_status status = kg_assembly_read(cli->context, name, bytes, length, assembly);
    free(bytes);
    return status == KG_OK ? CLI_DONE : cli_fail(cli, status);
}

static enum cli_exit use_model(struct cli *cli, struct kg_assembly *const assemblies[2])
{
    char *json;
    size_t length;
    enum cli_exit result = cli_read_file(cli->options.model, &json, &length);
    for (int a = 0; a < 2 && assemblies[a] && result == CLI_DONE; a++) {
        enum kg_status status =
            kg_assembly_use_fit(assemblies[a], json, length, cli->options.family);
        if (status != KG_OK)
            result = cli_fail_in(cli, cli->options.model, status);
    }
    free(json);
    return result;
}

// Adds the log to the one of both files that has its kernels.
static enum cli_exit add_log(struct cli *cli, struct kg_assembly *const assemblies[2])
{
    char *text;
    size_t length;
    int all = 0;
    enum cli_exit result = cli_read_file(cli->options.log, &text, &length);
    if (result != CLI_DONE)
        return result;
    for (int a = 0; a < 2 && assemblies[a] && result == CLI_DONE; a++) {
        int matched;
        enum kg_status status = kg_assembly_add_log(assemblies[a], text, length, &matched);
        if (status != KG_OK)
            result = cli_fail(cli, status);
        all += matched;
    }
    free(text);
    if (result == CLI_DONE && all == 0)
        result = cli_bad_usage("%s names no kernel of %s", cli->options.log, cli->options.words[0]);
    return result;
}

// "FAMILY/OP/PROBLEM=SECONDS"; op, or family and op, may be omitted.
static enum cli_exit read_sample(char *text, struct kg_measurement *measured)
{
    char *equals = strrchr(text, '='), *end;
    *measured = (struct kg_measurement){.size = sizeof *measured, .problem = text};
    if (!equals || equals == text)
        return cli_bad_usage("--sample needs FAMILY/OP/PROBLEM=SECONDS, not '%s'", text);
    measured->seconds = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !isfinite(measured->seconds) || measured->seconds <= 0)
        return cli_bad_usage("--sample '%s' has no number of seconds above 0 after its '='", text);
    *equals = '\0';
    char *slash = strchr(text, '/');
    if (slash) {
        *slash = '\0';
        measured->family = text;
        measured->problem = slash + 1;
        slash = strchr(slash + 1, '/');
    }
    if (slash) {
        *slash = '\0';
        measured->op = measured->problem;
        measured->problem = slash + 1;
    }
    return CLI_DONE;
}

// By name, by a unique substring, or by the number in the table.
static enum kg_status find_kernel(const struct cli *cli, const struct kg_assembly *assembly,
                                  int *index)
{
    const char *name = cli->options.kernel;
    char *end;
    enum kg_status status = kg_assembly_find(assembly, name, index);
    long number = strtol(name, &end, 10);
    if (status != KG_OK && !*end && number >= 1 && number <= kg_assembly_kernel_count(assembly)) {
        *index = (int)number - 1;
        status = KG_OK;
    }
    return status;
}

static enum cli_exit show_sample(struct cli *cli, const struct kg_assembly *assembly,
                                 const struct kg_assembly_launch *launch)
{
    int index = 0;
    if (!cli->options.kernel && kg_assembly_kernel_count(assembly) != 1)
        return cli_bad_usage("--sample needs one kernel: give --kernel");
    enum kg_status status = KG_OK;
    if (cli->options.kernel)
        status = find_kernel(cli, assembly, &index);
    char *copy = strdup(cli->options.sample), *line = NULL;
    struct kg_measurement measured;
    enum cli_exit result = copy ? read_sample(copy, &measured) : cli_bad_usage("out of memory");
    if (result == CLI_DONE && status == KG_OK)
        status = kg_assembly_sample(assembly, index, launch, &measured, &line);
    if (result == CLI_DONE)
        result = cli_print(cli, status, line);
    free(copy);
    return result;
}

static enum cli_exit show(struct cli *cli, struct kg_assembly *const assemblies[2],
                          const struct kg_assembly_launch *launch)
{
    int indices[2] = {-1, -1};
    enum kg_status status = KG_OK;
    for (int a = 0; a < 2 && assemblies[a] && cli->options.kernel && status == KG_OK; a++)
        status = find_kernel(cli, assemblies[a], &indices[a]);
    char *text = NULL;
    if (status == KG_OK && assemblies[1])
        status = kg_assembly_compare(assemblies[0], indices[0], assemblies[1], indices[1], launch,
                                     cli->options.json, &text);
    else if (status == KG_OK)
        status = kg_assembly_report(assemblies[0], indices[0], launch, cli->options.json, &text);
    return cli_print(cli, status, text);
}

enum cli_exit cli_asm(struct cli *cli)
{
    struct kg_assembly_launch launch;
    struct kg_assembly *assemblies[2] = {NULL, NULL};
    int files = cli->options.compare ? 2 : 1;
    if (cli->options.word_count != files)
        return cli_bad_usage(files == 2 ? "asm --compare needs two files"
                                        : "asm needs one file; --compare needs two");
    if (cli->options.sample && (files == 2 || !cli->options.grid))
        return cli_bad_usage("--sample needs one file and its launch: give --grid");
    enum cli_exit result = read_launch(&cli->options, &launch);
    for (int f = 0; f < files && result == CLI_DONE; f++)
        result = open_file(cli, cli->options.words[f], &assemblies[f]);
    if (result == CLI_DONE && cli->options.log)
        result = add_log(cli, assemblies);
    if (result == CLI_DONE && cli->options.model)
        result = use_model(cli, assemblies);
    if (result == CLI_DONE)
        result = cli->options.sample ? show_sample(cli, assemblies[0], &launch)
                                     : show(cli, assemblies, &launch);
    kg_assembly_destroy(assemblies[0]);
    kg_assembly_destroy(assemblies[1]);
    return result;
}
