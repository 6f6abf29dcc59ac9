// kernelgen run: one execution on NumPy files.

#include "commands.h"
#include "npy.h"
#include "output.h"
#include "plans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The arrays and tensors of one execution.
struct execution {
    struct cli_subject subject;
    struct npy_array arrays[CLI_MOST_ARRAYS]; // inputs, as read
    // Of inputs whose 4-bit elements fill one dimension of bytes, whatever the shape of the tensor;
    // KG_DTYPE_COUNT for the others.
    enum kg_dtype flat[CLI_MOST_ARRAYS];
    struct kg_plan *plan;
    void *tensors[2 * CLI_MOST_ARRAYS]; // by kg_problem_tensor index
};

// The index of the tensor; out of range when there is no such tensor.
static int find_tensor(const struct kg_op *op, const char *name)
{
    struct kg_tensor_info info = {.size = sizeof info};
    int index = 0;
    while (kg_op_tensor(op, index, &info) == KG_OK && strcmp(info.name, name) != 0)
        index++;
    return index;
}

// Files hold bits of dtypes that NumPy lacks: the definition, or else --dtype, gives the dtype.
static enum cli_exit read_input(const struct cli_options *options, const struct cli_array *input,
                                const struct kg_op *op, struct npy_array *array,
                                enum kg_dtype *flat)
{
    char error[NPY_ERROR];
    if (!npy_read(input->path, array, error))
        return cli_bad_usage("%s", error);
    int tensor = find_tensor(op, input->name);
    enum kg_dtype found = KG_DTYPE_COUNT;
    for (int i = 0; i < KG_DTYPE_COUNT; i++) {
        enum kg_dtype dtype = (enum kg_dtype)i;
        if (!npy_may_be(array->dtype, dtype) ||
            !kg_op_allows(op, tensor, dtype, options->bindings, options->binding_count))
            continue;
        if (found != KG_DTYPE_COUNT && found != array->dtype && dtype != array->dtype)
            return cli_bad_usage("%s: its bits may be of %s or of %s; --dtype tells", input->path,
                                 kg_dtype_name(found), kg_dtype_name(dtype));
        if (found != array->dtype)
            found = dtype;
    }
    *flat = KG_DTYPE_COUNT;
    if (found != KG_DTYPE_COUNT && npy_is_flat(array, found))
        *flat = found;
    else if (found != KG_DTYPE_COUNT && !npy_view(array, found, error))
        return cli_bad_usage("%s: %s", input->path, error);
    return CLI_DONE;
}

static enum cli_exit check_outputs(const struct cli *cli, const struct kg_op *op)
{
    const struct cli_options *options = &cli->options;
    if (options->output_count == 0)
        return cli_bad_usage("run needs at least one --output TENSOR=FILE.npy");
    for (int i = 0; i < options->output_count; i++) {
        struct kg_tensor_info info = {.size = sizeof info};
        int index = find_tensor(op, options->outputs[i].name);
        if (kg_op_tensor(op, index, &info) != KG_OK || !info.is_output)
            return cli_bad_usage("op %s has no output called '%s'", kg_op_name(op),
                                 options->outputs[i].name);
    }
    return CLI_DONE;
}

static enum kg_status create_problem(const struct cli *cli, struct execution *run)
{
    const struct cli_options *options = &cli->options;
    struct kg_tensor_info infos[CLI_MOST_ARRAYS] = {0};
    for (int i = 0; i < options->input_count; i++) {
        bool is_flat = run->flat[i] != KG_DTYPE_COUNT;
        infos[i].size = sizeof infos[i];
        infos[i].name = options->inputs[i].name;
        infos[i].dtype = is_flat ? run->flat[i] : run->arrays[i].dtype;
        infos[i].rank = is_flat ? -1 : run->arrays[i].rank;
        infos[i].bytes = run->arrays[i].bytes;
        memcpy(infos[i].shape, run->arrays[i].shape, sizeof infos[i].shape);
        memcpy(infos[i].stride, run->arrays[i].stride, sizeof infos[i].stride);
    }
    return kg_problem_create_for(cli->context, run->subject.op, infos, options->input_count,
                                 options->bindings, options->binding_count, &run->subject.problem);
}

// A tensor of one dimension has twice as many elements as bytes, if nothing else says that the last
// byte holds one. Returns whether there is such an input.
static bool view_even(const struct cli *cli, struct execution *run)
{
    bool any = false;
    for (int i = 0; i < cli->options.input_count; i++) {
        char error[NPY_ERROR];
        struct kg_tensor_info info = {.size = sizeof info};
        int tensor = find_tensor(run->subject.op, cli->options.inputs[i].name);
        if (run->flat[i] == KG_DTYPE_COUNT || kg_op_tensor(run->subject.op, tensor, &info) ||
            info.rank != 1 || !npy_view(&run->arrays[i], run->flat[i], error))
            continue;
        run->flat[i] = KG_DTYPE_COUNT;
        any = true;
    }
    return any;
}

// Says which file lacks a shape, if that is why there is no problem.
static enum cli_exit fail_to_create(const struct cli *cli, const struct execution *run,
                                    enum kg_status status)
{
    for (int i = 0; i < cli->options.input_count && status == KG_ERROR_SHAPE; i++)
        if (run->flat[i] != KG_DTYPE_COUNT)
            return cli_bad_usage("%s: packed 4-bit elements in one dimension, whose shape must "
                                 "follow from other inputs or --size: %s",
                                 cli->options.inputs[i].path, kg_context_error(cli->context));
    return cli_fail(cli, status);
}

