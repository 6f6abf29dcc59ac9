// kernelgen check-bundle: whether the four files of a bundle belong together.

#include "commands.h"

static enum cli_exit show(struct cli *cli, const struct kg_problem *definition)
{
    char *text = NULL;
    int findings = 0;
    enum kg_status status = kg_bundle_consistency(cli->context, cli->options.words[0], definition,
                                                  cli->options.json, &findings, &text);
    if (status != KG_OK) {
        enum cli_exit exit_status = cli_fail(cli, status);
        if (status == KG_ERROR_ARGUMENT)
            fprintf(stderr, "  help: 'kernelgen emit OP.kg --target bundle --out FOLDER' writes "
                            "a bundle\n");
        return exit_status;
    }
    if (cli->options.json)
        cli_json_begin();
    cli_say(stdout, "%s", text);
    kg_text_release(text);
    return findings ? CLI_REFUSED : CLI_DONE;
}

enum cli_exit cli_check_bundle(struct cli *cli)
{
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    if (!cli->options.definition) {
        if (cli->options.op || cli->options.binding_count)
            return cli_bad_usage("%s is of a definition: name it by --def OP.kg",
                                 cli->options.op ? "--op" : "--dtype, --size or --param");
        return show(cli, NULL);
    }
    enum cli_exit exit_status = cli_open_op_in(cli, cli->options.definition, &op);
    if (exit_status == CLI_DONE) {
        enum kg_status status = kg_problem_create(cli->context, op, cli->options.bindings,
                                                  cli->options.binding_count, &problem);
        exit_status = status == KG_OK ? show(cli, problem) : cli_fail(cli, status);
    }
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return exit_status;
}
