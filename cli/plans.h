// Commands that need a plan: how it is made from the options.

#ifndef KG_CLI_PLANS_H
#define KG_CLI_PLANS_H

#include "cli.h"

// Opens the subject, makes a plan (rigor `standard` unless --rigor says otherwise), calls `use`,
// and cleans up. With --override the kernels are those of its file.
enum cli_exit cli_with_plan(struct cli *cli, enum kg_rigor standard,
                            enum cli_exit (*use)(struct cli *cli, struct cli_subject *subject,
                                                 struct kg_plan *plan));
// The same for a problem that was opened already.
enum cli_exit cli_make_plan(struct cli *cli, const struct cli_subject *subject,
                            enum kg_rigor standard, struct kg_plan **plan);
// What runs: "kernel    rowwise*4: threads=64 ...", or the file that overrides it.
void cli_show_kernel(const struct cli *cli, const char *label, const struct kg_plan *plan);

#endif
