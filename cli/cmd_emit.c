// kernelgen emit: the generated source, or the compiler's output.

#include "commands.h"
#include "plans.h"

#include <string.h>

// What has to be compiled only where there is a search.
static enum cli_exit emit_source(struct cli *cli)
{
    struct cli_subject subject;
    enum kg_rigor rigor;
    double seconds;
    char *text = NULL;
    enum cli_exit exit_status = cli_open(cli, &subject);
    if (exit_status == CLI_DONE)
        exit_status = cli_rigor(cli, KG_RIGOR_ESTIMATE, &rigor);
    if (exit_status == CLI_DONE)
        exit_status = cli_seconds(cli, &seconds);
    if (exit_status == CLI_DONE) {
        enum kg_status (*write)(const struct kg_problem *, struct kg_device *, enum kg_rigor,
                                double, char **) =
            cli->options.launcher ? kg_problem_launcher : kg_problem_source;
        enum kg_status status = write(subject.problem, subject.device, rigor, seconds, &text);
        exit_status = cli_print(cli, status, text);
    }
    cli_close(&subject);
    return exit_status;
}

// For programs of other origin. Nothing is chosen for a device, so that none is opened.
static enum cli_exit emit_module(struct cli *cli)
{
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    char *text = NULL;
    enum cli_exit exit_status = cli_open_op(cli, &op);
    if (exit_status == CLI_DONE) {
        enum kg_status status = kg_problem_create(cli->context, op, cli->options.bindings,
                                                  cli->options.binding_count, &problem);
        if (status == KG_OK)
            status = kg_problem_emit(problem, cli->options.target, &text);
        exit_status = cli_print(cli, status, text);
    }
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return exit_status;
}

static enum cli_exit print_assembly(struct cli *cli, struct cli_subject *subject,
                                    struct kg_plan *plan)
{
    (void)subject;
    char *text;
    enum kg_status status = kg_plan_assembly(plan, &text);
    return cli_print(cli, status, text);
}

static enum cli_exit emit_assembly(struct cli *cli)
{
    return cli_with_plan(cli, KG_RIGOR_ESTIMATE, print_assembly);
}

static enum cli_exit emit_bundle(struct cli *cli)
{
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    char *paths = NULL;
    if (!cli->options.folder)
        return cli_bad_usage("emit --target bundle needs --out FOLDER");
    enum cli_exit exit_status = cli_open_op(cli, &op);
    if (exit_status == CLI_DONE) {
        enum kg_status status = kg_problem_create(cli->context, op, cli->options.bindings,
                                                  cli->options.binding_count, &problem);
        if (status == KG_OK)
            status = kg_problem_bundle(problem, cli->options.folder, &paths);
        if (status == KG_OK)
            cli_say(stdout, "%s", paths);
        else
            exit_status = cli_fail(cli, status);
    }
    kg_text_release(paths);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return exit_status;
}

static const struct target {
    const char *name;
    const char *language; // kg_device_target of the devices that it is for
    // The default devices: the first that is present. Without a GPU, one is described, for which
    // kernels can be emitted. None: the source is not for a device of this tool.
    const char *devices[3];
    enum cli_exit (*emit)(struct cli *cli);
    const char *no_launcher; // why it takes no --launcher; NULL: it does
} targets[] = {
    {"host", "host", {"host"}, emit_source, "its kernel is a C function that programs call"},
    {"cuda", "cuda", {"cuda:0", "sm_90a"}, emit_source, NULL},
    {"ptx", "cuda", {"cuda:0", "sm_90a"}, emit_assembly, "use --target cuda"},
    {"triton", "triton", {NULL}, emit_module, "its module launches its kernels itself"},
    {"bundle", "triton", {NULL}, emit_bundle, "its functions launch their kernels"},
};

static const char *choose_device(struct cli *cli, const struct target *target)
{
    const char *name = NULL;
    for (int i = 0; target->devices[i]; i++) {
        struct kg_device *device;
        name = target->devices[i];
        if (kg_context_device(cli->context, name, &device) == KG_OK)
            break;
    }
    return name;
}

// Can the target be emitted for the device of this name? A device that cannot be opened is reported
// by whoever opens it next.
static bool fits(struct cli *cli, const struct target *target, const char *name)
{
    struct kg_device *device;
    return kg_context_device(cli->context, name, &device) != KG_OK ||
           strcmp(kg_device_target(device), target->language) == 0;
}

enum cli_exit cli_emit(struct cli *cli)
{
    const char *name = cli->options.target;
    if (!name)
        return cli_bad_usage("emit needs --target host, cuda, ptx, triton or bundle");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const struct target *target = &targets[i];
        if (strcmp(name, target->name) != 0)
            continue;
        if (cli->options.launcher && target->no_launcher)
            return cli_bad_usage("there is no --launcher with --target %s: %s", name,
                                 target->no_launcher);
        if (!target->devices[0] && cli->options.device)
            return cli_bad_usage("there is no --device with --target %s: its source is for all",
                                 name);
        if (!cli->options.device)
            cli->options.device = choose_device(cli, target);
        if (target->devices[0] && !fits(cli, target, cli->options.device))
            return cli_bad_usage("%s is not for --target %s", cli->options.device, name);
        return target->emit(cli);
    }
    return cli_bad_usage("there is no target '%s'; there are: host, cuda, ptx, triton, bundle",
                         name);
}
