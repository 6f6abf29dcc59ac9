// Writing the outputs of a scan from its running totals.

#ifndef KG_GEN_SCAN_WRITER_H
#define KG_GEN_SCAN_WRITER_H

#include "gen/shared/code.h"
#include "gen/shared/scan_plan.h"

// What the emitting functions share.
struct kg_scan_writer {
    struct kg_code *code;
    const struct kg_scan_plan *plan;
    struct kg_values values;
    char names[KG_MAX_NESTS][16];
    const char *staged; // position in a block that buffers outputs; NULL: they go to their tensors
    const char *stage;  // the name of the block of output number %d
};

// Computes the outputs at the current axes from the running total `total` (in the type of lanes, or
// the index found) over `count` elements.
void kg_scan_outputs(struct kg_scan_writer *writer, const char *total, const char *count);
// "y + i0 * y_s0 + first" for nest `position`.
void kg_scan_target(struct kg_text *text, const struct kg_scan_writer *writer, int position,
                    const char *from);

#endif
