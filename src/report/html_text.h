// What all parts of the page write.

#ifndef KG_REPORT_HTML_TEXT_H
#define KG_REPORT_HTML_TEXT_H

#include "report/overview.h"

// Any bytes as text of an element or of a quoted attribute.
void kg_html_text(struct kg_text *page, const char *string);
// "12.5 us", or a dash when nothing was measured.
void kg_html_seconds(struct kg_text *page, double seconds);

// "softmax T=f16 P=4096 D=1000"
void kg_html_problem(struct kg_text *page, const struct kg_shown_problem *problem);
// Begins a link, <a>, from a figure to a problem's card. Keys reach the cards themselves.
void kg_html_link(struct kg_text *page, const struct kg_shown_problem *problem);

#endif
