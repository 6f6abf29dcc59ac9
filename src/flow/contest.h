// The foreign kernels of a folder beside a plan's: judged, timed, recorded and ranked.

#ifndef KG_FLOW_CONTEST_H
#define KG_FLOW_CONTEST_H

#include "flow/plan_handle.h"

// See kg_plan_contest in kernelgen.h. `*unrun` counts the kernels that compile for a device that is
// not at hand.
enum kg_status kg_flow_contest(const struct kg_plan *plan, const char *folder, bool json,
                               struct kg_text *text, int *unrun, struct kg_error *error);

// Whether a folder can be read and has a file for the device, by its name: asked before anything
// takes long.
enum kg_status kg_flow_contest_check(const struct kg_device *device, const char *folder,
                                     struct kg_error *error);

#endif
