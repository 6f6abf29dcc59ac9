// Which options help after a failure. The library's messages name what is wrong; that there are
// options is known here alone.

#include "cli.h"

#include <stdio.h>
#include <string.h>

static bool has_no_arrays(const struct cli_options *options)
{
    return options->binding_count == 0 && options->input_count == 0;
}

static bool searches_nothing(const struct cli_options *options)
{
    return options->rigor && !options->nearest;
}

// Where the GPU is only described.
static bool has_file_to_run(const struct cli_options *options)
{
    const char *device = options->device;
    bool described = device && strcmp(device, "host") != 0 && strncmp(device, "cuda:", 5) != 0;
    return described && (options->candidate_count || options->override);
}

static bool overrides(const struct cli_options *options)
{
    return options->override;
}

static bool has_model(const struct cli_options *options)
{
    return options->model;
}

static bool compares_all(const struct cli_options *options)
{
    return options->compare && !options->kernel;
}

static const struct {
    enum kg_status status;
    bool (*applies)(const struct cli_options *options);
    const char *text;
} advices[] = {
    {KG_ERROR_SHAPE, has_no_arrays, "--size NAME=NUMBER binds a size"},
    {KG_ERROR_NO_WISDOM, searches_nothing,
     "--rigor measure searches; --nearest goes by the nearest known shape"},
    {KG_ERROR_MISSING, has_file_to_run, "--device cuda:0 runs it where there is such a GPU"},
    {KG_ERROR_ARGUMENT, overrides, "'kernelgen emit --target ptx' prints the PTX to edit"},
    {KG_ERROR_ARGUMENT, compares_all,
     "--kernel NAME takes a part of a name that each file has once"},
    {KG_ERROR_ARGUMENT, has_model, "'kernelgen fit --json' writes coefficients"},
    {KG_ERROR_CORRUPT, has_model, "'kernelgen fit --json' writes coefficients"},
};

void cli_advise(const struct cli *cli, enum kg_status status)
{
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (advices[i].status == status && advices[i].applies(&cli->options))
            fprintf(stderr, "  help: %s\n", advices[i].text);
}
