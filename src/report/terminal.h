// The report for people without a browser: the figures of the page as text.

#ifndef KG_REPORT_TERMINAL_H
#define KG_REPORT_TERMINAL_H

#include "report/canvas.h"
#include "store/store.h"

#define KG_LEAST_COLUMNS 40
#define KG_MOST_COLUMNS 200

// The figures over all problems, or over those of one op, and a line for each problem; of one op
// (and of few problems) also its rounds and the progress of its search. The width is between the
// limits above, whatever is asked for. An op without records is KG_ERROR_ARGUMENT.
enum kg_status kg_report_terminal(struct kg_store *store, const char *op,
                                  const struct kg_terminal *terminal, struct kg_text *text,
                                  struct kg_error *error);

#endif
