// What the two files of the scan family share.

#ifndef KG_GEN_SCAN_H
#define KG_GEN_SCAN_H

#include "gen/shared/scan_writer.h"

// The functions of the kernel, after the opening.
void kg_scan_emit(struct kg_code *code, const struct kg_scan_plan *plan);

void kg_scan_open(struct kg_scan_writer *writer, const char *kind, const char *name,
                  const char *parameters);
void kg_scan_close(struct kg_scan_writer *writer);
// The scan's axis at distance `distance` from where it starts.
void kg_scan_axis(struct kg_scan_writer *writer, const char *distance);
// The value of the element at hand, into `place`.
void kg_scan_value(struct kg_scan_writer *writer, const char *place);
// Blocks part<i>[length] for the outputs that are streamed, and their way out; `from` is the value
// of the axis that vectors follow at the start of the block.
void kg_scan_stages(struct kg_scan_writer *writer, const char *length);
void kg_scan_streams(struct kg_scan_writer *writer, const char *from, const char *count);
// Along columns: the function `scan`.
void kg_scan_emit_columns(struct kg_scan_writer *writer);

#endif
