// What the two files of the scan family share.

#ifndef KG_GEN_SCAN_H
#define KG_GEN_SCAN_H

#include "gen/shared/axes.h"
#include "gen/shared/fold.h"

struct kg_scan_plan {
    const struct kg_group *group;
    const struct kg_nest *nest; // the scan
    struct kg_fold fold;
    int k;          // its position in the group
    int axis;       // the output axis along which it runs
    int bound;      // the reduced axis, which follows it
    int run, last;  // along columns: the output axes that vectors follow
    bool column;    // vectors follow other axes than the scan's
    bool backward;  // from the last element to the first: j >= d
    bool exclusive; // without the element itself: j < d
    bool stream;
    int64_t width, chunk;
    const char *entry;
};

// All but the last two lines. False, with the reason, for groups that are no scan and what belongs
// to it: private formulas before it, formulas over the same axes after it.
bool kg_scan_plan_make(const struct kg_group *group, struct kg_scan_plan *plan,
                       struct kg_text *reason);

// The functions of the kernel, after the opening.
void kg_scan_emit(struct kg_code *code, const struct kg_scan_plan *plan);

// What the emitting functions share.
struct kg_scan_writer {
    struct kg_code *code;
    const struct kg_scan_plan *plan;
    struct kg_values values;
    char names[KG_MAX_NESTS][16];
    const char *staged; // the place in a block where outputs go; NULL: to their tensors
    const char *stage;  // what the block of output number %d is called
};

void kg_scan_open(struct kg_scan_writer *writer, const char *kind, const char *name,
                  const char *parameters);
void kg_scan_close(struct kg_scan_writer *writer);
// The scan's axis at distance `distance` from where it starts.
void kg_scan_axis(struct kg_scan_writer *writer, const char *distance);
// The value of the element at hand, into `place`.
void kg_scan_value(struct kg_scan_writer *writer, const char *place);
// From the running total `total` (in the type of lanes, or the place found) over `count` elements
// to the outputs at the axes at hand.
void kg_scan_outputs(struct kg_scan_writer *writer, const char *total, const char *count);
// Blocks part<i>[length] for the outputs that are streamed, and their way out; `from` is the value
// of the axis that vectors follow at the start of the block.
void kg_scan_stages(struct kg_scan_writer *writer, const char *length);
void kg_scan_streams(struct kg_scan_writer *writer, const char *from, const char *count);
// "y + i0 * y_s0 + first" for nest `position`.
void kg_scan_target(struct kg_text *text, const struct kg_scan_writer *writer, int position,
                    const char *from);
bool kg_scan_is_stored(const struct kg_scan_plan *plan, int position);

// Along columns: the function `scan`.
void kg_scan_emit_columns(struct kg_scan_writer *writer);

#endif
