// One function per command; each in the file of its name, cmd_<name>.c.

#ifndef KG_CLI_COMMANDS_H
#define KG_CLI_COMMANDS_H

#include "cli.h"

enum cli_exit cli_build(struct cli *cli);
enum cli_exit cli_build_folder(struct cli *cli); // of every definition in it
enum cli_exit cli_check(struct cli *cli);
enum cli_exit cli_check_bundle(struct cli *cli);
enum cli_exit cli_diff(struct cli *cli);
enum cli_exit cli_draft(struct cli *cli);
enum cli_exit cli_emit(struct cli *cli);
enum cli_exit cli_verify(struct cli *cli);
enum cli_exit cli_run(struct cli *cli);
enum cli_exit cli_bench(struct cli *cli);
enum cli_exit cli_contest(struct cli *cli);
enum cli_exit cli_profile(struct cli *cli);
enum cli_exit cli_explain(struct cli *cli);
enum cli_exit cli_asm(struct cli *cli);
enum cli_exit cli_fit(struct cli *cli);
enum cli_exit cli_pack(struct cli *cli);
enum cli_exit cli_wisdom(struct cli *cli);
enum cli_exit cli_patterns(struct cli *cli);
enum cli_exit cli_log(struct cli *cli);
enum cli_exit cli_report(struct cli *cli);
enum cli_exit cli_devices(struct cli *cli);
enum cli_exit cli_completions(struct cli *cli);
enum cli_exit cli_show_help(struct cli *cli);

#endif