static enum cli_exit open_problem(struct cli *cli, struct execution *run)
{
    const struct cli_options *options = &cli->options;
    for (int i = 0; i < options->input_count; i++) {
        enum cli_exit exit_status = read_input(options, &options->inputs[i], run->subject.op,
                                               &run->arrays[i], &run->flat[i]);
        if (exit_status != CLI_DONE)
            return exit_status;
    }
    enum kg_status status = create_problem(cli, run);
    if (status == KG_ERROR_SHAPE && view_even(cli, run))
        status = create_problem(cli, run);
    if (status != KG_OK)
        return fail_to_create(cli, run, status);
    status = kg_context_device(cli->context, options->device, &run->subject.device);
    return status == KG_OK ? CLI_DONE : cli_fail(cli, status);
}

// Binds inputs to the arrays that were read, and outputs to new memory.
static enum cli_exit bind_tensors(const struct cli *cli, struct execution *run)
{
    const struct cli_options *options = &cli->options;
    int count = kg_problem_tensor_count(run->subject.problem);
    for (int t = 0; t < count; t++) {
        struct kg_tensor_info info = {.size = sizeof info};
        kg_problem_tensor(run->subject.problem, t, &info);
        for (int i = 0; i < options->input_count && !info.is_output; i++)
            if (strcmp(options->inputs[i].name, info.name) == 0)
                run->tensors[t] = run->arrays[i].data;
        if (info.is_output)
            run->tensors[t] = aligned_alloc(64, (info.bytes / 64 + 1) * 64);
        if (!run->tensors[t]) {
            fprintf(stderr, "kernelgen: no memory for tensor %s\n", info.name);
            return CLI_MISSING;
        }
    }
    return CLI_DONE;
}

// Kernels leave alone the half of the last byte that holds no element.
static void clear_unused_half(const struct kg_tensor_info *info, unsigned char *bytes)
{
    int64_t count = 1;
    for (int d = 0; d < info->rank; d++)
        count *= info->shape[d];
    if (kg_dtype_bits(info->dtype) == 4 && count % 2 == 1)
        bytes[info->bytes - 1] &= 15;
}

static enum cli_exit write_outputs(const struct cli *cli, const struct execution *run)
{
    const struct cli_options *options = &cli->options;
    int count = kg_problem_tensor_count(run->subject.problem);
    for (int t = 0; t < count; t++) {
        struct kg_tensor_info info = {.size = sizeof info};
        kg_problem_tensor(run->subject.problem, t, &info);
        struct npy_array array = {
            .dtype = info.dtype, .rank = info.rank, .data = run->tensors[t], .bytes = info.bytes};
        if (info.is_output)
            clear_unused_half(&info, run->tensors[t]);
        memcpy(array.shape, info.shape, sizeof array.shape);
        memcpy(array.stride, info.stride, sizeof array.stride);
        for (int i = 0; i < options->output_count && info.is_output; i++) {
            if (strcmp(options->outputs[i].name, info.name) != 0)
                continue;
            char error[NPY_ERROR];
            if (!npy_write(options->outputs[i].path, &array, error)) {
                int why = errno;
                enum cli_exit exit_status = cli_bad_usage("%s", error);
                return output_is_full(why) ? CLI_MISSING : exit_status;
            }
            cli_say(stdout, "%s written to %s\n", info.name, options->outputs[i].path);
        }
    }
    return CLI_DONE;
}

// A foreign kernel is verified before it runs on the user's data.
static enum cli_exit prove_override(const struct cli *cli, const struct kg_plan *plan)
{
    struct kg_verify_result verdict = {.size = sizeof verdict};
    if (!cli->options.override)
        return CLI_DONE;
    enum kg_status status = kg_plan_verify(plan, 0, &verdict);
    if (status != KG_OK)
        return cli_fail(cli, status);
    if (verdict.passed)
        return CLI_DONE;
    cli_show_verdict(&verdict);
    return CLI_REFUSED;
}

static enum cli_exit execute(struct cli *cli, struct execution *run)
{
    enum cli_exit exit_status = cli_open_op(cli, &run->subject.op);
    if (exit_status == CLI_DONE)
        exit_status = check_outputs(cli, run->subject.op);
    if (exit_status == CLI_DONE)
        exit_status = open_problem(cli, run);
    if (exit_status == CLI_DONE)
        exit_status = cli_make_plan(cli, &run->subject, KG_RIGOR_ESTIMATE, &run->plan);
    if (exit_status == CLI_DONE)
        exit_status = prove_override(cli, run->plan);
    if (exit_status == CLI_DONE)
        exit_status = bind_tensors(cli, run);
    if (exit_status != CLI_DONE)
        return exit_status;
    enum kg_status status = kg_plan_run(run->plan, run->tensors);
    return status == KG_OK ? write_outputs(cli, run) : cli_fail(cli, status);
}

enum cli_exit cli_run(struct cli *cli)
{
    struct execution run = {0};
    enum cli_exit exit_status = execute(cli, &run);
    int count = run.subject.problem ? kg_problem_tensor_count(run.subject.problem) : 0;
    for (int t = 0; t < count; t++) {
        struct kg_tensor_info info = {.size = sizeof info};
        if (kg_problem_tensor(run.subject.problem, t, &info) == KG_OK && info.is_output)
            free(run.tensors[t]);
    }
    for (int i = 0; i < cli->options.input_count; i++)
        npy_free(&run.arrays[i]);
    kg_plan_destroy(run.plan);
    cli_close(&run.subject);
    return exit_status;
}
