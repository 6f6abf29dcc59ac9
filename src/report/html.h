// The records as one self-contained HTML page: no script, no font, no other file.

#ifndef KG_REPORT_HTML_H
#define KG_REPORT_HTML_H

#include "report/view.h"

// The page for one op, or for all (NULL). Without records, the page says so.
enum kg_status kg_report_html(struct kg_store *store, const char *op, struct kg_text *page,
                              struct kg_error *error);

// Any bytes as text of an element or of a quoted attribute.
void kg_html_text(struct kg_text *page, const char *string);
// "12.5 us", or a dash when nothing was measured.
void kg_html_seconds(struct kg_text *page, double seconds);

// plot.c: the time of each round against baseline and roofline; the fastest candidates as bars.
void kg_html_rounds(struct kg_text *page, const struct kg_view *view);
void kg_html_candidates(struct kg_text *page, const struct kg_view *view);

extern const char *const kg_html_style;

#endif
