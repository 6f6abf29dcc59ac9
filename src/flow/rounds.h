// The optimisation loop of a build.

#ifndef KG_FLOW_ROUNDS_H
#define KG_FLOW_ROUNDS_H

#include "flow/build_run.h"

// Measures the first version. If the rigor asks for measurements, the first round is the search of
// that rigor, over everything; each later one makes one kind of change to the best version so far.
// What is not faster beyond the noise is not kept, so the loop never ends slower than the search
// alone. Every round is recorded as it ends; the report says why the last one was the last.
enum kg_status kg_rounds_run(struct kg_build_run *build, struct kg_error *error);

#endif
