// The optimisation log of an op as Markdown: for each problem what the builds reached, their rounds
// as a story, and tables of what was measured. It is made from the records alone, so every number
// in it is a value of a row, or the ratio of two.

#ifndef KG_REPORT_LOG_H
#define KG_REPORT_LOG_H

#include "analyze/roofline.h"
#include "store/store.h"

// The log of one op, or of all (NULL); problems and rounds come oldest first. Without records it
// says so.
enum kg_status kg_report_log(struct kg_store *store, const char *op, enum kg_language language,
                             struct kg_text *markdown, struct kg_error *error);

#endif
