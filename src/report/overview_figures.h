// The figures of the page over all problems. Each writes nothing if the records have nothing for
// it.

#ifndef KG_REPORT_OVERVIEW_FIGURES_H
#define KG_REPORT_OVERVIEW_FIGURES_H

#include "report/html_text.h"
#include "report/overview.h"

// All of them.
void kg_html_overview(struct kg_text *page, const struct kg_overview *overview);

void kg_html_roofline(struct kg_text *page, const struct kg_overview *overview);
void kg_html_predicted(struct kg_text *page, const struct kg_overview *overview, int device);
void kg_html_shapes(struct kg_text *page, const struct kg_overview *overview);
void kg_html_devices(struct kg_text *page, const struct kg_overview *overview);
void kg_html_tiers(struct kg_text *page, const struct kg_overview *overview);

#endif
