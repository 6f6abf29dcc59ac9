// The records as one self-contained HTML page: its own style and script, no font, no other file.
// Without a script it is complete, and merely not sorted or filtered.

#ifndef KG_REPORT_HTML_H
#define KG_REPORT_HTML_H

#include "report/html_text.h"
#include "report/regression.h"
#include "report/view.h"

// The page for one op, or for all (NULL). With a comparison (else NULL) it marks what got slower or
// faster. `summary` receives what it shows in one line: "24 problems of 12 ops on 2 devices".
// Without records both say so; an op without records is KG_ERROR_ARGUMENT.
enum kg_status kg_report_html(struct kg_store *store, const char *op,
                              const struct kg_comparison *comparison, struct kg_text *summary,
                              struct kg_text *page, struct kg_error *error);

// One problem: a line with its result, which opens to everything that is known of it.
// `since` is what an earlier date has of it; NULL: nothing.
void kg_html_card(struct kg_text *page, const struct kg_view *view, const struct kg_since *since,
                  int number, bool open);
// What got slower or faster, as a table above the list.
void kg_html_since(struct kg_text *page, const struct kg_overview *overview);

// plot.c: the time of each round against baseline and roofline; the fastest candidates as bars.
void kg_html_rounds(struct kg_text *page, const struct kg_view *view);
void kg_html_candidates(struct kg_text *page, const struct kg_view *view);

// The best time so far over the candidates measured.
void kg_html_progress(struct kg_text *page, const struct kg_view *view);
// The rounds in words, and how the plain search compares with the end of the loop.
void kg_html_story(struct kg_text *page, const struct kg_view *view);

extern const char *const kg_html_style;
extern const char *const kg_html_script;
// Base64 of the script's SHA-256: the only script that the page's policy lets run.
extern const char *const kg_html_script_hash;

#endif
