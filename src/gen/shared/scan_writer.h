// Writing what a scan makes of each running total.

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
    const char *staged; // the place in a block where outputs go; NULL: to their tensors
    const char *stage;  // what the block of output number %d is called
};

// From the running total `total` (in the type of lanes, or the place found) over `count` elements
// to the outputs at the axes at hand.
void kg_scan_outputs(struct kg_scan_writer *writer, const char *total, const char *count);
// "y + i0 * y_s0 + first" for nest `position`.
void kg_scan_target(struct kg_text *text, const struct kg_scan_writer *writer, int position,
                    const char *from);

#endif
